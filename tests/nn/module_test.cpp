// Structs as modules: paths, modes, casting, printing.
#include "nn/module.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace nitinol;

namespace {

struct Block {
  nn::Linear up, down;
  nn::Dropout drop;
};

struct Model {
  nn::Embedding tokens;
  std::vector<Block> blocks;
  nn::BatchNorm norm;
  int64_t heads = 4;
};

Model model() {
  Model out = {.tokens = nn::embedding(10, 4), .blocks = {}, .norm = nn::batch_norm(4)};
  for (int i = 0; i < 2; ++i) {
    out.blocks.push_back({.up = nn::linear(4, 8),
                          .down = nn::linear(8, 4, {.has_bias = false}),
                          .drop = nn::dropout(0.1)});
  }
  return out;
}

/// A class with private fields, which it registers.
class Closed {
 public:
  explicit Closed(int64_t width) : inner_(nn::linear(width, width)) {}
  [[nodiscard]] Tensor operator()(const Tensor& x) const { return drop_(inner_(x)); }
  template <class V>
  void fields(V&& visit) {
    visit("inner", inner_), visit("dropout", drop_);
  }
  template <class V>
  void fields(V&& visit) const {
    visit("inner", inner_), visit("dropout", drop_);
  }

 private:
  nn::Linear inner_;
  nn::Dropout drop_;
};

std::vector<std::string> names(const std::vector<nn::NamedVariable>& list) {
  std::vector<std::string> out;
  for (const nn::NamedVariable& named : list) out.push_back(named.name);
  return out;
}

}  // namespace

TEST_CASE("parameters and buffers are named by their path", "[nn]") {
  const Model m = model();
  CHECK(names(nn::named_parameters(m)) ==
        std::vector<std::string>{"tokens.weight", "blocks.0.up.weight", "blocks.0.up.bias",
                                 "blocks.0.down.weight", "blocks.1.up.weight", "blocks.1.up.bias",
                                 "blocks.1.down.weight", "norm.weight", "norm.bias"});
  CHECK(names(nn::buffers(m)) == std::vector<std::string>{"norm.running_mean", "norm.running_var"});
}

TEST_CASE("a class with private fields registers them", "[nn]") {
  struct Outer {
    Closed closed;
  };
  Outer m = {.closed = Closed(3)};
  CHECK(names(nn::named_variables(m)) ==
        std::vector<std::string>{"closed.inner.weight", "closed.inner.bias"});
  nn::eval(m);
  const Tensor x = randn({20, 3});
  CHECK(same_bits(m.closed(x), m.closed(x)));
  nn::train(m);
  CHECK(!same_bits(m.closed(x), m.closed(x)));
  CHECK(nn::to_string(m).find("    inner: Linear") != std::string::npos);
}

TEST_CASE("a shared Variable is listed once", "[nn]") {
  Model m = model();
  m.blocks[1].up = m.blocks[0].up;
  CHECK(nn::parameters(m).size() == 7);
}

TEST_CASE("a mode reaches all flags, and compiled functions have a Plan for each", "[nn][jit]") {
  Model m = model();
  const auto f = compile(
      [](const Model& model, const Tensor& x) { return model.blocks[1].drop(model.norm(x)); });
  const auto g = compile([&m](const Tensor& x) { return m.blocks[0].drop(x); });
  const Tensor x = randn({50, 4});
  for (int i = 0; i < 3; ++i) {
    nn::train(m);
    for (int k = 0; k < 3; ++k) {
      CHECK(!same_bits(g(x), x));
      CHECK(!same_bits(f(m, x), f(m, x)));
    }
    nn::eval(m);
    for (int k = 0; k < 3; ++k) {
      CHECK(same_bits(g(x), x));
      CHECK(same_bits(f(m, x), f(m, x)));
    }
  }
  for (const Explanation& each : {f.explain(), g.explain()}) {
    INFO(each);
    CHECK(each.signatures.size() == 2);
    for (const SignatureReport& mode : each.signatures) CHECK(mode.plan_calls > 0);
  }
}

TEST_CASE("the mode of a const module can be set, as its Variables can", "[nn][jit]") {
  const Model m = model();
  const Tensor x = randn({50, 4});
  const auto f = compile([&m](const Tensor& t) { return m.blocks[1].drop(t); });
  for (int i = 0; i < 4; ++i) {
    nn::eval(m);
    CHECK(same_bits(m.blocks[0].drop(x), x));
    CHECK(same_bits(f(x), x));
    nn::train(m);
    CHECK(!same_bits(m.blocks[0].drop(x), x));
    CHECK(!same_bits(f(x), x));
  }
  const Explanation told = f.explain();
  for (const SignatureReport& mode : told.signatures) CHECK(mode.plan_calls > 0);
  const Closed closed(3);
  nn::eval(closed);
  CHECK(same_bits(closed(ones({4, 3})), closed(ones({4, 3}))));
  nn::eval(nn::Sequential(nn::dropout(0.5)));  // a temporary, whose copies share its flag
}

TEST_CASE("a module is cast with what it shares", "[nn]") {
  Model m = model();
  m.blocks[1].up = m.blocks[0].up;
  const Model wide = nn::to(m, f64);
  CHECK(wide.norm.running_mean.dtype() == f64);
  CHECK(wide.blocks[1].up.weight == wide.blocks[0].up.weight);
  CHECK(wide.tokens.weight.tracks_gradient());
  CHECK(m.tokens.weight.dtype() == f32);
}

TEST_CASE("a module prints as a tree", "[nn]") {
  const std::string text = nn::to_string(model());
  INFO(text);
  CHECK(text.find("Model") == 0);
  CHECK(text.find("  tokens: Embedding") != std::string::npos);
  CHECK(text.find("    0: Block") != std::string::npos);
  CHECK(text.find("      up: Linear") != std::string::npos);
  CHECK(text.find("weight float32[4, 8]") != std::string::npos);
  CHECK(text.find("running_mean float32[4] (buffer)") != std::string::npos);
}
