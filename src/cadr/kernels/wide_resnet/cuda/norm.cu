// Batch norm and leaky ReLU around convolutions that another library runs. Tensors are (pixels, C) bf16; a thread keeps to
// eight channels.

#define THREADS 512

// Where a vector of 16 bytes lies in a tensor that holds every second pixel of every second row of H × W images.
template <int C, int H, int W>
__device__ __forceinline__ bool in_halved(int v, int& at) {
    constexpr int V = C / 8;
    const int pixel = v / V, column = pixel % W, row = pixel / W % H, image = pixel / (W * H);
    at = ((image * ((H + 1) / 2) + row / 2) * ((W + 1) / 2) + column / 2) * V + v % V;
    return row % 2 == 0 && column % 2 == 0;
}

// Adds the threads' sums of the channels they keep to up over the block, and the block's to the totals.
template <int C>
__device__ __forceinline__ void add_up(float (&s1)[8], float (&s2)[8], double* totals) {
    constexpr int V = C / 8, WARPS = THREADS / 32, OWNERS = V < 32 ? V : 32;  // lanes with channels of their own
    __shared__ __align__(16) float sums[2][WARPS * OWNERS * 8];
#pragma unroll
    for (int d = V; d < 32; d *= 2)
#pragma unroll
        for (int i = 0; i < 8; i++) {
            s1[i] += __shfl_xor_sync(~0u, s1[i], d);
            s2[i] += __shfl_xor_sync(~0u, s2[i], d);
        }
    const int lane = threadIdx.x % 32, at = (threadIdx.x / 32 * OWNERS + lane) * 8;
    if (lane < OWNERS)
#pragma unroll
        for (int i = 0; i < 8; i += 4) {
            *(float4*)(sums[0] + at + i) = make_float4(s1[i], s1[i + 1], s1[i + 2], s1[i + 3]);
            *(float4*)(sums[1] + at + i) = make_float4(s2[i], s2[i + 1], s2[i + 2], s2[i + 3]);
        }
    __syncthreads();
    for (int c = threadIdx.x; c < 2 * C; c += THREADS) {  // what lies C apart is of the same channel
        float sum = 0.f;
        for (int j = c % C; j < WARPS * OWNERS * 8; j += C) sum += sums[c / C][j];
        atomicAdd(&totals[c], (double)sum);
    }
}

// Sum (with an optional residual, written to `output`) and the statistics of the sum.
template <int C, bool RESIDUAL>
__global__ void __launch_bounds__(THREADS, 2)
statistics(const uint4* __restrict__ input, const uint4* __restrict__ residual, uint4* __restrict__ output, double* totals,
           int* arrived, float* table, const float* weight, const float* bias, float* running_mean, float* running_var,
           int pixels, double eps, double momentum) {
    constexpr int V = C / 8, BATCH = RESIDUAL ? 4 : 8;  // loads under way before the first is used
    float s1[8], s2[8];
#pragma unroll
    for (int i = 0; i < 8; i++) s1[i] = s2[i] = 0.f;
    const int total = pixels * V, stride = gridDim.x * THREADS;  // THREADS is a multiple of V: a thread keeps its channels
    for (int v0 = blockIdx.x * THREADS + threadIdx.x; v0 < total; v0 += BATCH * stride) {
        uint4 x[BATCH], y[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const int v = v0 + j * stride;
            x[j] = __ldg(input + (v < total ? v : v0));
            if (RESIDUAL) y[j] = __ldg(residual + (v < total ? v : v0));
        }
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            if (v0 + j * stride >= total) break;
            u32 a[4] = {x[j].x, x[j].y, x[j].z, x[j].w};
            if (RESIDUAL) {
                u32 b[4] = {y[j].x, y[j].y, y[j].z, y[j].w};
#pragma unroll
                for (int i = 0; i < 4; i++) a[i] = pack(low(a[i]) + low(b[i]), high(a[i]) + high(b[i]));
                output[v0 + j * stride] = make_uint4(a[0], a[1], a[2], a[3]);
            }
#pragma unroll
            for (int i = 0; i < 4; i++) {
                s1[2 * i] += low(a[i]), s2[2 * i] += low(a[i]) * low(a[i]);
                s1[2 * i + 1] += high(a[i]), s2[2 * i + 1] += high(a[i]) * high(a[i]);
            }
        }
    }
    add_up<C>(s1, s2, totals);
    if (last_block(arrived, gridDim.x)) {
        const Norm norm = {totals, arrived, table, weight, bias, running_mean, running_var, 0, 0};
        finish(norm, C, pixels, eps, momentum, false);
    }
}

// h = leaky(a·z + b); where H and W are given, z's every second pixel of every second row is copied to `halved`.
template <int C, int H, int W>
__global__ void __launch_bounds__(THREADS)
activate(const uint4* __restrict__ z, const float* __restrict__ table, uint4* __restrict__ h, uint4* __restrict__ halved, int pixels) {
    constexpr int V = C / 8;
    float k[3][8];
    load_coefficients<ACTIVATED>(k, table, C, threadIdx.x % V * 8);
    const int total = pixels * V, stride = gridDim.x * THREADS;
#pragma unroll 4
    for (int v = blockIdx.x * THREADS + threadIdx.x; v < total; v += stride) {
        const uint4 x = __ldg(z + v);
        h[v] = read_as<ACTIVATED>(x, x, k);
        if constexpr (H > 0) {
            int at;
            if (in_halved<C, H, W>(v, at)) halved[at] = x;
        }
    }
}

// The sums that batch norm's gradient needs, from dh and z: Σ g and Σ g·(z − mean), g = dh·leaky'(a·z + b). SHARED pixels
// after one another have one and the same dh.
template <int C, int SHARED>
__global__ void __launch_bounds__(THREADS, 2)
gradient_sums(const uint4* __restrict__ dh, const uint4* __restrict__ z, double* totals, int* arrived, float* table,
              float* grad_weight, float* grad_bias, int pixels) {
    constexpr int V = C / 8, BATCH = 4;
    float k[3][8], mean[8], s1[8], s2[8];
    load_coefficients<ACTIVATED>(k, table, C, threadIdx.x % V * 8);
#pragma unroll
    for (int i = 0; i < 8; i++) s1[i] = s2[i] = 0.f, mean[i] = table[2 * C + threadIdx.x % V * 8 + i];
    const int total = pixels * V, stride = gridDim.x * THREADS;
    for (int v0 = blockIdx.x * THREADS + threadIdx.x; v0 < total; v0 += BATCH * stride) {
        uint4 x[BATCH], y[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const int v = v0 + j * stride < total ? v0 + j * stride : v0;
            x[j] = __ldg(dh + v / (V * SHARED) * V + v % V);
            y[j] = __ldg(z + v);
        }
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            if (v0 + j * stride >= total) break;
            u32 a[4] = {x[j].x, x[j].y, x[j].z, x[j].w}, b[4] = {y[j].x, y[j].y, y[j].z, y[j].w};
#pragma unroll
            for (int i = 0; i < 8; i++) {
                const float zi = i % 2 ? high(b[i / 2]) : low(b[i / 2]);
                float g = i % 2 ? high(a[i / 2]) : low(a[i / 2]);
                if (fmaf(k[0][i], zi, k[1][i]) <= 0.f) g *= SLOPE;
                s1[i] += g;
                s2[i] += g * (zi - mean[i]);
            }
        }
    }
    add_up<C>(s1, s2, totals);
    if (last_block(arrived, gridDim.x)) {
        const Norm norm = {totals, arrived, table, 0, 0, 0, 0, grad_weight, grad_bias};
        finish(norm, C, pixels, 0., 0., true);
    }
}

// dz = A·g + B·z + D [+ residual]. MASKED: the input is dh (see above) and g is made here; otherwise the input is g. Where H
// and W are given, the residual has values for every second pixel of every second row, and the others have none.
template <int C, bool MASKED, int SHARED, bool RESIDUAL, int H, int W>
__global__ void __launch_bounds__(THREADS)
input_gradient(const uint4* __restrict__ g, const uint4* __restrict__ z, const uint4* __restrict__ residual,
               const float* __restrict__ table, uint4* __restrict__ dz, int pixels) {
    constexpr int V = C / 8;
    float k[3][8], n[3][8];
    load_coefficients<GRADIENT>(k, table, C, threadIdx.x % V * 8);
    if (MASKED) load_coefficients<ACTIVATED>(n, table, C, threadIdx.x % V * 8);
    const int total = pixels * V, stride = gridDim.x * THREADS;
#pragma unroll 4
    for (int v = blockIdx.x * THREADS + threadIdx.x; v < total; v += stride) {
        uint4 x = __ldg(g + v / (V * SHARED) * V + v % V), y = __ldg(z + v), r = make_uint4(0, 0, 0, 0);
        if constexpr (RESIDUAL && H > 0) {
            int at;
            if (in_halved<C, H, W>(v, at)) r = __ldg(residual + at);
        } else if (RESIDUAL) {
            r = __ldg(residual + v);
        }
        u32 a[4] = {x.x, x.y, x.z, x.w}, b[4] = {y.x, y.y, y.z, y.w}, e[4] = {r.x, r.y, r.z, r.w};
        float out[8];
#pragma unroll
        for (int i = 0; i < 8; i++) {
            const float zi = i % 2 ? high(b[i / 2]) : low(b[i / 2]);
            float gi = i % 2 ? high(a[i / 2]) : low(a[i / 2]);
            if (MASKED && fmaf(n[0][i], zi, n[1][i]) <= 0.f) gi *= SLOPE;
            out[i] = fmaf(k[0][i], gi, fmaf(k[1][i], zi, k[2][i]));
            if (RESIDUAL) out[i] += i % 2 ? high(e[i / 2]) : low(e[i / 2]);
        }
        dz[v] = make_uint4(pack(out[0], out[1]), pack(out[2], out[3]), pack(out[4], out[5]), pack(out[6], out[7]));
    }
}
