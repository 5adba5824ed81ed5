// Averages of parameters: exponential and equal ones, compiled, exchanged and saved.
#include "nn/average.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstddef>
#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

using namespace nitinol;

namespace {

/// The averages after the parameter had these values.
double average_of(const nn::AverageOptions& options, const std::vector<double>& values) {
  const Variable p = parameter(full({2}, 9.0, f64));
  const nn::Average average({p}, options);
  for (const double value : values) {
    p.set(full({2}, value, f64));
    average.update();
  }
  CHECK(average.count().item<double>() == static_cast<double>(values.size()));
  average.swap();
  return p.to_vector<double>()[1];
}

}  // namespace

TEST_CASE("an average forgets exponentially, or nothing", "[nn]") {
  CHECK(average_of({.decay = 0.75}, {4}) == 4);
  CHECK(average_of({.decay = 0.75}, {4, 8, 1}) == 4 * 0.5625 + 8 * 0.1875 + 0.25);
  CHECK(average_of({.decay = 0}, {4, 8, 1}) == 1);
  CHECK(average_of({}, {4, 8, 3}) == Approx(5).epsilon(1e-15));
  CHECK(average_of({}, {}) == 9);
}

TEST_CASE("averages and parameters change places, and back", "[nn]") {
  const Variable a = parameter(full({3}, 1.0F)), b = parameter(full({2}, 1.0, f16));
  const nn::Average average({a, b}, {.decay = 0.5});
  average.update();
  a.set(full({3}, 2.0F));
  b.set(full({2}, 2.0, f16));
  average.update();
  average.swap();
  CHECK(same_bits(a.get(), full({3}, 1.5F)));
  CHECK(same_bits(b.get(), full({2}, 1.5, f16)));
  average.swap();
  CHECK(same_bits(a.get(), full({3}, 2.0F)));
  CHECK(same_bits(b.get(), full({2}, 2.0, f16)));
  const Variable other = parameter(zeros({3})), half(zeros({2}, f16));
  average.copy_to({other, half});
  CHECK(same_bits(other.get(), full({3}, 1.5F)));
  CHECK(same_bits(half.get(), full({2}, 1.5, f16)));
  CHECK(same_bits(a.get(), full({3}, 2.0F)));
  CHECK_THROWS_WITH(average.copy_to({other}), Catch::Contains("expected 2, got 1"));
  CHECK_THROWS_AS(average.copy_to({half, other}), Error);
}

TEST_CASE("averages of float16 gather what float16 would lose", "[nn]") {
  const Variable p = parameter(ones({1}, f16));
  const nn::Average average({p}, {.decay = 0.9999});
  average.update();
  p.set(full({1}, 2.0, f16));
  for (int i = 0; i < 10; ++i) average.update();  // by steps that are too small beside 1
  const Variable wide(zeros({1}));
  average.copy_to({wide});
  CHECK(wide.item<float>() - 1 == Approx(1 - std::pow(0.9999, 10)).epsilon(1e-3));
}

TEST_CASE("a compiled update is a part of the step's Plan, in place, with eager's bits",
          "[nn][jit]") {
  for (const double decay : {0.9, 1.0}) {
    const auto start = [] { return parameter(sin(arange(4000, f32))); };
    const Variable a = start(), b = start();
    const nn::Adam of_a({a}), of_b({b});
    const nn::Average average_a({a}, {.decay = decay}), average_b({b}, {.decay = decay});
    const auto train = [](const Variable& p, const nn::Adam& optimizer, const nn::Average& average,
                          const Tensor& x) {
      optimizer.zero_grad();
      sum(cos(p * x)).backward();
      optimizer.step();
      average.update();
      return x + 1.0F;
    };
    const auto step = compile([&](const Tensor& x) { return train(a, of_a, average_a, x); },
                              {.check = Check::never});
    for (int i = 0; i < 8; ++i) {
      const Tensor x = full({4000}, 1.0 + i, f32);
      CHECK(same_bits(step(x), train(b, of_b, average_b, x)));
      const auto left = nn::named_variables(average_a), right = nn::named_variables(average_b);
      for (std::size_t k = 0; k < left.size(); ++k)
        CHECK(same_bits(left[k].variable.get(), right[k].variable.get()));
    }
    INFO(step.explain());
    CHECK(step.explain().signatures.at(0).tier == Tier::traced);
    // The parameter, its gradient, Adam's two averages and this one.
    CHECK(step.explain().signatures.at(0).plan.in_place_bytes >= std::size_t{5} * 4000 * 4);
  }
}

TEST_CASE("averages are saved by name and go on with the same bits", "[nn]") {
  const auto path =
      std::filesystem::temp_directory_path() / ("nitinol_average_" + std::to_string(getpid()));
  const Variable p = parameter(ones({3}));
  const nn::Average a({p}, {.decay = 0.7}), b({p}, {.decay = 0.7});
  a.update();
  p.set(full({3}, 5.0F));
  a.update();
  nn::save(path, a);
  nn::load(path, b);
  std::filesystem::remove(path);
  for (const nn::Average* each : {&a, &b}) each->update();
  const auto left = nn::named_variables(a), right = nn::named_variables(b);
  REQUIRE(left.size() == 2);
  CHECK(left[0].name == "count");
  CHECK(left[1].name == "averages.0");
  for (std::size_t k = 0; k < 2; ++k)
    CHECK(same_bits(left[k].variable.get(), right[k].variable.get()));
}
