// The words of backends/cuda/text/prelude.cpp for the host: what stands in their place when a
// printed kernel is compiled by the host's compiler and run by fibers (fibers.h), by a function
// run(arguments, entry) that tells the size of the arguments for entry ~0. No header, so that this
// compiles in no time.
#pragma once

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef int i32;
typedef unsigned long long u64;
typedef long long i64;

// As in fibers.h.
struct Shim {
  u32 thread, block;
  u64 slots[1024][2];
  void (*wait)(Shim*, int line, bool of_warp);
  void (*fail)(Shim*, const char* what, int line);
};
static Shim* shim;

#define DEVICE static inline __attribute__((always_inline))
#define TABLE static const
#define SHARED static
#define UNROLL
#define ROLLED
#define KERNEL(name, threads) static void name(const Arguments& a)
#define thread_index() (shim->thread)
#define block_index() (shim->block)
#define barrier() shim->wait(shim, __LINE__, false)
#define warp_barrier() shim->wait(shim, __LINE__, true)
#define shuffle_xor(x, lanes) exchanged(x, lanes, __LINE__)

template <class To, class From>
DEVICE To bits_as(From from) {
  To to;
  static_assert(sizeof to == sizeof from, "");
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}
DEVICE float f32_of(u32 bits) {
  return bits_as<float>(bits);
}
DEVICE double f64_of(u64 bits) {
  return bits_as<double>(bits);
}
DEVICE u32 bits_of(float x) {
  return bits_as<u32>(x);
}
DEVICE u64 bits_of(double x) {
  return bits_as<u64>(x);
}
DEVICE float fma_of(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
DEVICE double fma_of(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
DEVICE float sqrt_of(float x) {
  return __builtin_sqrtf(x);
}
DEVICE double sqrt_of(double x) {
  return __builtin_sqrt(x);
}
DEVICE float div_of(float a, float b) {
  return a / b;
}
DEVICE double div_of(double a, double b) {
  return a / b;
}
// As PTX's manual defines max.NaN and min.NaN, in other words than core/joins.h.
#define HAS_EXTREMES
DEVICE float extreme_of(float a, float b, bool takes_a, bool takes_negative) {
  if (a != a || b != b) return f32_of(0x7fffffffu);
  if (a == 0 && b == 0) return (bits_of(a) >> 31 != 0) == takes_negative ? a : b;
  return takes_a ? a : b;
}
DEVICE float largest_of(float a, float b) {
  return extreme_of(a, b, a > b, false);
}
DEVICE float smallest_of(float a, float b) {
  return extreme_of(a, b, a < b, true);
}
DEVICE float floor_of(float x) {
  return __builtin_floorf(x);
}
DEVICE double floor_of(double x) {
  return __builtin_floor(x);
}
DEVICE float ceil_of(float x) {
  return __builtin_ceilf(x);
}
DEVICE double ceil_of(double x) {
  return __builtin_ceil(x);
}
DEVICE float trunc_of(float x) {
  return __builtin_truncf(x);
}
DEVICE double trunc_of(double x) {
  return __builtin_trunc(x);
}
DEVICE float round_even(float x) {
  return __builtin_rintf(x);
}
DEVICE double round_even(double x) {
  return __builtin_rint(x);
}
DEVICE u64 high_of(u64 a, u64 b) {
  return (u64)((unsigned __int128)a * b >> 64);
}
DEVICE i64 high_of(i64 a, i64 b) {
  return (i64)((__int128)a * b >> 64);
}
DEVICE float float_of_half(u16 half) {
  return (float)bits_as<_Float16>(half);
}
DEVICE u16 half_of_float(float x) {
  return bits_as<u16>((_Float16)x);
}
DEVICE u16 bfloat_of_float(float x) {
  const u32 bits = bits_of(x);
  if (x != x) return 0x7fff;
  const u32 kept = bits >> 16, rest = bits & 0xffff;  // what is cut off, against one half
  return (u16)(kept + (rest > 0x8000 || (rest == 0x8000 && (kept & 1))));
}
template <class T>
static T exchanged(T x, int lanes, int line) {
  __builtin_memcpy(shim->slots[shim->thread], &x, sizeof x);
  shim->wait(shim, line, true);
  T other;
  __builtin_memcpy(&other, shim->slots[shim->thread ^ (u32)lanes], sizeof other);
  shim->wait(shim, line, true);
  return other;
}
DEVICE u32 lanes_like(u32 digit, int line) {
  shim->slots[shim->thread][0] = digit;
  shim->wait(shim, line, true);
  u32 same = 0;
  for (u32 lane = 0; lane < 32; ++lane)
    same |= (u32)(shim->slots[shim->thread / 32 * 32 + lane][0] == digit) << lane;
  shim->wait(shim, line, true);
  return same;
}
DEVICE u32 lanes_in(bool is_true, int line) {
  const u32 same = lanes_like(is_true, line);
  return is_true ? same : ~same;
}
#define same_lanes(digit) lanes_like(digit, __LINE__)
#define lanes_where(is_true) lanes_in(is_true, __LINE__)
#define bits_in(x) ((u32)__builtin_popcount(x))
DEVICE void count_one(u32* counter) {
  ++*counter;
}
DEVICE void raise_to(u32* most, u32 value) {
  if (*most < value) *most = value;
}
DEVICE void add_to(u32* sum, u32 value) {
  *sum += value;
}
DEVICE void add_to(u64* sum, u64 value) {
  *sum += value;
}
DEVICE void publish() {}
DEVICE u32 count_up(u32* counter, u32 last) {
  const u32 old = *counter;
  *counter = old >= last ? 0 : old + 1;
  return old;
}
template <class T>
DEVICE T fresh(const T* at) {
  return *at;
}
DEVICE void report(u32* status, u32 code) {
  *status = code;
}
template <class V>
DEVICE V load_at_once(const void* at) {
  if ((u64)at % sizeof(V) != 0) shim->fail(shim, "a vector load that is not aligned", sizeof(V));
  V value;
  __builtin_memcpy(&value, at, sizeof value);
  return value;
}
template <class V>
DEVICE void store_at_once(void* at, const V& value) {
  if ((u64)at % sizeof(V) != 0) shim->fail(shim, "a vector store that is not aligned", sizeof(V));
  __builtin_memcpy(at, &value, sizeof value);
}
extern "C" void set_shim(Shim* to) {
  shim = to;
}
