// Every setting of nn, of schedules and of creation that makes no sense is an Error that says which
// setting it was, and what came.
#include "nn/checks.h"

#include "nitinol.h"
#include "tests/fenced.h"

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
void check_misuses(const std::vector<Misuse>& table) {
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
  check_misuses(table);
}

/// Of an optimizer's options.
#define NITINOL_REFUSED(optimizer, setting, number, got)           \
  NITINOL_MISUSE(nn::optimizer(one(), {.setting = number}), value, \
                 #optimizer ": the setting `" #setting "`", got)
#define NITINOL_REFUSED_PLATEAU(setting, number)             \
  NITINOL_MISUSE(nn::Plateau(1, {.setting = number}), value, \
                 "Plateau: the setting `" #setting "`", "got " #number)

TEST_CASE("settings of rules, rates and initial values that make no sense are Errors, too",
          "[nn][errors]") {
  check_misuses({
      // optimizers
      NITINOL_REFUSED(Sgd, dampening, 1.5, "got 1.5"),
      NITINOL_REFUSED(Sgd, dampening, -1, "got -1"),
      NITINOL_REFUSED(Adamax, beta1, 1, "got 1"),
      NITINOL_REFUSED(Adamax, beta2, -1, "got -1"),
      NITINOL_REFUSED(Adamax, eps, -1, "got -1"),
      NITINOL_REFUSED(Adamax, weight_decay, -1, "got -1"),
      NITINOL_REFUSED(NAdam, beta1, 1, "got 1"),
      NITINOL_REFUSED(NAdam, beta2, 1, "got 1"),
      NITINOL_REFUSED(NAdam, eps, infinity, "got inf"),
      NITINOL_REFUSED(NAdam, weight_decay, -1, "got -1"),
      NITINOL_REFUSED(NAdam, momentum_decay, -1, "got -1"),
      NITINOL_REFUSED(NAdam, momentum_decay, not_a_number, "got nan"),
      NITINOL_REFUSED(RAdam, beta1, -0.1, "got -0.1"),
      NITINOL_REFUSED(RAdam, beta2, 1, "got 1"),
      NITINOL_REFUSED(RAdam, eps, -1, "got -1"),
      NITINOL_REFUSED(RAdam, weight_decay, not_a_number, "got nan"),
      NITINOL_REFUSED(Adagrad, eps, -1, "got -1"),
      NITINOL_REFUSED(Adagrad, weight_decay, -1, "got -1"),
      NITINOL_REFUSED(Adagrad, rate_decay, -1, "got -1"),
      NITINOL_REFUSED(Adagrad, rate_decay, infinity, "got inf"),
      NITINOL_REFUSED(Adagrad, initial, -1, "got -1"),
      NITINOL_REFUSED(Adagrad, initial, not_a_number, "got nan"),
      NITINOL_REFUSED(Adadelta, decay, 1.5, "got 1.5"),
      NITINOL_REFUSED(Adadelta, eps, -1, "got -1"),
      NITINOL_REFUSED(Adadelta, weight_decay, -1, "got -1"),
      NITINOL_REFUSED(Adafactor, decay, -0.8, "got -0.8"),
      NITINOL_REFUSED(Adafactor, eps1, -1, "got -1"),
      NITINOL_REFUSED(Adafactor, eps2, -1, "got -1"),
      NITINOL_REFUSED(Adafactor, clipping, 0, "got 0"),
      NITINOL_REFUSED(Adafactor, clipping, infinity, "got inf"),
      NITINOL_REFUSED(Adafactor, weight_decay, -1, "got -1"),
      NITINOL_REFUSED(Lion, beta1, 1, "got 1"),
      NITINOL_REFUSED(Lion, beta2, 1, "got 1"),
      NITINOL_REFUSED(Lion, weight_decay, -1, "got -1"),
      NITINOL_REFUSED(Lamb, beta1, 1, "got 1"),
      NITINOL_REFUSED(Lamb, beta2, 1, "got 1"),
      NITINOL_REFUSED(Lamb, eps, not_a_number, "got nan"),
      NITINOL_REFUSED(Lamb, weight_decay, -1, "got -1"),
      NITINOL_MISUSE(nn::Adamax(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::Adamax({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::NAdam(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::NAdam({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::RAdam(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::RAdam({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::Adagrad(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::Adagrad({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::Adadelta(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::Adadelta({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::Adafactor(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::Adafactor({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::Lion(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::Lion({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::Lamb(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::Lamb({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::Lbfgs(one(), {.rate = -1}), value, "optimizer: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::Lbfgs({}), value, "optimizer: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::Lbfgs(one(), {.history = 0}), value, "Lbfgs: the setting `history`",
                     "got 0"),
      NITINOL_MISUSE(nn::Sgd(one(), {.momentum = 0.9, .is_nesterov = true, .dampening = 0.5}),
                     value, "Sgd with is_nesterov: the setting `dampening`", "got 0.5"),
      // averages
      NITINOL_MISUSE(nn::Average({}), value, "Average: the list of parameters", "got none"),
      NITINOL_MISUSE(nn::Average(one(), {.decay = 1.5}), value, "Average: the setting `decay`",
                     "got 1.5"),
      NITINOL_MISUSE(nn::Average({Variable(zeros({2}, i64))}), dtype,
                     "Average: the average of a Variable", "got int64[2]"),
      // rates
      NITINOL_MISUSE(nn::constant_rate(-1), value, "constant_rate: the setting `rate`", "got -1"),
      NITINOL_MISUSE(nn::constant_rate(1)(-1), value, "constant_rate: the setting `step`",
                     "got -1"),
      NITINOL_MISUSE(nn::multi_step_decay(-1, {}), value, "multi_step_decay: the setting `rate`",
                     "got -1"),
      NITINOL_MISUSE(nn::multi_step_decay(1, {3, 3}), value,
                     "multi_step_decay: the setting `steps`", "got 3"),
      NITINOL_MISUSE(nn::multi_step_decay(1, {0}), value, "multi_step_decay: the setting `steps`",
                     "got 0"),
      NITINOL_MISUSE(nn::multi_step_decay(1, {2}, -1), value,
                     "multi_step_decay: the setting `factor`", "got -1"),
      NITINOL_MISUSE(nn::multi_step_decay(1, {2})(-1), value,
                     "multi_step_decay: the setting `step`", "got -1"),
      NITINOL_MISUSE(nn::exponential_decay(infinity, 1), value,
                     "exponential_decay: the setting `rate`", "got inf"),
      NITINOL_MISUSE(nn::exponential_decay(1, -1), value, "exponential_decay: the setting `factor`",
                     "got -1"),
      NITINOL_MISUSE(nn::exponential_decay(1, 1)(-1), value,
                     "exponential_decay: the setting `step`", "got -1"),
      NITINOL_MISUSE(nn::linear_decay(1, 0), value, "linear_decay: the setting `steps`", "got 0"),
      NITINOL_MISUSE(nn::linear_decay(1, 2)(-1), value, "linear_decay: the setting `step`",
                     "got -1"),
      NITINOL_MISUSE(nn::polynomial_decay(1, 2, -1), value, "polynomial_decay: the setting `power`",
                     "got -1"),
      NITINOL_MISUSE(nn::polynomial_decay(1, 2, 1, -1), value,
                     "polynomial_decay: the setting `last`", "got -1"),
      NITINOL_MISUSE(nn::polynomial_decay(1, 2)(-1), value, "polynomial_decay: the setting `step`",
                     "got -1"),
      NITINOL_MISUSE(nn::cosine_restarts(1, 0), value, "cosine_restarts: the setting `steps`",
                     "got 0"),
      NITINOL_MISUSE(nn::cosine_restarts(1, 2, 0), value, "cosine_restarts: the setting `growth`",
                     "got 0"),
      NITINOL_MISUSE(nn::cosine_restarts(1, 2)(-1), value, "cosine_restarts: the setting `step`",
                     "got -1"),
      NITINOL_MISUSE(nn::one_cycle(-1, 10), value, "one_cycle: the setting `rate`", "got -1"),
      NITINOL_MISUSE(nn::one_cycle(1, 0), value, "one_cycle: the setting `steps`", "got 0"),
      NITINOL_MISUSE(nn::one_cycle(1, 10, 1), value, "one_cycle: the setting `rise`", "got 1"),
      NITINOL_MISUSE(nn::one_cycle(1, 2), value, "one_cycle: the rate rises", "got 0.6"),
      NITINOL_MISUSE(nn::one_cycle(1, 9, 0.3, 0), value, "one_cycle: the setting `first_divisor`",
                     "got 0"),
      NITINOL_MISUSE(nn::one_cycle(1, 9, 0.3, 2, -1), value,
                     "one_cycle: the setting `last_divisor`", "got -1"),
      NITINOL_MISUSE(nn::one_cycle(1, 9)(-1), value, "one_cycle: the setting `step`", "got -1"),
      NITINOL_MISUSE(nn::joined({}, {}), value, "joined: 0 schedules", "got 0 starts"),
      NITINOL_MISUSE(nn::joined({nn::constant_rate(1)}, {2}), value, "joined: 1 schedules",
                     "got 1 starts"),
      NITINOL_MISUSE(nn::joined({nn::constant_rate(1), {}}, {2}), value,
                     "joined: the function to call", "got an empty one"),
      NITINOL_MISUSE(nn::joined({nn::constant_rate(1), nn::constant_rate(1)}, {0}), value,
                     "joined: the setting `starts`", "got 0"),
      NITINOL_MISUSE(nn::joined({nn::constant_rate(1)}, {})(-1), value,
                     "joined: the setting `step`", "got -1"),
      NITINOL_MISUSE(nn::Plateau(-1), value, "Plateau: the setting `rate`", "got -1"),
      NITINOL_REFUSED_PLATEAU(factor, 1),
      NITINOL_REFUSED_PLATEAU(factor, -1),
      NITINOL_REFUSED_PLATEAU(patience, -1),
      NITINOL_REFUSED_PLATEAU(threshold, -1),
      NITINOL_REFUSED_PLATEAU(cooldown, -1),
      NITINOL_REFUSED_PLATEAU(last, -1),
      // initial values
      NITINOL_MISUSE(nn::truncated_normal({2}, -1), value,
                     "truncated_normal: the setting `deviation`", "got -1"),
      NITINOL_MISUSE(nn::xavier_normal({2, 2}, f32, -1), value, "xavier_normal: the setting `gain`",
                     "got -1"),
      NITINOL_MISUSE(nn::xavier_uniform({2, 2}, f32, infinity), value,
                     "xavier_uniform: the setting `gain`", "got inf"),
      NITINOL_MISUSE(nn::kaiming_uniform({2, 2}, f32, {.slope = -1}), value,
                     "kaiming_uniform: the setting `slope`", "got -1"),
      NITINOL_MISUSE(nn::orthogonal({3}), shape, "orthogonal: ", "got [3]"),
      NITINOL_MISUSE(nn::orthogonal({3, 0}), value, "orthogonal: the setting `size`", "got 0"),
      NITINOL_MISUSE(nn::orthogonal({3, 2}, f32, not_a_number), value,
                     "orthogonal: the setting `gain`", "got nan"),
      NITINOL_MISUSE(nn::dirac({3, 3}), shape, "dirac: ", "got [3, 3]"),
      NITINOL_MISUSE(nn::dirac({3, 3, 0}), value, "dirac: the setting `size`", "got 0"),
      NITINOL_MISUSE(nn::dirac({4, 3, 1}, f32, 0), value, "dirac: the setting `groups`", "got 0"),
      NITINOL_MISUSE(nn::dirac({4, 3, 1}, f32, 3), value, "dirac: the setting `groups`", "got 3"),
  });
}

TEST_CASE("settings at the edge of what makes sense are taken", "[nn]") {
  CHECK_NOTHROW(nn::Adam(one(), {.rate = 0, .beta1 = 0, .beta2 = 0, .eps = 0}));
  CHECK_NOTHROW(nn::RmsProp(one(), {.decay = 1}));
  CHECK_NOTHROW(nn::Adadelta(one(), {.decay = 1}));
  CHECK_NOTHROW(nn::Adafactor(one(), {.decay = 0, .eps2 = 0}));
  CHECK_NOTHROW(nn::Sgd(one(), {.momentum = 0.9, .dampening = 1}));
  CHECK_NOTHROW(nn::Average(one(), {.decay = 0}));
  CHECK_NOTHROW(nn::one_cycle(1, 4, 0.3));
  CHECK_NOTHROW(nn::clip_gradient_norm(one(), infinity));
  CHECK_NOTHROW(layer_norm(ones({2, 3}), {.eps = 0}));
  CHECK(nn::warm_up(0, nn::cosine_decay(1, 3))(0) == 1);
  CHECK(borrow<float>(nullptr, {0}, {}).size() == 0);
  CHECK(nn::dropout(0)(two()).size() == 2);
}

TEST_CASE("a check that fails on a device says what was wrong, also in a compiled call",
          "[nn][errors]") {
  const auto there = [](const Tensor& x) { return x.to(test::fenced_device); };
  const auto loss = [](const Tensor& x, const Tensor& targets) {
    return nn::cross_entropy(x, targets);
  };
  const auto f = compile(loss, {.check = Check::never});
  const Tensor x = there(ones({3, 4})), bad = there(tensor({0, 7, 1}));
  for (int call = 0; call < 4; ++call) f(x, there(tensor({0, 1, 2})));
  REQUIRE(f.explain().plan_calls > 0);
  CHECK_THROWS_WITH(loss(x, bad), Catch::Contains("cross_entropy: target 7 at [1] for 4 classes"));
  CHECK_THROWS_WITH(f(x, bad).item<float>(),
                    Catch::Contains("cross_entropy: ") && Catch::Contains("Check the labels"));
}
