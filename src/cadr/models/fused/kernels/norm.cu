// Batch norm and leaky ReLU around convolutions that another library runs. Tensors are (pixels, C) bf16.

#define BATCH 4  // loads under way before the first is used

// Sum (with an optional residual, written to `output`) and the statistics of the sum.
template <int C, bool RESIDUAL>
__global__ void __launch_bounds__(512, 2)
statistics(const uint4* __restrict__ input, const uint4* __restrict__ residual, uint4* __restrict__ output, double* totals,
           int* arrived, float* table, const float* weight, const float* bias, float* running_mean, float* running_var,
           int pixels, double eps, double momentum) {
    constexpr int V = C / 8;
    __shared__ float sums[512 * 8];
    float s1[8], s2[8];
#pragma unroll
    for (int i = 0; i < 8; i++) s1[i] = s2[i] = 0.f;
    const int total = pixels * V, stride = gridDim.x * 512;  // 512 is a multiple of V: a thread keeps its channels
    for (int v0 = blockIdx.x * 512 + threadIdx.x; v0 < total; v0 += BATCH * stride) {
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
    for (int which = 0; which < 2; which++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; i++) sums[threadIdx.x * 8 + i] = which ? s2[i] : s1[i];
        __syncthreads();
        for (int c = threadIdx.x; c < C; c += 512) {  // element (t, i) is channel (t % V)·8 + i, that is t·8 + i modulo C
            float sum = 0.f;
            for (int j = c; j < 512 * 8; j += C) sum += sums[j];
            atomicAdd(&totals[which * C + c], (double)sum);
        }
    }
    if (last_block(arrived, gridDim.x)) {
        const Norm norm = {totals, arrived, table, weight, bias, running_mean, running_var, 0, 0};
        finish(norm, C, pixels, eps, momentum, false);
    }
}

// h = leaky(a·z + b)
template <int C>
__global__ void __launch_bounds__(512)
activate(const uint4* __restrict__ z, const float* __restrict__ table, uint4* __restrict__ h, int pixels) {
    constexpr int V = C / 8;
    float k[3][8];
    load_coefficients<ACTIVATED>(k, table, C, threadIdx.x % V * 8);
    const int total = pixels * V, stride = gridDim.x * 512;
#pragma unroll 4
    for (int v = blockIdx.x * 512 + threadIdx.x; v < total; v += stride) h[v] = read_as<ACTIVATED>(__ldg(z + v), make_uint4(0, 0, 0, 0), k);
}

// The sums that batch norm's gradient needs, from dh and z: Σ g and Σ g·(z − mean), g = dh·leaky'(a·z + b).
template <int C>
__global__ void __launch_bounds__(512, 2)
gradient_sums(const uint4* __restrict__ dh, const uint4* __restrict__ z, double* totals, int* arrived, float* table,
              float* grad_weight, float* grad_bias, int pixels) {
    constexpr int V = C / 8;
    __shared__ float sums[512 * 8];
    float k[3][8], mean[8], s1[8], s2[8];
    load_coefficients<ACTIVATED>(k, table, C, threadIdx.x % V * 8);
#pragma unroll
    for (int i = 0; i < 8; i++) s1[i] = s2[i] = 0.f, mean[i] = table[2 * C + threadIdx.x % V * 8 + i];
    const int total = pixels * V, stride = gridDim.x * 512;
    for (int v0 = blockIdx.x * 512 + threadIdx.x; v0 < total; v0 += BATCH * stride) {
        uint4 x[BATCH], y[BATCH];
#pragma unroll
        for (int j = 0; j < BATCH; j++) {
            const int v = v0 + j * stride;
            x[j] = __ldg(dh + (v < total ? v : v0));
            y[j] = __ldg(z + (v < total ? v : v0));
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
    for (int which = 0; which < 2; which++) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < 8; i++) sums[threadIdx.x * 8 + i] = which ? s2[i] : s1[i];
        __syncthreads();
        for (int c = threadIdx.x; c < C; c += 512) {
            float sum = 0.f;
            for (int j = c; j < 512 * 8; j += C) sum += sums[j];
            atomicAdd(&totals[which * C + c], (double)sum);
        }
    }
    if (last_block(arrived, gridDim.x)) {
        const Norm norm = {totals, arrived, table, 0, 0, 0, 0, grad_weight, grad_bias};
        finish(norm, C, pixels, 0., 0., true);
    }
}

// dz = A·g + B·z + D [+ residual]. MASKED: the input is dh and g is made here; otherwise the input is g.
template <int C, bool MASKED, bool RESIDUAL>
__global__ void __launch_bounds__(512)
input_gradient(const uint4* __restrict__ g, const uint4* __restrict__ z, const uint4* __restrict__ residual,
               const float* __restrict__ table, uint4* __restrict__ dz, int pixels) {
    constexpr int V = C / 8;
    float k[3][8], n[3][8];
    load_coefficients<GRADIENT>(k, table, C, threadIdx.x % V * 8);
    if (MASKED) load_coefficients<ACTIVATED>(n, table, C, threadIdx.x % V * 8);
    const int total = pixels * V, stride = gridDim.x * 512;
#pragma unroll 4
    for (int v = blockIdx.x * 512 + threadIdx.x; v < total; v += stride) {
        uint4 x = __ldg(g + v), y = __ldg(z + v), r = make_uint4(0, 0, 0, 0);
        if (RESIDUAL) r = __ldg(residual + v);
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
