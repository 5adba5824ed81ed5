#include "tests/op_random.h"

#include "eager/ops/ops.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace nitinol::test {
namespace {

using Real = long double;

int64_t whole(Real x) {
  return static_cast<int64_t>(x);
}

/// Philox 4x32-10 (Salmon et al., SC 2011), written anew.
std::array<uint32_t, 4> philox_words(uint64_t counter, uint64_t key) {
  std::array<uint32_t, 4> c = {static_cast<uint32_t>(counter), static_cast<uint32_t>(counter >> 32),
                               0, 0};
  auto k0 = static_cast<uint32_t>(key);
  auto k1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{0xD2511F53} * c[0];
    const uint64_t p1 = uint64_t{0xCD9E8D57} * c[2];
    c = {static_cast<uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<uint32_t>(p0)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return c;
}

uint64_t joined(uint32_t low, uint32_t high) {
  return low | static_cast<uint64_t>(high) << 32;
}

}  // namespace

long double random_value(std::string_view op, uint64_t counter, uint64_t key,
                         std::span<const Elements> inputs) {
  const std::array<uint32_t, 4> w = philox_words(counter, key);
  constexpr Real pi = 3.14159265358979323846264338327950288L;
  if (op == "rand_f32") return static_cast<Real>(w[0] >> 8) * 0x1p-24L;
  if (op == "rand_f64") return static_cast<Real>(joined(w[0], w[1]) >> 11) * 0x1p-53L;
  if (op == "randint") {
    const auto range = static_cast<uint64_t>(whole(inputs[3].values[0]));
    const auto high =
        static_cast<uint64_t>(static_cast<unsigned __int128>(joined(w[0], w[1])) * range >> 64);
    return static_cast<Real>(static_cast<int64_t>(high)) + inputs[2].values[0];
  }
  const bool is_f32 = op == "randn_f32";
  const Real u = is_f32 ? (static_cast<Real>(w[0]) + 0.5L) * 0x1p-32L
                        : (static_cast<Real>(joined(w[0], w[1])) + 0.5L) * 0x1p-64L;
  const Real turn = is_f32 ? static_cast<Real>(static_cast<int32_t>(w[1])) * 0x1p-32L
                           : static_cast<Real>(static_cast<int64_t>(joined(w[2], w[3]))) * 0x1p-64L;
  return std::sqrt(-2 * std::log(u)) * std::sin(pi * turn);
}

// By planes of 256: a plane has one half of one word, or one word, of 256 counters that follow each
// other.
Elements random_order(const Elements& state, int64_t count) {
  const auto n = static_cast<std::size_t>(count);
  const auto key = static_cast<uint64_t>(whole(state.values[0]));
  const auto counter = static_cast<uint64_t>(whole(state.values[1]));
  std::vector<std::size_t> order(n), bucket(n);
  std::iota(order.begin(), order.end(), 0);
  std::size_t buckets = 1, first = 0;
  while (n / buckets > 1024 && buckets < 65536) buckets *= 2;
  if (buckets > 1) {
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t plane = i / 256;
      const uint32_t word = philox_words(counter + plane / 8 * 256 + i % 256, key)[plane / 2 % 4];
      const std::size_t half = plane % 2 == 0 ? word % 65536 : word / 65536;
      bucket[i] = half * buckets / 65536;
    }
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return bucket[i]; });
    first = (n + 2047) / 2048 * 256;
  }
  for (std::size_t p = 0, begin = 0; p < n; ++p) {
    // What has been swapped so far is of the same bucket, unless one begins.
    if (bucket[order[p]] != bucket[order[begin]]) begin = p;
    const std::size_t plane = p / 256;
    const uint32_t word = philox_words(counter + first + plane / 4 * 256 + p % 256, key)[plane % 4];
    std::swap(order[p], order[begin + (uint64_t{word} * (p - begin + 1) >> 32)]);
  }
  Elements out = {i64, {count}, {}};
  for (const std::size_t number : order) out.values.push_back(static_cast<Real>(number));
  return out;
}

std::vector<Sample> permutation_samples(const Op&) {
  std::vector<Sample> out;
  for (const int64_t count : {0, 1, 2, 256, 257, 1024, 1025, 5000})
    out.push_back({.inputs = {tensor({-77, int64_t{1} << 33}, i64)}, .attrs = {count}, .ulps = 0});
  out.push_back({.inputs = {tensor({5, -3}, i64)}, .attrs = {int64_t{300000}}, .ulps = 0});
  return out;
}

}  // namespace nitinol::test
