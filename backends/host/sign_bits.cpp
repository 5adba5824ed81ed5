// Numbers need no conversion for another sign. A NaN becomes the one that rounding to the dtype
// gives: of f16 with the new sign, of bf16 the positive one.

#include "backends/host/sign_bits.h"

#include "backends/host/per_isa.h"

namespace nitinol::host {
namespace {

constexpr uint16_t sign = 0x8000, size = 0x7fff;

constexpr int size_of_half(uint16_t x) {
  return (x & size) > 0x7c00 ? 0x7e00 : x & size;
}

template <class F>
inline void to_all(const void* const* in, void* out, int64_t n, F f) {
  const auto* const from = static_cast<const uint16_t*>(in[0]);
  auto* const to = static_cast<uint16_t*>(out);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) to[i] = static_cast<uint16_t>(f(from[i]));
}

// clang-format off
using FlipHalf = decltype([](auto, const void* const* in, void* out, int64_t n) {
  to_all(in, out, n, [](uint16_t x) { return size_of_half(x) | (~x & sign); });
});
using DropHalf = decltype([](auto, const void* const* in, void* out, int64_t n) {
  to_all(in, out, n, [](uint16_t x) { return size_of_half(x); });
});
using FlipBfloat = decltype([](auto, const void* const* in, void* out, int64_t n) {
  to_all(in, out, n, [](uint16_t x) { return (x & size) > 0x7f80 ? 0x7fc0 : x ^ sign; });
});
using DropBfloat = decltype([](auto, const void* const* in, void* out, int64_t n) {
  to_all(in, out, n, [](uint16_t x) { return (x & size) > 0x7f80 ? 0x7fc0 : x & size; });
});
// clang-format on

template <class F>
Loop loop() {
  return PerIsa<F, const void* const*, void*, int64_t>::at(current_isa());
}

}  // namespace

Loop sign_loop_of(SignChange change, DType dtype) {
  if (change == SignChange::flip) return dtype == f16 ? loop<FlipHalf>() : loop<FlipBfloat>();
  return dtype == f16 ? loop<DropHalf>() : loop<DropBfloat>();
}

}  // namespace nitinol::host
