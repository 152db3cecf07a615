// A 3×3 convolution, stride 1, with what surrounds it in a pre-activation network folded in.
//
// Forward:  z' = conv(leaky(a·z + b)) [+ residual], and the batch-norm statistics of z' for the next layer.
// Backward: dh = conv^T(dz'), dz' = A·g' + B·z' + D; g = (dh [+ residual]) · leaky'(n), and the sums batch norm's gradient
//           needs. The transposed convolution is the same loop with other weights.
// What was rebuilt on the way in (h, or dz') is kept for the gradient of the weights. One persistent block a multiprocessor
// holds the weights in shared memory; its two groups of eight warps take tiles of TH image rows in turn, so one group loads
// while the other multiplies.
#define THREADS 256  // a group
#define GROUPS 2
template <int CI, int CO, int S, int TH, int HOW, bool BACKWARD, bool RESIDUAL>
__global__ void __launch_bounds__(THREADS * GROUPS, 1)
conv(const uint4* __restrict__ input,      // (N, S, S, CI): z, the plain tensor, or g'
     const uint4* __restrict__ second,     // z' beside g' (HOW = GRADIENT)
     const float* __restrict__ in_table,   // coefficients for reading the input
     const u16* __restrict__ weights,      // (9, CO, CI) bf16: tap, output, input
     const uint4* __restrict__ residual,   // (N, S, S, CO)
     const uint4* __restrict__ z,          // (N, S, S, CO): backward, what was normalised before this activation
     uint4* __restrict__ output,           // (N, S, S, CO)
     uint4* __restrict__ kept,             // (N, S, S, CI): h or dz'; not written where the input is plain
     double* totals, int* arrived, float* table, const float* weight, const float* bias, float* running_mean,
     float* running_var, float* grad_weight, float* grad_bias, int images, double eps, double momentum) {
    constexpr int IN_PITCH = CI * 2 + 16;  // bytes a pixel; the 16 keep ldmatrix free of bank conflicts
    constexpr int COLUMNS = S + 2, VECTORS = CI / 8;
    constexpr int NT = CO / 8;  // of eight channels; a lane owns 2·NT neighbouring channels
    constexpr int MT = TH * S / (THREADS / 32 * 16);  // rows of 16 pixels a warp
    constexpr int TILE_BYTES = (TH + 2) * COLUMNS * IN_PITCH;
    extern __shared__ __align__(16) unsigned char shared[];
    unsigned char* w_shared = shared;
    const int thread = threadIdx.x % THREADS, group = threadIdx.x / THREADS, lane = threadIdx.x % 32, warp = thread / 32;
    unsigned char* tile = shared + 9 * CO * IN_PITCH + group * TILE_BYTES;
    float* side = (float*)(shared + 9 * CO * IN_PITCH + GROUPS * TILE_BYTES);  // (3, CO): the backward pass's a, b and mean

    // Weights, with the outputs ordered so that a lane's accumulators are neighbouring channels.
    for (int v = threadIdx.x; v < 9 * CO * VECTORS; v += blockDim.x) {
        const int part = v % VECTORS, n = (v / VECTORS) % CO, tap = v / (VECTORS * CO);
        const int channel = (n % 8) / 2 * (2 * NT) + n / 8 * 2 + n % 2;
        *(uint4*)(w_shared + (tap * CO + n) * IN_PITCH + part * 16) =
            ((const uint4*)weights)[(tap * CO + channel) * VECTORS + part];
    }
    for (int v = threadIdx.x; v < GROUPS * TILE_BYTES / 16; v += blockDim.x)  // borders stay zero from here on
        ((uint4*)(shared + 9 * CO * IN_PITCH))[v] = make_uint4(0, 0, 0, 0);
    if (BACKWARD)
        for (int i = threadIdx.x; i < 3 * CO; i += blockDim.x) side[i] = table[i];
    __syncthreads();

    float s1[2 * NT], s2[2 * NT];
#pragma unroll
    for (int j = 0; j < 2 * NT; j++) s1[j] = s2[j] = 0.f;

    constexpr int TILES = S / TH;
    const int total = images * TILES, rounds = (total + gridDim.x * GROUPS - 1) / (gridDim.x * GROUPS);
    if (group == GROUPS - 1) give_turn(0, THREADS);
    for (int round = 0; round < rounds; round++) {
        const int t = (round * gridDim.x + blockIdx.x) * GROUPS + group, image = t / TILES, row0 = t % TILES * TH;
        const bool busy = t < total;
        // --- into shared memory
        const long base = (long)image * S * S * VECTORS;
        if (HOW == IMAGE && busy)
            fill_image<(TH + 2) * S, THREADS, S>((const u16*)input + (long)image * S * S * 3, row0 - 1, thread,
                                                 [&](int p) { return tile + (p / S * COLUMNS + p % S + 1) * IN_PITCH; });
        if (HOW != IMAGE && busy)
            fill<HOW, TH + 2, THREADS, S, VECTORS>(input + base, second + base, row0 - 1, in_table, kept + base, thread, [&](int v) {
                const int p = v / VECTORS;
                return tile + (p / S * COLUMNS + p % S + 1) * IN_PITCH + v % VECTORS * 16;
            });
        group_barrier(group, THREADS);
        // --- multiply
        float acc[MT][NT][4];
#pragma unroll
        for (int m = 0; m < MT; m++)
#pragma unroll
            for (int n = 0; n < NT; n++)
#pragma unroll
                for (int e = 0; e < 4; e++) acc[m][n][e] = 0.f;
        // A warp takes MT rows of 16 pixels, one below the other: what row r shows to the tap below is what row r + 1 shows to
        // the tap above, so a fragment once loaded serves up to three taps.
        const int column0 = warp % (S / 16) * 16, row = warp / (S / 16) * MT;
        const u32 a_address = shared_address(tile) + (row * COLUMNS + column0 + lane % 16) * IN_PITCH + lane / 16 * 16;
        const u32 b_address = shared_address(w_shared) + ((lane / 16) * 8 + lane % 8) * IN_PITCH + (lane / 8 % 2) * 16;
        // Groups take turns here. Side by side they would both load, then both multiply, and leave half the chip idle.
        wait_turn(group, THREADS);
        if (busy) {
#pragma unroll
            for (int kx = 0; kx < 3; kx++)
#pragma unroll
                for (int ks = 0; ks < CI / 16; ks++) {
                    u32 a[MT + 2][4];
#pragma unroll
                    for (int r = 0; r < MT + 2; r++) load_matrices(a[r], a_address + (r * COLUMNS + kx) * IN_PITCH + ks * 32);
#pragma unroll
                    for (int ky = 0; ky < 3; ky++) {
                        u32 b[NT / 2][4];
#pragma unroll
                        for (int n = 0; n < NT / 2; n++)
                            load_matrices(b[n], b_address + ((ky * 3 + kx) * CO + n * 16) * IN_PITCH + ks * 32);
#pragma unroll
                        for (int n = 0; n < NT; n++)
#pragma unroll
                            for (int m = 0; m < MT; m++)
                                multiply_add(acc[m][n], a[m + ky], b[n / 2][n % 2 * 2], b[n / 2][n % 2 * 2 + 1]);
                    }
                }
        }
        if (round < rounds - 1 || group < GROUPS - 1) give_turn((group + 1) % GROUPS, THREADS);
        if (busy) {
            // --- out, with the sums
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const long pixel = ((long)image * S + row0 + row + m) * S + column0 + half * 8 + lane / 4;
                    const int channel = lane % 4 * 2 * NT;
                    const long at = pixel * CO + channel;
                    u32 extra[NT], before[NT], out[NT];
                    if (RESIDUAL) load_pairs(extra, (const u16*)residual + at);
                    if (BACKWARD) load_pairs(before, (const u16*)z + at);
#pragma unroll
                    for (int j = 0; j < NT; j++) {
                        float v0 = acc[m][j][half * 2], v1 = acc[m][j][half * 2 + 1];
                        if (RESIDUAL) v0 += low(extra[j]), v1 += high(extra[j]);
                        if (BACKWARD) {
                            const int c = channel + 2 * j;
                            const float z0 = low(before[j]), z1 = high(before[j]);
                            if (fmaf(side[c], z0, side[CO + c]) <= 0.f) v0 *= SLOPE;
                            if (fmaf(side[c + 1], z1, side[CO + c + 1]) <= 0.f) v1 *= SLOPE;
                            out[j] = pack(v0, v1);
                            v0 = low(out[j]), v1 = high(out[j]);  // sums of what is stored
                            s1[2 * j] += v0, s1[2 * j + 1] += v1;
                            s2[2 * j] += v0 * (z0 - side[2 * CO + c]);
                            s2[2 * j + 1] += v1 * (z1 - side[2 * CO + c + 1]);
                        } else {
                            out[j] = pack(v0, v1);
                            v0 = low(out[j]), v1 = high(out[j]);
                            s1[2 * j] += v0, s1[2 * j + 1] += v1;
                            s2[2 * j] += v0 * v0, s2[2 * j + 1] += v1 * v1;
                        }
                    }
                    store_pairs((u16*)output + at, out);
                }
        }
        group_barrier(group, THREADS);
    }
    // --- sums of this block
#pragma unroll
    for (int j = 0; j < 2 * NT; j++)
#pragma unroll
        for (int d = 4; d < 32; d *= 2) {
            s1[j] += __shfl_xor_sync(~0u, s1[j], d);
            s2[j] += __shfl_xor_sync(~0u, s2[j], d);
        }
    __syncthreads();
    float* sums = (float*)(shared + 9 * CO * IN_PITCH);  // (warps, 2, CO), over the tiles, which are done with
    if (lane < 4) {
#pragma unroll
        for (int j = 0; j < 2 * NT; j++) {
            sums[(threadIdx.x / 32 * 2) * CO + lane * 2 * NT + j] = s1[j];
            sums[(threadIdx.x / 32 * 2 + 1) * CO + lane * 2 * NT + j] = s2[j];
        }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * CO; i += blockDim.x) {
        float sum = 0.f;
        for (int w = 0; w < THREADS / 32 * GROUPS; w++) sum += sums[w * 2 * CO + i];
        atomicAdd(&totals[i], (double)sum);
    }
    if (last_block(arrived, gridDim.x)) {
        const Norm norm = {totals, arrived, table, weight, bias, running_mean, running_var, grad_weight, grad_bias};
        finish(norm, CO, (double)images * S * S, eps, momentum, BACKWARD);
    }
}
