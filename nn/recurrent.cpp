#include "nn/recurrent.h"

#include "autograd/custom.h"
#include "core/error.h"
#include "core/place.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"
#include "nn/init.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace nitinol::nn {
namespace {

/// What a cell keeps from step to step: hidden values first.
using States = std::vector<Tensor>;

/// Gradients of one step: of the sums of the input's products and of the hidden ones, and of the
/// former states but for what comes through the hidden product (undefined for none).
struct StepGradient {
  Tensor of_input, of_hidden;
  States states;
};

// ---- what a step of each cell computes from its two products, and how one goes back

struct LstmStep {
  Tensor input, forget, update, output;  ///< gates, [batch, hidden]
  Tensor cell_before, squashed;          ///< squashed: tanh of the new cell

  States go(const Tensor& of_input, const Tensor& of_hidden, const States& states) {
    const Tensor sums = of_input + of_hidden;
    const std::vector<Tensor> parts = split(sums, states[0].shape()[1], 1);
    input = sigmoid(parts[0]);
    forget = sigmoid(parts[1]);
    update = tanh(parts[2]);
    output = sigmoid(parts[3]);
    cell_before = states[1];
    const Tensor cell = forget * cell_before + input * update;
    squashed = tanh(cell);
    return {output * squashed, cell};
  }

  [[nodiscard]] StepGradient back(const States& of_new) const {
    const Tensor& dh = of_new[0];
    const Tensor dc = of_new[1] + dh * output * (1 - square(squashed));
    const Tensor sums =
        concat({dc * update * (input * (1 - input)), dc * cell_before * (forget * (1 - forget)),
                dc * input * (1 - square(update)), dh * squashed * (output * (1 - output))},
               1);
    return {sums, sums, {Tensor(), dc * forget}};
  }
};

struct GruStep {
  Tensor reset, update, fresh;  ///< [batch, hidden]
  Tensor hidden_before, of_fresh;

  States go(const Tensor& of_input, const Tensor& of_hidden, const States& states) {
    const int64_t width = states[0].shape()[1];
    const std::vector<Tensor> a = split(of_input, width, 1);
    const std::vector<Tensor> b = split(of_hidden, width, 1);
    hidden_before = states[0];
    of_fresh = b[2];
    reset = sigmoid(a[0] + b[0]);
    update = sigmoid(a[1] + b[1]);
    fresh = tanh(a[2] + reset * of_fresh);
    return {fresh + update * (hidden_before - fresh)};
  }

  [[nodiscard]] StepGradient back(const States& of_new) const {
    const Tensor& dh = of_new[0];
    const Tensor d_fresh = dh * (1 - update) * (1 - square(fresh));
    const Tensor d_update = dh * (hidden_before - fresh) * (update * (1 - update));
    const Tensor d_reset = d_fresh * of_fresh * (reset * (1 - reset));
    return {concat({d_reset, d_update, d_fresh}, 1),
            concat({d_reset, d_update, d_fresh * reset}, 1),
            {dh * update}};
  }
};

struct RnnStep {
  Nonlinearity activation = Nonlinearity::tanh;
  Tensor result = {};

  States go(const Tensor& of_input, const Tensor& of_hidden, const States&) {
    const Tensor sums = of_input + of_hidden;
    result = activation == Nonlinearity::relu ? relu(sums) : tanh(sums);
    return {result};
  }

  [[nodiscard]] StepGradient back(const States& of_new) const {
    const Tensor sums = activation == Nonlinearity::relu ? where(result > 0, of_new[0], 0)
                                                         : of_new[0] * (1 - square(result));
    return {sums, sums, {Tensor()}};
  }
};

/// A step of the layer with nothing in it yet.
LstmStep step_of(const LstmCell&) {
  return {};
}
GruStep step_of(const GruCell&) {
  return {};
}
RnnStep step_of(const RnnCell& cell) {
  return {.activation = cell.activation};
}

/// Weights of a cell, and its biases.
std::vector<Tensor> weights_of(const LstmCell& cell) {
  return {cell.input_weight, cell.hidden_weight, cell.bias};
}
std::vector<Tensor> weights_of(const GruCell& cell) {
  return {cell.input_weight, cell.hidden_weight, cell.bias, cell.hidden_bias};
}
std::vector<Tensor> weights_of(const RnnCell& cell) {
  return {cell.input_weight, cell.hidden_weight, cell.bias};
}

// ---- all steps of one layer and direction

/// The sum of those that are defined.
Tensor sum_of(const Tensor& a, const Tensor& b) {
  return a.is_defined() && b.is_defined() ? a + b : a.is_defined() ? a : b;
}

/// A layer over all steps, with a gradient of its own, because the weights' gradients are then one
/// product over all steps rather than one for each. Takes x, the first states and the weights;
/// gives the hidden values of all steps and after them the last states.
template <class Step>
class Run {
 public:
  /// alive: [steps, batch], false behind the ends of sequences; undefined if all are as long.
  Run(Step step, std::size_t states, Tensor alive, bool is_backward, bool wants_x)
      : step_(std::move(step)),
        states_(states),
        alive_(std::move(alive)),
        is_backward_(is_backward),
        wants_x_(wants_x) {}

  std::pair<Tensor, autograd::Pull> operator()(const std::vector<Tensor>& given) const {
    std::optional<CallSite> place;
    const OnePlaceScope scope(place);
    const Tensor& x = given[0];
    const Tensor* const weights = &given[1 + states_];  // and biases, of which the second may lack
    const bool has_hidden_bias = given.size() == 1 + states_ + 4;
    const int64_t count = x.shape()[0];
    // All steps' inputs at once: one product instead of one for each step.
    const Tensor of_input = matmul(x, weights[0]) + weights[2];
    std::vector<Step> steps(static_cast<std::size_t>(count), step_);
    std::vector<Tensor> results(steps.size());
    std::vector<Tensor> hidden_values(steps.size());
    States states(given.begin() + 1, given.begin() + 1 + static_cast<std::ptrdiff_t>(states_));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t t = is_backward_ ? count - 1 - i : i;
      const auto at = static_cast<std::size_t>(t);
      hidden_values[at] = states[0];
      Tensor of_hidden = matmul(states[0], weights[1]);
      if (has_hidden_bias) of_hidden = of_hidden + weights[3];
      States next = steps[at].go(of_input[t], of_hidden, states);
      results[at] = next[0];
      if (alive_.is_defined()) {
        const Tensor alive = alive_at(t);
        results[at] = where(alive, next[0], 0);
        for (std::size_t k = 0; k < states_; ++k) next[k] = where(alive, next[k], states[k]);
      }
      states = std::move(next);
    }
    results.insert(results.end(), states.begin(), states.end());
    auto pull = [self = *this, given, place, steps = std::move(steps),
                 hidden_values = std::move(hidden_values)](const Tensor& gradient) {
      std::optional<CallSite> same = place;  // what goes back comes from where it went forward
      const OnePlaceScope scope_back(same);
      return self.back(given, steps, hidden_values, gradient);
    };
    return {stack(results), std::move(pull)};
  }

 private:
  [[nodiscard]] Tensor alive_at(int64_t t) const { return unsqueeze(alive_[t], 1); }

  [[nodiscard]] std::vector<Tensor> back(const std::vector<Tensor>& given,
                                         const std::vector<Step>& steps,
                                         const std::vector<Tensor>& hidden_values,
                                         const Tensor& gradient) const {
    const Tensor& x = given[0];
    const Tensor* const weights = &given[1 + states_];
    const auto count = static_cast<int64_t>(steps.size());
    States of_states;
    for (std::size_t k = 0; k < states_; ++k)
      of_states.push_back(gradient[count + static_cast<int64_t>(k)]);
    std::vector<Tensor> of_input(steps.size());
    std::vector<Tensor> of_hidden(steps.size());
    for (int64_t i = 0; i < count; ++i) {
      const int64_t t = is_backward_ ? i : count - 1 - i;
      const auto at = static_cast<std::size_t>(t);
      States of_new = of_states;
      of_new[0] = of_new[0] + gradient[t];
      States kept(states_);
      if (alive_.is_defined()) {
        const Tensor alive = alive_at(t);
        for (std::size_t k = 0; k < states_; ++k) {
          of_new[k] = where(alive, of_new[k], 0);
          kept[k] = where(alive, 0, of_states[k]);
        }
      }
      StepGradient step = steps[at].back(of_new);
      of_input[at] = step.of_input;
      of_hidden[at] = step.of_hidden;
      step.states[0] = sum_of(step.states[0], matmul(step.of_hidden, transpose(weights[1], 0, 1)));
      for (std::size_t k = 0; k < states_; ++k) of_states[k] = sum_of(step.states[k], kept[k]);
    }
    const auto flat = [](const Tensor& values) { return flatten(values, 0, 1); };
    const bool is_one = given.size() == 1 + states_ + 3;  // both products' gradients are the same
    const Tensor all_input = flat(stack(of_input));
    const Tensor all_hidden = is_one ? all_input : flat(stack(of_hidden));
    std::vector<Tensor> all = {
        wants_x_ ? reshape(matmul(all_input, transpose(weights[0], 0, 1)), x.shape()) : Tensor()};
    all.insert(all.end(), of_states.begin(), of_states.end());
    all.push_back(matmul(transpose(flat(x), 0, 1), all_input));
    all.push_back(matmul(transpose(flat(stack(hidden_values)), 0, 1), all_hidden));
    all.push_back(sum(all_input, {0}));
    if (!is_one) all.push_back(sum(all_hidden, {0}));
    return all;
  }

  Step step_;
  std::size_t states_;
  Tensor alive_;
  bool is_backward_, wants_x_;
};

// ---- layers of them

void check_shape(const char* where, const char* what, const Tensor& x, const Shape& expected) {
  if (x.shape() == expected) return;
  throw Error(ErrorKind::shape, {.where = where,
                                 .what = fmt::format("{} is {}", what, describe(x)),
                                 .expected = to_string(expected),
                                 .got = to_string(x.shape()),
                                 .fix = {}});
}

void check_sequence(const char* where, const Tensor& x, bool is_batch_first, int64_t in) {
  const bool is_one = x.rank() == 3 && x.shape()[2] == in && x.shape()[is_batch_first ? 1 : 0] > 0;
  if (is_one) return;
  throw Error(ErrorKind::shape,
              {.where = where,
               .what = "the input is " + describe(x),
               .expected = fmt::format("{}, {} features] of at least one step",
                                       is_batch_first ? "[batch, steps" : "[steps, batch", in),
               .got = to_string(x.shape()),
               .fix = "Check the layer before, and what this one was made for."});
}

void check_directions(const char* where, std::size_t forward, std::size_t backward) {
  if (forward > 0 && (backward == 0 || backward == forward)) return;
  throw Error(ErrorKind::value,
              {.where = where,
               .what = fmt::format("{} layers and {} backward ones", forward, backward),
               .expected = "at least one, and as many backward ones or none",
               .got = fmt::format("{} and {}", forward, backward),
               .fix = {}});
}

/// false behind the end of each sequence: [steps, batch].
Tensor alive_steps(const char* where, const Tensor& lengths, int64_t steps, int64_t batch) {
  check_shape(where, "`lengths`", lengths, {batch});
  if (is_integer(lengths.dtype()))
    return unsqueeze(arange(steps, {}, lengths.device()), 1) < lengths;
  throw Error(ErrorKind::dtype, {.where = where,
                                 .what = "`lengths` is " + describe(lengths),
                                 .expected = "integers",
                                 .got = std::string(name_of(lengths.dtype())),
                                 .fix = {}});
}

struct Ran {
  Tensor sequence;
  States last;  ///< each [layers * directions, batch, hidden]
};

/// `first`: states as of Ran::last; zeros where undefined.
template <class Layer>
Ran run_layers(const char* where, const Layer& layer, const Tensor& x, States first,
               const std::optional<Tensor>& lengths) {
  const auto& layers = layer.layers;
  check_directions(where, layers.size(), layer.backward_layers.size());
  check_setting(where, "dropout", layer.dropout, Interval::below_one);
  check_sequence(where, x, layer.is_batch_first, layers[0].input_weight.shape()[0]);
  const std::size_t directions = layer.backward_layers.empty() ? 1 : 2;
  const int64_t batch = x.shape()[layer.is_batch_first ? 0 : 1];
  const int64_t steps = x.shape()[layer.is_batch_first ? 1 : 0];
  const int64_t hidden = layers[0].hidden_weight.shape()[0];
  const Shape state = {static_cast<int64_t>(layers.size() * directions), batch, hidden};
  for (Tensor& one : first) {
    if (!one.is_defined()) one = zeros(state, x.dtype(), x.device());
    check_shape(where, "the state", one, state);
  }
  Tensor alive;
  if (lengths) alive = alive_steps(where, *lengths, steps, batch);

  Ran ran = {.sequence = layer.is_batch_first ? transpose(x, 0, 1) : x,
             .last = States(first.size())};
  std::vector<States> lasts(first.size());
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (i > 0 && layer.training && layer.dropout > 0)
      ran.sequence = Dropout{.rate = layer.dropout}(ran.sequence);
    std::vector<Tensor> sides;
    for (std::size_t d = 0; d < directions; ++d) {
      const auto& cell = d == 0 ? layers[i] : layer.backward_layers[i];
      check_sequence(where, ran.sequence, false, cell.input_weight.shape()[0]);
      std::vector<Tensor> given = {ran.sequence};
      for (const Tensor& one : first)
        given.push_back(one[static_cast<int64_t>(i * directions + d)]);
      for (Tensor& weight : weights_of(cell)) given.push_back(std::move(weight));
      const Run run(step_of(cell), first.size(), alive, d == 1, ran.sequence.tracks_gradient());
      const Tensor all = autograd::customized(run, given);
      sides.push_back(slice(all, 0, {0, steps}));
      for (std::size_t k = 0; k < first.size(); ++k)
        lasts[k].push_back(all[steps + static_cast<int64_t>(k)]);
    }
    ran.sequence = directions == 1 ? sides[0] : concat(sides, 2);
  }
  for (std::size_t k = 0; k < first.size(); ++k) ran.last[k] = stack(lasts[k]);
  if (layer.is_batch_first) ran.sequence = transpose(ran.sequence, 0, 1);
  return ran;
}

/// One step with the usual tape. `states`: [batch, hidden], or undefined.
template <class Cell>
States run_cell(const char* where, const Cell& cell, const Tensor& x, States states) {
  const int64_t in = cell.input_weight.shape()[0];
  const int64_t hidden = cell.hidden_weight.shape()[0];
  if (x.rank() != 2 || x.shape()[1] != in) {
    throw Error(ErrorKind::shape, {.where = where,
                                   .what = "the input is " + describe(x),
                                   .expected = fmt::format("[batch, {}]", in),
                                   .got = to_string(x.shape()),
                                   .fix = "A single one needs unsqueeze(x, 0)."});
  }
  for (Tensor& one : states) {
    if (!one.is_defined()) one = zeros({x.shape()[0], hidden}, x.dtype(), x.device());
    check_shape(where, "the state", one, {x.shape()[0], hidden});
  }
  const std::vector<Tensor> weights = weights_of(cell);
  const Tensor of_input = matmul(x, weights[0]) + weights[2];
  Tensor of_hidden = matmul(states[0], weights[1]);
  if (weights.size() == 4) of_hidden = of_hidden + weights[3];
  return step_of(cell).go(of_input, of_hidden, states);
}

// ---- what they are made of

void check_activation(const char* where, Nonlinearity activation) {
  if (activation == Nonlinearity::tanh || activation == Nonlinearity::relu) return;
  throw Error(ErrorKind::value, {.where = where,
                                 .what = "the setting `activation`",
                                 .expected = "tanh or relu",
                                 .got = "another one",
                                 .fix = {}});
}

/// Variables as PyTorch's: uniform within 1 / sqrt(hidden).
class Drawing {
 public:
  Drawing(const char* where, Integer in, Integer hidden, DType dtype)
      : in_(in), hidden_(hidden), dtype_(dtype) {
    check_at_least(where, "in", in, 1);
    check_at_least(where, "hidden", hidden, 1);
  }
  [[nodiscard]] Variable weight_of_input(int64_t gates) const {
    return drawn({in_, gates * hidden_});
  }
  [[nodiscard]] Variable weight_of_hidden(int64_t gates) const {
    return drawn({hidden_, gates * hidden_});
  }
  [[nodiscard]] Variable bias(int64_t gates) const { return drawn({gates * hidden_}); }

 private:
  [[nodiscard]] Variable drawn(const Shape& shape) const {
    return parameter(uniform(shape, 1 / std::sqrt(static_cast<double>(hidden_)), dtype_));
  }
  int64_t in_, hidden_;
  DType dtype_;
};

/// `made`: layers without anything in them. make(in): a cell.
template <class Layer, class F>
Layer layers_of(const char* where, Layer made, Integer in, Integer hidden,
                const RecurrentOptions& options, const F& make) {
  check_at_least(where, "in", in, 1);
  check_at_least(where, "hidden", hidden, 1);
  check_at_least(where, "layers", options.layers, 1);
  check_setting(where, "dropout", options.dropout, Interval::below_one);
  for (int64_t i = 0; i < options.layers; ++i) {
    const int64_t width = i == 0 ? int64_t{in} : hidden * (options.is_bidirectional ? 2 : 1);
    made.layers.push_back(make(width));
    if (options.is_bidirectional) made.backward_layers.push_back(make(width));
  }
  made.is_batch_first = options.is_batch_first;
  made.dropout = options.dropout;
  return made;
}

}  // namespace

// ---- LSTM

LstmCell lstm_cell(Integer in, Integer hidden, DType dtype) {
  const Drawing draw("lstm_cell", in, hidden, dtype);
  return {.input_weight = draw.weight_of_input(4),
          .hidden_weight = draw.weight_of_hidden(4),
          .bias = draw.bias(4)};
}

LstmCell::State LstmCell::operator()(const Tensor& x, const std::optional<State>& state) const {
  const States next =
      run_cell("LstmCell", *this, x, state ? States{state->hidden, state->cell} : States(2));
  return {next[0], next[1]};
}

Lstm lstm(Integer in, Integer hidden, const RecurrentOptions& options) {
  return layers_of("lstm", Lstm{}, in, hidden, options,
                   [&](int64_t width) { return lstm_cell(width, hidden, options.dtype); });
}

Lstm::Output Lstm::operator()(const Tensor& x, const std::optional<State>& state,
                              const std::optional<Tensor>& lengths) const {
  const States first = state ? States{state->hidden, state->cell} : States(2);
  Ran ran = run_layers("Lstm", *this, x, first, lengths);
  return {ran.sequence, {ran.last[0], ran.last[1]}};
}

// ---- GRU

GruCell gru_cell(Integer in, Integer hidden, DType dtype) {
  const Drawing draw("gru_cell", in, hidden, dtype);
  return {.input_weight = draw.weight_of_input(3),
          .hidden_weight = draw.weight_of_hidden(3),
          .bias = draw.bias(3),
          .hidden_bias = draw.bias(3)};
}

Tensor GruCell::operator()(const Tensor& x, const std::optional<Tensor>& hidden) const {
  return run_cell("GruCell", *this, x, {hidden.value_or(Tensor())})[0];
}

Gru gru(Integer in, Integer hidden, const RecurrentOptions& options) {
  return layers_of("gru", Gru{}, in, hidden, options,
                   [&](int64_t width) { return gru_cell(width, hidden, options.dtype); });
}

Gru::Output Gru::operator()(const Tensor& x, const std::optional<Tensor>& hidden,
                            const std::optional<Tensor>& lengths) const {
  Ran ran = run_layers("Gru", *this, x, {hidden.value_or(Tensor())}, lengths);
  return {ran.sequence, ran.last[0]};
}

// ---- plain

RnnCell rnn_cell(Integer in, Integer hidden, Nonlinearity activation, DType dtype) {
  check_activation("rnn_cell", activation);
  const Drawing draw("rnn_cell", in, hidden, dtype);
  return {.input_weight = draw.weight_of_input(1),
          .hidden_weight = draw.weight_of_hidden(1),
          .bias = draw.bias(1),
          .activation = activation};
}

Tensor RnnCell::operator()(const Tensor& x, const std::optional<Tensor>& hidden) const {
  check_activation("RnnCell", activation);
  return run_cell("RnnCell", *this, x, {hidden.value_or(Tensor())})[0];
}

Rnn rnn(Integer in, Integer hidden, Nonlinearity activation, const RecurrentOptions& options) {
  check_activation("rnn", activation);
  return layers_of("rnn", Rnn{}, in, hidden, options, [&](int64_t width) {
    return rnn_cell(width, hidden, activation, options.dtype);
  });
}

Rnn::Output Rnn::operator()(const Tensor& x, const std::optional<Tensor>& hidden,
                            const std::optional<Tensor>& lengths) const {
  for (const auto* side : {&layers, &backward_layers})
    for (const RnnCell& cell : *side) check_activation("Rnn", cell.activation);
  Ran ran = run_layers("Rnn", *this, x, {hidden.value_or(Tensor())}, lengths);
  return {ran.sequence, ran.last[0]};
}

}  // namespace nitinol::nn
