// Sequential: application in order, names by position, modes, compiling.
#include "nn/sequential.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <concepts>
#include <string>
#include <vector>

using namespace nitinol;

TEST_CASE("a Sequential applies what it holds in order", "[nn]") {
  manual_seed(1);
  const nn::Linear first = nn::linear(3, 4), second = nn::linear(4, 2);
  const auto scaled = [](const Tensor& t) { return softmax(t * 2, -1); };
  const nn::Sequential model(first, relu, second, scaled);
  const Tensor x = randn({5, 3});
  CHECK(same_bits(model(x), softmax(second(relu(first(x))) * 2, -1)));
  CHECK(same_bits(nn::Sequential<>()(x), x));
  CHECK_THROWS_WITH(model(randn({5, 4})), Catch::Contains("Linear"));
}

TEST_CASE("parameters of a Sequential are named by position", "[nn]") {
  const nn::Sequential model(nn::linear(3, 4), nitinol::tanh,
                             nn::Sequential(nn::batch_norm(4), nn::dropout(0.5)));
  std::vector<std::string> names;
  for (const auto& named : nn::named_variables(model)) names.push_back(named.name);
  CHECK(names == std::vector<std::string>{"0.weight", "0.bias", "2.0.weight", "2.0.bias",
                                          "2.0.running_mean", "2.0.running_var"});
  const std::string text = nn::to_string(model);
  INFO(text);
  CHECK(text.find("Sequential  ") == 0);
  CHECK(text.find("\n  2: Sequential  ") != std::string::npos);
  CHECK(text.find("    0: BatchNorm") != std::string::npos);
}

TEST_CASE("modes and casts reach the parts of a Sequential", "[nn]") {
  nn::Sequential model(nn::linear(3, 4), nn::dropout(0.5));
  const Tensor x = randn({50, 3});
  CHECK(!same_bits(model(x), model(x)));
  nn::eval(model);
  CHECK(same_bits(model(x), model(x)));
  CHECK(nn::to(model, f64)(cast(x, f64)).dtype() == f64);
}

TEST_CASE("a Sequential may be captured by a compiled function, or its argument", "[nn][jit]") {
  const auto model = nn::Sequential(nn::linear(3, 4), gelu, [](const Tensor& t) { return t * 2; });
  const auto captures = compile([&](const Tensor& x) { return model(x); });
  const auto takes = compile([](const auto& m, const Tensor& x) { return m(x); });
  const Tensor x = randn({5, 3});
  for (int i = 0; i < 5; ++i) {
    CHECK(same_bits(captures(x), model(x)));
    CHECK(same_bits(takes(model, x), model(x)));
  }
  CHECK(captures.explain().plan_calls > 0);
  CHECK(takes.explain().plan_calls > 0);
}

TEST_CASE("activations may have overloaded names", "[nn]") {
  manual_seed(2);
  const nn::Sequential model(nn::linear(3, 4), tanh, nn::linear(4, 2), sqrt,
                             [](const Tensor& t) { return t + 1.0; });
  STATIC_REQUIRE(
      std::same_as<std::tuple_element_t<1, std::remove_const_t<decltype(model)>>, nn::Activation>);
  const Tensor x = randn({5, 3});
  const Tensor expected =
      nitinol::sqrt(std::get<2>(model)(nitinol::tanh(std::get<0>(model)(x)))) + 1.0;
  CHECK(same_bits(model(x), expected));
  CHECK(same_bits(nn::Sequential(tanh)(x), nitinol::tanh(x)));
  const nn::Sequential same(model);  // a copy, not a Sequential of one
  CHECK(nn::parameters(same).size() == 4);
}
