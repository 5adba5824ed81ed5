#include "nn/parametrizations.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

namespace nitinol::parametrizations_test {

double difference(const Tensor& a, const Tensor& b) {
  return max(abs(a - b)).item<double>();
}

template <class L>
void check_both(const L& made, const Tensor& x, int64_t outputs) {
  const L layer = nn::to(made, f64);
  const int64_t axis = nn::parametrization::output_axis<L>();
  CHECK(layer.weight.shape()[static_cast<int>(axis)] == outputs);
  CHECK(same_bits(layer.with_weight(layer.weight, x), layer(x)));
  CHECK(difference(
            layer.with_weight(layer.weight * 2.0, x) + layer.with_weight(layer.weight * 0.0, x),
            layer(x) * 2.0) < 1e-12);

  // The layer's own weight keeps its values, and its length no longer matters.
  const nn::WeightNorm<L> norm = nn::weight_norm(layer);
  CHECK(difference(norm(x), layer(x)) < 1e-12);
  CHECK(difference(norm.magnitude, nn::parametrization::norms(layer.weight, norm.axis)) == 0);
  const Tensor weight = layer.weight;
  const Tensor before = norm(x);
  layer.weight.set(weight * 3.0);
  CHECK(difference(norm(x), before) < 1e-12);
  layer.weight.set(weight);
  CHECK_NOTHROW(check_gradients([&](const Tensor& given) { return norm(given); }, x));
  const Tensor magnitude = norm.magnitude;
  const auto of_both = [&](const Tensor& v, const Tensor& g) {
    return layer.with_weight(nn::parametrization::with_norms(v, g, norm.axis), x);
  };
  CHECK_NOTHROW(check_gradients([&](const Tensor& v) { return of_both(v, magnitude); }, weight));
  CHECK_NOTHROW(check_gradients([&](const Tensor& g) { return of_both(weight, g); }, magnitude));

  // After many steps the largest singular value is 1.
  const nn::SpectralNorm<L> spectral = nn::spectral_norm(layer, {.steps = 400});
  const auto parametrized = [&] {
    return nn::parametrization::with_unit_spectrum(layer.weight, {spectral.left, spectral.right},
                                                   axis, 0, 1e-12);
  };
  (void)spectral(x);
  const Tensor rows = reshape(moveaxis(parametrized(), axis, 0), {outputs, -1});
  const Tensor gram = matmul(rows, transpose(rows));
  Tensor power = gram;
  for (int i = 0; i < 12; ++i) power = matmul(power, power) / trace(matmul(power, power));
  CHECK(trace(matmul(power, gram)).template item<double>() == Approx(1).epsilon(1e-9));
  const Tensor left = spectral.left;
  spectral.right.set(
      nn::parametrization::spectrum(randn(layer.weight.shape(), f64), axis, 1e-12).right);
  (void)nn::SpectralNorm<L>{.layer = layer, .left = spectral.left, .right = spectral.right}(x);
  CHECK((outputs == 1 || !same_bits(spectral.left.get(), left)));  // while training they move
  nn::eval(spectral);
  CHECK(same_bits(spectral(x), spectral(x)));
  CHECK(same_bits(spectral(x), layer.with_weight(parametrized(), x)));
  CHECK_NOTHROW(check_gradients([&](const Tensor& given) { return spectral(given); }, x));
}

TEST_CASE("weights are of given norms, or of the norm 1, for every layer that has one", "[nn]") {
  const Generator generator(3);
  const auto x = [&](const Shape& shape) { return randn(shape, f64, generator); };
  check_both(nn::linear(4, 3), x({5, 4}), 3);
  check_both(nn::linear(4, 3, {.has_bias = false}), x({5, 4}), 3);
  check_both(nn::conv1d(4, 6, 3, {.conv = {.groups = 2}}), x({2, 4, 5}), 6);
  check_both(nn::conv2d(2, 3, 2), x({2, 2, 3, 4}), 3);
  check_both(nn::conv3d(2, 3, {2}), x({1, 2, 3, 2, 3}), 3);
  check_both(nn::conv_transpose1d(3, 2, 2), x({2, 3, 4}), 2);
  check_both(nn::conv_transpose2d(3, 2, 2), x({1, 3, 2, 3}), 2);
  check_both(nn::conv_transpose3d(3, 2, {2}), x({1, 3, 2, 2, 2}), 2);
}

TEST_CASE("what norms learn, and what they name", "[nn]") {
  struct Net {
    nn::WeightNorm<nn::Linear> first = nn::weight_norm(nn::linear(4, 8));
    nn::SpectralNorm<nn::Linear> second = nn::spectral_norm(nn::linear(8, 1));
    Tensor operator()(const Tensor& x) const { return second(tanh(first(x))); }
  };
  const Net net;
  std::vector<std::string> names, learned;
  for (const auto& named : nn::named_variables(net)) names.push_back(named.name);
  for (const auto& named : nn::named_parameters(net)) learned.push_back(named.name);
  CHECK(names == std::vector<std::string>{"first.layer.weight", "first.layer.bias",
                                          "first.magnitude", "second.layer.weight",
                                          "second.layer.bias", "second.left", "second.right"});
  CHECK(learned == std::vector<std::string>{"first.layer.weight", "first.layer.bias",
                                            "first.magnitude", "second.layer.weight",
                                            "second.layer.bias"});
  CHECK(net.first.magnitude.shape() == Shape{1, 8});
  CHECK(nn::weight_norm(nn::linear(4, 8), 0).magnitude.shape() == Shape{4, 1});
  CHECK(nn::weight_norm(nn::linear(4, 8), -1).magnitude.shape() == Shape{1, 8});
  CHECK(nn::weight_norm(nn::conv_transpose1d(3, 2, 5)).magnitude.shape() == Shape{3, 1, 1});
  CHECK(net.second.left.shape() == Shape{1});
  CHECK(net.second.right.shape() == Shape{8});
  // A step moves all of them.
  sum(net(randn({6, 4}))).backward();
  for (const Variable& parameter : nn::parameters(net))
    CHECK(max(abs(parameter.grad())).item<float>() > 0);
  CHECK_THROWS_WITH(nn::weight_norm(nn::linear(4, 8), 2),
                    Catch::Contains("weight_norm: axis 2") && Catch::Contains("from -2 to 1"));
  CHECK_THROWS_WITH(nn::spectral_norm(nn::linear(4, 8), {.steps = 0}), Catch::Contains("`steps`"));
  CHECK_THROWS_WITH(nn::spectral_norm(nn::linear(4, 8), {.eps = 0}), Catch::Contains("`eps`"));
  CHECK_THROWS_WITH(net(randn({6, 3})), Catch::Contains("4 features"));
}

TEST_CASE("a struct of the user's own takes a norm, and bfloat16 keeps its dtype", "[nn]") {
  struct Scale {
    Variable weight = parameter(ones({3, 2}));
    Tensor with_weight(const Tensor& other, const Tensor& x) const { return x * other; }
  };
  const nn::WeightNorm<Scale> norm = nn::weight_norm(Scale{});
  CHECK(norm.magnitude.shape() == Shape{3, 1});
  CHECK(norm(ones({3, 2})).shape() == Shape{3, 2});
  const auto half = nn::to(nn::spectral_norm(nn::linear(4, 3)), bf16);
  CHECK(half(ones({2, 4}, bf16)).dtype() == bf16);
  CHECK(half.left.dtype() == bf16);
  const auto short_weights = nn::to(nn::weight_norm(nn::linear(4, 3)), bf16);
  CHECK(short_weights(ones({2, 4}, bf16)).dtype() == bf16);
}

}  // namespace nitinol::parametrizations_test
