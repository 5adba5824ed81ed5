#include "core/math/random.h"

#include "core/random_words.h"
#include "tests/core/math/lanes.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

using namespace nitinol;
using nitinol::test::count_differences;
using nitinol::test::run_loop;

namespace {

using Words = std::array<uint32_t, 4>;

Words block_of(const Words& counter, uint32_t key0, uint32_t key1) {
  using W = Num<uint64_t>;
  const auto result = math::philox_block<W>(
      {W(counter[0]), W(counter[1]), W(counter[2]), W(counter[3])}, W(key0), W(key1));
  Words words;
  for (std::size_t k = 0; k < 4; ++k) words[k] = static_cast<uint32_t>(result[k].value);
  return words;
}

/// The block of element `index`.
Words block_of(int64_t index, int64_t key, int64_t counter) {
  const auto position = static_cast<uint64_t>(index) + static_cast<uint64_t>(counter);
  return block_of({static_cast<uint32_t>(position), static_cast<uint32_t>(position >> 32), 0, 0},
                  static_cast<uint32_t>(key),
                  static_cast<uint32_t>(static_cast<uint64_t>(key) >> 32));
}

std::vector<uint64_t> indices(std::size_t count) {
  std::vector<uint64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return all;
}

template <class T>
struct Moments {
  double mean = 0, variance = 0;
  explicit Moments(const std::vector<T>& x) {
    for (const T value : x) mean += value / static_cast<double>(x.size());
    for (const T value : x) {
      variance += (value - mean) * (value - mean) / static_cast<double>(x.size());
    }
  }
};

}  // namespace

TEST_CASE("Philox gives the known answers of its authors", "[core][math]") {
  CHECK(block_of({0, 0, 0, 0}, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(block_of({~0U, ~0U, ~0U, ~0U}, ~0U, ~0U) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(block_of({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("an element depends on key, offset and index only", "[core][math]") {
  const auto from_5 = [](auto i) {
    return bits_of_words(philox(i, constant<uint64_t>(i, 5), i * 0 + 9));
  };
  const auto from_0 = [](auto i) {
    return bits_of_words(philox(i, constant<uint64_t>(i, 0), i * 0 + 9));
  };
  const std::vector<uint64_t> a = run_loop<uint64_t>(host_isa(), from_5, indices(100));
  const std::vector<uint64_t> b = run_loop<uint64_t>(host_isa(), from_0, indices(105));
  CHECK(std::equal(a.begin(), a.end(), b.begin() + 5));
  const Words first = block_of({5, 0, 0, 0}, 9, 0);
  CHECK(a[0] == (first[0] | uint64_t{first[1]} << 32));
}

TEMPLATE_TEST_CASE_SIG("vectors make the words of blocks", "[core][math]", ((int count), count), 1,
                       2, 4) {
  const bool has_own_keys = GENERATE(false, true);
  const int64_t n = GENERATE(1, 3, 16, 37, random_block);
  CAPTURE(has_own_keys, n);
  // Positions on both sides of 2^32, keys with bits in both halves.
  std::vector<int64_t> indices, keys, counters;
  for (int64_t i = 0; i < n; ++i) {
    indices.push_back(i * 3);
    counters.push_back((int64_t{1} << 32) - 9);
    keys.push_back(0x5a308d3a4093822 + (has_own_keys ? i << 31 : 0));
  }
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (isa > host_isa()) continue;
    RandomWords made;
    fill_random_words<count>(isa)(indices.data(), keys.data(), counters.data(), n, made);
    int64_t wrong = 0;
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const Words want = block_of(indices[i], keys[i], counters[i]);
      for (std::size_t k = 0; k < count; ++k)
        wrong += static_cast<uint32_t>(made.words[k][i]) == want[k] ? 0 : 1;
    }
    INFO(name_of(isa));
    CHECK(wrong == 0);
  }
}

TEMPLATE_TEST_CASE("uniform numbers fill [0, 1)", "[core][math]", float, double) {
  const auto formula = [](auto i) {
    return uniform_of_words<TestType>(
        philox(i, constant<uint64_t>(i, 0), constant<uint64_t>(i, 1)));
  };
  const auto x = run_loop<TestType>(host_isa(), formula, indices(100000));
  CHECK(*std::min_element(x.begin(), x.end()) >= 0);
  CHECK(*std::max_element(x.begin(), x.end()) < 1);
  const Moments<TestType> moments(x);
  CHECK(std::abs(moments.mean - 0.5) < 0.005);
  CHECK(std::abs(moments.variance - 1.0 / 12) < 0.001);
  CHECK(count_differences<TestType>(formula, indices(5000)) == 0);
}

TEMPLATE_TEST_CASE("normal numbers have mean 0 and variance 1", "[core][math]", float, double) {
  const auto formula = [](auto i) {
    return normal_of_words<TestType>(philox(i, constant<uint64_t>(i, 0), constant<uint64_t>(i, 1)));
  };
  const auto x = run_loop<TestType>(host_isa(), formula, indices(100000));
  const Moments<TestType> moments(x);
  CHECK(std::abs(moments.mean) < 0.015);
  CHECK(std::abs(moments.variance - 1) < 0.02);
  const auto within = [&](double sigma) {
    return std::count_if(x.begin(), x.end(), [&](TestType v) { return std::abs(v) < sigma; });
  };
  CHECK(std::abs(within(1) - 68269) < 700);  // of 100000; the standard deviation is 147
  CHECK(std::abs(within(2) - 95450) < 350);
  CHECK(within(3) < 100000);
  CHECK(count_differences<TestType>(formula, indices(5000)) == 0);
}
