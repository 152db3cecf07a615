// What kernels on Hopper's warpgroup multiplications (wgmma, sm_90a) share.
//
// The second operand of a wgmma, and the first unless it is in registers, come from shared memory, without swizzling, as
// "core matrices" of 8 × 16 bytes that lie contiguously (128 bytes); a descriptor gives the first one's address and two
// distances: `leading` to the neighbour along K and `stride` to the neighbour along M or N. A tensor is kept in planes:
// eight channels of a pixel are 16 bytes, and the pixels of a row follow each other.
typedef unsigned long long u64;

__device__ __forceinline__ u64 descriptor(u32 address, u32 leading, u32 stride) {
    return (u64)((address & 0x3ffff) >> 4) | (u64)(leading >> 4) << 16 | (u64)(stride >> 4) << 32;
}

// The instruction names every accumulator, in its text and as operands.
#define NAMES_0 "%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,%12,%13,%14,%15"
#define NAMES_16 "%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31"
#define NAMES_32 "%32,%33,%34,%35,%36,%37,%38,%39,%40,%41,%42,%43,%44,%45,%46,%47"
#define NAMES_48 "%48,%49,%50,%51,%52,%53,%54,%55,%56,%57,%58,%59,%60,%61,%62,%63"
#define NAMES_64 "%64,%65,%66,%67,%68,%69,%70,%71,%72,%73,%74,%75,%76,%77,%78,%79"
#define NAMES_80 "%80,%81,%82,%83,%84,%85,%86,%87,%88,%89,%90,%91,%92,%93,%94,%95"
#define EIGHT(i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define SIXTEEN(i) EIGHT(i), EIGHT(i + 8)
#define THIRTY_TWO(i) SIXTEEN(i), SIXTEEN(i + 16)
#define WGMMA(columns, names, operands) \
    "{\n.reg .pred p;\nsetp.eq.b32 p, 1, 1;\nwgmma.mma_async.sync.aligned.m64n" columns "k16.f32.bf16.bf16 {" names "}, " operands ";\n}\n"

// D += A·B for 64 × N × 16; ACROSS: 0 where K is what lies contiguously, 1 where M and N are. A thread holds of each eight
// columns two neighbours (2·(lane % 4)) of row 16·warp + lane / 4 and of the row eight below.
template <int ACROSS>
__device__ __forceinline__ void multiply_group(float (&d)[32], u64 a, u64 b) {
    asm volatile(WGMMA("64", NAMES_0 "," NAMES_16, "%32, %33, p, 1, 1, %34, %34")
                 : THIRTY_TWO(0)
                 : "l"(a), "l"(b), "n"(ACROSS));
}
template <int ACROSS>
__device__ __forceinline__ void multiply_group(float (&d)[64], u64 a, u64 b) {
    asm volatile(WGMMA("128", NAMES_0 "," NAMES_16 "," NAMES_32 "," NAMES_48, "%64, %65, p, 1, 1, %66, %66")
                 : THIRTY_TWO(0), THIRTY_TWO(32)
                 : "l"(a), "l"(b), "n"(ACROSS));
}
template <int ACROSS>
__device__ __forceinline__ void multiply_group(float (&d)[96], u64 a, u64 b) {
    asm volatile(WGMMA("192", NAMES_0 "," NAMES_16 "," NAMES_32 "," NAMES_48 "," NAMES_64 "," NAMES_80, "%96, %97, p, 1, 1, %98, %98")
                 : THIRTY_TWO(0), THIRTY_TWO(32), THIRTY_TWO(64)
                 : "l"(a), "l"(b), "n"(ACROSS));
}
// The same with A from registers, a warp's 16 × 16 of it as `load_matrices` reads them, and K contiguous in B.
__device__ __forceinline__ void multiply_group(float (&d)[16], const u32 (&a)[4], u64 b) {
    asm volatile(WGMMA("32", NAMES_0, "{%16,%17,%18,%19}, %20, p, 1, 1, 0")
                 : SIXTEEN(0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
}
// Before the first multiplication, and after other code has touched the accumulators.
__device__ __forceinline__ void open_group() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void close_group() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int OPEN = 0>  // until at most so many are under way
__device__ __forceinline__ void await_group() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(OPEN) : "memory"); }
// What this thread has stored in shared memory becomes visible to the tensor cores (for others after a barrier).
__device__ __forceinline__ void show_to_tensor_cores() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
// The accumulators are as they stand here: keeps the compiler from moving what sets or uses them across the fences.
template <int N>
__device__ __forceinline__ void settle(float (&d)[N]) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(d[i])::"memory");
}
// A load that stays before the next barrier: one through the read-only path the compiler moves to where its value is used.
__device__ __forceinline__ uint4 load_now(const uint4* p) {
    uint4 v;
    asm volatile("ld.global.v4.b32 {%0,%1,%2,%3}, [%4];" : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "l"(p) : "memory");
    return v;
}
__host__ __device__ constexpr int plane_bytes(int bytes, int channels) {  // so that a quarter of a warp meets all banks
    return (bytes + 127) / 128 * 128 + 1024 / channels;
}

