#include "backends/cuda/text/prelude.h"

namespace nitinol::cuda {

// INFINITY and NAN are macros of headers, and 16-bit floating types are classes of headers: both
// cost NVRTC more time than most kernels. The instructions for the larger and the smaller of two
// numbers do as core/joins.h says: by the manual of PTX a NaN gives a NaN and +0 is above -0. GPUs
// below compute capability 8.0 have none that knows NaN, and go by the formula, as does the host.
std::string_view device_words() {
  return R"(
typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned int u32; typedef int i32; typedef unsigned long long u64; typedef long long i64;
#define DEVICE static __device__ __forceinline__
#define TABLE static __device__ const
#define SHARED __shared__
#define UNROLL _Pragma("unroll")
#define ROLLED _Pragma("unroll 1")
#define KERNEL(name, threads) extern "C" __global__ void __launch_bounds__(threads) name(const __grid_constant__ Arguments a)
DEVICE float f32_of(u32 bits) { return __uint_as_float(bits); }
DEVICE double f64_of(u64 bits) { return __longlong_as_double((i64)bits); }
DEVICE u32 bits_of(float x) { return __float_as_uint(x); }
DEVICE u64 bits_of(double x) { return (u64)__double_as_longlong(x); }
DEVICE float fma_of(float a, float b, float c) { return __fmaf_rn(a, b, c); }
DEVICE double fma_of(double a, double b, double c) { return __fma_rn(a, b, c); }
DEVICE float sqrt_of(float x) { return __fsqrt_rn(x); }
DEVICE double sqrt_of(double x) { return __dsqrt_rn(x); }
DEVICE float div_of(float a, float b) { return __fdiv_rn(a, b); }
DEVICE double div_of(double a, double b) { return __ddiv_rn(a, b); }
#if __CUDA_ARCH__ >= 800
#define HAS_EXTREMES
DEVICE float largest_of(float a, float b) { float x; asm("max.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b)); return x; }
DEVICE float smallest_of(float a, float b) { float x; asm("min.NaN.f32 %0, %1, %2;" : "=f"(x) : "f"(a), "f"(b)); return x; }
#endif
DEVICE float floor_of(float x) { return floorf(x); }
DEVICE double floor_of(double x) { return floor(x); }
DEVICE float ceil_of(float x) { return ceilf(x); }
DEVICE double ceil_of(double x) { return ceil(x); }
DEVICE float trunc_of(float x) { return truncf(x); }
DEVICE double trunc_of(double x) { return trunc(x); }
DEVICE float round_even(float x) { return rintf(x); }
DEVICE double round_even(double x) { return rint(x); }
DEVICE u64 high_of(u64 a, u64 b) { return __umul64hi(a, b); }
DEVICE i64 high_of(i64 a, i64 b) { return __mul64hi(a, b); }
DEVICE float float_of_half(u16 h) { float x; asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h)); return x; }
DEVICE u16 half_of_float(float x) { u16 h; asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x)); return h; }
DEVICE u16 bfloat_of_float(float x) { u32 h; asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(h) : "f"(0.0f), "f"(x)); return (u16)h; }
DEVICE u32 thread_index() { return threadIdx.x; }
DEVICE u32 block_index() { return blockIdx.x; }
DEVICE void barrier() { __syncthreads(); }
DEVICE void warp_barrier() { __syncwarp(); }
template <class T> DEVICE T shuffle_xor(T x, int lanes) { return __shfl_xor_sync(0xffffffffu, x, lanes); }
DEVICE bool shuffle_xor(bool x, int lanes) { return __shfl_xor_sync(0xffffffffu, (int)x, lanes) != 0; }
// The lanes of the warp of which it is true, those that have the same 8 bits; and how many there are.
DEVICE u32 lanes_where(bool is_true) { return __ballot_sync(0xffffffffu, is_true); }
DEVICE u32 same_lanes(u32 digit) {
  u32 same = 0xffffffffu;
  UNROLL
  for (int bit = 0; bit < 8; ++bit) {
    const bool is_set = (digit >> bit & 1u) != 0;
    const u32 set = lanes_where(is_set);
    same &= is_set ? set : ~set;
  }
  return same;
}
DEVICE u32 bits_in(u32 x) { return (u32)__popc(x); }
DEVICE void count_one(u32* counter) { atomicAdd(counter, 1u); }
DEVICE void raise_to(u32* most, u32 value) { atomicMax(most, value); }
DEVICE void add_to(u32* sum, u32 value) { atomicAdd(sum, value); }
DEVICE void add_to(u64* sum, u64 value) { atomicAdd(sum, value); }
DEVICE void publish() { __threadfence(); }
DEVICE u32 count_up(u32* counter, u32 last) { return atomicInc(counter, last); }
template <class T> DEVICE T fresh(const T* at) { return *(const volatile T*)at; }
DEVICE void report(u32* status, u32 code) { *(volatile u32*)status = code; }
template <class V> DEVICE V load_at_once(const void* at) { return *(const V*)at; }
template <class V> DEVICE void store_at_once(void* at, const V& value) { *(V*)at = value; }
)";
}

std::string_view common_words() {
  return R"(
template <class T, int n> struct alignas(n * sizeof(T)) Vector { T v[n]; };
template <class T> DEVICE T least(T a, T b) { return a < b ? a : b; }
DEVICE float abs_of(float x) { return f32_of(bits_of(x) & 0x7fffffffu); }
DEVICE double abs_of(double x) { return f64_of(bits_of(x) & 0x7fffffffffffffffull); }
DEVICE float float_of_bfloat(u16 h) { return f32_of((u32)h << 16); }
DEVICE float round_half(float x) { return float_of_half(half_of_float(x)); }
DEVICE float round_bfloat(float x) { return float_of_bfloat(bfloat_of_float(x)); }
// Below `low` gives `least`, from `high` on `most`, and NaN 0.
template <class To, class From> DEVICE To saturated(From x, From low, From high, To smallest, To largest) {
  const bool fits = (x >= low) & (x < high);
  const To inside = (To)(fits ? x : From(0));
  return x >= high ? largest : x < low ? smallest : inside;
}
template <class T> DEVICE T quotient(T a, T b) { return (T)(a / (b == 0 ? 1 : b)); }
// Also where C has none: -b for -1, which wraps.
template <class T> DEVICE T signed_quotient(T a, T b) {
  const T whole = (T)(a / ((b == 0) | (b == -1) ? 1 : b));
  return b == -1 ? (T)(0 - (u64)a) : whole;
}
// True in all threads of the last of `blocks` blocks to come here, which sees what others wrote.
DEVICE bool is_last(u32* counter, u32 blocks) {
  SHARED u32 place;
  publish();
  barrier();
  if (thread_index() == 0) place = count_up(counter, blocks - 1);
  barrier();
  publish();
  return place == blocks - 1;
}
)";
}

}  // namespace nitinol::cuda
