// Saving and loading modules and optimizers.
#include "nn/checkpoint.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <unistd.h>

using namespace nitinol;

namespace {

struct Model {
  nn::Linear first;
  nn::BatchNorm norm;
};

Model model(int64_t width) {
  return {.first = nn::linear(3, width), .norm = nn::batch_norm(width)};
}

}  // namespace

TEST_CASE("a module and its optimizer come back as they were", "[nn]") {
  const auto folder = std::filesystem::temp_directory_path();
  const auto path = folder / ("nitinol_checkpoint_" + std::to_string(getpid()));
  const auto other = folder / ("nitinol_optimizer_" + std::to_string(getpid()));
  const Model a = model(4);
  const nn::Adam of_a(nn::parameters(a));
  const auto train = [](const Model& m, const nn::Adam& optimizer) {
    optimizer.zero_grad();
    mean(square(m.norm(m.first(ones({5, 3}) + arange(5, f32).at({all_of_axis, new_axis})))))
        .backward();
    optimizer.step();
  };
  for (int i = 0; i < 3; ++i) train(a, of_a);
  nn::save(path, a);
  nn::save(other, of_a);

  const Model b = model(4);
  const nn::Adam of_b(nn::parameters(b));
  nn::load(path, b);
  nn::load(other, of_b);
  for (int i = 0; i < 3; ++i) {
    train(a, of_a);
    train(b, of_b);
  }
  const auto left = nn::named_variables(a);
  const auto right = nn::named_variables(b);
  for (std::size_t i = 0; i < left.size(); ++i) {
    INFO(left[i].name);
    CHECK(same_bits(left[i].variable.get(), right[i].variable.get()));
  }

  const Model wider = model(5);
  const Tensor before = wider.first.weight;
  CHECK_THROWS_WITH(nn::load(path, wider), Catch::Contains("first.weight") &&
                                               Catch::Contains("float32[3, 5]") &&
                                               Catch::Contains("float32[3, 4]"));
  CHECK(same_bits(wider.first.weight.get(), before));
  CHECK_THROWS_WITH(nn::load(path, a.first), Catch::Contains("nothing of that name"));
  std::filesystem::remove(path);
  std::filesystem::remove(other);
}
