// What every kernel shares: bf16 without headers (so that NVRTC alone can build it), tensor-core primitives,
// and the per-channel sums that end in batch-norm coefficients.
// Activations are NHWC bf16; sums and coefficients are fp32.
typedef unsigned int u32;
typedef unsigned short u16;

#define SLOPE 0.1f  // of the leaky ReLU

__device__ __forceinline__ float low(u32 pair) { return __uint_as_float(pair << 16); }
__device__ __forceinline__ float high(u32 pair) { return __uint_as_float(pair & 0xffff0000u); }
__device__ __forceinline__ u32 pack(float first, float second) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(second), "f"(first));
    return pair;
}
// 8 or 16 neighbouring bytes as one access.
__device__ __forceinline__ void load_pairs(u32 (&r)[4], const u16* p) {
    const uint4 v = __ldg((const uint4*)p);
    r[0] = v.x, r[1] = v.y, r[2] = v.z, r[3] = v.w;
}
__device__ __forceinline__ void load_pairs(u32 (&r)[2], const u16* p) {
    const uint2 v = __ldg((const uint2*)p);
    r[0] = v.x, r[1] = v.y;
}
// (in assembly: left to itself the compiler may split the store into words, at four times the traffic)
__device__ __forceinline__ void store_pairs(u16* p, const u32 (&r)[4]) {
    asm volatile("st.global.v4.b32 [%0], {%1,%2,%3,%4};" ::"l"(p), "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]) : "memory");
}
__device__ __forceinline__ void store_pairs(u16* p, const u32 (&r)[2]) {
    asm volatile("st.global.v2.b32 [%0], {%1,%2};" ::"l"(p), "r"(r[0]), "r"(r[1]) : "memory");
}
__device__ __forceinline__ float leaky(float n) { return fmaxf(n, SLOPE * n); }

__device__ __forceinline__ u32 shared_address(const void* p) { return (u32)__cvta_generic_to_shared(p); }
__device__ __forceinline__ void load_matrices(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
__device__ __forceinline__ void load_matrices_transposed(u32 (&r)[4], u32 address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(address));
}
__device__ __forceinline__ void multiply_add(float (&c)[4], const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Threads of one group wait for each other; barrier 0 is __syncthreads.
__device__ __forceinline__ void group_barrier(int group, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 1), "r"(threads) : "memory");
}

// Groups take turns: `wait_turn` returns when the group before has called `give_turn` to this one.
__device__ __forceinline__ void wait_turn(int group, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(group + 8), "r"(2 * threads) : "memory");
}
__device__ __forceinline__ void give_turn(int group, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(group + 8), "r"(2 * threads) : "memory");
}
// Copies 16 bytes (or as many zeros) to shared memory while the thread goes on; copies between two calls of `close_copies`
// form a batch.
__device__ __forceinline__ void copy_ahead(void* to, const uint4* from, bool zeros = false) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)), "l"(from), "r"(zeros ? 0 : 16) : "memory");
}
__device__ __forceinline__ void close_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `open` batches are under way.
template <int OPEN>
__device__ __forceinline__ void await_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(OPEN) : "memory"); }

// How a tensor is read on its way into a convolution.
enum Read { PLAIN = 0, ACTIVATED = 1, GRADIENT = 2, IMAGE = 3, JOINED = 4 };

// Coefficients of batch norm, per channel, as rows of one fp32 table with C columns:
//   0 scale a, 1 offset b (n = a·z + b), 2 mean, 3 reciprocal deviation, and for the way back dz = 4·g + 5·z + 6.
#define ROWS 7

// Eight channels (16 bytes) of `first`, read as `how` says; `second` is z where a gradient is read.
template <int HOW>
__device__ __forceinline__ uint4 read_as(uint4 first, uint4 second, const float (&k)[3][8]) {
    if (HOW == PLAIN || HOW == IMAGE) return first;
    u32 x[4] = {first.x, first.y, first.z, first.w}, z[4] = {second.x, second.y, second.z, second.w}, r[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float v0, v1;
        if (HOW == ACTIVATED) {
            v0 = leaky(fmaf(k[0][2 * i], low(x[i]), k[1][2 * i]));
            v1 = leaky(fmaf(k[0][2 * i + 1], high(x[i]), k[1][2 * i + 1]));
        } else {
            v0 = fmaf(k[0][2 * i], low(x[i]), fmaf(k[1][2 * i], low(z[i]), k[2][2 * i]));
            v1 = fmaf(k[0][2 * i + 1], high(x[i]), fmaf(k[1][2 * i + 1], high(z[i]), k[2][2 * i + 1]));
        }
        r[i] = pack(v0, v1);
    }
    return make_uint4(r[0], r[1], r[2], r[3]);
}
template <int HOW>
__device__ __forceinline__ void load_coefficients(float (&k)[3][8], const float* table, int channels, int first) {
    if (HOW != ACTIVATED && HOW != GRADIENT) return;
    const int row = HOW == ACTIVATED ? 0 : 4;
#pragma unroll
    for (int r = 0; r < (HOW == ACTIVATED ? 2 : 3); r++)
#pragma unroll
        for (int i = 0; i < 8; i++) k[r][i] = table[(row + r) * channels + first + i];
}

// ROWS_IN rows of an image from `first_row` on, read as HOW says, into shared memory at `place(v)`, v counting vectors of 16
// bytes; rows outside the image become zeros. What was rebuilt is also kept in memory, but for the first and the last row,
// which are other tiles' own. All loads go out before the first is used: one at a time they would each wait for memory.
template <int HOW, int ROWS_IN, int THREADS, int SIDE, int VECTORS, typename Place>
__device__ __forceinline__ void fill(const uint4* __restrict__ image, const uint4* __restrict__ image_second, int first_row,
                                     const float* table, uint4* __restrict__ kept, int thread, Place place) {
    constexpr int ROW = SIDE * VECTORS, COUNT = ROWS_IN * ROW, LOADS = (COUNT + THREADS - 1) / THREADS;
    uint4 first[LOADS], second[LOADS];
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        const int v = thread + i * THREADS, row = first_row + v / ROW;
        const int at = v < COUNT && row >= 0 && row < SIDE ? first_row * ROW + v : thread;
        first[i] = __ldg(image + at);
        if (HOW == GRADIENT) second[i] = __ldg(image_second + at);
    }
    float k[3][8];
    load_coefficients<HOW>(k, table, VECTORS * 8, thread % VECTORS * 8);
#pragma unroll
    for (int i = 0; i < LOADS; i++) {
        const int v = thread + i * THREADS, row = first_row + v / ROW;
        uint4 value = read_as<HOW>(first[i], HOW == GRADIENT ? second[i] : first[i], k);
        if (row < 0 || row >= SIDE) value = make_uint4(0, 0, 0, 0);
        if (v < COUNT) *(uint4*)place(v) = value;
        if (HOW != PLAIN && v >= ROW && v < COUNT - ROW) kept[first_row * ROW + v] = value;
    }
}
// The same for three-channel images: pixels, not vectors; the channels beyond the third stay as they are.
template <int COUNT, int THREADS, int SIDE, typename Place>
__device__ __forceinline__ void fill_image(const u16* __restrict__ image, int first_row, int thread, Place place) {
#pragma unroll 4
    for (int p = thread; p < COUNT; p += THREADS) {
        const int row = first_row + p / SIDE;
        const bool inside = row >= 0 && row < SIDE;
        const u16* px = image + (inside ? row * SIDE + p % SIDE : 0) * 3;
        const u32 a = __ldg(px) | (u32)__ldg(px + 1) << 16, b = __ldg(px + 2);
        *(uint2*)place(p) = inside ? make_uint2(a, b) : make_uint2(0, 0);
    }
}

// Every block adds its sums to fp64 totals; the block that finishes last turns them into coefficients and leaves totals
// and counter at zero: no second launch. At fp64 the order of the additions does not show in the fp32 result.
struct Norm {
    double* totals;        // (2, C)
    int* arrived;          // how many blocks are done
    float* table;          // (ROWS, C)
    const float* weight;   // γ
    const float* bias;     // β
    float* running_mean;   // forward only
    float* running_var;
    float* grad_weight;    // backward only
    float* grad_bias;
};
__device__ __forceinline__ bool last_block(int* arrived, int blocks) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) last = atomicAdd(arrived, 1) == blocks - 1;
    __syncthreads();
    if (last && threadIdx.x == 0) *arrived = 0;
    if (last) __threadfence();
    return last;
}
__device__ __forceinline__ void finish(const Norm& norm, int channels, double count, double eps, double momentum, bool backward) {
    for (int c = threadIdx.x; c < channels; c += blockDim.x) {
        const double s1 = __ldcg(&norm.totals[c]), s2 = __ldcg(&norm.totals[channels + c]);
        norm.totals[c] = norm.totals[channels + c] = 0.;
        float* t = norm.table;
        if (!backward) {
            const double mean = s1 / count, square = s2 / count - mean * mean, var = square > 0. ? square : 0.;
            const float r = rsqrtf((float)(var + eps)), a = norm.weight[c] * r;
            t[c] = a;
            t[channels + c] = norm.bias[c] - (float)mean * a;
            t[2 * channels + c] = (float)mean;
            t[3 * channels + c] = r;
            norm.running_mean[c] += (float)momentum * ((float)mean - norm.running_mean[c]);
            norm.running_var[c] += (float)momentum * ((float)(var * (count / (count - 1.))) - norm.running_var[c]);
        } else {  // s1 = Σ g, s2 = Σ g (z − mean)
            const float a = t[c], mean = t[2 * channels + c], r = t[3 * channels + c];
            const float slope = -a * r * r * (float)(s2 / count);
            t[4 * channels + c] = a;
            t[5 * channels + c] = slope;
            t[6 * channels + c] = -a * (float)(s1 / count) - slope * mean;
            norm.grad_weight[c] = r * (float)s2;
            norm.grad_bias[c] = (float)s1;
        }
    }
}
