// The gradient of a 3×3, stride-1 convolution's weights: dW[o][tap][i] = Σ over pixels of dz'[p][o] · h[p + tap][i].
//
// A block takes tiles of TH rows; while it multiplies one, the next is copied into a second buffer. Of its twelve warps three
// share a slice of the rows, one per kernel column. Every block leaves a partial sum; `sum_partials` adds them in a fixed
// order.
template <int CI, int CO, int S, int TH, int HOW>  // HOW: PLAIN for h, IMAGE for the stem's three channels
__global__ void __launch_bounds__(384, 2)
weight_gradient(const uint4* __restrict__ input, const uint4* __restrict__ gradient,  // h and dz'
                float* __restrict__ partial,                                          // (blocks, CO, 9, CI)
                int images) {
    constexpr int H_PITCH = CI * 2 + 16, D_PITCH = CO * 2 + 16, COLUMNS = S + 2, HV = CI / 8, DV = CO / 8;
    constexpr int H_BYTES = (TH + 2) * COLUMNS * H_PITCH, BUFFER = H_BYTES + TH * S * D_PITCH;
    constexpr int H_COUNT = HOW == IMAGE ? 0 : (TH + 2) * S * HV, D_COUNT = TH * S * DV;
    constexpr int MT = CO / 16, NT = CI / 8, TILES = S / TH;
    extern __shared__ __align__(16) unsigned char shared[];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32, kx = warp % 3, split = warp / 3;
    for (int v = thread; v < 2 * BUFFER / 16; v += 384) ((uint4*)shared)[v] = make_uint4(0, 0, 0, 0);
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
    auto fetch = [&](int t, unsigned char* buffer) {
        if (t < total) {
            const int image = t / TILES, row0 = t % TILES * TH;
            const uint4 *h = input + (long)image * S * S * HV, *d = gradient + ((long)image * S + row0) * S * DV;
#pragma unroll
            for (int v = thread; v < H_COUNT; v += 384) {
                const int p = v / HV, row = row0 - 1 + p / S;
                const bool outside = row < 0 || row >= S;
                copy_ahead(buffer + (p / S * COLUMNS + p % S + 1) * H_PITCH + v % HV * 16,
                           outside ? h : h + (row0 - 1) * S * HV + v, outside);
            }
#pragma unroll
            for (int v = thread; v < D_COUNT; v += 384)
                copy_ahead(buffer + H_BYTES + v / DV * D_PITCH + v % DV * 16, d + v);
        }
        close_copies();
    };
    fetch(blockIdx.x, shared);
    for (int t = blockIdx.x, turn = 0; t < total; t += gridDim.x, turn ^= 1) {
        unsigned char *h_tile = shared + turn * BUFFER, *d_tile = h_tile + H_BYTES;
        fetch(t + gridDim.x, shared + (turn ^ 1) * BUFFER);
        if (HOW == IMAGE)
            fill_image<(TH + 2) * S, 384, S>((const u16*)input + (long)(t / TILES) * S * S * 3, t % TILES * TH - 1, thread,
                                             [&](int p) { return h_tile + (p / S * COLUMNS + p % S + 1) * H_PITCH; });
        await_copies<1>();
        __syncthreads();
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

// out[i] = Σ_b partial[b][i], four neighbours a thread
extern "C" __global__ void __launch_bounds__(512) sum_partials(const float4* __restrict__ partial, float4* __restrict__ out, int blocks, int size) {
    __shared__ float4 part[16][32];
    const int i = blockIdx.x * 32 + threadIdx.x;
    float4 sum = make_float4(0.f, 0.f, 0.f, 0.f);
    auto add = [&](float4 v) { sum.x += v.x, sum.y += v.y, sum.z += v.z, sum.w += v.w; };
    if (i < size)
#pragma unroll 4
        for (int b = threadIdx.y; b < blocks; b += 16) add(__ldg(partial + (long)b * size + i));
    part[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && i < size) {
        for (int y = 1; y < 16; y++) add(part[y][threadIdx.x]);
        out[i] = sum;
    }
}
