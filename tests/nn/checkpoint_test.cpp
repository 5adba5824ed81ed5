// Saving and loading modules and optimizers.
#include "nn/checkpoint.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <filesystem>
#include <string>
#include <unistd.h>
#include <vector>

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

TEST_CASE("a file that fits in part changes nothing", "[nn][io]") {
  struct Two {
    nn::Linear first, second;
  };
  const auto path =
      std::filesystem::temp_directory_path() / ("nitinol_in_part_" + std::to_string(getpid()));
  const auto variables_of = [](const Two& m) {
    std::vector<Tensor> values;
    for (const auto& named : nn::named_variables(m)) values.push_back(named.variable.get());
    return values;
  };
  const auto check_refused = [&](const Two& saved, const Two& loaded, const std::string& name) {
    INFO(name);
    nn::save(path, saved);
    const std::vector<Tensor> before = variables_of(loaded);
    CHECK_THROWS_WITH(nn::load(path, loaded), Catch::Contains(name));
    const std::vector<Tensor> after = variables_of(loaded);
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(same_bits(after[i], before[i]));
  };
  // The first Variables fit, a later one does not: in shape, in dtype, or because it is not there.
  check_refused({nn::linear(3, 4), nn::linear(4, 5)}, {nn::linear(3, 4), nn::linear(4, 6)},
                "second.weight");
  check_refused({nn::linear(3, 4), nn::to(nn::linear(4, 5), f64)},
                {nn::linear(3, 4), nn::linear(4, 5)}, "second.weight");
  check_refused({nn::linear(3, 4), nn::linear(4, 5, {.has_bias = false})},
                {nn::linear(3, 4), nn::linear(4, 5)}, "second.bias");
  check_refused({nn::linear(3, 4), nn::linear(4, 5)},
                {nn::linear(3, 4), nn::linear(4, 5, {.has_bias = false})}, "second.bias");
  std::filesystem::remove(path);
}

TEST_CASE("an optimizer's groups come back with their rates and counts", "[nn][io]") {
  const auto path =
      std::filesystem::temp_directory_path() / ("nitinol_groups_" + std::to_string(getpid()));
  const auto make = [](const Variable& a, const Variable& b) {
    nn::Adam optimizer({a}, {.rate = 0.1});
    optimizer.add({b}, {.rate = 0.01});
    return optimizer;
  };
  const Variable a = parameter(ones({2}));
  const Variable b = parameter(ones({3}));
  const nn::Adam saved = make(a, b);
  sum(a * 2.0).backward();  // b gets no gradient: group 1 makes no step
  saved.step();
  nn::save(path, saved);
  const Variable c = parameter(zeros({2}));
  const Variable d = parameter(zeros({3}));
  nn::Adam loaded = make(c, d);
  loaded.set_rate(7);
  nn::load(path, loaded);
  CHECK(same_bits(c.get(), a.get()));
  CHECK(same_bits(d.get(), ones({3})));
  CHECK(loaded.rate(0).item<double>() == 0.1);
  CHECK(loaded.rate(1).item<double>() == 0.01);
  const auto left = nn::named_variables(saved);
  const auto right = nn::named_variables(loaded);
  for (std::size_t i = 0; i < left.size(); ++i) {
    INFO(left[i].name);
    CHECK(same_bits(left[i].variable.get(), right[i].variable.get()));
  }
  std::filesystem::remove(path);
}

TEST_CASE("Variables whose names the program makes are a module", "[nn][io]") {
  struct Wrapped {
    std::vector<nn::NamedVariable> layers;
    Variable scale;
  };
  const auto path =
      std::filesystem::temp_directory_path() / ("nitinol_names_" + std::to_string(getpid()));
  const auto make = [](double value) -> std::vector<nn::NamedVariable> {
    return {{"conv1.weight", parameter(full({2, 3}, value))},
            {"step", Variable(full({}, value))},
            {"none", Variable()}};
  };
  const std::vector<nn::NamedVariable> saved = make(1.5);
  nn::save(path, saved);
  CHECK(load_safetensors(path).tensors.size() == 2);
  const std::vector<nn::NamedVariable> loaded = make(0);
  nn::load(path, loaded);
  CHECK(same_bits(loaded[0].variable.get(), saved[0].variable.get()));
  CHECK(same_bits(loaded[1].variable.get(), saved[1].variable.get()));
  CHECK_THROWS_WITH(nn::load(path, std::vector<nn::NamedVariable>{loaded[0]}),
                    Catch::Contains("step"));

  CHECK(nn::parameters(loaded) == std::vector{loaded[0].variable});
  CHECK(nn::buffers(loaded).at(0).name == "step");
  const nn::Sgd optimizer(nn::parameters(loaded), {.rate = 1});
  sum(loaded[0].variable.get()).backward();
  optimizer.step();
  CHECK(same_bits(loaded[0].variable.get(), full({2, 3}, 0.5F)));

  const Wrapped wrapped = {.layers = loaded, .scale = Variable(ones({}))};
  CHECK(nn::named_variables(wrapped).at(0).name == "layers.conv1.weight");
  CHECK(nn::named_variables(wrapped).at(2).name == "scale");
  CHECK(nn::to(loaded, f64).at(0).variable.dtype() == f64);
  const auto twice =
      std::vector<nn::NamedVariable>{{"a", Variable(ones({}))}, {"a", Variable(ones({}))}};
  CHECK_THROWS_WITH(nn::save(path, twice), Catch::Contains("\"a\""));
  std::filesystem::remove(path);
}
