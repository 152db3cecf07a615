// The gradient of a 3×3, stride-1 convolution's weights: dW[o][tap][i] = Σ over pixels of dz'[p][o] · h[p + tap][i].
//
// K are 16 pixels of a row, M the channels of STACK rows of h, N those of the STACK + 2 rows of dz' around them: in rows of
// planes, the next row's planes follow the last of this row, so rows stack without being copied. Each of three warpgroups
// takes one kernel column, that is, moves by a pixel. For that each run of eight pixels, a core matrix, has room for ten: its
// left and right neighbours are stored again, and a pixel is 16 bytes in the address. While a tile is multiplied, the next
// goes into the other buffer and the one after that is loaded.
#define RUN 160  // bytes: eight pixels and a neighbour on each side
template <int C, int S, int TH, int HOW>  // HOW: h is there (PLAIN) or rebuilt from z (ACTIVATED)
__global__ void __launch_bounds__(384, 1)
weight_gradient_warpgroup(const uint4* __restrict__ input, const float* __restrict__ in_table,  // h, or z and its table
                          const uint4* __restrict__ gradient,                                   // dz'
                          float* __restrict__ partial,                                          // (blocks, C, 9, C)
                          int images) {
    constexpr int VECTORS = C / 8, RUNS = S / 8, ROW = S * VECTORS, STEP = 384 / ROW, TILES = S / TH;
    constexpr int STACK = 64 / C, BESIDE = STACK + 2;
    constexpr int H_PLANE = plane_bytes(RUNS * RUN, C), D_PLANE = plane_bytes(S * 16, C);
    constexpr int H_ROW = VECTORS * H_PLANE, D_ROW = VECTORS * D_PLANE, H_BYTES = TH * H_ROW, BUFFER = H_BYTES + (TH + 2) * D_ROW;
    constexpr int H_LOADS = (TH + STEP - 1) / STEP, D_LOADS = (TH + 2 + STEP - 1) / STEP;
    static_assert(384 % ROW == 0 && TH % STACK == 0 && S % 16 == 0, "");
    extern __shared__ __align__(128) unsigned char shared[];
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32 % 4, kx = __shfl_sync(~0u, thread / 128, 0);
    // The pixels left and right of the image stay zero; all others are written with each tile.
    for (int i = thread; i < 2 * 2 * VECTORS * TH; i += 384)
        *(uint4*)(shared + i % 2 * BUFFER + i / 4 * H_PLANE + i / 2 % 2 * (RUNS * RUN - 16)) = make_uint4(0, 0, 0, 0);

    const int r0 = thread / ROW, place = thread % ROW, plane = place % VECTORS, column = place / VECTORS;
    const int h_own = r0 * H_ROW + plane * H_PLANE + column / 8 * RUN + (column % 8 + 1) * 16;
    const int d_own = H_BYTES + r0 * D_ROW + plane * D_PLANE + column * 16;
    const bool left = column % 8 == 0 && column > 0, right = column % 8 == 7 && column < S - 1;
    const int twin = left ? -32 : 32;
    float k[3][8];
    load_coefficients<HOW>(k, in_table, C, plane * 8);

    const int total = images * TILES;
    uint4 h[H_LOADS], d[D_LOADS];
    auto load = [&](int t) {
        if (t >= total) return;
        const int row0 = t % TILES * TH;
        const long base = (long)(t / TILES) * S * ROW + place;
#pragma unroll
        for (int i = 0; i < H_LOADS; i++) h[i] = load_now(input + base + (row0 + (r0 + i * STEP < TH ? r0 + i * STEP : 0)) * ROW);
#pragma unroll
        for (int i = 0; i < D_LOADS; i++) {
            const int r = r0 + i * STEP, row = row0 - 1 + r;
            d[i] = load_now(gradient + base + (r < TH + 2 && row >= 0 && row < S ? row : 0) * ROW);
        }
    };
    auto store = [&](int t, unsigned char* buffer) {
        if (t >= total) return;
        const int row0 = t % TILES * TH;
#pragma unroll
        for (int i = 0; i < H_LOADS; i++) {
            if (r0 + i * STEP < TH) {
                const uint4 value = read_as<HOW>(h[i], h[i], k);
                *(uint4*)(buffer + h_own + i * STEP * H_ROW) = value;
                if (left || right) *(uint4*)(buffer + h_own + i * STEP * H_ROW + twin) = value;
            }
        }
#pragma unroll
        for (int i = 0; i < D_LOADS; i++) {
            const int r = r0 + i * STEP, row = row0 - 1 + r;
            if (r < TH + 2) *(uint4*)(buffer + d_own + i * STEP * D_ROW) = row >= 0 && row < S ? d[i] : make_uint4(0, 0, 0, 0);
        }
    };

    float acc[BESIDE * C / 2];
#pragma unroll
    for (int i = 0; i < BESIDE * C / 2; i++) acc[i] = 0.f;
    load(blockIdx.x);
    store(blockIdx.x, shared);
    show_to_tensor_cores();
    load(blockIdx.x + gridDim.x);
    __syncthreads();
    for (int t = blockIdx.x, turn = 0; t < total; t += gridDim.x, turn ^= 1) {
        const u32 here = shared_address(shared) + turn * BUFFER;
        const u64 a_first = descriptor(here + kx * 16, RUN, H_PLANE), b_first = descriptor(here + H_BYTES, 128, D_PLANE);
        settle(acc);
        open_group();
#pragma unroll
        for (int row = 0; row < TH; row += STACK)
#pragma unroll
            for (int run = 0; run < RUNS; run += 2)
                multiply_group<1>(acc, a_first + (row * H_ROW + run * RUN) / 16, b_first + (row * D_ROW + run * 128) / 16);
        close_group();
        store(t + gridDim.x, shared + (turn ^ 1) * BUFFER);
        show_to_tensor_cores();
        load(t + 2 * gridDim.x);  // (after the fence, which would wait for them)
        await_group();
        settle(acc);
        __syncthreads();
    }
    // --- row j of the stack of h, beside row i of dz': kernel row j − i + 2
    float* sums = (float*)shared;  // (C, 9, C)
#pragma unroll
    for (int turn = 0; turn < STACK; turn++) {
        if (warp * 16 / C == turn) {
#pragma unroll
            for (int n = 0; n < BESIDE * C / 8; n++) {
                const int ky = turn - n * 8 / C + 2;
                if (ky < 0 || ky > 2) continue;
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const int o = (n * 8) % C + lane % 4 * 2 + e % 2, i = (warp * 16 + e / 2 * 8 + lane / 4) % C;
                    float* at = sums + (o * 9 + ky * 3 + kx) * C + i;
                    *at = turn ? *at + acc[n * 4 + e] : acc[n * 4 + e];
                }
            }
        }
        __syncthreads();
    }
    for (int i = thread; i < C * 9 * C; i += 384) partial[(long)blockIdx.x * C * 9 * C + i] = sums[i];
}
