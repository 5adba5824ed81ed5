// Layers and losses are compiled, in both modes: bits alone do not tell, as what runs
// eagerly has them, too.
#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace nitinol;

namespace {

/// What five calls give and leave behind.
template <class Module, class F>
std::vector<Tensor> outcome(const Module& module, const F& f) {
  manual_seed(1);
  std::vector<Tensor> all;
  for (int i = 0; i < 5; ++i) all.push_back(f());
  for (const nn::NamedVariable& named : nn::named_variables(module))
    all.push_back(named.variable.get());
  return all;
}

/// f(module) runs by a Plan from the third call on, with eager's bits; and so does what makes a
/// module of its own around the same Variables.
template <class Module, class F>
void check_compiled(const std::string& name, const Module& module, const F& f) {
  const std::vector<nn::NamedVariable> variables = nn::named_variables(module);
  std::vector<Tensor> start;
  for (const nn::NamedVariable& named : variables) start.push_back(named.variable.get());
  const auto restart = [&] {
    for (std::size_t i = 0; i < start.size(); ++i) variables[i].variable.set(start[i]);
  };
  for (const bool is_training : {true, false}) {
    INFO(name << (is_training ? ", training" : ", in eval mode"));
    nn::train(module, is_training);
    const std::vector<Tensor> eager = outcome(module, [&] { return f(module); });
    restart();
    const auto compiled = compile([&] { return f(module); }, {.check = Check::never});
    const std::vector<Tensor> by_plans = outcome(module, compiled);
    restart();
    CHECK(compiled.explain().plan_calls == 3);
    CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
    REQUIRE(by_plans.size() == eager.size());
    for (std::size_t i = 0; i < eager.size(); ++i) CHECK(same_bits(eager[i], by_plans[i]));
  }
}

/// Nothing but what losses need.
struct None {};

}  // namespace

TEST_CASE("every layer is compiled, in both modes", "[nn][jit]") {
  const Tensor x = randn({6, 4});
  const Tensor images = randn({2, 3, 6, 6});
  const Tensor steps = randn({3, 6, 4});
  const auto check = [](const std::string& name, const auto& layer, const Tensor& in) {
    check_compiled(name, layer, [in](const auto& l) { return l(in); });
  };
  check("Linear", nn::linear(4, 3), x);
  check("Conv2d", nn::conv2d(3, 4, 3), images);
  check("Conv1d", nn::conv1d(6, 4, 3, {.conv = {.is_same = true}}), steps);
  check("ConvTranspose2d", nn::conv_transpose2d(3, 4, 2, {.conv = {.stride = 2}}), images);
  check("MaxPool1d", nn::MaxPool1d{2}, steps);
  check("MaxPool2d", nn::MaxPool2d{2}, images);
  check("AvgPool2d", nn::AvgPool2d{2}, images);
  check("Embedding", nn::embedding(5, 4), tensor({1, 4, 0}));
  check("Embedding with padding", nn::embedding(5, 4, {.padding = 1, .max_norm = 1.0}),
        tensor({1, 4, 0}));
  check("WeightNorm", nn::weight_norm(nn::linear(4, 3)), x);
  check("SpectralNorm", nn::spectral_norm(nn::linear(4, 3)), x);
  check("EmbeddingBag", nn::embedding_bag(5, 4, {.padding = 0}), tensor({{1, 4, 0}}));
  check("LayerNorm", nn::layer_norm(4), x);
  check("LayerNorm without weights", nn::layer_norm(4, {.is_affine = false}), x);
  check("GroupNorm", nn::group_norm(2, 4), x);
  check("InstanceNorm", nn::instance_norm(3, {.is_affine = true}), images);
  check("RmsNorm", nn::rms_norm(4), x);
  check("BatchNorm", nn::batch_norm(4), x);
  check("BatchNorm without weights", nn::batch_norm(4, {.is_affine = false}), x);
  check("Dropout", nn::dropout(0.5), x);
  check("FeatureDropout", nn::feature_dropout(0.5), images);
  check("MultiHeadAttention", nn::multi_head_attention(4, 2), steps);
  check("LeakyRelu", nn::LeakyRelu{}, x);
  check("PRelu", nn::prelu(4), x);
  check("Elu", nn::Elu{}, x);
  check("Celu", nn::Celu{.alpha = 0.5}, x);
  check("Glu", nn::Glu{}, x);
  check("Softmax", nn::Softmax{}, x);
  check("Identity and Flatten", nn::Sequential(nn::Identity{}, nn::Flatten{}, nn::linear(108, 2)),
        images);
  check("Sequential", nn::Sequential(nn::linear(4, 4), nn::batch_norm(4), nn::dropout(0.5)), x);
  const auto sequence = [steps](const auto& l) { return l(steps).sequence; };
  const nn::RecurrentOptions two = {.layers = 2, .is_bidirectional = true, .dropout = 0.5};
  check_compiled("Lstm", nn::lstm(4, 5), sequence);
  check_compiled("Lstm of two", nn::lstm(4, 5, two), sequence);
  check_compiled("Gru", nn::gru(4, 5, two), sequence);
  check_compiled("Rnn", nn::rnn(4, 5), sequence);
  check_compiled("GruCell", nn::gru_cell(4, 3), [x](const auto& l) { return l(x, l(x)); });
  check_compiled("RnnCell", nn::rnn_cell(4, 3), [x](const auto& l) { return l(x, l(x)); });
  check_compiled("LstmCell", nn::lstm_cell(4, 3), [x](const auto& l) { return l(x, l(x)).cell; });
  const nn::MultiHeadAttentionOptions options = {
      .key_heads = 1, .is_causal = true, .dropout = 0.5, .block = 2, .rotary_base = 100};
  check("MultiHeadAttention with options", nn::multi_head_attention(4, 2, options), steps);
  check("TransformerEncoderLayer", nn::transformer_encoder_layer(4, 2, 6), steps);
  check_compiled("TransformerDecoderLayer", nn::transformer_decoder_layer(4, 2, 6),
                 [steps](const auto& l) { return l(steps, steps); });
}

TEST_CASE("every loss is compiled", "[nn][jit]") {
  const Tensor a = randn({6, 4});
  const Tensor b = rand({6, 4});
  check_compiled("mse_loss", None{}, [&](const None&) { return nn::mse_loss(a, b); });
  check_compiled("l1_loss", None{}, [&](const None&) { return nn::l1_loss(a, b); });
  check_compiled("huber_loss", None{}, [&](const None&) { return nn::huber_loss(a, b); });
  check_compiled("bce_with_logits", None{}, [&](const None&) { return nn::bce_with_logits(a, b); });
  check_compiled("cross_entropy", None{}, [&](const None&) {
    return nn::cross_entropy(a, tensor({0, 1, 2, 3, 0, 1}));
  });
}

TEST_CASE("a layer that the function makes is compiled, too", "[nn][jit]") {
  const nn::BatchNorm norm = nn::batch_norm(4);
  const Tensor x = randn({6, 4});
  check_compiled("made inside", norm, [&](const nn::BatchNorm& n) {
    const nn::BatchNorm own = {.weight = n.weight,
                               .bias = n.bias,
                               .running_mean = n.running_mean,
                               .running_var = n.running_var,
                               .training = bool{n.training}};
    return nn::dropout(0.5)(own(x));
  });
}
