// Images of another size: by their definitions, number by number; gradients; compiled.
#include "eager/ops/resample.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

using namespace nitinol;

namespace {

Tensor picture(const Shape& shape, uint64_t seed = 1) {
  const Generator generator(seed);
  return randn(shape, f64, generator);
}

/// f(x) has these values and the gradient of central differences, and is compiled.
void check_resampling(const std::function<Tensor(const Tensor&)>& f, const Tensor& x,
                      const std::vector<double>& expected) {
  const Tensor y = f(x);
  const std::vector<double> got = y.to_vector<double>();
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(expected[i]).margin(1e-12));
  CHECK_NOTHROW(check_gradients(f, x));
  const auto compiled = compile(f, {.check = Check::never});
  test::settle(compiled, x);
  CHECK(same_bits(compiled(x), y));
  CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
}

/// What a row of numbers is at place `at` between its elements, those beyond its ends being the
/// last.
double between(const std::vector<double>& row, double at, const std::vector<double>& weights,
               int first) {
  double sum = 0;
  for (std::size_t k = 0; k < weights.size(); ++k) {
    const auto i = static_cast<int>(std::floor(at)) + first + static_cast<int>(k);
    sum += weights[k] *
           row[static_cast<std::size_t>(std::clamp(i, 0, static_cast<int>(row.size()) - 1))];
  }
  return sum;
}

double cubic(double d) {
  d = std::abs(d);
  if (d <= 1) return (1.25 * d - 2.25) * d * d + 1;
  return d < 2 ? ((-0.75 * d + 3.75) * d - 6) * d + 3 : 0;
}

}  // namespace

TEST_CASE("interpolate along one axis by its definition", "[resample]") {
  for (const int64_t to : {1, 3, 5, 8, 10}) {
    const Tensor x = picture({1, 1, 5});
    const auto row = x.to_vector<double>();
    for (const bool aligns : {false, true}) {
      std::vector<double> nearest, linear, cubics;
      for (int64_t i = 0; i < to; ++i) {
        const auto now = static_cast<double>(i);
        const double scale = 5 / static_cast<double>(to);
        const double corner = to > 1 ? 4 / static_cast<double>(to - 1) : 0;
        const double middle = aligns ? now * corner : (now + 0.5) * scale - 0.5;
        nearest.push_back(row[static_cast<std::size_t>(i * 5 / to)]);
        const double inside = std::clamp(middle, 0.0, 4.0);
        const double share = inside - std::floor(inside);
        linear.push_back(between(row, inside, {1 - share, share}, 0));
        const double t = middle - std::floor(middle);
        cubics.push_back(
            between(row, middle, {cubic(t + 1), cubic(t), cubic(1 - t), cubic(2 - t)}, -1));
      }
      const auto by = [&](Interpolation mode) {
        return [=](const Tensor& of) {
          return interpolate(of, {to}, {.mode = mode, .aligns_corners = aligns});
        };
      };
      check_resampling(by(Interpolation::linear), x, linear);
      check_resampling(by(Interpolation::cubic), x, cubics);
      if (!aligns) check_resampling(by(Interpolation::nearest), x, nearest);
    }
  }
}

TEST_CASE("axes are interpolated one after another", "[resample]") {
  const Tensor x = picture({2, 3, 4, 5});
  const InterpolateOptions linear = {.mode = Interpolation::linear};
  const Tensor both = interpolate(x, {7, 3}, linear);
  CHECK(both.shape() == Shape{2, 3, 7, 3});
  const Tensor rows = interpolate(reshape(x, {6, 4, 5}), {3}, linear);
  const Tensor columns = interpolate(transpose(reshape(rows, {6, 4, 3}), 1, 2), {7}, linear);
  CHECK(max(abs(both - reshape(transpose(columns, 1, 2), {2, 3, 7, 3}))).item<double>() < 1e-14);
  for (const Interpolation mode :
       {Interpolation::nearest, Interpolation::linear, Interpolation::cubic, Interpolation::area})
    CHECK(max(abs(interpolate(x, {4, 5}, {.mode = mode}) - x)).item<double>() < 1e-14);
  CHECK(interpolate(x.to(bf16), {8, 8}, linear).dtype() == bf16);
  CHECK(interpolate(picture({1, 2, 3, 4, 5}), {2, 2, 2}).shape() == Shape{1, 2, 2, 2, 2});
}

TEST_CASE("adaptive pools cover the axis", "[resample]") {
  const Tensor x = picture({1, 1, 7});
  const auto row = x.to_vector<double>();
  for (const int64_t to : {1, 2, 3, 5, 7, 9}) {
    std::vector<double> means, largest;
    for (int64_t i = 0; i < to; ++i) {
      const auto first = row.begin() + i * 7 / to;
      const auto end = row.begin() + ((i + 1) * 7 + to - 1) / to;
      double sum = 0;
      for (auto at = first; at != end; ++at) sum += *at;
      means.push_back(sum / static_cast<double>(end - first));
      largest.push_back(*std::max_element(first, end));
    }
    check_resampling([to](const Tensor& of) { return adaptive_avg_pool(of, {to}); }, x, means);
    check_resampling([to](const Tensor& of) { return adaptive_max_pool(of, {to}); }, x, largest);
  }
  const Tensor images = picture({2, 3, 4, 6});
  CHECK(max(abs(adaptive_avg_pool(images, {2, 3}) - avg_pool2d(images, 2))).item<double>() < 1e-15);
  CHECK(same_bits(adaptive_max_pool(images, {2, 3}), max_pool2d(images, 2)));
}

TEST_CASE("channels become pixels and pixels channels", "[resample]") {
  const Tensor x = arange(48).to(f64);
  const Tensor y = pixel_shuffle(reshape(x, {1, 8, 2, 3}), 2);
  REQUIRE(y.shape() == Shape{1, 2, 4, 6});
  // Row 1, column 2 of channel 1 was channel 1 * 4 + 1 * 2 + 0 at row 0, column 1.
  CHECK(y.at({0, 1, 1, 2}).item<double>() == 6 * 6 + 1);
  CHECK(same_bits(pixel_unshuffle(y, 2), reshape(x, {1, 8, 2, 3})));
  CHECK_NOTHROW(check_gradients([](const Tensor& of) { return pixel_shuffle(of, 2); },
                                picture({1, 4, 2, 2})));
}

TEST_CASE("grid_sample looks where the grid says", "[resample]") {
  const Tensor x = picture({1, 1, 3, 4});
  const auto in = x.to_vector<double>();
  const Tensor grid =
      reshape(tensor({-1.0, -1.0, 0.3, 0.2, 0.9, -0.7, 1.4, 0.1, -2.3, 1.7}), {1, 1, 5, 2});
  const auto points = grid.to_vector<double>();
  const auto mirror = [](double at, double low, double high) {
    while (at < low || at > high) at = at < low ? 2 * low - at : 2 * high - at;
    return at;
  };
  for (const bool aligns : {false, true}) {
    for (const Border border : {Border::zeros, Border::edge, Border::reflection}) {
      std::vector<double> linear;
      for (std::size_t p = 0; p < 5; ++p) {
        const auto place = [&](double at, double size) {
          double found = aligns ? (at + 1) / 2 * (size - 1) : ((at + 1) * size - 1) / 2;
          if (border == Border::reflection)
            found = aligns ? mirror(found, 0, size - 1) : mirror(found, -0.5, size - 0.5);
          return border == Border::zeros ? found : std::clamp(found, 0.0, size - 1);
        };
        const double column = place(points[2 * p], 4);
        const double row = place(points[2 * p + 1], 3);
        double sum = 0;
        for (int i = 0; i < 3; ++i) {
          for (int j = 0; j < 4; ++j) {
            const double near =
                std::max(0.0, 1 - std::abs(row - i)) * std::max(0.0, 1 - std::abs(column - j));
            sum += near * in[static_cast<std::size_t>(i * 4 + j)];
          }
        }
        linear.push_back(sum);
      }
      const GridSampleOptions options = {.border = border, .aligns_corners = aligns};
      check_resampling([&](const Tensor& of) { return grid_sample(of, grid, options); }, x, linear);
      CHECK_NOTHROW(check_gradients([&](const Tensor& of) { return grid_sample(x, of, options); },
                                    grid * 0.37 + 0.011));
    }
  }
  // A cubic is of four elements along each axis, each of which may lie beyond the ends.
  const auto weight = [](double d) {
    d = std::abs(d);
    if (d <= 1) return (1.25 * d - 2.25) * d * d + 1;
    return d < 2 ? -0.75 * (((d - 5) * d + 8) * d - 4) : 0.0;
  };
  for (const Border border : {Border::zeros, Border::edge, Border::reflection}) {
    std::vector<double> cubic;
    for (std::size_t p = 0; p < 5; ++p) {
      const double column = ((points[2 * p] + 1) * 4 - 1) / 2;
      const double row = ((points[2 * p + 1] + 1) * 3 - 1) / 2;
      double sum = 0;
      for (int i = -8; i < 12; ++i) {
        for (int j = -8; j < 12; ++j) {
          const auto within = [&](int at, int size) {
            if (border == Border::reflection)
              return std::clamp(static_cast<int>(mirror(at, -0.5, size - 0.5)), 0, size - 1);
            return border == Border::edge ? std::clamp(at, 0, size - 1) : at;
          };
          const int r = within(i, 3), c = within(j, 4);
          if (r < 0 || r > 2 || c < 0 || c > 3) continue;
          sum += weight(row - i) * weight(column - j) * in[static_cast<std::size_t>(r * 4 + c)];
        }
      }
      cubic.push_back(sum);
    }
    const GridSampleOptions options = {.mode = Interpolation::cubic, .border = border};
    check_resampling([&](const Tensor& of) { return grid_sample(of, grid, options); }, x, cubic);
    CHECK_NOTHROW(check_gradients([&](const Tensor& of) { return grid_sample(x, of, options); },
                                  grid * 0.37 + 0.011));
  }
  const Tensor whole = reshape(tensor({-1.0, -1.0, 1.0, 1.0}), {1, 1, 2, 2});
  CHECK(grid_sample(x, whole, {.mode = Interpolation::nearest, .aligns_corners = true})
            .to_vector<double>() == std::vector<double>{in[0], in[11]});
}

TEST_CASE("unfold gives what a convolution sees, fold its gradient", "[resample]") {
  const Tensor x = picture({2, 3, 6, 7});
  const UnfoldOptions options = {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}};
  const Tensor weight = picture({4, 3, 3, 2}, 2);
  const Tensor y = conv2d(x, weight, {.stride = {2, 1}, .padding = {1, 2}, .dilation = {1, 2}});
  const Tensor columns = unfold(x, {3, 2}, options);
  const Tensor products = matmul(reshape(weight, {4, 18}), columns);
  CHECK(max(abs(reshape(products, y.shape()) - y)).item<double>() < 1e-12);
  const auto f = [&](const Tensor& of) { return unfold(of, {3, 2}, options); };
  const Tensor down = picture(columns.shape(), 3);
  const Tensor slope = grad([&](const Tensor& of) { return sum(f(of) * down); })(x);
  CHECK(max(abs(fold(down, {6, 7}, {3, 2}, options) - slope)).item<double>() < 1e-12);
  CHECK_NOTHROW(check_gradients(
      [&](const Tensor& of) {
        return fold(of, {3, 3}, 2, {});
      },
      picture({1, 8, 4})));
}

TEST_CASE("resampling refuses what does not fit", "[resample]") {
  const Tensor x = ones({1, 2, 4, 4});
  CHECK_THROWS_WITH(interpolate(x, {4}), Catch::Contains("[batch, channels"));
  CHECK_THROWS_WITH(interpolate(x, {0, 4}), Catch::Contains("at least 1"));
  CHECK_THROWS_WITH(interpolate(x.to(i32), {2, 2}), Catch::Contains("floating"));
  CHECK_THROWS_WITH(interpolate(x, {2, 2}, {.aligns_corners = true}), Catch::Contains("linear"));
  CHECK_THROWS_WITH(adaptive_avg_pool(ones({1, 2, 0, 4}), {2, 2}), Catch::Contains("elements"));
  CHECK_THROWS_WITH(pixel_shuffle(x, 2), Catch::Contains("factor"));
  CHECK_THROWS_WITH(pixel_unshuffle(x, 3), Catch::Contains("divides"));
  CHECK_THROWS_WITH(grid_sample(x, ones({1, 2, 2, 3})), Catch::Contains("a grid [n, oh, ow, 2]"));
  CHECK_THROWS_WITH(grid_sample(x, ones({1, 2, 2, 2}), {.mode = Interpolation::area}),
                    Catch::Contains("nearest, linear or cubic"));
  CHECK_THROWS_WITH(unfold(x, 5), Catch::Contains("a window that fits"));
  CHECK_THROWS_WITH(fold(ones({1, 8, 3}), 3, 2), Catch::Contains("[n, c * 4, 4]"));
}
