// Just enough of CUDA to run our kernels on a CPU: blocks one after another, each as many threads as it has, and a
// warp's exchanges through memory. Copies that a GPU makes meanwhile are made at once.
#pragma once
#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }
#define __global__
#define __host__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Index { int x, y, z; };
static thread_local Index threadIdx;
static thread_local int thread_of_block;
static Index blockIdx, blockDim, gridDim;
static std::unique_ptr<std::barrier<>> everybody;
static std::vector<std::unique_ptr<std::barrier<>>> warps;
static std::vector<uint32_t> exchanged;
static std::mutex one_at_a_time;

inline std::barrier<>& own_warp() { return *warps[thread_of_block / 32]; }
inline void __syncthreads() { everybody->arrive_and_wait(); }
inline void __syncwarp() { own_warp().arrive_and_wait(); }

// `result` of the values of a warp's lanes, and the own lane.
template <class T, class F>
T among_the_warp(T value, F&& result) {
    static_assert(sizeof(T) == sizeof(uint32_t));
    exchanged[thread_of_block] = std::bit_cast<uint32_t>(value);
    __syncwarp();
    T lanes[32];
    for (int i = 0; i < 32; i++) lanes[i] = std::bit_cast<T>(exchanged[thread_of_block / 32 * 32 + i]);
    __syncwarp();
    return result(lanes, thread_of_block % 32);
}
inline int __reduce_min_sync(unsigned, int v) { return among_the_warp(v, [](int* w, int) { return *std::min_element(w, w + 32); }); }
inline int __reduce_max_sync(unsigned, int v) { return among_the_warp(v, [](int* w, int) { return *std::max_element(w, w + 32); }); }
inline int __reduce_add_sync(unsigned, int v) {
    return among_the_warp(v, [](int* w, int) { int sum = 0; for (int i = 0; i < 32; i++) sum += w[i]; return sum; });
}
template <class T>
T __shfl_sync(unsigned, T v, int from) { return among_the_warp(v, [=](T* w, int) { return w[from]; }); }
template <class T>
T __shfl_up_sync(unsigned, T v, int by) { return among_the_warp(v, [=](T* w, int lane) { return w[lane < by ? lane : lane - by]; }); }
template <class T>
T __shfl_xor_sync(unsigned, T v, int by) { return among_the_warp(v, [=](T* w, int lane) { return w[lane ^ by]; }); }
inline void atomicMin(int* at, int v) { std::lock_guard lock(one_at_a_time); *at = min(*at, v); }
inline void atomicMax(int* at, int v) { std::lock_guard lock(one_at_a_time); *at = max(*at, v); }
template <class T>
T atomicAdd(T* at, T v) { std::lock_guard lock(one_at_a_time); const T before = *at; *at += v; return before; }
inline void __threadfence() { std::atomic_thread_fence(std::memory_order_seq_cst); }

struct alignas(8) uint2 { uint32_t x, y; };
struct alignas(16) uint4 { uint32_t x, y, z, w; };
struct alignas(16) float4 { float x, y, z, w; };
inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
template <class T> T __ldg(const T* p) { return *p; }
template <class T> T __ldcg(const T* p) { return *p; }
inline float __uint_as_float(uint32_t v) { return std::bit_cast<float>(v); }
inline float rsqrtf(float v) { return 1.f / std::sqrt(v); }
extern unsigned char shared[];  // what a launch asks for
inline size_t __cvta_generic_to_shared(const void* p) { return (const unsigned char*)p - shared; }
// To the nearest bf16, ties to even; numbers alone.
inline uint32_t rounded_pair(float first, float second) {
    auto half = [](float v) { const uint32_t bits = std::bit_cast<uint32_t>(v); return bits + 0x7fff + (bits >> 16 & 1) >> 16; };
    return half(first) | half(second) << 16;
}

inline void copied(void* to, const void* from, bool zeros) { zeros ? memset(to, 0, 16) : memcpy(to, from, 16); }

// A barrier that some threads only arrive at, and others wait at.
struct Named {
    std::mutex mutex;
    std::condition_variable changed;
    int arrived = 0, generation = 0;
    void pass(int expected, bool waits) {
        std::unique_lock lock(mutex);
        const int current = generation;
        if (++arrived == expected) arrived = 0, generation++, changed.notify_all();
        else if (waits) changed.wait(lock, [&] { return generation != current; });
    }
};
inline Named& named(int number) {
    static std::map<int, Named> all;
    std::lock_guard lock(one_at_a_time);
    return all[number];
}

// ldmatrix: lanes 8i to 8i + 7 say where the rows of matrix i lie, each of eight numbers of 16 bits.
inline void load_among_lanes(uint32_t (&r)[4], uint32_t address, bool transposed) {
    uint32_t rows[32];
    among_the_warp(address, [&](uint32_t* lanes, int) { std::copy(lanes, lanes + 32, rows); return 0u; });
    const int lane = thread_of_block % 32, far = lane / 4, near = lane % 4 * 2;
    for (int i = 0; i < 4; i++) {
        auto number = [&](int row, int column) { return (uint32_t)((const uint16_t*)(shared + rows[8 * i + row]))[column]; };
        r[i] = transposed ? number(near, far) | number(near + 1, far) << 16 : number(far, near) | number(far, near + 1) << 16;
    }
}
// mma.m16n8k16: c += a · b, all of them spread over the lanes.
static uint32_t operands[1024][6];
inline void multiply_among_lanes(float (&c)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1) {
    const uint32_t own[6] = {a[0], a[1], a[2], a[3], b0, b1};
    std::copy(own, own + 6, operands[thread_of_block]);
    __syncwarp();
    const uint32_t(*all)[6] = &operands[thread_of_block / 32 * 32];
    const int lane = thread_of_block % 32;
    auto half = [](uint32_t pair, int which) { return __uint_as_float(which ? pair & 0xffff0000u : pair << 16); };
    for (int e = 0; e < 4; e++) {
        const int row = lane / 4, column = lane % 4 * 2 + e % 2;
        for (int k = 0; k < 16; k++) {
            const int beside = k % 8 / 2;
            const float x = half(all[row * 4 + beside][e / 2 + k / 8 * 2], k % 2);
            c[e] += x * half(all[column * 4 + beside][4 + k / 8], k % 2);
        }
    }
    __syncwarp();
}

// wgmma.m64nNk16: d += a · b. A descriptor says where an operand's blocks of 8 × 16 bytes lie; each thread works out its own.
inline float described(uint64_t descriptor, int across, int outer, int k) {
    const int start = (descriptor & 0x3fff) << 4, leading = (descriptor >> 16 & 0x3fff) << 4, stride = (descriptor >> 32 & 0x3fff) << 4;
    const int within = across ? k % 8 * 16 + outer % 8 * 2 : outer % 8 * 16 + k % 8 * 2;
    return __uint_as_float((uint32_t)*(const uint16_t*)(shared + start + outer / 8 * stride + k / 8 * leading + within) << 16);
}
template <int N, class A>
void multiply_in_a_group(float (&d)[N], uint64_t b, int across, A&& a) {
    const int lane = thread_of_block % 32;
    for (int i = 0; i < N; i++) {
        const int row = lane / 4 + i % 4 / 2 * 8, column = i / 4 * 8 + lane % 4 * 2 + i % 2;
        for (int k = 0; k < 16; k++) d[i] += a(row, k) * described(b, across, column, k);
    }
}
template <int ACROSS, int N>
void multiply_described(float (&d)[N], uint64_t a, uint64_t b) {
    const int first = thread_of_block / 32 % 4 * 16;
    multiply_in_a_group(d, b, ACROSS, [&](int row, int k) { return described(a, ACROSS, first + row, k); });
}
template <int N>
void multiply_held(float (&d)[N], const uint32_t (&a)[4], uint64_t b) {
    std::copy(a, a + 4, operands[thread_of_block]);
    __syncwarp();
    const uint32_t(*all)[6] = &operands[thread_of_block / 32 * 32];
    multiply_in_a_group(d, b, 0, [&](int row, int k) {
        const uint32_t pair = all[row % 8 * 4 + k % 8 / 2][row / 8 + k / 8 * 2];
        return __uint_as_float(k % 2 ? pair & 0xffff0000u : pair << 16);
    });
    __syncwarp();
}

template <class Kernel>
void launch(Index grid, Index block, Kernel&& kernel) {
    const int threads = block.x * block.y;
    gridDim = grid, blockDim = block;
    exchanged.assign(threads, 0);
    everybody = std::make_unique<std::barrier<>>(threads);
    warps.clear();
    for (int i = 0; i < threads / 32; i++) warps.push_back(std::make_unique<std::barrier<>>(32));
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; t++)
        pool.emplace_back([&, t] {
            threadIdx = {t % block.x, t / block.x, 0};
            thread_of_block = t;
            for (int i = 0; i < grid.x * grid.y; i++) {
                if (t == 0) blockIdx = {i % grid.x, i / grid.x, 0};
                __syncthreads();
                kernel();
                __syncthreads();
            }
        });
    for (auto& thread : pool) thread.join();
}
