// Just enough of CUDA to run some of our kernels on a CPU: blocks one after another, each as many threads as it has, and a
// warp's exchanges through memory.
#pragma once
#include <algorithm>
#include <atomic>
#include <barrier>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }
#define __global__
#define __device__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

struct Index { int x, y, z; };
static thread_local Index threadIdx;
static Index blockIdx, blockDim, gridDim;
static std::unique_ptr<std::barrier<>> everybody;
static std::vector<std::unique_ptr<std::barrier<>>> warps;
static std::vector<uint32_t> exchanged;
static std::mutex one_at_a_time;

inline std::barrier<>& own_warp() { return *warps[threadIdx.x / 32]; }
inline void __syncthreads() { everybody->arrive_and_wait(); }
inline void __syncwarp() { own_warp().arrive_and_wait(); }

// `result` of the values of a warp's lanes, and the own lane.
template <class T, class F>
T among_the_warp(T value, F&& result) {
    static_assert(sizeof(T) == sizeof(uint32_t));
    exchanged[threadIdx.x] = std::bit_cast<uint32_t>(value);
    __syncwarp();
    T lanes[32];
    for (int i = 0; i < 32; i++) lanes[i] = std::bit_cast<T>(exchanged[threadIdx.x / 32 * 32 + i]);
    __syncwarp();
    return result(lanes, threadIdx.x % 32);
}
inline int __reduce_min_sync(unsigned, int v) { return among_the_warp(v, [](int* w, int) { return *std::min_element(w, w + 32); }); }
inline int __reduce_max_sync(unsigned, int v) { return among_the_warp(v, [](int* w, int) { return *std::max_element(w, w + 32); }); }
inline int __reduce_add_sync(unsigned, int v) {
    return among_the_warp(v, [](int* w, int) { int sum = 0; for (int i = 0; i < 32; i++) sum += w[i]; return sum; });
}
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
inline size_t __cvta_generic_to_shared(const void* p) { return (size_t)p; }
// To the nearest bf16, ties to even; numbers alone.
inline uint32_t rounded_pair(float first, float second) {
    auto half = [](float v) { const uint32_t bits = std::bit_cast<uint32_t>(v); return bits + 0x7fff + (bits >> 16 & 1) >> 16; };
    return half(first) | half(second) << 16;
}

template <class Kernel>
void launch(int columns, int rows, int threads, Kernel&& kernel) {
    blockDim.x = threads, gridDim.x = columns, gridDim.y = rows;
    exchanged.assign(threads, 0);
    everybody = std::make_unique<std::barrier<>>(threads);
    warps.clear();
    for (int i = 0; i < threads / 32; i++) warps.push_back(std::make_unique<std::barrier<>>(32));
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; t++)
        pool.emplace_back([&, t] {
            threadIdx.x = t;
            for (int block = 0; block < columns * rows; block++) {
                if (t == 0) blockIdx.x = block % columns, blockIdx.y = block / columns;
                __syncthreads();
                kernel();
                __syncthreads();
            }
        });
    for (auto& thread : pool) thread.join();
}
