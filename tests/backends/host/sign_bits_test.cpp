// Every f16 and bf16 changes its sign as it does by way of f32, in memory's own bits.
#include "backends/host/convert.h"
#include "core/host_access.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

using namespace nitinol;

namespace {

std::vector<uint16_t> all_bits() {
  std::vector<uint16_t> bits(1 << 16);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = static_cast<uint16_t>(i);
  return bits;
}

std::vector<uint16_t> bits_of(const Tensor& x) {
  std::vector<uint16_t> room;
  const HostElements elements(x.internals());
  const std::span<const uint16_t> all = elements.all(room);
  return {all.begin(), all.end()};
}

template <class F>
std::vector<uint16_t> by_way_of_f32(const std::vector<uint16_t>& bits, DType dtype, F f) {
  std::vector<uint16_t> out;
  for (const uint16_t x : bits) {
    out.push_back(dtype == f16 ? host::float_to_half(f(host::half_to_float(x)))
                               : host::float_to_bfloat(f(host::bfloat_to_float(x))));
  }
  return out;
}

}  // namespace

TEST_CASE("neg and abs of 16-bit numbers have the bits of the way over f32", "[host][sign]") {
  const DType dtype = GENERATE(f16, bf16);
  const std::vector<uint16_t> all = all_bits();
  const std::vector<uint16_t> negated = by_way_of_f32(all, dtype, [](float x) { return -x; });
  const std::vector<uint16_t> sizes =
      by_way_of_f32(all, dtype, [](float x) { return std::fabs(x); });
  const Tensor x = borrow_bytes(
      all.data(), {.dtype = dtype, .shape = {256, 256}, .is_weak = false, .device = {}}, {256, 1},
      [] {});
  CHECK(bits_of(-x) == negated);
  CHECK(bits_of(abs(x)) == sizes);
  // Turned, in steps, one row for all, and one number.
  CHECK(bits_of(transpose(-transpose(x))) == negated);
  CHECK(bits_of(transpose(abs(transpose(x)))) == sizes);
  const auto odd = [](const Tensor& t) { return slice(t, 1, Range{1, 256, 2}); };
  CHECK(bits_of(-odd(x)) == bits_of(odd(-x)));
  const auto row = [](const Tensor& t) { return expand(slice(t, 0, Range{3, 4}), {5, 256}); };
  CHECK(bits_of(-row(x)) == bits_of(row(-x)));
  CHECK(bits_of(abs(full({}, -2.5, dtype))) == bits_of(full({}, 2.5, dtype)));
  // In place of what nobody else has, and in kernels of more.
  CHECK(same_bits(-copy(x), -x));
  const auto fused = compile([](const Tensor& t) { return abs(t * 1) + -(t * 1); });
  CHECK(same_bits(test::settle(fused, x), abs(x) + -x));
}
