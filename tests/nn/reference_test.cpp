// Layers, losses and optimizers against what PyTorch gave (tests/reference/make_nn.py), in float64.
#include "nitinol.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

/// One case of the file: tensors by name.
class Case {
 public:
  explicit Case(const std::string& name) : json_(file().at(name)) {}
  Tensor operator[](const std::string& name) const {
    const nlohmann::json& entry = json_.at(name);
    Shape shape;
    for (const auto& size : entry.at("shape")) shape.push_back(size.get<int64_t>());
    return from_span<double>(entry.at("data").get<std::vector<double>>(), shape);
  }

 private:
  static const nlohmann::json& file() {
    static const nlohmann::json json = nlohmann::json::parse(
        std::ifstream(std::string(NITINOL_SOURCE_DIR) + "/tests/reference/nn.json"));
    return json;
  }
  const nlohmann::json& json_;
};

bool close(const Tensor& x, const Tensor& y, double tolerance = 1e-11) {
  REQUIRE(x.shape() == y.shape());
  return max(abs(x - y)).item<double>() <= tolerance;
}

/// Goes back with the weights that the script uses.
void backward(const Tensor& y) {
  const Tensor positions = reshape(arange(y.size(), f64), y.shape());
  y.backward(cos(positions * 1.7 + 0.3));
}

/// Compares the gradients of Variables with those of the case, by name.
void check_named(const Case& c, std::initializer_list<std::pair<const char*, Variable>> variables) {
  for (const auto& [name, variable] : variables) {
    INFO(name);
    CHECK(close(variable.grad(), c[name]));
  }
}

}  // namespace

TEST_CASE("Linear as PyTorch's", "[nn][reference]") {
  const Case c("linear");
  const nn::Linear layer = {.weight = parameter(c["w"]), .bias = parameter(c["b"])};
  const Variable x = parameter(c["x"]);
  const Tensor y = layer(x);
  CHECK(close(y, c["y"]));
  backward(y);
  check_named(c, {{"dx", x}, {"dw", layer.weight}});
  CHECK(close(layer.bias->grad(), c["db"]));
}

TEST_CASE("norms as PyTorch's", "[nn][reference]") {
  {
    const Case c("layer_norm");
    const nn::LayerNorm layer = {.weight = parameter(c["w"]), .bias = parameter(c["b"])};
    const Variable x = parameter(c["x"]);
    const Tensor y = layer(x);
    CHECK(close(y, c["y"]));
    backward(y);
    check_named(c, {{"dx", x}, {"dw", *layer.weight}, {"db", *layer.bias}});
  }
  {
    const Case c("rms_norm");
    const nn::RmsNorm layer = {.weight = parameter(c["w"])};
    const Variable x = parameter(c["x"]);
    const Tensor y = layer(x);
    CHECK(close(y, c["y"]));
    backward(y);
    check_named(c, {{"dx", x}, {"dw", layer.weight}});
  }
  for (const char* name : {"batch_norm", "batch_norm_2d"}) {
    INFO(name);
    const Case c(name);
    nn::BatchNorm layer = nn::to(nn::batch_norm(3), f64);
    layer.weight->set(c["w"]);
    layer.bias->set(c["b"]);
    const Variable x = parameter(c["x"]);
    const Tensor y = layer(x);
    CHECK(close(y, c["y"]));
    backward(y);
    check_named(c, {{"dx", x}, {"dw", *layer.weight}, {"db", *layer.bias}});
    CHECK(close(layer.running_mean, c["mean"]));
    CHECK(close(layer.running_var, c["var"]));
    nn::eval(layer);
    CHECK(close(layer(x), c["eval"]));
  }
}

TEST_CASE("Conv2d as PyTorch's", "[nn][reference]") {
  const auto check = [](const std::string& name, const Conv2dOptions& options) {
    INFO(name);
    const Case c(name);
    const nn::Conv2d layer = {
        .weight = parameter(c["w"]), .bias = parameter(c["b"]), .options = options};
    const Variable x = parameter(c["x"]);
    const Tensor y = layer(x);
    CHECK(close(y, c["y"]));
    backward(y);
    check_named(c, {{"dx", x}, {"dw", layer.weight}});
    CHECK(close(layer.bias->grad(), c["db"]));
  };
  check("conv2d", {});
  check("conv2d_padded", {.stride = {2, 1}, .padding = {1, 2}});
  check("conv2d_groups", {.dilation = {1, 2}, .groups = 2});
  check("conv2d_depthwise", {.padding = 1, .groups = 3});
}

TEST_CASE("pooling as PyTorch's", "[nn][reference]") {
  const auto check = [](const std::string& name, const auto& layer) {
    INFO(name);
    const Case c(name);
    const Variable x = parameter(c["x"]);
    const Tensor y = layer(x);
    CHECK(close(y, c["y"]));
    backward(y);
    check_named(c, {{"dx", x}});
  };
  check("max_pool", nn::MaxPool2d{2});
  check("max_pool_padded", nn::MaxPool2d{{3, 2}, {.stride = Pair(2, 1), .padding = 1}});
  check("avg_pool", nn::AvgPool2d{2});
  check("avg_pool_padded", nn::AvgPool2d{3, {.stride = 2, .padding = 1}});
  check("avg_pool_uncounted",
        nn::AvgPool2d{3, {.stride = 2, .padding = 1, .counts_padding = false}});
}

TEST_CASE("Lstm as PyTorch's", "[nn][reference]") {
  const Case c("lstm");
  const nn::LstmCell cell = {.input_weight = parameter(c["wi"]),
                             .hidden_weight = parameter(c["wh"]),
                             .bias = parameter(c["b"])};
  const nn::Lstm layer = {.layers = {cell}, .backward_layers = {}};
  const Variable x = parameter(c["x"]);
  const auto [y, last] = layer(x);
  CHECK(close(y, c["y"]));
  CHECK(close(last.hidden[0], c["h"]));
  CHECK(close(last.cell[0], c["c"]));
  backward(y);
  check_named(
      c, {{"dx", x}, {"dwi", cell.input_weight}, {"dwh", cell.hidden_weight}, {"db", cell.bias}});
}

TEST_CASE("attention as PyTorch's", "[nn][reference]") {
  for (const bool is_causal : {false, true}) {
    const Case c(is_causal ? "attention_causal" : "attention");
    const Variable q = parameter(c["q"]);
    const Variable k = parameter(c["k"]);
    const Variable v = parameter(c["v"]);
    const Tensor y = nn::attention(q, k, v, {.is_causal = is_causal});
    CHECK(close(y, c["y"]));
    backward(y);
    check_named(c, {{"dq", q}, {"dk", k}, {"dv", v}});
  }
}

TEST_CASE("activations as PyTorch's", "[nn][reference]") {
  const std::vector<std::pair<std::string, Tensor (*)(const Tensor&)>> functions = {
      {"gelu", [](const Tensor& x) { return gelu(x); }},
      {"gelu_tanh", [](const Tensor& x) { return gelu_tanh(x); }},
      {"silu", [](const Tensor& x) { return silu(x); }},
      {"softplus", [](const Tensor& x) { return softplus(x); }},
      {"relu", [](const Tensor& x) { return relu(x); }}};
  for (const auto& [name, f] : functions) {
    INFO(name);
    const Case c(name);
    const Variable x = parameter(c["x"]);
    const Tensor y = f(x);
    CHECK(close(y, c["y"]));
    backward(y);
    check_named(c, {{"dx", x}});
  }
}

TEST_CASE("losses as PyTorch's", "[nn][reference]") {
  const Case all("mse");
  const Tensor classes = cast(all["classes"], i64);
  const auto check = [](const std::string& name, const auto& f) {
    INFO(name);
    const Case c(name);
    const Variable x = parameter(c["x"]);
    const Tensor y = f(x.get());
    CHECK(close(y, c["y"]));
    y.backward();
    check_named(c, {{"dx", x}});
  };
  check("cross_entropy", [&](const Tensor& x) { return nn::cross_entropy(x, classes); });
  check("cross_entropy_smooth",
        [&](const Tensor& x) { return nn::cross_entropy(x, classes, {.label_smoothing = 0.1}); });
  check("cross_entropy_soft", [&](const Tensor& x) { return nn::cross_entropy(x, all["soft"]); });
  check("mse", [&](const Tensor& x) { return nn::mse_loss(x, all["real"]); });
  check("l1", [&](const Tensor& x) { return nn::l1_loss(x, all["real"]); });
  check("huber", [&](const Tensor& x) { return nn::huber_loss(x, all["real"], 0.7); });
  check("bce", [&](const Tensor& x) { return nn::bce_with_logits(x, all["share"]); });
}

TEST_CASE("optimizers step as PyTorch's", "[nn][reference]") {
  const auto check = [](const std::string& name, const auto& make) {
    INFO(name);
    const Case c("optimizer_" + name);
    const Variable p = parameter(c["start"]);
    const auto optimizer = make(std::vector{p});
    const Tensor path = c["path"];
    for (int i = 0; i < 5; ++i) {
      optimizer.zero_grad();
      sum(sin(p) * c["a"]).backward();
      optimizer.step();
      CHECK(close(p, path[i]));
    }
  };
  using List = std::vector<Variable>;
  check("sgd", [](const List& p) { return nn::Sgd(p, {.rate = 0.1}); });
  check("sgd_momentum", [](const List& p) {
    return nn::Sgd(p, {.rate = 0.1, .momentum = 0.9, .weight_decay = 0.01});
  });
  check("sgd_nesterov", [](const List& p) {
    return nn::Sgd(p, {.rate = 0.1, .momentum = 0.9, .is_nesterov = true});
  });
  check("adam", [](const List& p) { return nn::Adam(p, {.rate = 0.05}); });
  check("adam_decay",
        [](const List& p) { return nn::Adam(p, {.rate = 0.05, .weight_decay = 0.1}); });
  check("adamw", [](const List& p) { return nn::AdamW(p, {.rate = 0.05, .weight_decay = 0.1}); });
  check("rmsprop", [](const List& p) { return nn::RmsProp(p, {.rate = 0.05}); });
  check("rmsprop_momentum", [](const List& p) {
    return nn::RmsProp(p, {.rate = 0.05, .momentum = 0.9, .weight_decay = 0.01});
  });
}

TEST_CASE("gradients are clipped as PyTorch does", "[nn][reference]") {
  const Case c("clip_norm");
  const Variable p = parameter(zeros({3}, f64));
  const Variable q = parameter(zeros({2, 2}, f64));
  p.set_grad(c["p"]);
  q.set_grad(c["q"]);
  CHECK(close(cast(nn::clip_gradient_norm({p, q}, 1.5), f64), c["norm"], 1e-6));
  CHECK(close(p.grad(), c["cp"], 1e-6));
  CHECK(close(q.grad(), c["cq"], 1e-6));
  nn::clip_gradient_value({p, q}, 0.1);
  CHECK(max(abs(p.grad())).item<double>() <= 0.1);
}
