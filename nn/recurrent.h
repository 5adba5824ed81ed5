// Recurrent layers: what a step computes goes into the next one.
//
// Layers take sequences [steps, batch, in], or [batch, steps, in] if they are batch-first, and give
// the hidden values of all steps and those after the last. Several layers stand on each other; of
// two directions the second begins at the end, and their values stand side by side.
#pragma once

#include "core/tensor.h"
#include "nn/layers.h"
#include "nn/module.h"

#include <cstdint>
#include <optional>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

struct RecurrentOptions {
  int64_t layers = 1;
  bool is_bidirectional = false;
  bool is_batch_first = false;  ///< sequences are [batch, steps, features]
  double dropout = 0;           ///< of what goes from one layer to the next, while training
  DType dtype = f32;
};

// ---- LSTM

/// One step of long short-term memory (S. Hochreiter, J. Schmidhuber, 1997), gates in PyTorch's
/// order: input, forget, cell, output.
struct LstmCell {
  Variable input_weight;   ///< [in, 4 hidden]
  Variable hidden_weight;  ///< [hidden, 4 hidden]
  Variable bias;           ///< [4 hidden]
  struct State {
    Tensor hidden, cell;  ///< [batch, hidden]
  };
  /// x: [batch, in]. Without a state it begins with zeros.
  [[nodiscard]] State operator()(const Tensor& x, const std::optional<State>& state = {}) const;
};
[[nodiscard]] LstmCell lstm_cell(Integer in, Integer hidden, DType dtype = f32);

/// Layers of long short-term memory.
struct Lstm {
  std::vector<LstmCell> layers;
  std::vector<LstmCell> backward_layers;  ///< from the end of the sequence; none, or as many
  bool is_batch_first = false;
  double dropout = 0;
  Training training = {true, "Lstm.training"};
  struct State {
    Tensor hidden, cell;  ///< [layers * directions, batch, hidden]
  };
  struct Output {
    Tensor sequence;  ///< hidden values of the last layer: [steps, batch, directions * hidden]
    State last;
  };
  /// x: [steps, batch, in]. Without a state it begins with zeros. `lengths`, integers [batch]: so
  /// many steps of each sequence count; behind them the state stays and hidden values are 0. One
  /// Plan serves all lengths.
  [[nodiscard]] Output operator()(const Tensor& x, const std::optional<State>& state = {},
                                  const std::optional<Tensor>& lengths = {}) const;
};
[[nodiscard]] Lstm lstm(Integer in, Integer hidden, const RecurrentOptions& options = {});

// ---- GRU

/// One step of a gated recurrent unit (K. Cho et al., arXiv:1406.1078), gates in PyTorch's order:
/// reset, update, new; the new one takes the hidden product times the reset.
struct GruCell {
  Variable input_weight;   ///< [in, 3 hidden]
  Variable hidden_weight;  ///< [hidden, 3 hidden]
  Variable bias;           ///< [3 hidden], of the input's product
  Variable hidden_bias;    ///< [3 hidden], of the hidden one
  /// x: [batch, in]; hidden: [batch, hidden], zeros if it is not given.
  [[nodiscard]] Tensor operator()(const Tensor& x, const std::optional<Tensor>& hidden = {}) const;
};
[[nodiscard]] GruCell gru_cell(Integer in, Integer hidden, DType dtype = f32);

/// Layers of gated recurrent units.
struct Gru {
  std::vector<GruCell> layers;
  std::vector<GruCell> backward_layers;  ///< from the end of the sequence; none, or as many
  bool is_batch_first = false;
  double dropout = 0;
  Training training = {true, "Gru.training"};
  struct Output {
    Tensor sequence;  ///< hidden values of the last layer: [steps, batch, directions * hidden]
    Tensor hidden;    ///< [layers * directions, batch, hidden]
  };
  /// x: [steps, batch, in]; hidden: [layers * directions, batch, hidden], zeros if it is not given;
  /// lengths: as of Lstm.
  [[nodiscard]] Output operator()(const Tensor& x, const std::optional<Tensor>& hidden = {},
                                  const std::optional<Tensor>& lengths = {}) const;
};
[[nodiscard]] Gru gru(Integer in, Integer hidden, const RecurrentOptions& options = {});

// ---- plain

/// One step of tanh, or relu, of a sum of two products (J. Elman, 1990).
struct RnnCell {
  Variable input_weight;   ///< [in, hidden]
  Variable hidden_weight;  ///< [hidden, hidden]
  Variable bias;           ///< [hidden]
  Nonlinearity activation = Nonlinearity::tanh;
  /// x: [batch, in]; hidden: [batch, hidden], zeros if it is not given.
  [[nodiscard]] Tensor operator()(const Tensor& x, const std::optional<Tensor>& hidden = {}) const;
};
/// Throws Error(value) for an activation other than tanh and relu.
[[nodiscard]] RnnCell rnn_cell(Integer in, Integer hidden,
                               Nonlinearity activation = Nonlinearity::tanh, DType dtype = f32);

/// Layers of these.
struct Rnn {
  std::vector<RnnCell> layers;
  std::vector<RnnCell> backward_layers;  ///< from the end of the sequence; none, or as many
  bool is_batch_first = false;
  double dropout = 0;
  Training training = {true, "Rnn.training"};
  struct Output {
    Tensor sequence;  ///< hidden values of the last layer: [steps, batch, directions * hidden]
    Tensor hidden;    ///< [layers * directions, batch, hidden]
  };
  /// x: [steps, batch, in]; hidden: [layers * directions, batch, hidden], zeros if it is not given;
  /// lengths: as of Lstm.
  [[nodiscard]] Output operator()(const Tensor& x, const std::optional<Tensor>& hidden = {},
                                  const std::optional<Tensor>& lengths = {}) const;
};
[[nodiscard]] Rnn rnn(Integer in, Integer hidden, Nonlinearity activation = Nonlinearity::tanh,
                      const RecurrentOptions& options = {});

}  // namespace nitinol::nn

#pragma GCC visibility pop
