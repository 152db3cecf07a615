// A 3×3 convolution, stride 1, with what surrounds it in a pre-activation network folded in.
//
// Forward:  z' = conv(leaky(a·z + b)) [+ residual], and the batch-norm statistics of z' for the next layer.
// Backward: dh = conv^T(dz'), dz' = A·g' + B·z' + D; g = (dh [+ residual]) · leaky'(n), and the sums batch norm's gradient
//           needs. The transposed convolution is the same loop with other weights.
// Each tensor is read once and written once. One persistent block a multiprocessor keeps the weights in shared memory;
// its groups of four warps take tiles of TH image rows in turn, so one group loads while another multiplies.
template <int CI, int CO, int S, int TH, int GROUPS, int MT, int NB, int HOW, bool BACKWARD, bool RESIDUAL>
__global__ void __launch_bounds__(128 * GROUPS, 1)
conv(const uint4* __restrict__ input,      // (N, S, S, CI): z, the plain tensor, or g'
     const uint4* __restrict__ second,     // z' beside g' (HOW = GRADIENT)
     const float* __restrict__ in_table,   // coefficients for reading the input
     const u16* __restrict__ weights,      // (9, CO, CI) bf16: tap, output, input
     const uint4* __restrict__ residual,   // (N, S, S, CO)
     const uint4* __restrict__ z,          // (N, S, S, CO): backward, what was normalised before this activation
     uint4* __restrict__ output,           // (N, S, S, CO)
     double* totals, int* arrived, float* table, const float* weight, const float* bias, float* running_mean,
     float* running_var, float* grad_weight, float* grad_bias, int images, double eps, double momentum) {
    constexpr int IN_PITCH = CI * 2 + 16;  // bytes a pixel; the 16 keep ldmatrix free of bank conflicts
    constexpr int COLUMNS = S + 2, VECTORS = CI / 8;
    constexpr int NT = NB / 8, GT = NT < 4 ? NT : 4, NG = NT / GT;  // n-tiles; a lane owns 2·GT neighbouring channels of each of NG groups
    constexpr int PASSES = TH * S / (64 * MT);
    constexpr int TILE_BYTES = (TH + 2) * COLUMNS * IN_PITCH;
    extern __shared__ __align__(16) unsigned char shared[];
    unsigned char* w_shared = shared;
    const int thread = threadIdx.x % 128, group = threadIdx.x / 128, lane = threadIdx.x % 32, warp = thread / 32;
    unsigned char* tile = shared + 9 * NB * IN_PITCH + group * TILE_BYTES;
    float* side = (float*)(shared + 9 * NB * IN_PITCH + GROUPS * TILE_BYTES);  // (3, NB) backward coefficients, then scratch
    const int first_out = blockIdx.y * NB;

    // Weights, with the outputs ordered so that a lane's accumulators are neighbouring channels.
    for (int v = threadIdx.x; v < 9 * NB * VECTORS; v += blockDim.x) {
        const int part = v % VECTORS, n = (v / VECTORS) % NB, tap = v / (VECTORS * NB);
        const int channel = n / (8 * GT) * (8 * GT) + (n % 8) / 2 * (2 * GT) + (n / 8) % GT * 2 + n % 2;
        *(uint4*)(w_shared + (tap * NB + n) * IN_PITCH + part * 16) =
            ((const uint4*)weights)[(tap * CO + first_out + channel) * VECTORS + part];
    }
    for (int v = threadIdx.x; v < GROUPS * TILE_BYTES / 16; v += blockDim.x)  // borders stay zero from here on
        ((uint4*)(shared + 9 * NB * IN_PITCH))[v] = make_uint4(0, 0, 0, 0);
    if (BACKWARD)
        for (int i = threadIdx.x; i < 3 * NB; i += blockDim.x) side[i] = table[(i / NB) * CO + first_out + i % NB];
    __syncthreads();

    float s1[NG][2 * GT], s2[NG][2 * GT];
#pragma unroll
    for (int i = 0; i < NG; i++)
#pragma unroll
        for (int j = 0; j < 2 * GT; j++) s1[i][j] = s2[i][j] = 0.f;

    constexpr int TILES = S / TH;
    const int total = images * TILES, rounds = (total + gridDim.x * GROUPS - 1) / (gridDim.x * GROUPS);
    if (group == GROUPS - 1) give_turn(0);
    for (int round = 0; round < rounds; round++) {
        const int t = (round * gridDim.x + blockIdx.x) * GROUPS + group, image = t / TILES, row0 = t % TILES * TH;
        const bool busy = t < total;
        // --- into shared memory
        if (HOW == IMAGE && busy)
            fill_image<(TH + 2) * S, 128, S>((const u16*)input + (long)image * S * S * 3, row0 - 1, thread,
                                             [&](int p) { return tile + (p / S * COLUMNS + p % S + 1) * IN_PITCH; });
        if (HOW != IMAGE && busy)
            fill<HOW, HOW == GRADIENT ? 6 : 9, (TH + 2) * S * VECTORS, 128, S, VECTORS>(
                input + (long)image * S * S * VECTORS, second + (long)image * S * S * VECTORS, row0 - 1, in_table, thread, [&](int v) {
                    const int p = v / VECTORS;
                    return tile + (p / S * COLUMNS + p % S + 1) * IN_PITCH + v % VECTORS * 16;
                });
        group_barrier(group, 128);
        // --- multiply
        for (int pass = 0; pass < PASSES; pass++) {
            float acc[MT][NT][4];
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int n = 0; n < NT; n++)
#pragma unroll
                    for (int e = 0; e < 4; e++) acc[m][n][e] = 0.f;
            const int first_pixel = (warp * PASSES + pass) * MT * 16;
            u32 a_address[MT];
#pragma unroll
            for (int m = 0; m < MT; m++) {
                const int p = first_pixel + m * 16 + lane % 16;
                a_address[m] = shared_address(tile) + ((p / S) * COLUMNS + p % S) * IN_PITCH + lane / 16 * 16;
            }
            const u32 b_address = shared_address(w_shared) + ((lane / 16) * 8 + lane % 8) * IN_PITCH + (lane / 8 % 2) * 16;
            // Fragments are loaded one step ahead of the products that need them.
            constexpr int STEPS = 9 * (CI / 16);
            u32 a[2][MT][4], b[2][NT / 2][4];
            auto load = [&](int step, int slot) {
                const int tap = step / (CI / 16), ks = step % (CI / 16);
#pragma unroll
                for (int m = 0; m < MT; m++)
                    load_matrices(a[slot][m], a_address[m] + (tap / 3 * COLUMNS + tap % 3) * IN_PITCH + ks * 32);
#pragma unroll
                for (int n = 0; n < NT / 2; n++)
                    load_matrices(b[slot][n], b_address + (tap * NB + n * 16) * IN_PITCH + ks * 32);
            };
            // Groups take turns here. Side by side they would all load, then all multiply, and leave half the chip idle.
            wait_turn(group);
            if (busy) {
                load(0, 0);
#pragma unroll
                for (int step = 0; step < STEPS; step++) {
                    if (step + 1 < STEPS) load(step + 1, (step + 1) % 2);
#pragma unroll
                    for (int n = 0; n < NT; n++)
#pragma unroll
                        for (int m = 0; m < MT; m++)
                            multiply_add(acc[m][n], a[step % 2][m], b[step % 2][n / 2][n % 2 * 2], b[step % 2][n / 2][n % 2 * 2 + 1]);
                }
            }
            if (round < rounds - 1 || pass < PASSES - 1 || group < GROUPS - 1) give_turn((group + 1) % GROUPS);
            if (!busy) continue;
            // --- out, with the sums
#pragma unroll
            for (int m = 0; m < MT; m++)
#pragma unroll
                for (int half = 0; half < 2; half++) {
                    const int p = first_pixel + m * 16 + half * 8 + lane / 4;
                    const long pixel = ((long)image * S + row0) * S + p;
#pragma unroll
                    for (int ng = 0; ng < NG; ng++) {
                        const int channel = ng * 8 * GT + lane % 4 * 2 * GT;           // within this block's NB
                        const long at = pixel * CO + first_out + channel;              // in elements
                        u32 extra[GT], before[GT], out[GT];
                        if (RESIDUAL) load_pairs(extra, (const u16*)residual + at);
                        if (BACKWARD) load_pairs(before, (const u16*)z + at);
#pragma unroll
                        for (int j = 0; j < GT; j++) {
                            float v0 = acc[m][ng * GT + j][half * 2], v1 = acc[m][ng * GT + j][half * 2 + 1];
                            if (RESIDUAL) v0 += low(extra[j]), v1 += high(extra[j]);
                            if (BACKWARD) {
                                const int c = channel + 2 * j;
                                const float z0 = low(before[j]), z1 = high(before[j]);
                                if (fmaf(side[c], z0, side[NB + c]) <= 0.f) v0 *= SLOPE;
                                if (fmaf(side[c + 1], z1, side[NB + c + 1]) <= 0.f) v1 *= SLOPE;
                                out[j] = pack(v0, v1);
                                v0 = low(out[j]), v1 = high(out[j]);
                                s1[ng][2 * j] += v0, s1[ng][2 * j + 1] += v1;
                                s2[ng][2 * j] += v0 * (z0 - side[2 * NB + c]);
                                s2[ng][2 * j + 1] += v1 * (z1 - side[2 * NB + c + 1]);
                            } else {
                                out[j] = pack(v0, v1);
                                v0 = low(out[j]), v1 = high(out[j]);  // statistics of what is stored
                                s1[ng][2 * j] += v0, s1[ng][2 * j + 1] += v1;
                                s2[ng][2 * j] += v0 * v0, s2[ng][2 * j + 1] += v1 * v1;
                            }
                        }
                        store_pairs((u16*)output + at, out);
                    }
                }
        }
        group_barrier(group, 128);
    }
    // --- sums of this block
#pragma unroll
    for (int i = 0; i < NG; i++)
#pragma unroll
        for (int j = 0; j < 2 * GT; j++)
#pragma unroll
            for (int d = 4; d < 32; d *= 2) {
                s1[i][j] += __shfl_xor_sync(~0u, s1[i][j], d);
                s2[i][j] += __shfl_xor_sync(~0u, s2[i][j], d);
            }
    __syncthreads();
    float* sums = (float*)(shared + 9 * NB * IN_PITCH);  // (4·GROUPS, 2, NB), over the tiles, which are done with
    if (lane < 4) {
#pragma unroll
        for (int i = 0; i < NG; i++)
#pragma unroll
            for (int j = 0; j < 2 * GT; j++) {
                const int channel = i * 8 * GT + lane * 2 * GT + j;
                sums[(threadIdx.x / 32 * 2) * NB + channel] = s1[i][j];
                sums[(threadIdx.x / 32 * 2 + 1) * NB + channel] = s2[i][j];
            }
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 2 * NB; i += blockDim.x) {
        float sum = 0.f;
        for (int w = 0; w < 4 * GROUPS; w++) sum += sums[w * 2 * NB + i];
        atomicAdd(&totals[i / NB * CO + first_out + i % NB], (double)sum);
    }
    if (last_block(arrived, gridDim.x * gridDim.y)) {
        const Norm norm = {totals, arrived, table, weight, bias, running_mean, running_var, grad_weight, grad_bias};
        finish(norm, CO, (double)images * S * S, eps, momentum, BACKWARD);
    }
}
