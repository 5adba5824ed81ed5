// Reading what PyTorch has trained: tensors by the names of a state_dict, into a module of ours.
//
//     const nn::LoadReport report = nn::load_pytorch("gpt2.safetensors", model,
//                                                    {.rename = {{"h", "blocks"}, {"c_fc", "up"}},
//                                                     .untransposed = {"c_fc"},
//                                                     .unused = {"lm_head"}});
//     std::cout << report;
//
// What differs between the two is decided by what a layer is, never by shapes, and said for each
// tensor in the report:
//
// - Linear: PyTorch's weight is [out, in], ours [in, out]: transposed.
// - Lstm, Gru, Rnn: weight_ih_l0, weight_hh_l0_reverse, ... are layers.0.input_weight,
//   backward_layers.0.hidden_weight, ..., transposed. Lstm and Rnn have one bias, the sum of two.
// - MultiHeadAttention: qkv is in_proj_weight and in_proj_bias, or q_proj, k_proj and v_proj beside
//   each other; proj is out_proj or o_proj.
// - Transformers' layers: self_attn, multihead_attn, linear1, linear2, norm1 to norm3.
// - PRelu: slope is weight. num_batches_tracked is not needed.
//
// All others have the same names and shapes.
#pragma once

#include "core/tensor.h"
#include "io/safetensors.h"
#include "nn/attention.h"
#include "nn/layers.h"
#include "nn/module.h"
#include "nn/recurrent.h"

#include <concepts>
#include <filesystem>
#include <iosfwd>
#include <source_location>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// How names there become names here. A pattern is a row of a name's parts, anywhere in it:
/// "attn.c_attn" is in "h.0.attn.c_attn.weight", and "attn" is, but "c_at" is not. `*` stands for
/// any one part.
struct PytorchOptions {
  /// Each replaces the first such parts of every name, one after another: {"h.*.attn",
  /// "blocks.*.attention"}; what `*` stood for is put back in order. "" leaves the parts out.
  std::vector<std::pair<std::string, std::string>> rename = {};
  /// Names there of weights that are [in, out] already, as those of GPT-2's Conv1D.
  std::vector<std::string> untransposed = {};
  /// Names there that are left out.
  std::vector<std::string> unused = {};
  /// Every Variable is in the file, and nothing else is there.
  bool is_strict = true;
};

/// What was done with tensors of a file.
struct LoadedTensor {
  std::vector<std::string> from;  ///< names there; none for what is missing
  std::string to;                 ///< the name here; empty for what is unused
  /// "as it is", "transposed", "sum of 2", "3 side by side", ", from float16"; "missing", "unused".
  std::string how;
};
/// All of a module's Variables in their order, then what was unused.
struct LoadReport {
  std::vector<LoadedTensor> tensors;
};
/// A line for each, and how many of each kind.
[[nodiscard]] std::string to_string(const LoadReport& report);
std::ostream& operator<<(std::ostream& stream, const LoadReport& report);

namespace module {

/// A part of a module, and which layer it is: "" for those of which nothing has to be known.
struct Layer {
  std::string path;
  std::string type;
};

template <class T>
constexpr std::string_view layer_type() {
  if constexpr (std::same_as<T, Linear>) return "Linear";
  if constexpr (std::same_as<T, PRelu>) return "PRelu";
  if constexpr (std::same_as<T, LstmCell>) return "LstmCell";
  if constexpr (std::same_as<T, GruCell>) return "GruCell";
  if constexpr (std::same_as<T, RnnCell>) return "RnnCell";
  if constexpr (std::same_as<T, Lstm>) return "Lstm";
  if constexpr (std::same_as<T, Gru>) return "Gru";
  if constexpr (std::same_as<T, Rnn>) return "Rnn";
  if constexpr (std::same_as<T, MultiHeadAttention>) return "MultiHeadAttention";
  if constexpr (std::same_as<T, TransformerEncoderLayer>) return "TransformerEncoderLayer";
  if constexpr (std::same_as<T, TransformerDecoderLayer>) return "TransformerDecoderLayer";
  return "";
}

struct LayerCollector {
  std::vector<Layer> found;
  void variable(const std::string&, const Variable&) {}
  void training(const Training&) {}
  template <class T>
  void module(const std::string& path, const T&) {
    found.push_back({path, std::string(layer_type<std::remove_cv_t<T>>())});
  }
};
template <class M>
[[nodiscard]] std::vector<Layer> layers_of(const M& module) {
  LayerCollector collector;
  visit(module, "", collector);
  return std::move(collector.found);
}

/// load_safetensors(), which says so if a file is one of torch.save().
SafetensorsFile read_pytorch(const std::filesystem::path& path, std::source_location place);

/// `source`: what errors call the tensors.
LoadReport load_pytorch(const std::string& source, const SafetensorsFile& given,
                        const std::vector<NamedVariable>& variables,
                        const std::vector<Layer>& layers, const PytorchOptions& options,
                        std::source_location place);

}  // namespace module

/// Sets a module's Variables from a safetensors file that PyTorch's names and layouts are in, and
/// says what it did. Floating dtypes are converted. Throws Error(io) for a file that cannot be read
/// or is damaged, Error(shape) and Error(dtype) for tensors that do not fit, Error(value) for names
/// that are missing or left over; then nothing has changed.
template <class M>
LoadReport load_pytorch(const std::filesystem::path& path, const M& module,
                        const PytorchOptions& options = {},
                        std::source_location place = std::source_location::current()) {
  return module::load_pytorch('"' + path.string() + '"', module::read_pytorch(path, place),
                              named_variables(module), module::layers_of(module), options, place);
}

/// Sets them from tensors that came another way.
template <class M>
LoadReport load_pytorch(const std::vector<NamedTensor>& tensors, const M& module,
                        const PytorchOptions& options = {},
                        std::source_location place = std::source_location::current()) {
  return module::load_pytorch("the state", {tensors, {}}, named_variables(module),
                              module::layers_of(module), options, place);
}

}  // namespace nitinol::nn

#pragma GCC visibility pop
