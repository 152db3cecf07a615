// The gradient of a 3×3, stride-1 convolution's weights: dW[o][tap][i] = Σ over pixels of dz'[p][o] · h[p + tap][i].
//
// Both factors are rebuilt in shared memory (h = leaky(a·z + b), dz' = A·g' + B·z' + D), so neither is ever stored. A block
// takes tiles of TH rows; while it multiplies one, the raw bytes of the next are copied into a staging area. Of its twelve
// warps three share a slice of the rows, one per kernel column. Every block leaves a partial sum; `sum_partials` adds them
// in a fixed order.
template <int CI, int CO, int S, int TH, int HOW_H, int HOW_D>
__global__ void __launch_bounds__(384, 1)
weight_gradient(const uint4* __restrict__ input, const float* __restrict__ in_table,      // h: z before the activation
                const uint4* __restrict__ gradient, const uint4* __restrict__ second,      // dz': g' and z', or plain
                const float* __restrict__ out_table,
                float* __restrict__ partial,                                               // (blocks, CO, 9, CI)
                int images) {
    constexpr int H_PITCH = CI * 2 + 16, D_PITCH = CO * 2 + 16, COLUMNS = S + 2, HV = CI / 8, DV = CO / 8;
    constexpr int H_BYTES = (TH + 2) * COLUMNS * H_PITCH, D_BYTES = TH * S * D_PITCH;
    constexpr int H_COUNT = HOW_H == IMAGE ? 0 : (TH + 2) * S * HV, D_COUNT = TH * S * DV;
    constexpr int H_LOADS = (H_COUNT + 383) / 384, D_LOADS = (D_COUNT + 383) / 384;
    constexpr int MT = CO / 16, NT = CI / 8, TILES = S / TH;
    extern __shared__ __align__(16) unsigned char shared[];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, kx = warp % 3, split = warp / 3;
    unsigned char *h_tile = shared, *d_tile = shared + H_BYTES;
    uint4 *h_raw = (uint4*)(d_tile + D_BYTES), *d_raw = h_raw + H_COUNT, *z_raw = d_raw + D_COUNT;
    for (int v = thread; v < (H_BYTES + D_BYTES) / 16; v += 384) ((uint4*)shared)[v] = make_uint4(0, 0, 0, 0);
    __syncthreads();

    float acc[3][MT][NT][4];
#pragma unroll
    for (int x = 0; x < 3; x++)
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int n = 0; n < NT; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) acc[x][m][n][e] = 0.f;

    const int total = images * TILES;
    // A thread rebuilds exactly the vectors it copied: no barrier between the two.
    auto fetch = [&](int t) {
        const int image = t / TILES, row0 = t % TILES * TH;
        const long h_base = (long)image * S * S * HV + (row0 - 1) * S * HV, d_base = ((long)image * S + row0) * S * DV;
#pragma unroll
        for (int i = 0; i < H_LOADS; i++) {
            const int v = thread + i * 384, row = row0 - 1 + v / (HV * S);
            if (v < H_COUNT && row >= 0 && row < S) copy_ahead(h_raw + v, input + h_base + v);
        }
#pragma unroll
        for (int i = 0; i < D_LOADS; i++) {
            const int v = thread + i * 384;
            if (v < D_COUNT) {
                copy_ahead(d_raw + v, gradient + d_base + v);
                if (HOW_D == GRADIENT) copy_ahead(z_raw + v, second + d_base + v);
            }
        }
    };
    if (blockIdx.x < total) fetch(blockIdx.x);
    for (int t = blockIdx.x; t < total; t += gridDim.x) {
        const int image = t / TILES, row0 = t % TILES * TH;
        await_copies();
        float k[3][8];  // loaded anew for every tile: there are no registers to keep it in
        load_coefficients<HOW_H>(k, in_table, CI, thread % HV * 8);
        if (HOW_H == IMAGE)
            fill_image<(TH + 2) * S, 384, S>((const u16*)input + (long)image * S * S * 3, row0 - 1, thread,
                                             [&](int p) { return h_tile + (p / S * COLUMNS + p % S + 1) * H_PITCH; });
#pragma unroll 2
        for (int i = 0; i < H_LOADS; i++) {
            const int v = thread + i * 384, p = v / HV, row = row0 - 1 + p / S;
            if (v < H_COUNT) {
                uint4 value = make_uint4(0, 0, 0, 0);
                if (row >= 0 && row < S) value = read_as<HOW_H>(h_raw[v], value, k);
                *(uint4*)(h_tile + (p / S * COLUMNS + p % S + 1) * H_PITCH + v % HV * 16) = value;
            }
        }
        load_coefficients<HOW_D>(k, out_table, CO, thread % DV * 8);
#pragma unroll 2
        for (int i = 0; i < D_LOADS; i++) {
            const int v = thread + i * 384;
            if (v < D_COUNT)
                *(uint4*)(d_tile + v / DV * D_PITCH + v % DV * 16) = read_as<HOW_D>(d_raw[v], HOW_D == GRADIENT ? z_raw[v] : d_raw[v], k);
        }
        __syncthreads();
        if (t + gridDim.x < total) fetch(t + gridDim.x);
        // A warp goes down TH / 4 rows, 16 pixels at a time: of h, each step needs one row more and keeps two.
        const int k_row = (lane / 8 % 2) * 8 + lane % 8;  // which of the 16 pixels this lane points at for h
#pragma unroll 1
        for (int column = 0; column < S; column += 16) {
            const int row = split * (TH / 4);
            const u32 d_address = shared_address(d_tile) + (row * S + column + lane / 16 * 8 + lane % 8) * D_PITCH + (lane / 8 % 2) * 16;
            const u32 h_address = shared_address(h_tile) + (row * COLUMNS + column + k_row + kx) * H_PITCH + lane / 16 * 16;
            u32 h[TH / 4 + 2][NT / 2][4];
#pragma unroll
            for (int r = 0; r < 2; r++)
#pragma unroll
                for (int n = 0; n < NT / 2; n++) load_matrices_transposed(h[r][n], h_address + r * COLUMNS * H_PITCH + n * 32);
#pragma unroll
            for (int r = 0; r < TH / 4; r++) {
                u32 d[MT][4];
#pragma unroll
                for (int n = 0; n < NT / 2; n++)
                    load_matrices_transposed(h[r + 2][n], h_address + (r + 2) * COLUMNS * H_PITCH + n * 32);
#pragma unroll
                for (int m = 0; m < MT; m++) load_matrices_transposed(d[m], d_address + r * S * D_PITCH + m * 32);
#pragma unroll
                for (int y = 0; y < 3; y++)
#pragma unroll
                    for (int n = 0; n < NT; n++)
#pragma unroll
                        for (int m = 0; m < MT; m++)
                            multiply_add(acc[y][m][n], d[m], h[r + y][n / 2][n % 2 * 2], h[r + y][n / 2][n % 2 * 2 + 1]);
            }
        }
        __syncthreads();
    }
    // --- the four slices of this block, one after the other
    float* sums = (float*)shared;  // (CO, 9, CI)
    for (int turn = 0; turn < 4; turn++) {
        if (split == turn) {
#pragma unroll
            for (int y = 0; y < 3; y++)
#pragma unroll
                for (int m = 0; m < MT; m++)
#pragma unroll
                    for (int n = 0; n < NT; n++)
#pragma unroll
                        for (int e = 0; e < 4; e++) {
                            const int o = m * 16 + e / 2 * 8 + lane / 4, i = n * 8 + lane % 4 * 2 + e % 2;
                            float* at = sums + (o * 9 + y * 3 + kx) * CI + i;
                            *at = turn ? *at + acc[y][m][n][e] : acc[y][m][n][e];
                        }
        }
        __syncthreads();
    }
    for (int i = thread; i < CO * 9 * CI; i += 384) partial[(long)blockIdx.x * CO * 9 * CI + i] = sums[i];
}

// out[i] = Σ_b partial[b][i]
extern "C" __global__ void sum_partials(const float* __restrict__ partial, float* __restrict__ out, int blocks, int size) {
    __shared__ float part[8][32];
    const int i = blockIdx.x * 32 + threadIdx.x;
    float sum = 0.f;
    if (i < size)
        for (int b = threadIdx.y; b < blocks; b += 8) sum += partial[(long)b * size + i];
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && i < size) {
        for (int y = 1; y < 8; y++) sum += part[y][threadIdx.x];
        out[i] = sum;
    }
}
