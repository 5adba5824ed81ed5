// apply(): which parts of a module a function is called for.
#include "nn/apply.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

struct Part {
  nn::Linear up, down;
};
struct Whole {
  nn::Embedding tokens;
  std::vector<Part> parts;
  nn::Sequential<nn::Linear, nn::Dropout> head{nn::linear(2, 2), nn::dropout(0.5)};
  std::optional<nn::Linear> extra;
};

Whole whole() {
  return {.tokens = nn::embedding(3, 2),
          .parts = {{nn::linear(2, 4), nn::linear(4, 2)}, {nn::linear(2, 5), nn::linear(5, 2)}},
          .extra = {}};
}

}  // namespace

TEST_CASE("apply() calls a function for all that it takes, the outer ones first", "[nn]") {
  Whole model = whole();
  std::vector<int64_t> widths;
  nn::apply(model, [&](nn::Linear& layer) {
    widths.push_back(layer.weight.shape()[1]);
    layer.weight.set(ones(layer.weight.shape()));
  });
  CHECK(widths == std::vector<int64_t>{4, 2, 5, 2, 2});
  CHECK(sum(model.parts[1].down.weight).item<float>() == 10);
  const Whole& held = model;  // whose Variables can be set, too
  nn::apply(held, [](const nn::Embedding& layer) { layer.weight.set(zeros({3, 2})); });
  CHECK(sum(model.tokens.weight).item<float>() == 0);
  int all = 0;
  nn::apply(model, [&](auto&) { ++all; });
  CHECK(all == 1 + 1 + 2 * 3 + 1 + 2);
  model.extra = nn::linear(2, 2);
  nn::apply(model, [&](const nn::Linear&) { ++all; });
  CHECK(all == 11 + 6);
}

TEST_CASE("apply() with a function that takes nothing is an Error", "[nn][errors]") {
  const Whole model = whole();
  CHECK_THROWS_WITH(nn::apply(model, [](nn::Linear&) {}),
                    Catch::Contains("takes no part") && Catch::Contains("got Whole"));
  CHECK_THROWS_WITH(nn::apply(model, [](const nn::Lstm&) {}), Catch::Contains("takes no part"));
}
