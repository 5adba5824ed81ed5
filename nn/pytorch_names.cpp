// For each Variable there is a short list of what PyTorch may call it: the names that the layers
// around it have there (parts), and what those make of their Variables (rules), as in
//
//     encoder.0.attention.qkv.weight  <-  encoder.0.self_attn.in_proj_weight, transposed
//
// A path has several names where its layers have, so that rules need not be repeated for each.
#include "nn/pytorch_names.h"

#include <optional>
#include <utility>

namespace nitinol::nn::module {
namespace {

// ---- what PyTorch's layers call what ours have

/// A layer's part, and its name there.
struct Part {
  std::string_view layer, here, there;
};
constexpr Part parts[] = {
    {"MultiHeadAttention", "proj", "out_proj"},
    {"MultiHeadAttention", "proj", "o_proj"},
    {"TransformerEncoderLayer", "attention", "self_attn"},
    {"TransformerEncoderLayer", "attention_norm", "norm1"},
    {"TransformerEncoderLayer", "hidden", "linear1"},
    {"TransformerEncoderLayer", "out", "linear2"},
    {"TransformerEncoderLayer", "out_norm", "norm2"},
    {"TransformerDecoderLayer", "attention", "self_attn"},
    {"TransformerDecoderLayer", "attention_norm", "norm1"},
    {"TransformerDecoderLayer", "memory_attention", "multihead_attn"},
    {"TransformerDecoderLayer", "memory_norm", "norm2"},
    {"TransformerDecoderLayer", "hidden", "linear1"},
    {"TransformerDecoderLayer", "out", "linear2"},
    {"TransformerDecoderLayer", "out_norm", "norm3"},
};

/// A layer's Variable, and what it is made of there. `#` stands for a number.
struct Rule {
  std::string_view layer, here;
  std::vector<std::string_view> there;
  Layout layout = Layout::same;
  Joining joining = Joining::one;
};

const std::vector<Rule>& rules() {
  static const std::vector<Rule> all = [] {
    const Layout turned = Layout::transposed;
    const Layout same = Layout::same;
    const Joining beside = Joining::side_by_side;
    std::vector<Rule> rows = {
        {"Linear", "weight", {"weight"}, turned},
        {"PRelu", "slope", {"weight"}},
        {"MultiHeadAttention", "qkv.weight", {"in_proj_weight"}, turned},
        {"MultiHeadAttention", "qkv.bias", {"in_proj_bias"}},
        {"MultiHeadAttention",
         "qkv.weight",
         {"q_proj.weight", "k_proj.weight", "v_proj.weight"},
         turned,
         beside},
        {"MultiHeadAttention",
         "qkv.weight",
         {"q_proj_weight", "k_proj_weight", "v_proj_weight"},
         turned,
         beside},
        {"MultiHeadAttention",
         "qkv.bias",
         {"q_proj.bias", "k_proj.bias", "v_proj.bias"},
         same,
         beside},
    };
    for (const std::string_view cell : {"LstmCell", "GruCell", "RnnCell"}) {
      rows.push_back({cell, "input_weight", {"weight_ih"}, turned});
      rows.push_back({cell, "hidden_weight", {"weight_hh"}, turned});
    }
    for (const std::string_view layer : {"Lstm", "Gru", "Rnn"}) {
      rows.push_back({layer, "layers.#.input_weight", {"weight_ih_l#"}, turned});
      rows.push_back({layer, "layers.#.hidden_weight", {"weight_hh_l#"}, turned});
      rows.push_back({layer, "backward_layers.#.input_weight", {"weight_ih_l#_reverse"}, turned});
      rows.push_back({layer, "backward_layers.#.hidden_weight", {"weight_hh_l#_reverse"}, turned});
    }
    const Joining sum = Joining::sum;
    for (const std::string_view cell : {"LstmCell", "RnnCell"})
      rows.push_back({cell, "bias", {"bias_ih", "bias_hh"}, same, sum});
    for (const std::string_view layer : {"Lstm", "Rnn"}) {
      rows.push_back({layer, "layers.#.bias", {"bias_ih_l#", "bias_hh_l#"}, same, sum});
      rows.push_back({layer,
                      "backward_layers.#.bias",
                      {"bias_ih_l#_reverse", "bias_hh_l#_reverse"},
                      same,
                      sum});
    }
    // The reset gate of a Gru multiplies the hidden product with its bias, so there are two.
    rows.push_back({"GruCell", "bias", {"bias_ih"}});
    rows.push_back({"GruCell", "hidden_bias", {"bias_hh"}});
    rows.push_back({"Gru", "layers.#.bias", {"bias_ih_l#"}});
    rows.push_back({"Gru", "layers.#.hidden_bias", {"bias_hh_l#"}});
    rows.push_back({"Gru", "backward_layers.#.bias", {"bias_ih_l#_reverse"}});
    rows.push_back({"Gru", "backward_layers.#.hidden_bias", {"bias_hh_l#_reverse"}});
    return rows;
  }();
  return all;
}

/// The number that stands for `#` if the name is that of the rule; empty text if that has none.
std::optional<std::string> number_in(std::string_view rule, std::string_view name) {
  const std::size_t at = rule.find('#');
  if (at == std::string_view::npos)
    return rule == name ? std::optional<std::string>("") : std::nullopt;
  const std::string_view behind = rule.substr(at + 1);
  const bool has_ends = name.size() > rule.size() - 1 && name.starts_with(rule.substr(0, at)) &&
                        name.ends_with(behind);
  if (!has_ends) return {};
  const std::string_view number = name.substr(at, name.size() + 1 - rule.size());
  if (number.find_first_not_of("0123456789") != std::string_view::npos) return {};
  return std::string(number);
}

std::string with_number(std::string_view name, const std::string& number) {
  const std::size_t at = name.find('#');
  if (at == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, at)) + number + std::string(name.substr(at + 1));
}

}  // namespace

PytorchNames::PytorchNames(const std::vector<Layer>& layers) {
  for (const Layer& layer : layers) known_.emplace(layer.path, known_of(layer));
}

template <class F>
void PytorchNames::for_each_around(const std::string& path, const F& f) const {
  std::size_t end = path.size();
  while (end > 0) {
    end = path.rfind('.', end - 1);
    const bool is_root = end == std::string::npos;
    const auto at = known_.find(is_root ? "" : path.substr(0, end));
    if (at != known_.end()) f(at->second, std::string_view(path).substr(is_root ? 0 : end + 1));
    if (is_root) return;
  }
}

PytorchNames::Known PytorchNames::known_of(const Layer& layer) const {
  Known known = {layer.type, {}};
  if (layer.path.empty()) known.prefixes = {""};
  for_each_around(layer.path, [&](const Known& parent, std::string_view rest) {
    if (!known.prefixes.empty()) return;
    for (const std::string& prefix : parent.prefixes) {
      known.prefixes.push_back(joined(prefix, rest));
      for (const Part& part : parts) {
        if (part.layer == parent.type && part.here == rest)
          known.prefixes.push_back(joined(prefix, part.there));
      }
    }
  });
  if (known.prefixes.empty()) known.prefixes = {layer.path};
  return known;
}

std::vector<Source> PytorchNames::sources_of(const std::string& path) const {
  std::vector<Source> found;
  std::vector<Source> own;
  for_each_around(path, [&](const Known& layer, std::string_view rest) {
    for (const Rule& rule : rules()) {
      if (rule.layer != layer.type) continue;
      const std::optional<std::string> number = number_in(rule.here, rest);
      if (!number) continue;
      for (const std::string& prefix : layer.prefixes) {
        Source source = {{}, rule.layout, rule.joining};
        for (const std::string_view there : rule.there)
          source.names.push_back(joined(prefix, with_number(there, *number)));
        found.push_back(std::move(source));
      }
    }
    if (!own.empty()) return;
    for (const std::string& prefix : layer.prefixes)
      own.push_back({.names = {joined(prefix, rest)}});
  });
  if (own.empty()) own.push_back({.names = {path}});
  found.insert(found.end(), own.begin(), own.end());
  return found;
}

}  // namespace nitinol::nn::module
