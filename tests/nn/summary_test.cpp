// Summaries of small models by hand, and of known ones by what the literature says.
#include "examples/models/gpt2.h"
#include "examples/models/resnet.h"
#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

namespace nitinol::summary_test {

struct Mlp {
  nn::Linear hidden = nn::linear(64, 128);
  nn::BatchNorm norm = nn::batch_norm(128);
  nn::Linear out = nn::linear(128, 10);
  Tensor operator()(const Tensor& x) const { return out(relu(norm(hidden(x)))); }
};

const nn::SummaryRow& row(const nn::Summary& summary, const std::string& path) {
  const auto found = std::ranges::find(summary.rows, path, &nn::SummaryRow::path);
  REQUIRE(found != summary.rows.end());
  return *found;
}

std::string output(const nn::Summary& summary, const std::string& path) {
  const nn::SummaryRow& one = row(summary, path);
  return one.output ? describe(*one.output) : "";
}

TEST_CASE("a summary without inputs counts parameters", "[nn][summary]") {
  const nn::Summary summary = nn::summary(Mlp());
  REQUIRE(summary.rows.size() == 4);
  CHECK_FALSE(summary.has_call);
  CHECK(row(summary, "").type == "Mlp");
  CHECK(row(summary, "").parameters == 64 * 128 + 128 + 2 * 128 + 128 * 10 + 10);
  CHECK(row(summary, "").others == 256);
  CHECK(row(summary, "").bytes == (9866 + 256) * 4);
  CHECK(row(summary, "norm").others == 256);
  CHECK(row(summary, "out").parameters == 1290);
  CHECK(row(summary, "out").depth == 1);
  CHECK(row(summary, "out").operations == 0);
  CHECK(to_string(summary) ==
        "layer     type       parameters      %    bytes\n"
        "Mlp       Mlp             9,866  100.0  40.5 kB\n"
        "  hidden  Linear          8,320   84.3  33.3 kB\n"
        "  norm    BatchNorm         256    2.6  2.05 kB\n"
        "  out     Linear          1,290   13.1  5.16 kB\n"
        "9,866 parameters and 256 other elements, 40.5 kB\n");
}

TEST_CASE("with inputs it has outputs and operations, and changes nothing", "[nn][summary]") {
  const Mlp model;
  std::vector<Tensor> before;
  for (const nn::NamedVariable& one : nn::named_variables(model)) before.push_back(one.variable);
  const Tensor state = default_generator().state();
  const nn::Summary summary = nn::summary(model, ones({32, 64}));
  CHECK(summary.has_call);
  CHECK(output(summary, "") == "float32[32, 10]");
  CHECK(output(summary, "hidden") == "float32[32, 128]");
  CHECK(output(summary, "norm") == "float32[32, 128]");
  CHECK(output(summary, "out") == "float32[32, 10]");
  CHECK(row(summary, "hidden").operations == 2 * 32 * 64 * 128 + 32 * 128);
  CHECK(row(summary, "out").operations == 2 * 32 * 128 * 10 + 32 * 10);
  const double in_layers = row(summary, "hidden").operations + row(summary, "norm").operations +
                           row(summary, "out").operations;
  CHECK(row(summary, "").operations > in_layers);  // the relu, the batch's mean and variance
  CHECK(row(summary, "").operations < in_layers + 30 * 32 * 128);
  std::size_t i = 0;
  for (const nn::NamedVariable& one : nn::named_variables(model)) {
    INFO(one.name);
    CHECK(same_bits(one.variable.get(), before[i++]));
  }
  CHECK(same_bits(default_generator().state().get(), state));
  CHECK(to_string(summary).find("  norm    BatchNorm  float32[32, 128]") != std::string::npos);
  CHECK_THROWS_AS(nn::summary(model, ones({32, 63})), Error);
  CHECK(nn::parameters(model)[0].grad().is_defined() == false);
}

TEST_CASE("a random generator is where it was", "[nn][summary]") {
  struct Noisy {
    nn::Linear layer = nn::linear(2, 2);
    Tensor operator()(const Tensor& x) const { return layer(x) + rand({2}); }
  };
  const Noisy model;
  const Tensor before = default_generator().state();
  static_cast<void>(nn::summary(model, ones({3, 2})));
  CHECK(same_bits(default_generator().state().get(), before));
}

TEST_CASE("operations between two layers belong to what holds both", "[nn][summary]") {
  const nn::MultiHeadAttention attention = nn::multi_head_attention(64, 4);
  const nn::Summary summary = nn::summary(attention, ones({2, 10, 64}));
  CHECK(row(summary, "qkv").operations == 2 * 20 * 64 * 192 + 20 * 192);
  CHECK(row(summary, "proj").operations == 2 * 20 * 64 * 64 + 20 * 64);
  const double products = 2 * 2 * 2 * 4 * 10 * 10 * 16;
  const double between = row(summary, "").operations - row(summary, "qkv").operations -
                         row(summary, "proj").operations;
  CHECK(between > products);
  CHECK(between < 2 * products + 20 * 4 * 10 * 30);
}

TEST_CASE("models of all kinds", "[nn][summary]") {
  const nn::Sequential chain(nn::linear(4, 16), relu, nn::linear(16, 2));
  const nn::Summary of_chain = nn::summary(chain, zeros({5, 4}));
  CHECK(of_chain.rows.size() == 3);
  CHECK(output(of_chain, "2") == "float32[5, 2]");

  const nn::Summary of_list =
      nn::summary(std::vector<nn::Linear>{nn::linear(2, 2), nn::linear(2, 3)});
  REQUIRE(of_list.rows.size() == 3);
  CHECK(row(of_list, "").parameters == 15);
  CHECK(row(of_list, "1").parameters == 9);

  CHECK(nn::summary(parameter(zeros({3}))).rows[0].parameters == 3);
  CHECK(nn::summary(std::vector<nn::NamedVariable>{}).rows[0].parameters == 0);
  struct Empty {
    std::optional<nn::Linear> layer;
    Variable bias;
    Tensor operator()(const Tensor& x) const { return x * 2; }
  };
  const nn::Summary of_empty = nn::summary(Empty{}, ones({7}));
  CHECK(of_empty.rows.size() == 1);
  CHECK(of_empty.rows[0].operations == 7);
  CHECK(output(of_empty, "") == "float32[7]");

  struct Shared {
    nn::Linear first = nn::linear(3, 3);
    nn::Linear second = first;
    std::vector<Tensor> operator()(const Tensor& x) const { return {second(first(x))}; }
  };
  const nn::Summary of_shared = nn::summary(Shared{}, ones({2, 3}));
  CHECK(row(of_shared, "").parameters == 12);
  CHECK(row(of_shared, "second").parameters == 0);
  CHECK(output(of_shared, "") == "float32[2, 3]");  // a result that is no tensor: the last one's
  CHECK(to_string(of_shared, 0).find("first") == std::string::npos);
}

TEST_CASE("a weight that is computed is its layer's", "[nn][summary]") {
  struct Scaled {
    nn::Linear layer = nn::linear(8, 4);
    Variable scale = parameter(ones({4}));
    Tensor operator()(const Tensor& x) const {
      const Tensor weight = layer.weight.get() / sqrt(sum(square(layer.weight.get()), {0}));
      return matmul(x, weight) * scale;
    }
  };
  const nn::Summary summary = nn::summary(Scaled{}, ones({2, 8}));
  CHECK(row(summary, "layer").operations == 2 * 2 * 8 * 4 + 32 + 32 + 4 + 32);
  CHECK(output(summary, "layer") == "float32[2, 4]");
}

TEST_CASE("ResNet-18 has the literature's numbers", "[nn][summary][no-isa]") {
  const models::ResNet model = models::resnet18();
  nn::eval(model);
  const nn::Summary summary = nn::summary(model, zeros({1, 3, 224, 224}));
  CHECK(row(summary, "").parameters == 11'689'512);
  double multiply_adds = 0;
  for (const nn::SummaryRow& one : summary.rows) {
    if (one.type == "Conv2d" || one.type == "Linear") multiply_adds += one.operations / 2;
  }
  // torchvision: 1.814 G multiply-adds; and half of the head's 1,000 additions.
  CHECK(multiply_adds == 1'814'073'344 + 500);
  CHECK(row(summary, "").operations < 2 * multiply_adds * 1.02);
  CHECK(output(summary, "stem.conv") == "float32[1, 64, 112, 112]");
  CHECK(output(summary, "head") == "float32[1, 1000]");
}

TEST_CASE("GPT-2 small has the literature's numbers", "[nn][summary]") {
  const models::Gpt2 model = models::gpt2_small();
  CHECK(nn::summary(model).rows[0].parameters == 124'439'808);
}

}  // namespace nitinol::summary_test
