// Modules from files with PyTorch's names and layouts.
#include "nn/pytorch.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

using namespace nitinol;
using test::error_of;

namespace {

/// Other numbers for each k.
Tensor number(int64_t k, const Shape& shape) {
  return reshape(cast((arange(element_count(shape)) * 7 + k * 131) % 101, f32) / 50 - 1, shape);
}

/// Tensors as a state_dict has them.
std::vector<NamedTensor> state(const std::vector<std::pair<std::string, Shape>>& shapes) {
  std::vector<NamedTensor> all;
  for (const auto& [name, shape] : shapes)
    all.emplace_back(name, number(static_cast<int64_t>(all.size()), shape));
  return all;
}

Tensor of(const std::vector<NamedTensor>& tensors, const std::string& name) {
  const auto at = std::ranges::find(tensors, name, &NamedTensor::first);
  REQUIRE(at != tensors.end());
  return at->second;
}

/// "from + from -> to: how" for the Variable, or for what is unused.
std::string line_of(const nn::LoadReport& report, const std::string& name) {
  for (const nn::LoadedTensor& one : report.tensors) {
    std::string from;
    for (const std::string& each : one.from) from += (from.empty() ? "" : " + ") + each;
    if (one.to == name || (one.to.empty() && from == name))
      return from + " -> " + one.to + ": " + one.how;
  }
  return "nothing about " + name;
}

struct Mlp {
  nn::Linear first = nn::linear(4, 4), second = nn::linear(4, 3);
};

std::vector<NamedTensor> mlp_state() {
  return state({{"first.weight", {4, 4}},
                {"first.bias", {4}},
                {"second.weight", {3, 4}},
                {"second.bias", {3}}});
}

std::vector<Tensor> values_of(const Mlp& module) {
  std::vector<Tensor> all;
  for (const auto& named : nn::named_variables(module)) all.push_back(named.variable.get());
  return all;
}

/// The Error's text, after a check that nothing has changed.
std::string refused(const Mlp& module, const std::vector<NamedTensor>& tensors,
                    const nn::PytorchOptions& options = {}) {
  const std::vector<Tensor> before = values_of(module);
  const std::string text = error_of([&] { return nn::load_pytorch(tensors, module, options); });
  const std::vector<Tensor> after = values_of(module);
  for (std::size_t i = 0; i < before.size(); ++i) CHECK(same_bits(before[i], after[i]));
  return text;
}

}  // namespace

TEST_CASE("weights of Linear are transposed, square ones too, and this is said", "[nn][io]") {
  const test::TemporaryFolder folder;
  const auto path = folder / "mlp.safetensors";
  const std::vector<NamedTensor> given = mlp_state();
  save_safetensors(path, given);
  const Mlp module;
  const nn::LoadReport report = nn::load_pytorch(path, module);
  for (const std::string name : {"first", "second"}) {
    const nn::Linear& layer = name == "first" ? module.first : module.second;
    CHECK(same_bits(layer.weight.get(), copy(transpose(of(given, name + ".weight")))));
    CHECK(same_bits(layer.bias->get(), of(given, name + ".bias")));
  }
  CHECK(line_of(report, "first.weight") == "first.weight -> first.weight: transposed");
  CHECK(line_of(report, "first.bias") == "first.bias -> first.bias: as it is");
  CHECK(to_string(report) ==
        "first.weight   first.weight   transposed\n"
        "first.bias     first.bias     as it is\n"
        "second.weight  second.weight  transposed\n"
        "second.bias    second.bias    as it is\n"
        "2 as it is; 2 transposed\n");
}

TEST_CASE("what PyTorch's recurrent layers hold becomes cells", "[nn][io]") {
  struct Net {
    nn::Lstm lstm = nn::lstm(3, 4, {.layers = 2, .is_bidirectional = true});
    nn::Gru gru = nn::gru(3, 4);
    nn::Rnn rnn = nn::rnn(3, 4);
    nn::LstmCell cell = nn::lstm_cell(3, 4);
  };
  std::vector<std::pair<std::string, Shape>> shapes;
  const auto add = [&](const std::string& layer, const std::string& end, int64_t in, int64_t rows) {
    shapes.insert(shapes.end(), {{layer + ".weight_ih" + end, {rows, in}},
                                 {layer + ".weight_hh" + end, {rows, 4}},
                                 {layer + ".bias_ih" + end, {rows}},
                                 {layer + ".bias_hh" + end, {rows}}});
  };
  add("lstm", "_l0", 3, 16);
  add("lstm", "_l0_reverse", 3, 16);
  add("lstm", "_l1", 8, 16);
  add("lstm", "_l1_reverse", 8, 16);
  add("gru", "_l0", 3, 12);
  add("rnn", "_l0", 3, 4);
  add("cell", "", 3, 16);
  const std::vector<NamedTensor> given = state(shapes);
  const Net net;
  const nn::LoadReport report = nn::load_pytorch(given, net);
  CHECK(same_bits(net.lstm.backward_layers[1].input_weight.get(),
                  copy(transpose(of(given, "lstm.weight_ih_l1_reverse")))));
  CHECK(same_bits(net.lstm.layers[0].hidden_weight.get(),
                  copy(transpose(of(given, "lstm.weight_hh_l0")))));
  CHECK(same_bits(net.lstm.layers[1].bias.get(),
                  of(given, "lstm.bias_ih_l1") + of(given, "lstm.bias_hh_l1")));
  CHECK(same_bits(net.gru.layers[0].bias.get(), of(given, "gru.bias_ih_l0")));
  CHECK(same_bits(net.gru.layers[0].hidden_bias.get(), of(given, "gru.bias_hh_l0")));
  CHECK(same_bits(net.rnn.layers[0].hidden_weight.get(),
                  copy(transpose(of(given, "rnn.weight_hh_l0")))));
  CHECK(same_bits(net.cell.bias.get(), of(given, "cell.bias_ih") + of(given, "cell.bias_hh")));
  CHECK(line_of(report, "rnn.layers.0.bias") ==
        "rnn.bias_ih_l0 + rnn.bias_hh_l0 -> rnn.layers.0.bias: sum of 2");
  std::vector<NamedTensor> without = given;
  std::erase_if(without, [](const NamedTensor& one) { return one.first == "lstm.bias_hh_l1"; });
  CHECK(error_of([&] { return nn::load_pytorch(without, net); }) ==
        "value: load_pytorch: the state: lstm.layers.1.bias is made of 2 tensors: expected "
        "lstm.bias_hh_l1, got only lstm.bias_ih_l1.");
}

TEST_CASE("attention and transformers' layers come from PyTorch's names", "[nn][io]") {
  struct Net {
    nn::TransformerEncoderLayer encoder = nn::transformer_encoder_layer(4, 2, 8);
    nn::MultiHeadAttention apart = nn::multi_head_attention(4, 2, {.key_heads = 1});
    nn::PRelu activation = nn::prelu();
    nn::BatchNorm norm = nn::batch_norm(4);
  };
  const std::vector<NamedTensor> given = state({{"encoder.self_attn.in_proj_weight", {12, 4}},
                                                {"encoder.self_attn.in_proj_bias", {12}},
                                                {"encoder.self_attn.out_proj.weight", {4, 4}},
                                                {"encoder.self_attn.out_proj.bias", {4}},
                                                {"encoder.linear1.weight", {8, 4}},
                                                {"encoder.linear1.bias", {8}},
                                                {"encoder.linear2.weight", {4, 8}},
                                                {"encoder.linear2.bias", {4}},
                                                {"encoder.norm1.weight", {4}},
                                                {"encoder.norm1.bias", {4}},
                                                {"encoder.norm2.weight", {4}},
                                                {"encoder.norm2.bias", {4}},
                                                {"apart.q_proj.weight", {4, 4}},
                                                {"apart.k_proj.weight", {2, 4}},
                                                {"apart.v_proj.weight", {2, 4}},
                                                {"apart.q_proj.bias", {4}},
                                                {"apart.k_proj.bias", {2}},
                                                {"apart.v_proj.bias", {2}},
                                                {"apart.o_proj.weight", {4, 4}},
                                                {"apart.o_proj.bias", {4}},
                                                {"activation.weight", {1}},
                                                {"norm.weight", {4}},
                                                {"norm.bias", {4}},
                                                {"norm.running_mean", {4}},
                                                {"norm.running_var", {4}},
                                                {"norm.num_batches_tracked", {}}});
  const Net net;
  const nn::LoadReport report = nn::load_pytorch(given, net);
  CHECK(same_bits(net.encoder.attention.qkv.weight.get(),
                  copy(transpose(of(given, "encoder.self_attn.in_proj_weight")))));
  CHECK(same_bits(net.encoder.attention.proj.weight.get(),
                  copy(transpose(of(given, "encoder.self_attn.out_proj.weight")))));
  CHECK(same_bits(net.encoder.out.weight.get(),
                  copy(transpose(of(given, "encoder.linear2.weight")))));
  CHECK(same_bits(net.encoder.out_norm.bias->get(), of(given, "encoder.norm2.bias")));
  CHECK(same_bits(net.apart.qkv.weight.get(), concat({transpose(of(given, "apart.q_proj.weight")),
                                                      transpose(of(given, "apart.k_proj.weight")),
                                                      transpose(of(given, "apart.v_proj.weight"))},
                                                     1)));
  CHECK(same_bits(net.apart.qkv.bias->get(),
                  concat({of(given, "apart.q_proj.bias"), of(given, "apart.k_proj.bias"),
                          of(given, "apart.v_proj.bias")})));
  CHECK(
      line_of(report, "apart.qkv.weight") ==
      "apart.q_proj.weight + apart.k_proj.weight + apart.v_proj.weight -> apart.qkv.weight: 3 side "
      "by side, transposed");
  CHECK(line_of(report, "activation.slope") == "activation.weight -> activation.slope: as it is");
  CHECK(line_of(report, "norm.num_batches_tracked") == "norm.num_batches_tracked -> : unused");
}

TEST_CASE("names and layouts there are said by patterns of parts", "[nn][io]") {
  struct Net {
    std::vector<Mlp> blocks = std::vector<Mlp>(2);
  };
  const std::vector<NamedTensor> given = state({{"model.h.0.mlp.c_fc.weight", {4, 4}},
                                                {"model.h.0.mlp.c_fc.bias", {4}},
                                                {"model.h.0.mlp.c_proj.weight", {4, 3}},
                                                {"model.h.0.mlp.c_proj.bias", {3}},
                                                {"model.h.1.mlp.c_fc.weight", {4, 4}},
                                                {"model.h.1.mlp.c_fc.bias", {4}},
                                                {"model.h.1.mlp.c_proj.weight", {4, 3}},
                                                {"model.h.1.mlp.c_proj.bias", {3}},
                                                {"head.weight", {9}}});
  const nn::PytorchOptions options = {
      .rename = {{"model", ""}, {"h.*.mlp", "blocks.*"}, {"c_fc", "first"}, {"c_proj", "second"}},
      .untransposed = {"c_fc", "c_proj"},
      .unused = {"head"}};
  const Net net;
  const nn::LoadReport report = nn::load_pytorch(given, net, options);
  CHECK(same_bits(net.blocks[1].first.weight.get(), of(given, "model.h.1.mlp.c_fc.weight")));
  CHECK(line_of(report, "blocks.1.second.weight") ==
        "model.h.1.mlp.c_proj.weight -> blocks.1.second.weight: as it is");
  CHECK(line_of(report, "head.weight") == "head.weight -> : unused");

  CHECK(error_of([&] {
          nn::PytorchOptions other = options;
          other.untransposed = {"c_fc"};
          return nn::load_pytorch(given, net, other);
        }) ==
        "shape: load_pytorch: the state: model.h.0.mlp.c_proj.weight for blocks.0.second.weight, "
        "transposed: expected together [3, 4] there, got float32[4, 3].\nIf it is [in, out] there "
        "already, as in GPT-2's Conv1D, name it in `untransposed`, with all that are so.");
  CHECK(error_of([&] {
          nn::PytorchOptions other = options;
          other.untransposed = {"c_fcc"};
          return nn::load_pytorch(given, net, other);
        }) ==
        "value: load_pytorch: `untransposed` has \"c_fcc\": expected parts of a name in the "
        "state, got none that has them.\nNames there are meant, before they are renamed.");
  CHECK_THROWS_WITH(nn::load_pytorch(given, net, {.rename = {{"h.0", "h"}, {"h.1", "h"}}}),
                    Catch::Contains("two tensors for model.h.mlp.c_fc.bias") ||
                        Catch::Contains("two tensors for model.h.mlp.c_fc.weight"));
  CHECK_THROWS_WITH(nn::load_pytorch(given, net, {.rename = {{"", "h"}}}),
                    Catch::Contains("no parts"));
  CHECK_THROWS_WITH(nn::load_pytorch(given, net, {.rename = {{"h", "*"}}}),
                    Catch::Contains("1 for 0"));
  // The longest of names are no trouble.
  CHECK_THROWS_WITH(
      nn::load_pytorch({{std::string(1 << 22, 'a'), ones({1})}}, net, {.rename = {{"a.*", "b.*"}}}),
      Catch::Contains("1 left over"));
}

TEST_CASE("what does not fit is said by both names, and changes nothing", "[nn][io]") {
  const Mlp module;
  std::vector<NamedTensor> given = mlp_state();
  given[2].second = ones({5, 4});
  CHECK(refused(module, given) ==
        "shape: load_pytorch: the state: second.weight for second.weight, transposed: expected "
        "together [3, 4] there, got float32[5, 4].\nBuild the module with the sizes that it was "
        "trained with.");
  given = mlp_state();
  given[3].second = ones({3}, i32);
  CHECK(
      refused(module, given) ==
      "dtype: load_pytorch: the state: second.bias for second.bias, as it is, from int32: expected "
      "float32, got int32.\nConvert it where it was saved.");
  given = mlp_state();
  given[3].first = "third.bias";
  CHECK(refused(module, given) ==
        "value: load_pytorch: the state does not fit the module: expected second.bias (for "
        "second.bias), got 1 left over: third.bias.\nSay in `rename` what they are called here and "
        "in "
        "`unused` which are not needed, or do without being strict.");
  const nn::LoadReport report = nn::load_pytorch(given, module, {.is_strict = false});
  CHECK(line_of(report, "second.bias") == " -> second.bias: missing");
  CHECK(line_of(report, "third.bias") == "third.bias -> : unused");
  CHECK(same_bits(module.first.bias->get(), of(given, "first.bias")));

  given = mlp_state();
  given[0].second = cast(given[0].second, f16);
  CHECK(line_of(nn::load_pytorch(given, module), "first.weight") ==
        "first.weight -> first.weight: transposed, from float16");
  CHECK(same_bits(module.first.weight.get(), copy(transpose(cast(given[0].second, f32)))));

  const test::TemporaryFolder folder;
  const auto path = folder / "ours";
  nn::save(path, module);
  CHECK_THROWS_WITH(nn::load_pytorch(path, module), Catch::Contains("load() reads it"));
  std::ofstream(path) << "no such file";
  CHECK_THROWS_WITH(nn::load_pytorch(path, module), !Catch::Contains("torch.save()"));
  for (const char* pickle : {"PK\x03\x04 an archive", "\x80\x02}q"}) {
    std::ofstream(path) << pickle;
    CHECK_THROWS_WITH(nn::load_pytorch(path, module), Catch::Contains("torch.save()"));
  }
}
