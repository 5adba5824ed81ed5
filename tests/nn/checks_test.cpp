// Every setting of nn, of schedules and of creation that makes no sense is an Error that says which
// setting it was, and what came.
#include "nn/checks.h"

#include "nitinol.h"

#include <catch2/catch.hpp>

#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

using namespace nitinol;

namespace {

struct Misuse {
  std::string call;  ///< for the report
  std::function<void()> run;
  ErrorKind kind;
  std::string start;  ///< of the message
  std::string got;    ///< "got ...", as it came
};

#define NITINOL_MISUSE(expression, kind, start, got)                                \
  Misuse {                                                                          \
#    expression, [] { static_cast<void>(expression); }, ErrorKind::kind, start, got \
  }

const double not_a_number = std::numeric_limits<double>::quiet_NaN();
const double infinity = std::numeric_limits<double>::infinity();

Tensor one_image() {
  return ones({1, 2, 5, 5});
}
std::vector<Variable> one() {
  return {parameter(ones({2}))};
}
Tensor twice(const Tensor& x) {
  return x * 2;
}
Tensor two() {
  return ones({2});
}
Spec spec_of(DType dtype, const Shape& shape) {
  return {.dtype = dtype, .shape = shape, .is_weak = false, .device = {}};
}
Tensor run_rms_norm(double eps) {
  return nn::RmsNorm{.weight = parameter(ones({2})), .eps = eps}(ones({2, 2}));
}
void run_layer_norm(double eps) {
  static_cast<void>(layer_norm(ones({2, 3}), {.eps = eps}));
}

}  // namespace

TEST_CASE("settings that make no sense are Errors that say what came", "[nn][errors]") {
  const std::vector<Misuse> table = {
      // layers
      NITINOL_MISUSE(nn::linear(0, 2), value, "linear: the setting `in`", "got 0"),
      NITINOL_MISUSE(nn::linear(-1, 2), value, "linear: the setting `in`", "got -1"),
      NITINOL_MISUSE(nn::linear(2, 0), value, "linear: the setting `out`", "got 0"),
      NITINOL_MISUSE(nn::conv2d(0, 4, 2), value, "conv2d: the setting `in`", "got 0"),
      NITINOL_MISUSE(nn::conv2d(3, -4, 2), value, "conv2d: the setting `out`", "got -4"),
      NITINOL_MISUSE(nn::conv2d(3, 4, 0), value, "conv2d: the setting `kernel`", "got 0"),
      NITINOL_MISUSE(nn::conv2d(3, 4, {2, -2}), value, "conv2d: the setting `kernel`", "got -2"),
      NITINOL_MISUSE(nn::conv2d(3, 4, 2, {.conv = {.groups = 0}}), value, "conv2d: 0 groups",
                     "got 0"),
      NITINOL_MISUSE(nn::conv2d(2, 4, 2, {.conv = {.stride = 0}})(one_image()), shape,
                     "conv2d: ", "got [0, 0]"),
      NITINOL_MISUSE(nn::embedding(0, 4), value, "embedding: the setting `count`", "got 0"),
      NITINOL_MISUSE(nn::embedding(3, 0), value, "embedding: the setting `width`", "got 0"),
      NITINOL_MISUSE(nn::layer_norm(0), value, "layer_norm: the setting `features`", "got 0"),
      NITINOL_MISUSE(nn::layer_norm(3, {.eps = not_a_number}), value,
                     "layer_norm: the setting `eps`", "got nan"),
      NITINOL_MISUSE(nn::layer_norm(3, {.eps = -1e-5}), value, "layer_norm: the setting `eps`",
                     "got -1e-05"),
      NITINOL_MISUSE(run_layer_norm(not_a_number), value, "layer_norm: what is added", "got nan"),
      NITINOL_MISUSE(run_layer_norm(-1), value, "layer_norm: what is added", "got -1"),
      NITINOL_MISUSE(run_layer_norm(infinity), value, "layer_norm: what is added", "got inf"),
      NITINOL_MISUSE(nn::rms_norm(0), value, "rms_norm: the setting `features`", "got 0"),
      NITINOL_MISUSE(nn::rms_norm(3, infinity), value, "rms_norm: the setting `eps`", "got inf"),
      NITINOL_MISUSE(run_rms_norm(not_a_number), value, "RmsNorm: the setting `eps`", "got nan"),
      NITINOL_MISUSE(nn::batch_norm(0), value, "batch_norm: the setting `features`", "got 0"),
      NITINOL_MISUSE(
          [] {
            nn::BatchNorm norm = nn::batch_norm(2);
            norm.momentum = 1.5;
            return norm(ones({2, 2}));
          }(),
          value, "BatchNorm: the setting `momentum`", "got 1.5"),
      NITINOL_MISUSE(
          [] {
            nn::BatchNorm norm = nn::batch_norm(2);
            norm.eps = -1;
            return norm(ones({2, 2}));
          }(),
          value, "BatchNorm: the setting `eps`", "got -1"),
      NITINOL_MISUSE(nn::dropout(1.5), value, "dropout: the setting `rate`", "got 1.5"),
      NITINOL_MISUSE(nn::dropout(-0.1), value, "dropout: the setting `rate`", "got -0.1"),
      NITINOL_MISUSE(nn::dropout(not_a_number), value, "dropout: the setting `rate`", "got nan"),
      NITINOL_MISUSE(nn::Dropout{.rate = 2}(two()), value, "Dropout: the setting `rate`", "got 2"),
      NITINOL_MISUSE(nn::lstm(0, 4), value, "lstm: the setting `in`", "got 0"),
      NITINOL_MISUSE(nn::lstm(3, -4), value, "lstm: the setting `hidden`", "got -4"),
      NITINOL_MISUSE(nn::multi_head_attention(0, 1), value,
                     "multi_head_attention: the setting `width`", "got 0"),
      NITINOL_MISUSE(nn::multi_head_attention(6, 0), value, "multi_head_attention: 0 heads",
                     "got 0"),
      NITINOL_MISUSE(
          [] {
            nn::MultiHeadAttention layer = nn::multi_head_attention(4, 2);
            layer.heads = 0;
            return layer(ones({1, 3, 4}));
          }(),
          value, "MultiHeadAttention: 0 heads for a width of 4", "got 0"),
      NITINOL_MISUSE(nn::multi_head_attention(4, 2)(ones({3, 4})), shape,
                     "MultiHeadAttention: the input is float32[3, 4]", "got [3, 4]"),
      NITINOL_MISUSE(nn::attention(two(), two(), two()), shape, "attention: queries float32[2]",
                     "got [2]"),
      NITINOL_MISUSE(nn::attention(ones({2, 3}), ones({2, 4}), ones({2, 3})), shape,
                     "attention: queries float32[2, 3]", "got [2, 4]"),
      // losses
      NITINOL_MISUSE(nn::huber_loss(two(), two(), -1), value, "huber_loss: the setting `delta`",
                     "got -1"),
      NITINOL_MISUSE(nn::huber_loss(two(), two(), not_a_number), value,
                     "huber_loss: the setting `delta`", "got nan"),
      NITINOL_MISUSE(nn::cross_entropy(ones({1, 2}), zeros({1}, i64), {.label_smoothing = 1.5}),
                     value, "cross_entropy: the setting `label_smoothing`", "got 1.5"),
      NITINOL_MISUSE(nn::cross_entropy(ones({1, 2}), zeros({1}, i64), {.label_smoothing = -0.1}),
                     value, "cross_entropy: the setting `label_smoothing`", "got -0.1"),
      NITINOL_MISUSE(nn::smooth_l1_loss(two(), two(), -1), value,
                     "smooth_l1_loss: the setting `beta`", "got -1"),
      NITINOL_MISUSE(nn::gaussian_nll_loss(two(), two(), two(), {.eps = 0}), value,
                     "gaussian_nll_loss: the setting `eps`", "got 0"),
      NITINOL_MISUSE(nn::gaussian_nll_loss(two(), two(), ones({3})), shape,
                     "gaussian_nll_loss: ", "got "),
      NITINOL_MISUSE(nn::gaussian_nll_loss(two(), two(), ones({2, 2})), shape,
                     "gaussian_nll_loss: a variance float32[2, 2]", "got [2, 2]"),
      NITINOL_MISUSE(nn::nll_loss(ones({2, 3}), two()), dtype, "nll_loss: targets float32[2]",
                     "got float32"),
      NITINOL_MISUSE(nn::triplet_margin_loss(two(), two(), two(), {.p = 0}), value,
                     "triplet_margin_loss: the setting `p`", "got 0"),
      NITINOL_MISUSE(nn::bce_loss(two(), ones({3})), shape,
                     "bce_loss: float32[2] against float32[3]", "got two"),
      // activations
      NITINOL_MISUSE(nn::prelu(0), value, "prelu: the setting `count`", "got 0"),
      NITINOL_MISUSE(nn::prelu(3)(ones({2, 2})), shape, "prelu: slopes float32[3]", "got 3"),
      NITINOL_MISUSE(prelu(two(), two()), shape, "prelu: slopes float32[2] for float32[2]",
                     "got 2"),
      NITINOL_MISUSE(glu(ones({2, 3})), shape, "glu: axis 1 of float32[2, 3]", "got 3"),
      NITINOL_MISUSE(celu(two(), 0), value, "celu: alpha", "got 0"),
      NITINOL_MISUSE(hardtanh(two(), 2, 1), value, "hardtanh: the limits",
                     "got low = 2 and high = 1"),
      NITINOL_MISUSE(softshrink(two(), -1), value, "softshrink: bound", "got -1"),
      // optimizers
      NITINOL_MISUSE(nn::Sgd({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::Sgd(one(), {.rate = not_a_number}), value, "optimizer: the setting `rate`",
                     "got nan"),
      NITINOL_MISUSE(nn::Sgd(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::Sgd(one(), {.momentum = -0.9}), value, "Sgd: the setting `momentum`",
                     "got -0.9"),
      NITINOL_MISUSE(nn::Sgd(one(), {.weight_decay = -1}), value, "Sgd: the setting `weight_decay`",
                     "got -1"),
      NITINOL_MISUSE(nn::Sgd(one(), {.is_nesterov = true}), value,
                     "Sgd with is_nesterov: the setting `momentum`", "got 0"),
      NITINOL_MISUSE(nn::Sgd(one()).rate(7), value, "Optimizer::rate: the number of a group",
                     "got 7"),
      NITINOL_MISUSE(nn::Sgd(one()).set_rate(not_a_number), value,
                     "Optimizer::set_rate: the setting `rate`", "got nan"),
      NITINOL_MISUSE(nn::Sgd(one()).set_rate(-0.5), value,
                     "Optimizer::set_rate: the setting `rate`", "got -0.5"),
      NITINOL_MISUSE(nn::Adam(one(), {.rate = infinity}), value, "optimizer: the setting `rate`",
                     "got inf"),
      NITINOL_MISUSE(nn::Adam(one(), {.beta1 = 1}), value, "Adam: the setting `beta1`", "got 1"),
      NITINOL_MISUSE(nn::Adam(one(), {.beta2 = 2}), value, "Adam: the setting `beta2`", "got 2"),
      NITINOL_MISUSE(nn::Adam(one(), {.beta2 = -0.1}), value, "Adam: the setting `beta2`",
                     "got -0.1"),
      NITINOL_MISUSE(nn::Adam(one(), {.eps = not_a_number}), value, "Adam: the setting `eps`",
                     "got nan"),
      NITINOL_MISUSE(nn::AdamW(one(), {.weight_decay = not_a_number}), value,
                     "Adam: the setting `weight_decay`", "got nan"),
      NITINOL_MISUSE(nn::RmsProp(one(), {.decay = 1.1}), value, "RmsProp: the setting `decay`",
                     "got 1.1"),
      NITINOL_MISUSE(nn::RmsProp(one(), {.eps = -1}), value, "RmsProp: the setting `eps`",
                     "got -1"),
      NITINOL_MISUSE(nn::RmsProp(one(), {.momentum = not_a_number}), value,
                     "RmsProp: the setting `momentum`", "got nan"),
      NITINOL_MISUSE(nn::RmsProp(one(), {.weight_decay = -1}), value,
                     "RmsProp: the setting `weight_decay`", "got -1"),
      NITINOL_MISUSE(nn::clip_gradient_norm(one(), -1), value,
                     "clip_gradient_norm: the setting `largest`", "got -1"),
      NITINOL_MISUSE(nn::clip_gradient_value(one(), not_a_number), value,
                     "clip_gradient_value: the setting `largest`", "got nan"),
      // schedules
      NITINOL_MISUSE(nn::step_decay(1, 0), value, "step_decay: the setting `every`", "got 0"),
      NITINOL_MISUSE(nn::step_decay(not_a_number, 2), value, "step_decay: the setting `rate`",
                     "got nan"),
      NITINOL_MISUSE(nn::step_decay(1, 2, -0.5), value, "step_decay: the setting `factor`",
                     "got -0.5"),
      NITINOL_MISUSE(nn::step_decay(1, 2)(-5), value, "step_decay: the setting `step`", "got -5"),
      NITINOL_MISUSE(nn::cosine_decay(1, 0), value, "cosine_decay: the setting `steps`", "got 0"),
      NITINOL_MISUSE(nn::cosine_decay(-1, 5), value, "cosine_decay: the setting `rate`", "got -1"),
      NITINOL_MISUSE(nn::cosine_decay(1, 5, infinity), value, "cosine_decay: the setting `last`",
                     "got inf"),
      NITINOL_MISUSE(nn::cosine_decay(1, 5)(-1), value, "cosine_decay: the setting `step`",
                     "got -1"),
      NITINOL_MISUSE(nn::warm_up(-1, nn::cosine_decay(1, 3)), value, "warm_up: the setting `steps`",
                     "got -1"),
      NITINOL_MISUSE(nn::warm_up(3, nn::Schedule()), value, "warm_up: the function to call",
                     "got an empty one"),
      NITINOL_MISUSE(nn::warm_up(3, nn::cosine_decay(1, 3))(-1), value,
                     "warm_up: the setting `step`", "got -1"),
      // initial values
      NITINOL_MISUSE(nn::uniform({2}, not_a_number), value, "uniform: the setting `bound`",
                     "got nan"),
      NITINOL_MISUSE(nn::uniform({2}, -1), value, "uniform: the setting `bound`", "got -1"),
      NITINOL_MISUSE(nn::normal({2}, infinity), value, "normal: the setting `deviation`",
                     "got inf"),
      NITINOL_MISUSE(nn::xavier_uniform({0, 0}), value, "xavier_uniform: the setting `size`",
                     "got 0"),
      NITINOL_MISUSE(nn::kaiming_normal({3}), shape, "kaiming_normal: ", "got [3]"),
      // data and progress
      NITINOL_MISUSE(nn::DataLoader({}), value, "DataLoader: the list of tensors", "got none"),
      NITINOL_MISUSE(nn::DataLoader({two()}, {.batch = 0}), value,
                     "DataLoader: the setting `batch`", "got 0"),
      NITINOL_MISUSE(nn::DataLoader({two()}, {.batch = -3}), value,
                     "DataLoader: the setting `batch`", "got -3"),
      NITINOL_MISUSE(nn::Progress({.steps = 0}), value, "Progress: the setting `steps`", "got 0"),
      NITINOL_MISUSE(nn::Progress({.items = -1}), value, "Progress: the setting `items`", "got -1"),
      NITINOL_MISUSE(nn::Progress({.lines = 0}), value, "Progress: the setting `lines`", "got 0"),
      NITINOL_MISUSE(nn::Progress({.stream = nullptr}), value, "Progress: the setting `stream`",
                     "got a null pointer"),
      NITINOL_MISUSE(nn::Progress({.style = static_cast<nn::ProgressStyle>(9)}), value,
                     "Progress: the setting `style`", "got 9"),
      NITINOL_MISUSE(nn::Sequential(std::function<Tensor(const Tensor&)>()), value,
                     "Sequential: the function to call", "got an empty one"),
      // statistics, creation, stances
      NITINOL_MISUSE(var(two(), {}, -1), value, "var: what is subtracted", "got -1"),
      NITINOL_MISUSE(stddev(two(), {}, -5), value, "stddev: what is subtracted", "got -5"),
      NITINOL_MISUSE(borrow<float>(nullptr, {3}, {}), value, "borrow: the memory of float32[3]",
                     "got a null pointer"),
      NITINOL_MISUSE(borrow_bytes("abcdefgh", spec_of(u8, {2, 3}), {1}, {}), shape,
                     "borrow: the strides of uint8[2, 3]", "got [1]"),
      NITINOL_MISUSE(from_bytes(std::as_bytes(std::span("12345678")), spec_of(f32, {2})), value,
                     "from_bytes: 9 bytes for float32[2]", "got 9 bytes"),
      NITINOL_MISUSE(linspace(0, 1, -1), shape, "linspace: shape [-1]", "got -1"),
      NITINOL_MISUSE(eye(-1), shape, "eye: shape [-1, -1]", "got -1"),
      NITINOL_MISUSE(one_hot(tensor({1}), -1), value, "one_hot: ", "got -1"),
      NITINOL_MISUSE(compile(twice, {.check = static_cast<Check>(7)}), value,
                     "compile: the option `check`", "got 7"),
      NITINOL_MISUSE(compile(twice, {.check_interval = std::chrono::milliseconds(-1)}), value,
                     "compile: the option `check_interval`", "got -1"),
      NITINOL_MISUSE(set_stance(static_cast<Stance>(99)), value, "set_stance: ", "got 99"),
      NITINOL_MISUSE(StanceScope(static_cast<Stance>(77)), value, "StanceScope: ", "got 77"),
  };
  for (const Misuse& misuse : table) {
    INFO(misuse.call);
    try {
      misuse.run();
      FAIL_CHECK("no error");
    } catch (const Error& error) {
      CHECK(error.kind() == misuse.kind);
      CHECK_THAT(error.message(), Catch::StartsWith(misuse.start));
      CHECK_THAT(error.message(), Catch::Contains(misuse.got));
    }
  }
}

TEST_CASE("settings at the edge of what makes sense are taken", "[nn]") {
  CHECK_NOTHROW(nn::Adam(one(), {.rate = 0, .beta1 = 0, .beta2 = 0, .eps = 0}));
  CHECK_NOTHROW(nn::RmsProp(one(), {.decay = 1}));
  CHECK_NOTHROW(nn::clip_gradient_norm(one(), infinity));
  CHECK_NOTHROW(layer_norm(ones({2, 3}), {.eps = 0}));
  CHECK(nn::warm_up(0, nn::cosine_decay(1, 3))(0) == 1);
  CHECK(borrow<float>(nullptr, {0}, {}).size() == 0);
  CHECK(nn::dropout(0)(two()).size() == 2);
}
