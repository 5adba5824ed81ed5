// Files of every layer that has Variables, for test_files.py, which makes the same in Python.
//
//     layer_files save FOLDER   writes FOLDER/<name>.cpp for each
//     layer_files copy FOLDER   reads each FOLDER/<name>.py and writes it again, FOLDER/<name>.copy

#include "nitinol.h"

#include <filesystem>
#include <string>

using namespace nitinol;  // NOLINT(google-build-using-namespace)

namespace {

struct Block {
  nn::Linear up = nn::linear(4, 6);
  nn::Sequential<nn::LayerNorm, Tensor (*)(const Tensor&)> layers{nn::layer_norm(6), gelu};
};

template <class F>
void for_each_layer(F&& f) {
  f("linear", nn::linear(4, 3));
  f("linear_without_bias", nn::linear(4, 3, {.has_bias = false}));
  f("conv2d", nn::conv2d(2, 4, 3, {.conv = {.groups = 2}}));
  f("conv1d", nn::conv1d(2, 4, 3));
  f("conv3d", nn::conv3d(2, 4, {1, 2, 2}));
  f("conv_transpose1d", nn::conv_transpose1d(2, 4, 3));
  f("conv_transpose2d", nn::conv_transpose2d(2, 4, {2, 3}));
  f("conv_transpose3d", nn::conv_transpose3d(2, 4, {2}));
  f("embedding", nn::embedding(5, 4));
  f("embedding_bag", nn::embedding_bag(5, 4));
  f("layer_norm", nn::layer_norm(4));
  f("group_norm", nn::group_norm(2, 4));
  f("instance_norm", nn::instance_norm(4, {.is_affine = true}));
  f("rms_norm", nn::rms_norm(4));
  f("prelu", nn::prelu(3));
  f("weight_norm", nn::weight_norm(nn::conv2d(2, 3, 3)));
  f("spectral_norm", nn::spectral_norm(nn::linear(4, 3)));
  f("batch_norm", nn::batch_norm(4));
  const nn::RecurrentOptions two = {.layers = 2, .is_bidirectional = true};
  f("lstm", nn::lstm(3, 4));
  f("lstm_of_two", nn::lstm(3, 4, two));
  f("gru", nn::gru(3, 4, two));
  f("rnn", nn::rnn(3, 4, nn::Nonlinearity::relu, two));
  f("lstm_cell", nn::lstm_cell(3, 4));
  f("gru_cell", nn::gru_cell(3, 4));
  f("rnn_cell", nn::rnn_cell(3, 4));
  f("multi_head_attention", nn::multi_head_attention(4, 2));
  f("key_value_cache", nn::key_value_cache(1, 2, 3, 4));
  f("encoder_layer", nn::transformer_encoder_layer(4, 2, 6));
  f("decoder_layer", nn::transformer_decoder_layer(4, 2, 6));
  f("sequential", nn::Sequential(nn::linear(4, 3), relu, nn::batch_norm(3),
                                 nn::Sequential(nn::dropout(0.5), nn::linear(3, 2))));
  f("block", Block{});
  const nn::Sequential model(nn::linear(4, 3), relu, nn::linear(3, 2));
  f("sgd", nn::Sgd(nn::parameters(model), {.momentum = 0.9}));
  f("adam", nn::Adam(nn::parameters(model)));
  f("adamw", nn::AdamW(nn::parameters(model)));
  f("rms_prop", nn::RmsProp(nn::parameters(model), {.momentum = 0.5, .is_centered = true}));
  f("adamax", nn::Adamax(nn::parameters(model)));
  f("nadam", nn::NAdam(nn::parameters(model)));
  f("radam", nn::RAdam(nn::parameters(model)));
  f("adagrad", nn::Adagrad(nn::parameters(model), {.initial = 0.5}));
  f("adadelta", nn::Adadelta(nn::parameters(model)));
  f("adafactor", nn::Adafactor(nn::parameters(model)));
  f("lion", nn::Lion(nn::parameters(model)));
  f("lamb", nn::Lamb(nn::parameters(model)));
  f("lbfgs", nn::Lbfgs(nn::parameters(model), {.history = 3}));
  f("average", nn::Average(nn::parameters(model)));
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 3) return 2;
  const std::string what = arguments[1];
  const std::filesystem::path folder = arguments[2];
  for_each_layer([&](const std::string& name, const auto& layer) {
    if (what == "copy") nn::load(folder / (name + ".py"), layer);
    nn::save(folder / (name + (what == "copy" ? ".copy" : ".cpp")), layer);
  });
}
