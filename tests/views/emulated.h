// Just enough of CUDA to run views.cu on a CPU: a block is as many threads, a warp's exchanges go through memory.
#pragma once
#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a < b ? b : a; }
#define __global__
#define __device__
#define __shared__
#define __forceinline__ inline

struct Index { int x; };
static thread_local Index threadIdx;
static Index blockIdx, blockDim;
static std::unique_ptr<std::barrier<>> everybody;
static std::vector<std::unique_ptr<std::barrier<>>> warps;
static std::vector<int> exchanged;
static std::mutex one_at_a_time;

inline std::barrier<>& own_warp() { return *warps[threadIdx.x / 32]; }
inline void __syncthreads() { everybody->arrive_and_wait(); }
inline void __syncwarp() { own_warp().arrive_and_wait(); }

template <class F>
int among_the_warp(int value, F&& result) {
    exchanged[threadIdx.x] = value;
    __syncwarp();
    const int found = result(&exchanged[threadIdx.x / 32 * 32], threadIdx.x % 32);
    __syncwarp();
    return found;
}
inline int __reduce_min_sync(unsigned, int v) { return among_the_warp(v, [](int* w, int) { return *std::min_element(w, w + 32); }); }
inline int __reduce_max_sync(unsigned, int v) { return among_the_warp(v, [](int* w, int) { return *std::max_element(w, w + 32); }); }
inline int __reduce_add_sync(unsigned, int v) {
    return among_the_warp(v, [](int* w, int) { int sum = 0; for (int i = 0; i < 32; i++) sum += w[i]; return sum; });
}
inline int __shfl_up_sync(unsigned, int v, int by) { return among_the_warp(v, [=](int* w, int lane) { return w[lane < by ? lane : lane - by]; }); }
inline void atomicMin(int* at, int v) { std::lock_guard lock(one_at_a_time); *at = min(*at, v); }
inline void atomicMax(int* at, int v) { std::lock_guard lock(one_at_a_time); *at = max(*at, v); }
inline void atomicAdd(int* at, int v) { std::lock_guard lock(one_at_a_time); *at += v; }

template <class Kernel>
void launch(int blocks, int threads, Kernel&& kernel) {
    blockDim.x = threads;
    exchanged.assign(threads, 0);
    everybody = std::make_unique<std::barrier<>>(threads);
    warps.clear();
    for (int i = 0; i < threads / 32; i++) warps.push_back(std::make_unique<std::barrier<>>(32));
    std::vector<std::thread> pool;
    for (int t = 0; t < threads; t++)
        pool.emplace_back([&, t] {
            threadIdx.x = t;
            for (int block = 0; block < blocks; block++) {
                if (t == 0) blockIdx.x = block;
                __syncthreads();
                kernel();
                __syncthreads();
            }
        });
    for (auto& thread : pool) thread.join();
}
