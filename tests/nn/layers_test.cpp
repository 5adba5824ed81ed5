// Layers: shapes, modes, gradients, and the same bits compiled.
#include "nn/layers.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace nitinol;

namespace {

Tensor values(const Shape& shape, uint64_t seed = 1) {
  const Generator generator(seed);
  return randn(shape, f64, generator);
}

/// The gradient of a layer's input agrees with central differences.
template <class Layer, class F>
void check_layer(const Layer& layer, const Tensor& x, const F& f) {
  const Layer wide = nn::to(layer, f64);
  CHECK_NOTHROW(check_gradients([&](const Tensor& given) { return f(wide, given); }, x));
}

}  // namespace

TEST_CASE("Linear is a product and a bias over the last axis", "[nn]") {
  const nn::Linear layer = nn::linear(3, 2);
  CHECK(layer.weight.shape() == Shape{3, 2});
  const Tensor x = randn({4, 5, 3});
  CHECK(same_bits(layer(x), matmul(x, layer.weight) + *layer.bias));
  CHECK(!nn::linear(3, 2, {.has_bias = false}).bias);
  CHECK(max(abs(layer.weight.get())).item<float>() <= 1 / std::sqrt(3.0F));
  CHECK_THROWS_WITH(layer(randn({4, 5})),
                    Catch::Contains("Linear") && Catch::Contains("3 features"));
}

TEST_CASE("Conv2d convolves images and adds a bias", "[nn]") {
  const nn::Conv2d layer = nn::conv2d(3, 8, {3, 2}, {.conv = {.stride = 2, .padding = 1}});
  CHECK(layer.weight.shape() == Shape{8, 3, 3, 2});
  CHECK(nn::parameters(layer).size() == 2);
  CHECK(max(abs(layer.weight.get())).item<float>() <= 1 / std::sqrt(18.0F));
  const Tensor x = randn({2, 3, 6, 7});
  CHECK(same_bits(layer(x), conv2d(x, layer.weight, *layer.bias, {.stride = 2, .padding = 1})));
  CHECK(!nn::conv2d(4, 4, 1, {.conv = {.groups = 2}, .has_bias = false}).bias);
  CHECK_THROWS_WITH(layer(randn({2, 4, 6, 7})),
                    Catch::Contains("Conv2d") && Catch::Contains("3 features"));
  CHECK_THROWS_WITH(nn::conv2d(4, 6, 3, {.conv = {.groups = 4}}), Catch::Contains("divides both"));
  check_layer(nn::conv2d(2, 3, 2, {.conv = {.padding = 1}}), values({1, 2, 3, 3}),
              [](const auto& l, const Tensor& t) { return l(t); });
}

TEST_CASE("a training step of a network on images is the same bits compiled", "[nn][jit]") {
  struct Net {
    nn::Conv2d first = nn::conv2d(1, 8, 3, {.conv = {.padding = 1}});
    nn::BatchNorm norm = nn::batch_norm(8);
    nn::Conv2d second = nn::conv2d(8, 16, 3, {.has_bias = false});
    nn::MaxPool2d pool = {2};
    nn::AvgPool2d mean = {2};
    nn::Linear out = nn::linear(int64_t{16} * 2 * 2, 10);
    Tensor operator()(const Tensor& x) const {
      const Tensor y = pool(relu(norm(first(x))));
      return out(flatten(mean(relu(second(y))), 1));
    }
  };
  const auto step = [](const Net& net, const nn::Sgd& optimizer, const Tensor& x) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(net(x), arange(4));
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  };
  manual_seed(1);
  const Net eager;
  manual_seed(1);
  const Net other;
  const nn::Sgd of_eager(nn::parameters(eager)), of_other(nn::parameters(other));
  const auto compiled = compile([&](const Tensor& x) { return step(other, of_other, x); });
  for (int i = 0; i < 5; ++i) {
    const Tensor x = randn({4, 1, 12, 12});
    CHECK(same_bits(compiled(x), step(eager, of_eager, x)));
  }
  CHECK(same_bits(eager.first.weight.get(), other.first.weight.get()));
  CHECK(same_bits(eager.norm.running_var.get(), other.norm.running_var.get()));
  CHECK(compiled.explain().plan_calls > 0);
}

TEST_CASE("Embedding takes rows and gathers gradients of repeated ones", "[nn]") {
  const nn::Embedding layer = nn::embedding(5, 2);
  const Tensor y = layer(tensor({{1, 1}, {4, 0}}));
  CHECK(y.shape() == Shape{2, 2, 2});
  sum(y).backward();
  CHECK(same_bits(layer.weight.grad(),
                  tensor({{1.0F, 1.0F}, {2.0F, 2.0F}, {0.0F, 0.0F}, {0.0F, 0.0F}, {1.0F, 1.0F}})));
  CHECK_THROWS_WITH(layer(tensor({7})), Catch::Contains("take"));
}

TEST_CASE("norms have gradients that agree with central differences", "[nn]") {
  const Tensor x = values({3, 4});
  check_layer(nn::layer_norm(4), x, [](const auto& layer, const Tensor& t) { return layer(t); });
  check_layer(nn::rms_norm(4), x, [](const auto& layer, const Tensor& t) { return layer(t); });
  check_layer(nn::batch_norm(4), x, [](const auto& layer, const Tensor& t) { return layer(t); });
  check_layer(nn::batch_norm(2), values({2, 2, 3, 2}),
              [](const auto& layer, const Tensor& t) { return layer(t); });
}

TEST_CASE("BatchNorm keeps running statistics while it trains, and uses them in eval mode",
          "[nn]") {
  nn::BatchNorm layer = nn::to(nn::batch_norm(2), f64);
  const Tensor x = values({8, 2, 3}) * 3.0 + 1.0;
  const Tensor y = layer(x);
  CHECK(std::abs(mean(y).item<double>()) < 1e-12);
  CHECK(std::abs(var(y).item<double>() - 1) < 1e-4);
  const Tensor expected_mean = mean(x, {0, 2}) * 0.1;
  const Tensor expected_var = 0.9 + var(x, {0, 2}, 1) * 0.1;
  CHECK(max(abs(layer.running_mean - expected_mean)).item<double>() < 1e-14);
  CHECK(max(abs(layer.running_var - expected_var)).item<double>() < 1e-14);
  nn::eval(layer);
  const Tensor before = layer.running_mean;
  const Tensor z = layer(x);
  CHECK(same_bits(layer.running_mean.get(), before));
  const Tensor wanted =
      (x - reshape(layer.running_mean, {2, 1})) / sqrt(reshape(layer.running_var, {2, 1}) + 1e-5);
  CHECK(max(abs(z - wanted)).item<double>() < 1e-12);
}

TEST_CASE("BatchNorm without weights, with its own eps and momentum", "[nn]") {
  const nn::BatchNorm layer =
      nn::batch_norm(3, {.eps = 0.25, .momentum = 0.5, .is_affine = false, .dtype = f64});
  CHECK(nn::parameters(layer).empty());
  CHECK(nn::buffers(layer).size() == 2);
  const Tensor x = values({6, 3}) * 2.0 - 3.0;
  const Tensor expected = (x - mean(x, {0})) / sqrt(var(x, {0}) + 0.25);
  CHECK(max(abs(layer(x) - expected)).item<double>() < 1e-14);
  CHECK(max(abs(layer.running_mean - mean(x, {0}) * 0.5)).item<double>() < 1e-14);
  CHECK(max(abs(layer.running_var - (0.5 + var(x, {0}, 1) * 0.5))).item<double>() < 1e-14);
  CHECK_THROWS_WITH(nn::batch_norm(3, {.eps = -1}),
                    Catch::Contains("batch_norm") && Catch::Contains("`eps`"));
  CHECK_THROWS_WITH(nn::batch_norm(3, {.momentum = 2}), Catch::Contains("`momentum`"));
}

TEST_CASE("running statistics move once per compiled step", "[nn][jit]") {
  const nn::BatchNorm a = nn::batch_norm(3);
  const nn::BatchNorm b = nn::batch_norm(3);
  const auto step = compile([&](const Tensor& x) { return sum(square(a(x))); });
  for (int i = 0; i < 9; ++i) {
    const Tensor x = randn({6, 3});
    CHECK(same_bits(step(x), sum(square(b(x)))));
    CHECK(same_bits(a.running_var.get(), b.running_var.get()));
  }
  CHECK(step.explain().plan_calls > 0);
}

TEST_CASE("Dropout zeroes its share and scales the rest", "[nn]") {
  nn::Dropout layer = nn::dropout(0.25);
  const Tensor y = layer(ones({100000}));
  const double kept = mean(cast(y != 0.0, f64)).item<double>();
  CHECK(std::abs(kept - 0.75) < 0.01);
  CHECK(max(y).item<float>() == 1 / 0.75F);
  nn::eval(layer);
  CHECK(same_bits(layer(y), y));
  CHECK_THROWS_WITH(nn::dropout(1.1), Catch::Contains("0 <= rate <= 1"));
  const Tensor all = values({3, 2}).at({0, 0}).set(std::numeric_limits<double>::infinity());
  CHECK(same_bits(nn::Dropout{.rate = 1}(all), zeros({3, 2}, f64)));
  CHECK(same_bits(grad([](const Tensor& t) { return sum(nn::Dropout{.rate = 1}(t)); })(all),
                  zeros({3, 2}, f64)));
}

TEST_CASE("attention is causal where it should be", "[nn]") {
  const auto layer = nn::multi_head_attention(8, 2, {.is_causal = true});
  const Tensor x = randn({2, 5, 8});
  const Tensor y = layer(x);
  CHECK(y.shape() == x.shape());
  const Tensor changed = x.at({all_of_axis, 4}).set(0.0F);
  const Tensor z = layer(changed);
  CHECK(same_bits(slice(y, 1, {0, 4}), slice(z, 1, {0, 4})));
  CHECK(!same_bits(slice(y, 1, {4, 5}), slice(z, 1, {4, 5})));
  check_layer(nn::multi_head_attention(4, 2, {.is_causal = true}), values({1, 3, 4}),
              [](const auto& l, const Tensor& t) { return l(t); });
  CHECK_THROWS_WITH(nn::multi_head_attention(8, 3), Catch::Contains("divides the width"));
}

TEST_CASE("GroupNorm and InstanceNorm by their definition", "[nn]") {
  const Tensor x = values({2, 6, 3, 2}) * 3 + 1;
  const auto layer = nn::to(nn::group_norm(3, 6, {.eps = 1e-3}), f64);
  layer.weight->set(values({6}, 2));
  layer.bias->set(values({6}, 3));
  const Tensor y = layer(x);
  const auto in = x.to_vector<double>();
  const auto out = y.to_vector<double>();
  const auto weight = layer.weight->get().to_vector<double>();
  const auto bias = layer.bias->get().to_vector<double>();
  for (std::size_t group = 0; group < 6; ++group) {  // of both samples: 12 numbers each
    double mean = 0;
    double variance = 0;
    for (std::size_t i = 0; i < 12; ++i) mean += in[group * 12 + i] / 12;
    for (std::size_t i = 0; i < 12; ++i) variance += std::pow(in[group * 12 + i] - mean, 2) / 12;
    for (std::size_t i = 0; i < 12; ++i) {
      const std::size_t feature = (group * 12 + i) / 6 % 6;
      const double expected = (in[group * 12 + i] - mean) / std::sqrt(variance + 1e-3);
      CHECK(out[group * 12 + i] ==
            Approx(expected * weight[feature] + bias[feature]).margin(1e-13));
    }
  }
  check_layer(nn::group_norm(2, 4), values({2, 4, 3}),
              [](const auto& l, const Tensor& t) { return l(t); });
  const Tensor alone = nn::instance_norm(6)(x);
  CHECK(max(abs(alone - nn::group_norm(6, 6, {.is_affine = false})(x))).item<double>() == 0);
  CHECK(max(abs(mean(alone, {2, 3}))).item<double>() < 1e-14);
  CHECK(nn::parameters(nn::instance_norm(6)).empty());
  CHECK(nn::parameters(nn::instance_norm(6, {.is_affine = true})).size() == 2);
  CHECK(nn::parameters(nn::layer_norm(6, {.has_bias = false})).size() == 1);
  CHECK(same_bits(nn::layer_norm(2, {.is_affine = false})(x), layer_norm(x)));
  CHECK_THROWS_WITH(nn::group_norm(4, 6), Catch::Contains("4 groups of 6 features"));
  CHECK_THROWS_WITH(layer(ones({2, 4})), Catch::Contains("GroupNorm"));
  CHECK_THROWS_WITH(nn::group_norm(2, 6)(ones({6})), Catch::Contains("[batch, features, ...]"));
}

TEST_CASE("an Embedding's padding is not learned, and rows are kept short", "[nn]") {
  for (const int64_t padding : {1, -3}) {  // the same row
    const nn::Embedding layer = nn::embedding(4, 3, {.padding = padding});
    CHECK(same_bits(layer.weight.get()[1], zeros({3})));
    layer.weight.set(ones({4, 3}));
    const Tensor rows = layer(tensor({1, 0, 1, 2, -3}));
    CHECK(same_bits(rows, ones({5, 3})));
    sum(rows).backward();
    CHECK(layer.weight.grad().to_vector<float>() ==
          std::vector<float>{1, 1, 1, 0, 0, 0, 1, 1, 1, 0, 0, 0});
  }
  const nn::Embedding kept = nn::embedding(4, 3, {.max_norm = 2.0});
  const Tensor table = tensor({{3, 4, 0}, {1, 1, 1}, {6, 8, 0}, {0, 0, 9}}).to(f32);
  kept.weight.set(table);
  const Tensor rows = kept(tensor({2, 0, 2, 1}));
  const Tensor norms = sqrt(sum(square(rows), {-1}));
  CHECK(norms.to_vector<float>()[0] == Approx(2).epsilon(1e-6));
  CHECK(norms.to_vector<float>()[1] == Approx(2).epsilon(1e-6));
  CHECK(same_bits(rows[3], table[1]));
  CHECK(same_bits(rows[0], kept.weight.get()[2]));
  CHECK(same_bits(kept.weight.get()[3], table[3]));  // was not looked up
  CHECK_THROWS_WITH(nn::embedding(4, 3, {.padding = 4}), Catch::Contains("`padding`"));
  CHECK_THROWS_WITH(nn::embedding(4, 3, {.max_norm = 0.0}), Catch::Contains("`max_norm`"));
}

TEST_CASE("an EmbeddingBag joins rows", "[nn]") {
  const auto bag = [](nn::Pooling pooling, std::optional<int64_t> padding = {}) {
    const nn::EmbeddingBag layer =
        nn::embedding_bag(4, 2, {.pooling = pooling, .padding = padding});
    layer.weight.set(tensor({{1, 2}, {3, -4}, {5, 6}, {7, 9}}).to(f32));
    return layer;
  };
  const Tensor indices = tensor({{0, 1, 1}, {2, 3, 0}});
  const auto numbers = [](const Tensor& x) { return x.to_vector<float>(); };
  using Floats = std::vector<float>;
  CHECK(numbers(bag(nn::Pooling::sum)(indices)) == Floats{7, -6, 13, 17});
  CHECK(numbers(bag(nn::Pooling::max)(indices)) == Floats{3, 2, 7, 9});
  CHECK(numbers(bag(nn::Pooling::mean)(indices) * 3)[3] == Approx(17));
  CHECK(numbers(bag(nn::Pooling::sum, 0)(indices)) == Floats{6, -8, 12, 15});
  CHECK(numbers(bag(nn::Pooling::mean, 0)(indices)) == Floats{3, -4, 6, 7.5});
  CHECK(numbers(bag(nn::Pooling::max, 1)(indices)) == Floats{1, 2, 7, 9});
  CHECK(numbers(bag(nn::Pooling::max, 1)(tensor({{1, 1}}))) == Floats{0, 0});
  CHECK(numbers(bag(nn::Pooling::mean, 1)(tensor({{1, -3}}))) == Floats{0, 0});
  const Tensor weights = tensor({{2, 0, 1}, {1, 1, -1}}).to(f32);
  CHECK(numbers(bag(nn::Pooling::sum)(indices, weights)) == Floats{5, 0, 11, 13});
  CHECK_THROWS_WITH(bag(nn::Pooling::mean)(indices, weights), Catch::Contains("pooling by a sum"));
  CHECK_THROWS_WITH(bag(nn::Pooling::sum)(indices, ones({2})),
                    Catch::Contains("a weight for each"));
}

TEST_CASE("bags of an EmbeddingBag begin where offsets say", "[nn][jit]") {
  const Tensor indices = tensor({3, 1, 1, 0, 2, 2, 3}), offsets = tensor({0, 2, 2, 6});
  const std::vector<std::vector<int64_t>> bags = {{3, 1}, {}, {1, 0, 2, 2}, {3}};
  for (const nn::Pooling pooling : {nn::Pooling::sum, nn::Pooling::mean, nn::Pooling::max}) {
    for (const std::optional<int64_t> padding : {std::optional<int64_t>(), {1}, {-1}}) {
      const nn::EmbeddingBag layer =
          nn::to(nn::embedding_bag(4, 3, {.pooling = pooling, .padding = padding}), f64);
      const Tensor y = layer(indices, {}, offsets);
      REQUIRE(y.shape() == Shape{4, 3});
      sum(y * reshape(arange(12).to(f64), {4, 3})).backward();
      const Tensor gradient = layer.weight.grad();
      layer.weight.clear_grad();
      for (std::size_t i = 0; i < bags.size(); ++i) {
        const auto row = static_cast<int64_t>(i);
        if (bags[i].empty()) {
          CHECK(same_bits(y[row], zeros({3}, f64)));
          continue;
        }
        const Tensor alone = layer(unsqueeze(tensor(bags[i]), 0));
        CHECK(max(abs(y[row] - alone[0])).item<double>() < 1e-15);
        sum(alone[0] * (arange(3).to(f64) + 3.0 * static_cast<double>(row))).backward();
      }
      CHECK(max(abs(layer.weight.grad() - gradient)).item<double>() < 1e-14);
    }
  }
  const nn::EmbeddingBag layer = nn::embedding_bag(4, 2, {.pooling = nn::Pooling::sum});
  const Tensor weights = arange(7).to(f32);
  CHECK(same_bits(layer(indices, weights, offsets)[3], layer.weight.get()[3] * 6.0F));
  CHECK(layer(zeros({0}, i64), {}, zeros({0}, i64)).shape() == Shape{0, 2});
  const auto compiled = compile([&](const Tensor& i, const Tensor& o) { return layer(i, {}, o); },
                                {.check = Check::never});
  for (int call = 0; call < 5; ++call) {
    const Tensor some = tensor({0, call, 4, 5});
    CHECK(same_bits(compiled(indices, some), layer(indices, {}, some)));
  }
  CHECK(compiled.explain().plan_calls > 0);
  CHECK(compiled.explain().signatures.size() == 1);
  for (const Tensor& wrong : {tensor({1, 2, 3, 4}), tensor({0, 3, 2, 4}), tensor({0, 1, 2, 8})}) {
    CHECK_THROWS_WITH(layer(indices, {}, wrong), Catch::Contains("EmbeddingBag: the offsets") &&
                                                     Catch::Contains("for 7 indices"));
    CHECK_THROWS_WITH(compiled(indices, wrong).to_vector<float>(),  // a device fails later
                      Catch::Contains("EmbeddingBag: the offsets"));
  }
  CHECK_THROWS_WITH(layer(indices, {}, tensor({0, 8})),
                    Catch::Contains("got tensor([0, 8], int64[2]) for 7 indices"));
  CHECK_THROWS_WITH(layer(unsqueeze(indices, 0), {}, offsets), Catch::Contains("expected [n]"));
  CHECK_THROWS_WITH(layer(indices, {}, ones({2})), Catch::Contains("integers of shape [bags]"));
}

TEST_CASE("FeatureDropout drops whole features", "[nn]") {
  const Tensor x = ones({50, 20, 3, 2});
  const nn::FeatureDropout layer = nn::feature_dropout(0.25);
  const Tensor y = layer(x);
  CHECK(same_bits(max(y, {2, 3}), min(y, {2, 3})));
  CHECK(std::abs(mean(y).item<float>() - 1) < 0.06F);
  CHECK(std::abs(mean(cast(y == 0, f32)).item<float>() - 0.25F) < 0.05F);
  nn::eval(layer);
  CHECK(same_bits(layer(x), x));
  CHECK_THROWS_WITH(nn::feature_dropout(0.5)(ones({3})), Catch::Contains("[batch, features"));
  CHECK_THROWS_WITH(nn::feature_dropout(-1), Catch::Contains("`rate`"));
}

TEST_CASE("layers of convolutions are their functions with what they hold", "[nn]") {
  const Tensor line = values({2, 4, 9});
  const auto one = nn::to(nn::conv1d(4, 6, 3, {.conv = {.stride = 2, .groups = 2}}), f64);
  CHECK(one.weight.shape() == Shape{6, 2, 3});
  CHECK(same_bits(one(line), conv1d(line, one.weight, *one.bias, {.stride = 2, .groups = 2})));
  CHECK(max(abs(one.weight.get())).item<double>() <= 1 / std::sqrt(6.0));
  const Tensor volume = values({1, 2, 3, 4, 5});
  const auto three = nn::to(nn::conv3d(2, 3, {2}, {.has_bias = false}), f64);
  CHECK(same_bits(three(volume), conv3d(volume, three.weight)));
  const auto t1 = nn::to(nn::conv_transpose1d(4, 6, 3, {.conv = {.stride = 2}}), f64);
  CHECK(t1.weight.shape() == Shape{4, 6, 3});
  CHECK(same_bits(t1(line), conv_transpose1d(line, t1.weight, *t1.bias, {.stride = 2})));
  const Tensor image = values({1, 4, 3, 3});
  const auto t2 = nn::to(nn::conv_transpose2d(4, 2, {2, 3}, {.conv = {.groups = 2}}), f64);
  CHECK(t2.weight.shape() == Shape{4, 1, 2, 3});
  CHECK(same_bits(t2(image), conv_transpose2d(image, t2.weight, *t2.bias, {.groups = 2})));
  const auto t3 = nn::to(nn::conv_transpose3d(2, 3, {1, 2, 2}), f64);
  CHECK(same_bits(t3(volume), conv_transpose3d(volume, t3.weight, *t3.bias)));
  CHECK_THROWS_WITH(nn::conv1d(4, 6, 0), Catch::Contains("conv1d: the setting `kernel`"));
  CHECK_THROWS_WITH(nn::conv3d(2, 3, {1, 2}), Catch::Contains("one number or three"));
  CHECK_THROWS_WITH(nn::conv_transpose2d(4, 3, 2, {.conv = {.groups = 2}}),
                    Catch::Contains("divides both"));
}
