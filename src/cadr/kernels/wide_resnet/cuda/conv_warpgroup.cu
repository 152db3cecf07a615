// Batch norm's gradient as GRADIENT reads it, plus what came round by the skip.
__device__ __forceinline__ uint4 read_joined(uint4 first, uint4 second, uint4 third, const float (&k)[3][8]) {
    const u32 g[4] = {first.x, first.y, first.z, first.w}, z[4] = {second.x, second.y, second.z, second.w};
    const u32 skip[4] = {third.x, third.y, third.z, third.w};
    u32 r[4];
#pragma unroll
    for (int i = 0; i < 4; i++)
        r[i] = pack(fmaf(k[0][2 * i], low(g[i]), fmaf(k[1][2 * i], low(z[i]), k[2][2 * i])) + low(skip[i]),
                    fmaf(k[0][2 * i + 1], high(g[i]), fmaf(k[1][2 * i + 1], high(z[i]), k[2][2 * i + 1])) + high(skip[i]));
    return make_uint4(r[0], r[1], r[2], r[3]);
}

// A 3×3 convolution, stride 1, with what surrounds it folded in: see conv.cu, whose results and arguments these are.
//
// One persistent block a multiprocessor holds the weights in shared memory. Its TEAMS, a warpgroup each, take tiles of TH
// image rows, from memory to memory: while one waits for memory another multiplies. A tap is an offset into the tile.
//
// What limits these kernels is how much shared memory is read. With few outputs most of it are pixels. Then a warp takes 16
// of them side by side in MT rows, one below the other: what row r shows to the tap below is what row r + 1 shows to the tap
// above, so what is once in registers serves up to three taps. With more outputs most of it are weights, and nothing is
// gained by that: a team multiplies squares of 8 × 8 pixels as they lie in the tile.
//
// JOINED reads the gradient that comes out of the unit behind, skip included.
template <int CI, int CO, int S, int TH, int TEAMS, int HOW, bool BACKWARD, bool RESIDUAL, bool KEEP>
__global__ void __launch_bounds__(128 * TEAMS, 1)
conv_warpgroup(const uint4* __restrict__ input,      // (N, S, S, CI): z, the plain tensor, or g'
               const uint4* __restrict__ second,     // z' beside g' (GRADIENT, JOINED)
               const uint4* __restrict__ third,      // the skip's gradient (JOINED)
               const float* __restrict__ in_table,   // coefficients for reading the input
               const u16* __restrict__ weights,      // (9, CO, CI) bf16: tap, output, input
               const uint4* __restrict__ residual,   // (N, S, S, CO)
               const uint4* __restrict__ z,          // (N, S, S, CO): backward, what was normalised before this activation
               uint4* __restrict__ output,           // (N, S, S, CO)
               uint4* __restrict__ kept,             // (N, S, S, CI): what was rebuilt, where KEEP
               double* totals, int* arrived, float* table, const float* weight, const float* bias, float* running_mean,
               float* running_var, float* grad_weight, float* grad_bias, int images, double eps, double momentum) {
    constexpr int TEAM = 128, VECTORS = CI / 8, ROW = S * VECTORS;  // ROW: vectors of 16 bytes
    constexpr int ROW_BYTES = (S + 2) * 16, PLANE = plane_bytes((TH + 2) * ROW_BYTES, CI), TILE_BYTES = VECTORS * PLANE;
    constexpr int W_TAP = CO * CI * 2, W_BYTES = 9 * W_TAP;
    constexpr int MT = TH * S / 64, KS = CI / 16;  // 64 pixels each
    constexpr bool IN_REGISTERS = CO == 32;
    constexpr int NC = CO / 32, LC = 8 * NC;  // a lane owns eight neighbouring channels of every 32
    constexpr int STEP = TEAM / ROW, LOADS = (TH + 2 + STEP - 1) / STEP;  // rows a pass, passes
    constexpr int BATCHES = HOW == JOINED && CO > 32 ? 2 : 1;  // registers hold no more
    constexpr int EACH = (LOADS + BATCHES - 1) / BATCHES;      // loads under way at a time
    static_assert(TEAM % ROW == 0 && TH == 8 && CO % 32 == 0 && CI % 16 == 0, "");
    extern __shared__ __align__(128) unsigned char shared[];
    const int thread = threadIdx.x % TEAM, lane = threadIdx.x % 32, warp = thread / 32;
    const int team = __shfl_sync(~0u, threadIdx.x / TEAM, 0);
    unsigned char* tile = shared + W_BYTES + team * TILE_BYTES;
    float* side = (float*)(shared + W_BYTES + TEAMS * TILE_BYTES);  // (3, CO): the backward pass's a, b and mean
    float* entry = side + 3 * CO;                                   // (3, CI): coefficients for reading the input

    // Weights: of each tap, for each eight inputs, all outputs, ordered so that a lane's accumulators are neighbours.
    constexpr int W_VECTORS = 9 * CO * VECTORS, BLOCK = TEAM * TEAMS, W_EACH = 6;  // loads at a time
#pragma unroll 1
    for (int v0 = threadIdx.x; v0 < W_VECTORS; v0 += W_EACH * BLOCK) {
        uint4 loaded[W_EACH];
#pragma unroll
        for (int i = 0; i < W_EACH; i++) {
            const int v = v0 + i * BLOCK, part = v % VECTORS, n = v / VECTORS % CO, tap = v / (VECTORS * CO);
            const int channel = n / 32 * 32 + n % 8 / 2 * 8 + n % 32 / 8 * 2 + n % 2;
            if (v < W_VECTORS) loaded[i] = __ldg((const uint4*)weights + (tap * CO + channel) * VECTORS + part);
        }
#pragma unroll
        for (int i = 0; i < W_EACH; i++) {
            const int v = v0 + i * BLOCK, part = v % VECTORS, n = v / VECTORS % CO, tap = v / (VECTORS * CO);
            if (v < W_VECTORS) *(uint4*)(shared + tap * W_TAP + part * CO * 16 + n * 16) = loaded[i];
        }
    }
    // The pixels left and right of the image stay zero; all others are written with each tile.
    for (int i = thread; i < 2 * VECTORS * (TH + 2); i += TEAM)
        *(uint4*)(tile + i / 2 % VECTORS * PLANE + i / (2 * VECTORS) * ROW_BYTES + i % 2 * (ROW_BYTES - 16)) = make_uint4(0, 0, 0, 0);
    if (BACKWARD)
        for (int i = threadIdx.x; i < 3 * CO; i += blockDim.x) side[i] = table[i];
    if (HOW != PLAIN)
        for (int i = threadIdx.x; i < (HOW == ACTIVATED ? 2 : 3) * CI; i += blockDim.x)
            entry[i] = in_table[(HOW == ACTIVATED ? 0 : 4) * CI + i];
    show_to_tensor_cores();
    __syncthreads();

    // Where this thread's vectors lie: always the same column and plane, and rows r0, r0 + STEP, ...
    const int r0 = STEP == 1 ? 0 : thread / ROW, place = thread % ROW, plane = place % VECTORS, column = place / VECTORS;
    unsigned char* own = tile + plane * PLANE + r0 * ROW_BYTES + (column + 1) * 16;
    // Of the pixels that a warp multiplies: the first, and the distances of 64 and of eight pixels.
    const int first_row = IN_REGISTERS ? warp / (S / 16) * MT : 2 * warp, first_column = IN_REGISTERS ? warp % (S / 16) * 16 : 0;
    constexpr int NEXT = IN_REGISTERS ? S : 8, HALF = IN_REGISTERS ? 8 : S;
    const u32 a_read = shared_address(tile) + lane / 16 * PLANE + first_row * ROW_BYTES + (first_column + lane % 16) * 16;
    const u64 a_first = descriptor(shared_address(tile), PLANE, ROW_BYTES);
    const u64 b_first = descriptor(shared_address(shared), CO * 16, 128);

    float s1[LC], s2[LC];
#pragma unroll
    for (int j = 0; j < LC; j++) s1[j] = s2[j] = 0.f;

    constexpr int TILES = S / TH;
    const int total = images * TILES;
    // Loads of a tile (or half of one) go out together, long before the first is used.
    uint4 x[EACH], y[EACH], w[EACH];
    auto load = [&](int number, int batch) {
        asm volatile("" : "+r"(number));  // else the compiler keeps an address for each load from tile to tile
        const int row0 = number % TILES * TH;
        const bool above = row0 > 0, below = row0 + TH < S;  // whether the rows around the tile are in the image
        const long base = ((long)(number / TILES) * S + row0) * ROW + place;
#pragma unroll
        for (int j = 0; j < EACH; j++) {
            const int i = (j + EACH - 1) % EACH, r = r0 + (batch * EACH + i) * STEP;  // the last first
            const bool inside = r == 0 ? above : r <= TH || (r == TH + 1 && below);
            const long at = base + (inside ? r - 1 : 0) * ROW;
            x[i] = load_now(input + at);
            if (HOW == GRADIENT || HOW == JOINED) y[i] = load_now(second + at);
            if (HOW == JOINED) w[i] = load_now(third + at);
        }
    };
    for (int t = blockIdx.x * TEAMS + team; t < total; t += gridDim.x * TEAMS) {
        int now = t;
        asm volatile("" : "+r"(now));
        const int image = now / TILES, row0 = now % TILES * TH;
        const bool above = row0 > 0, below = row0 + TH < S;
        // --- into shared memory
        const long base = ((long)image * S + row0) * ROW + place;  // of the tile's own first row
#pragma unroll
        for (int batch = 0; batch < BATCHES; batch++) {
            load(now, batch);
            if (batch == 0) group_barrier(team, TEAM);  // the last tile is no longer needed
            float k[3][8];
            if (HOW != PLAIN) {
#pragma unroll
                for (int q = 0; q < (HOW == ACTIVATED ? 4 : 6); q++)
                    *(float4*)(k[q / 2] + q % 2 * 4) = *(const float4*)(entry + q / 2 * CI + plane * 8 + q % 2 * 4);
            }
#pragma unroll
            for (int i = 0; i < EACH; i++) {
                const int pass = batch * EACH + i, r = r0 + pass * STEP;
                if (r < TH + 2) {
                    uint4 value = HOW == JOINED ? read_joined(x[i], y[i], w[i], k) : read_as<HOW>(x[i], y[i], k);
                    if ((r == 0 && !above) || (r == TH + 1 && !below)) value = make_uint4(0, 0, 0, 0);
                    *(uint4*)(own + pass * STEP * ROW_BYTES) = value;
                }
            }
        }
        if (!IN_REGISTERS) show_to_tensor_cores();
        group_barrier(team, TEAM);
        // --- multiply
        float acc[MT][CO / 2];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int n = 0; n < CO / 2; n++) acc[m][n] = 0.f;
        // What the epilogue needs from memory is fetched two times 64 pixels ahead.
        constexpr int AHEAD = MT < 2 ? MT : 2;
        u32 extra[AHEAD][2][NC][4], before[AHEAD][2][NC][4];
        const long first = (((long)image * S + row0 + first_row) * S + first_column + lane / 4) * CO + lane % 4 * 8;
        auto fetch = [&](int m) {
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int c = 0; c < NC; c++) {
                    const long at = first + (m * NEXT + half * HALF) * CO + c * 32;
                    if (RESIDUAL) *(uint4*)extra[m % AHEAD][half][c] = load_now((const uint4*)((const u16*)residual + at));
                    if (BACKWARD) *(uint4*)before[m % AHEAD][half][c] = load_now((const uint4*)((const u16*)z + at));
                }
        };
        auto meanwhile = [&] {
#pragma unroll
            for (int m = 0; m < AHEAD; m++) fetch(m);
            if (KEEP) {  // not on the way in: the fence there would wait for these stores
#pragma unroll
                for (int pass = 0; pass < LOADS; pass++) {
                    const int r = r0 + pass * STEP;
                    if (r >= 1 && r <= TH) kept[base + (r - 1) * ROW] = *(const uint4*)(own + pass * STEP * ROW_BYTES);
                }
            }
        };
#pragma unroll
        for (int m = 0; m < MT; m++) settle(acc[m]);
        u64 a_now = a_first, b_now = b_first;
        asm volatile("" : "+l"(a_now), "+l"(b_now));  // (and all the descriptors)
        if constexpr (IN_REGISTERS) {
            u32 a[2][MT + 2][4];  // while one half is multiplied, the other is read
#pragma unroll
            for (int part = 0; part < 3 * KS; part++) {
                const int kx = part / KS, ks = part % KS;
                if (part >= 2) await_group<1>();  // the multiplications before the last are done with their half
#pragma unroll
                for (int r = 0; r < MT + 2; r++) load_matrices(a[part % 2][r], a_read + ks * 2 * PLANE + r * ROW_BYTES + kx * 16);
                open_group();
#pragma unroll
                for (int ky = 0; ky < 3; ky++)
#pragma unroll
                    for (int m = 0; m < MT; m++)
                        multiply_group(acc[m], a[part % 2][m + ky], b_now + ((ky * 3 + kx) * W_TAP + ks * 2 * CO * 16) / 16);
                close_group();
                if (part == 1) meanwhile();
            }
        } else {
            open_group();
#pragma unroll
            for (int tap = 0; tap < 9; tap++)
#pragma unroll
                for (int ks = 0; ks < KS; ks++)
#pragma unroll
                    for (int m = 0; m < MT; m++)
                        multiply_group<0>(acc[m], a_now + (ks * 2 * PLANE + tap / 3 * ROW_BYTES + (m * 8 + tap % 3) * 16) / 16,
                                          b_now + (tap * W_TAP + ks * 2 * CO * 16) / 16);
            close_group();
            meanwhile();
        }
        await_group();
#pragma unroll
        for (int m = 0; m < MT; m++) settle(acc[m]);
        // --- out, with the sums
#pragma unroll
        for (int m = 0; m < MT; m++) {
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int c = 0; c < NC; c++) {
                    const int channel = c * 32 + lane % 4 * 8;
                    u32 out[4];
                    float ka[8], kb[8], km[8];
                    if (BACKWARD) {
#pragma unroll
                        for (int q = 0; q < 2; q++) {
                            *(float4*)(ka + 4 * q) = *(const float4*)(side + channel + 4 * q);
                            *(float4*)(kb + 4 * q) = *(const float4*)(side + CO + channel + 4 * q);
                            *(float4*)(km + 4 * q) = *(const float4*)(side + 2 * CO + channel + 4 * q);
                        }
                    }
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        float v0 = acc[m][(c * 4 + j) * 4 + half * 2], v1 = acc[m][(c * 4 + j) * 4 + half * 2 + 1];
                        float &p0 = s1[c * 8 + 2 * j], &p1 = s1[c * 8 + 2 * j + 1];
                        float &q0 = s2[c * 8 + 2 * j], &q1 = s2[c * 8 + 2 * j + 1];
                        if (RESIDUAL) v0 += low(extra[m % AHEAD][half][c][j]), v1 += high(extra[m % AHEAD][half][c][j]);
                        if (BACKWARD) {
                            const float z0 = low(before[m % AHEAD][half][c][j]), z1 = high(before[m % AHEAD][half][c][j]);
                            if (fmaf(ka[2 * j], z0, kb[2 * j]) <= 0.f) v0 *= SLOPE;
                            if (fmaf(ka[2 * j + 1], z1, kb[2 * j + 1]) <= 0.f) v1 *= SLOPE;
                            out[j] = pack(v0, v1);
                            v0 = low(out[j]), v1 = high(out[j]);  // sums of what is stored
                            p0 += v0, p1 += v1;
                            q0 += v0 * (z0 - km[2 * j]), q1 += v1 * (z1 - km[2 * j + 1]);
                        } else {
                            out[j] = pack(v0, v1);
                            v0 = low(out[j]), v1 = high(out[j]);
                            p0 += v0, p1 += v1;
                            q0 += v0 * v0, q1 += v1 * v1;
                        }
                    }
                    store_pairs((u16*)output + first + (m * NEXT + half * HALF) * CO + c * 32, out);
                }
            if (m + AHEAD < MT) fetch(m + AHEAD);
        }
    }
    // --- sums of this block
#pragma unroll
    for (int j = 0; j < LC; j++)
#pragma unroll
        for (int d = 4; d < 32; d *= 2) {
            s1[j] += __shfl_xor_sync(~0u, s1[j], d);
            s2[j] += __shfl_xor_sync(~0u, s2[j], d);
        }
    __syncthreads();
    float* sums = (float*)(shared + W_BYTES);  // (warps, 2, CO), over the tiles, which are done with
    if (lane < 4) {
#pragma unroll
        for (int j = 0; j < LC; j++) {
            const int channel = j / 8 * 32 + lane * 8 + j % 8;
            sums[(threadIdx.x / 32 * 2) * CO + channel] = s1[j];
            sums[(threadIdx.x / 32 * 2 + 1) * CO + channel] = s2[j];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * CO; i += blockDim.x) {
        float sum = 0.f;
        for (int w = 0; w < 4 * TEAMS; w++) sum += sums[w * 2 * CO + i];
        atomicAdd(&totals[i], (double)sum);
    }
    if (last_block(arrived, gridDim.x)) {
        const Norm norm = {totals, arrived, table, weight, bias, running_mean, running_var, grad_weight, grad_bias};
        finish(norm, CO, (double)images * S * S, eps, momentum, BACKWARD);
    }
}
