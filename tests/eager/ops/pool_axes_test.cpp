// Pools along one axis and three, with gaps, beyond the end, with places; and back.
#include "eager/ops/pool.h"
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

using namespace nitinol;

namespace {

/// Different numbers, so that the largest of a window is one.
Tensor shuffled(const Shape& shape, uint64_t seed) {
  const Generator generator(seed);
  return randn(shape, f64, generator);
}

struct Along {
  int64_t kernel, stride, padding, dilation;
  bool is_ceil;
  [[nodiscard]] int64_t windows(int64_t size) const {
    const double whole = static_cast<double>(size + 2 * padding - dilation * (kernel - 1) - 1) /
                         static_cast<double>(stride);
    auto count = static_cast<int64_t>(is_ceil ? std::ceil(whole) : std::floor(whole)) + 1;
    if (is_ceil && (count - 1) * stride >= size + padding) --count;
    return count;
  }
};

/// Pools of [lines, d, h, w] by three Alongs: largest numbers and their indices in a line's volume,
/// or means.
struct Definition {
  std::vector<double> largest, means, counted_means;
  std::vector<int64_t> places;
};
Definition pooled_by_definition(const Tensor& x, const std::array<Along, 3>& along) {
  const auto in = x.to_vector<double>();
  const std::array<int64_t, 3> size = {x.shape()[1], x.shape()[2], x.shape()[3]};
  std::array<int64_t, 3> out{};
  for (std::size_t a = 0; a < 3; ++a) out[a] = along[a].windows(size[a]);
  Definition all;
  for (int64_t line = 0; line < x.shape()[0]; ++line) {
    for (int64_t to = 0; to < out[0] * out[1] * out[2]; ++to) {
      const std::array<int64_t, 3> at = {to / (out[1] * out[2]), to / out[2] % out[1], to % out[2]};
      double largest = -std::numeric_limits<double>::infinity();
      double sum = 0;
      int64_t place = -1;
      int64_t inside = 0;
      int64_t padded = 0;
      const int64_t taps = along[0].kernel * along[1].kernel * along[2].kernel;
      for (int64_t tap = 0; tap < taps; ++tap) {
        const std::array<int64_t, 3> k = {tap / (along[1].kernel * along[2].kernel),
                                          tap / along[2].kernel % along[1].kernel,
                                          tap % along[2].kernel};
        int64_t index = 0;
        bool is_inside = true;
        bool is_padded = true;
        for (std::size_t a = 0; a < 3; ++a) {
          const int64_t from =
              at[a] * along[a].stride + k[a] * along[a].dilation - along[a].padding;
          is_inside &= from >= 0 && from < size[a];
          is_padded &= from < size[a] + along[a].padding;
          index = index * size[a] + from;
        }
        padded += is_padded ? 1 : 0;
        if (!is_inside) continue;
        ++inside;
        const double number =
            in[static_cast<std::size_t>(line * size[0] * size[1] * size[2] + index)];
        sum += number;
        if (number > largest) {
          largest = number;
          place = index;
        }
      }
      all.largest.push_back(largest);
      all.places.push_back(place);
      all.means.push_back(sum / static_cast<double>(inside));
      all.counted_means.push_back(sum / static_cast<double>(padded));
    }
  }
  return all;
}

void check_pool(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                const std::vector<double>& expected) {
  const Tensor y = f(x);
  const auto got = y.to_vector<double>();
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).margin(1e-13));
  CHECK_NOTHROW(check_gradients(f, x));
  const auto compiled = compile(f, {.check = Check::never});
  test::settle(compiled, x);
  CHECK(same_bits(compiled(x), y));
  CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
}

}  // namespace

TEST_CASE("pools of images: gaps, beyond the end, places", "[pool]") {
  const Tensor x = shuffled({1, 2, 7, 6}, 1);
  const Along none = {1, 1, 0, 1, false};
  for (const bool is_ceil : {false, true}) {
    for (const int64_t gap : {1, 2}) {
      INFO(is_ceil << " " << gap);
      const std::array<Along, 3> along = {none, Along{3, 2, 1, gap, is_ceil},
                                          Along{2, 3, 1, 1, is_ceil}};
      const Definition expected = pooled_by_definition(reshape(x, {2, 1, 7, 6}), along);
      const MaxPool2dOptions options = {
          .stride = {{2, 3}}, .padding = 1, .dilation = {gap, 1}, .is_ceil = is_ceil};
      check_pool(
          [=](const Tensor& of) {
            return max_pool2d(of, {3, 2}, options);
          },
          x, expected.largest);
      const MaxPooled found = max_pool2d_with_indices(x, {3, 2}, options);
      CHECK(found.values.to_vector<double>() == expected.largest);
      CHECK(found.indices.to_vector<int64_t>() == expected.places);
      if (gap != 1) continue;
      for (const bool counts : {false, true}) {
        const AvgPool2dOptions means = {
            .stride = {{2, 3}}, .padding = 1, .counts_padding = counts, .is_ceil = is_ceil};
        check_pool(
            [=](const Tensor& of) {
              return avg_pool2d(of, {3, 2}, means);
            },
            x, counts ? expected.counted_means : expected.means);
      }
    }
  }
}

TEST_CASE("pools along one axis and three", "[pool]") {
  const Along none = {1, 1, 0, 1, false};
  const Tensor line = shuffled({2, 2, 8}, 2);
  for (const bool is_ceil : {false, true}) {
    const Along one = {3, 2, 1, 1, is_ceil};
    const Definition expected =
        pooled_by_definition(reshape(line, {4, 1, 1, 8}), {none, none, one});
    check_pool(
        [=](const Tensor& of) {
          return max_pool1d(of, 3, {.stride = {{2}}, .padding = {1}, .is_ceil = is_ceil});
        },
        line, expected.largest);
    check_pool(
        [=](const Tensor& of) {
          return avg_pool1d(of, 3, {.stride = {{2}}, .padding = {1}, .is_ceil = is_ceil});
        },
        line, expected.counted_means);
    const Tensor volume = shuffled({1, 2, 4, 5, 5}, 3);
    const std::array<Along, 3> along = {Along{2, 2, 0, 1, is_ceil}, Along{3, 2, 1, 1, is_ceil},
                                        Along{2, 2, 1, 1, is_ceil}};
    const Definition of_volume = pooled_by_definition(reshape(volume, {2, 4, 5, 5}), along);
    check_pool(
        [=](const Tensor& of) {
          return max_pool3d(of, {2, 3, 2},
                            {.stride = {{2}}, .padding = {0, 1, 1}, .is_ceil = is_ceil});
        },
        volume, of_volume.largest);
    for (const bool counts : {false, true}) {
      check_pool(
          [=](const Tensor& of) {
            return avg_pool3d(of, {2, 3, 2},
                              {.stride = {{2}},
                               .padding = {0, 1, 1},
                               .counts_padding = counts,
                               .is_ceil = is_ceil});
          },
          volume, counts ? of_volume.counted_means : of_volume.means);
    }
  }
}

TEST_CASE("max_unpool2d puts what was found where it was", "[pool]") {
  const Tensor x = shuffled({2, 3, 4, 6}, 4);
  const MaxPooled found = max_pool2d_with_indices(x, 2);
  const Tensor back = max_unpool2d(found.values, found.indices, {4, 6});
  CHECK(same_bits(back, where(back != 0, x, 0)));
  CHECK(sum(cast(back != 0, i64)).item<int64_t>() == 36);
  CHECK_NOTHROW(check_gradients(
      [&](const Tensor& of) {
        return max_unpool2d(of, found.indices, {4, 6});
      },
      found.values));
  CHECK_THROWS_AS(max_unpool2d(found.values, found.indices, {2, 2}), Error);
}

TEST_CASE("pools refuse what does not fit", "[pool]") {
  const Tensor x = ones({1, 1, 4, 4});
  CHECK_THROWS_WITH(max_pool2d(x, 2, {.dilation = 0}), Catch::Contains("dilation"));
  CHECK_THROWS_WITH(max_pool2d(x, 3, {.dilation = 3}), Catch::Contains("max_pool2d"));
  CHECK_THROWS_WITH(max_pool2d(x, 2, {.padding = 2}), Catch::Contains("at most half the window"));
  CHECK_THROWS_WITH(max_pool2d(x.to(i32), 2, {.is_ceil = true}), Catch::Contains("max_pool2d"));
  CHECK_THROWS_WITH(max_pool1d(x, 2), Catch::Contains("[n, c, l]"));
  CHECK_THROWS_WITH(avg_pool3d(ones({1, 1, 2, 2, 2}), {1, 2}), Catch::Contains("one number, or 3"));
  CHECK_THROWS_WITH(max_unpool2d(x, ones({1, 1, 2, 2}, i64), 4),
                    Catch::Contains("an index for each"));
}
