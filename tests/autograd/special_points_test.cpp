// Gradients where functions have a corner, a tie, or none: recorded from PyTorch 2.15 by
// tests/reference/make_special_gradients.py, but for clamp.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <vector>

using namespace nitinol;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
using List = std::vector<double>;

Tensor of(const List& x) {
  return tensor(x);
}

/// The gradient of sum(f(x)), which a compiled function agrees with.
template <class F>
List slope(const F& f, const List& x) {
  const auto step = grad([f](const Tensor& t) { return sum(f(t)); });
  const Tensor point = of(x), eager = step(point);
  const auto compiled = compile([step](const Tensor& t) { return step(t); });
  for (int i = 0; i < 3; ++i) CHECK(same_bits(compiled(point), eager));
  return eager.to_vector<double>();
}

/// With respect to the first and second argument.
template <class F>
std::vector<List> slopes(const F& f, const List& a, const List& b) {
  const Tensor x = of(a), y = of(b);
  return {slope([&](const Tensor& t) { return f(t, y); }, a),
          slope([&](const Tensor& t) { return f(x, t); }, b)};
}

}  // namespace

TEST_CASE("gradients at corners", "[autograd][special]") {
  CHECK(slope([](const Tensor& x) { return abs(x); }, {0, -0.0, -2}) == List{0, 0, -1});
  CHECK(slope([](const Tensor& x) { return relu(x); }, {0, -0.0, 1}) == List{0, 0, 1});
  CHECK(slope([](const Tensor& x) { return sqrt(x); }, {0, 4}) == List{inf, 0.25});
  CHECK(slope([](const Tensor& x) { return log(x); }, {0, 2}) == List{inf, 0.5});
  CHECK(slope([](const Tensor& x) { return where(x > 0, x, -x); }, {0, 2, -2}) == List{-1, 1, -1});
  CHECK(slope([](const Tensor& x) { return nn::huber_loss(x, zeros({3}, f64)) * 3; }, {1, 0, -1}) ==
        List{1, 0, -1});
  CHECK_FALSE(
      grad([](const Tensor& x) { return sum(sign(x) + floor(x)); })(of({0, 3})).tracks_gradient());
}

TEST_CASE("gradients at ties", "[autograd][special]") {
  const List a = {1, 0, 2}, b = {1, -0.0, 1};
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return maximum(x, y); }, a, b) ==
        std::vector<List>{{0.5, 0.5, 1}, {0.5, 0.5, 0}});
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return minimum(x, y); }, a, b) ==
        std::vector<List>{{0.5, 0.5, 0}, {0.5, 0.5, 1}});
  CHECK(slope([](const Tensor& x) { return max(x); }, {3, 1, 3}) == List{0.5, 0, 0.5});
  CHECK(slope([](const Tensor& x) { return min(x); }, {1, 1, 3}) == List{0.5, 0.5, 0});
  CHECK(slope([](const Tensor& x) { return max(x); }, {0, -0.0}) == List{0.5, 0.5});
}

TEST_CASE("gradients at bounds: clamp passes them on", "[autograd][special]") {
  // PyTorch 2.15 gives 0 at the bounds; earlier ones gave 1, as does NumPy's one-sided limit.
  CHECK(slope([](const Tensor& x) { return clamp(x, -1.0, 1.0); }, {-1, 1, 0, -2, 2}) ==
        List{1, 1, 1, 0, 0});
  CHECK(slope([](const Tensor& low) { return clamp(zeros({3}, f64), low, 1.0); }, {0, 0.5, 2}) ==
        List{0, 1, 0});
  CHECK(slope([](const Tensor& high) { return clamp(zeros({3}, f64), -1.0, high); },
              {0, -0.5, -2}) == List{0, 1, 1});
}

TEST_CASE("gradients of powers and products at zero", "[autograd][special]") {
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return pow(x, y); }, {0, 0, 0, 0, 2},
               {2, 1, 0, 0.5, 0}) ==
        std::vector<List>{{0, 1, 0, inf, 0}, {0, 0, 0, 0, 0.69314718055994529}});
  CHECK(slope([](const Tensor& x) { return prod(x); }, {0, 2, 3}) == List{6, 0, 0});
  CHECK(slope([](const Tensor& x) { return prod(x); }, {0, 0, 3}) == List{0, 0, 0});
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return remainder(x, y); }, {4, 5}, {2, 2}) ==
        std::vector<List>{{1, 1}, {-2, -2}});
  CHECK(slope([](const Tensor& x) { return copysign(x, of({1, -1})); }, {0, 2}) == List{0, -1});
}

TEST_CASE("gradients of erfinv, lgamma and digamma", "[autograd][special]") {
  const auto inverse = [](const Tensor& x) { return erfinv(x); };
  const auto log_of = [](const Tensor& x) { return lgamma(x); };
  const auto derivative = [](const Tensor& x) { return digamma(x); };
  CHECK(slope(inverse, {0, -1, 1}) == List{0.88622692545275801, inf, inf});
  CHECK(slope(log_of, {1})[0] == Approx(-0.57721566490153286).epsilon(1e-15));
  CHECK(slope(derivative, {1})[0] == Approx(1.6449340668482264).epsilon(1e-14));
  CHECK(slope(derivative, {0.5})[0] == Approx(4.9348022005446793).epsilon(1e-14));
  CHECK(slope(derivative, {-1.5})[0] == Approx(9.3792466449891237).epsilon(1e-14));
  CHECK(slope(derivative, {0, -3}) == List{inf, inf});
  const Tensor left = of({-0.3, -1.5, -2.25, -7.7});
  CHECK_NOTHROW(check_gradients([](const Tensor& x) { return sum(lgamma(x)); }, left));
  CHECK_NOTHROW(check_gradients([](const Tensor& x) { return sum(digamma(x)); }, left));
  const auto twice = grad(
      [](const Tensor& x) { return sum(grad([](const Tensor& y) { return sum(lgamma(y)); })(x)); });
  CHECK(twice(of({2.0})).item<double>() == Approx(0.64493406684822644).epsilon(1e-14));
}

TEST_CASE("gradients at the edges of elementary functions", "[autograd][special]") {
  // As PyTorch's, but for sums of equal infinities, of which it says NaN.
  const List ends = {-1, 1};
  CHECK(slope([](const Tensor& x) { return asin(x); }, ends) == List{inf, inf});
  CHECK(slope([](const Tensor& x) { return acos(x); }, ends) == List{-inf, -inf});
  CHECK(slope([](const Tensor& x) { return acosh(x); }, {1}) == List{inf});
  CHECK(slope([](const Tensor& x) { return cbrt(x); }, {0, 8}) == List{inf, 1.0 / 12});
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return atan2(x, y); }, {0, 1e200}, {1, 0}) ==
        std::vector<List>{{1, 0}, {0, -1e-200}});
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return hypot(x, y); }, {0, 3}, {2, 4}) ==
        std::vector<List>{{0, 0.6}, {1, 0.8}});
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return logaddexp(x, y); },
               {0, -inf, 1000, -inf},
               {0, -inf, -1000, 3}) == std::vector<List>{{0.5, 0.5, 1, 0}, {0.5, 0.5, 0, 1}});
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return fmod(x, y); }, {-5, 5}, {2, -2}) ==
        std::vector<List>{{1, 1}, {2, 2}});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return fmax(x, y); }, {1, 1, nan, 2},
               {1, nan, 1, 3}) == std::vector<List>{{1, 1, 0, 0}, {0, 0, 1, 1}});
  CHECK(slopes([](const Tensor& x, const Tensor& y) { return xlogy(x, y); }, {0, 0, 2, 0},
               {0, 2, 4, -1}) ==
        std::vector<List>{{0, std::log(2.0), std::log(4.0), 0}, {0, 0, 0.5, 0}});
  CHECK(slope([](const Tensor& x) { return nan_to_num(x); }, {nan, inf, -inf, 2}) ==
        List{0, 0, 0, 1});
  CHECK(slope([](const Tensor& x) { return log_sigmoid(x); }, {0, 800, -800}) == List{0.5, 0, 1});
  CHECK(slope([](const Tensor& x) { return frac(x); }, {0.5, -2}) == List{1, 1});
}

TEST_CASE("gradients at the corners of activations", "[autograd][special]") {
  CHECK(slope([](const Tensor& x) { return leaky_relu(x, 0.2); }, {0, -0.0, -2, inf}) ==
        List{0.2, 0.2, 0.2, 1});
  CHECK(slope([](const Tensor& x) { return elu(x, 0.5); }, {0, -0.0, -1000, 2}) ==
        List{0.5, 0.5, 0, 1});
  CHECK(slope([](const Tensor& x) { return celu(x, 0.5); }, {0, -1000, 2}) == List{1, 0, 1});
  CHECK(slope([](const Tensor& x) { return hardsigmoid(x) * 6; }, {-3, 3, 0, 4}) ==
        List{0, 0, 1, 0});
  CHECK(slope([](const Tensor& x) { return hardswish(x); }, {-3, 3, 0, 4, -4}) ==
        List{0, 1, 0.5, 1, 0});
  CHECK(slope([](const Tensor& x) { return hardtanh(x); }, {-1, 1, 0, 2}) == List{0, 0, 1, 0});
  CHECK(slope([](const Tensor& x) { return relu6(x); }, {0, 6, 1}) == List{0, 0, 1});
  CHECK(slope([](const Tensor& x) { return hardshrink(x); }, {0.5, -0.5, 0, 1}) ==
        List{0, 0, 0, 1});
  CHECK(slope([](const Tensor& x) { return softshrink(x); }, {0.5, -0.5, 0, 1, -2}) ==
        List{0, 0, 0, 1, 1});
  CHECK(slope([](const Tensor& x) { return softsign(x); }, {0, -0.0, -1}) == List{1, 1, 0.25});
  const List mish_slopes = slope([](const Tensor& x) { return mish(x); }, {0, 1000, -1000});
  CHECK(mish_slopes[0] == Approx(0.6));
  CHECK(List{mish_slopes[1], mish_slopes[2]} == List{1, 0});
  CHECK(slopes([](const Tensor& x, const Tensor& w) { return prelu(x, w); }, {0, -3, 2}, {0.25}) ==
        std::vector<List>{{0.25, 0.25, 1}, {-3}});
  const auto smooth = [](const Tensor& x) {
    return nn::smooth_l1_loss(x, zeros({3}, f64), 1, nn::Reduction::sum);
  };
  CHECK(slope(smooth, {1, 0, -1}) == List{1, 0, -1});
  const auto hinge = [](const Tensor& x) {
    return nn::hinge_embedding_loss(x, full({2}, -1, f64), 1, nn::Reduction::sum);
  };
  CHECK(slope(hinge, {1, 0}) == List{0, -1});
}

TEST_CASE("activations beyond their ends", "[special]") {
  const Tensor x = of({-inf, inf, std::numeric_limits<double>::quiet_NaN()});
  const auto ends = [&](const auto& f) {
    const List y = f(x).template to_vector<double>();
    CHECK(std::isnan(y[2]));
    return List{y[0], y[1]};
  };
  CHECK(ends([](const Tensor& v) { return elu(v); }) == List{-1, inf});
  CHECK(ends([](const Tensor& v) { return celu(v, 2); }) == List{-2, inf});
  CHECK(ends([](const Tensor& v) { return leaky_relu(v); }) == List{-inf, inf});
  CHECK(ends([](const Tensor& v) { return hardsigmoid(v); }) == List{0, 1});
  CHECK(ends([](const Tensor& v) { return hardswish(v); }) == List{0, inf});
  CHECK(ends([](const Tensor& v) { return hardtanh(v); }) == List{-1, 1});
  CHECK(ends([](const Tensor& v) { return relu6(v); }) == List{0, 6});
  CHECK(ends([](const Tensor& v) { return softshrink(v); }) == List{-inf, inf});
  CHECK(ends([](const Tensor& v) { return hardshrink(v); }) == List{-inf, inf});
  CHECK(glu(ones({2, 4}), 0).shape() == Shape{1, 4});
  CHECK(leaky_relu(tensor({-2, 4}), 0.5).to_vector<float>() == std::vector<float>{-1, 4});
}

TEST_CASE("gradients of statistics of what does not vary", "[autograd][special]") {
  CHECK(slope([](const Tensor& x) { return var(x); }, {2, 2}) == List{0, 0});
  CHECK(slope([](const Tensor& x) { return stddev(x); }, {2, 2}) == List{0, 0});
  CHECK(slope([](const Tensor& x) { return logsumexp(x); }, {-inf, 0}) == List{0, 1});
}

TEST_CASE("gradients of activations where they saturate", "[autograd][special]") {
  const List ends = {0, 800, -800};
  CHECK(slope([](const Tensor& x) { return softplus(x); }, ends) == List{0.5, 1, 0});
  CHECK(slope([](const Tensor& x) { return sigmoid(x); }, ends) == List{0.25, 0, 0});
  CHECK(slope([](const Tensor& x) { return tanh(x); }, ends) == List{1, 0, 0});
  CHECK(slope([](const Tensor& x) { return silu(x); }, ends) == List{0.5, 1, 0});
  CHECK(slope([](const Tensor& x) { return gelu(x); }, {0, 40, -40}) == List{0.5, 1, 0});
  CHECK(slope([](const Tensor& x) { return gelu_tanh(x); }, {0, 40, -40}) == List{0.5, 1, 0});
  // Left of 0, 1 + erf(x / sqrt 2) would cancel: d/dx x cdf(x) at -8.
  CHECK(slope([](const Tensor& x) { return gelu(x); }, {-8})[0] ==
        Approx(-3.9796073e-14).epsilon(1e-7));
}
