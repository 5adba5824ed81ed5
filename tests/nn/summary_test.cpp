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
        "layer     type       parameters      %  buffers    bytes\n"
        "Mlp       Mlp             9,866  100.0      256  40.5 kB\n"
        "  hidden  Linear          8,320   84.3           33.3 kB\n"
        "  norm    BatchNorm         256    2.6      256  2.05 kB\n"
        "  out     Linear          1,290   13.1           5.16 kB\n"
        "9,866 parameters, 256 in buffers, 40.5 kB\n");
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
  CHECK(row(of_shared, "second").shared == 12);
  CHECK(row(of_shared, "second").shared_with == "first");
  CHECK(row(of_shared, "first").shared == 0);
  CHECK(row(of_shared, "").shared == 0);
  CHECK(row(of_shared, "first").operations == 2 * (2 * 2 * 3 * 3 + 6));  // of both calls
  CHECK(output(of_shared, "") == "float32[2, 3]");  // a result that is no tensor: the last one's
  CHECK(to_string(of_shared, 0).find("first") == std::string::npos);
  CHECK(to_string(of_shared) ==
        "layer     type    output         parameters      %  bytes  operations      %  shared\n"
        "Shared    Shared  float32[2, 3]          12  100.0   48 B          84  100.0\n"
        "  first   Linear  float32[2, 3]          12  100.0   48 B          84  100.0\n"
        "  second  Linear  ?                       0    0.0    0 B           0    0.0  12 with "
        "first\n"
        "12 parameters, 48 B; 84 operations a call\n"
        "what is shared counts once, in the first\n"
        "? of modules whose Variables no operation of the result has read\n");
}

struct Block {
  nn::Linear in = nn::linear(4, 4);
  nn::LayerNorm norm = nn::layer_norm({4});
};
struct Tied {
  std::vector<std::vector<Block>> blocks = {{Block(), Block()}, {Block()}};
  nn::Linear head = nn::linear(4, 4);
  Tied() {
    blocks[1].push_back(blocks[0][1]);
    head.weight = blocks[0][0].in.weight;
  }
  template <class V>
  void fields(V&& visit) {
    visit("blocks", blocks), visit("head", head);
  }
  template <class V>
  void fields(V&& visit) const {
    visit("blocks", blocks), visit("head", head);
  }
};

TEST_CASE("a summary says what modules share, once for all in them", "[nn][summary]") {
  const nn::Summary summary = nn::summary(Tied());
  std::vector<std::string> paths;
  for (const nn::SummaryRow& one : summary.rows) paths.push_back(one.path);
  CHECK(paths == std::vector<std::string>{"", "blocks.0.0", "blocks.0.0.in", "blocks.0.0.norm",
                                          "blocks.0.1", "blocks.0.1.in", "blocks.0.1.norm",
                                          "blocks.1.0", "blocks.1.0.in", "blocks.1.0.norm",
                                          "blocks.1.1", "head"});
  CHECK(row(summary, "").parameters == 3 * 28 + 4);
  CHECK(row(summary, "").shared == 0);
  CHECK(row(summary, "blocks.1.1").parameters == 0);
  CHECK(row(summary, "blocks.1.1").shared == 28);
  CHECK(row(summary, "blocks.1.1").shared_with == "blocks.0.1.in");
  CHECK(row(summary, "head").parameters == 4);
  CHECK(row(summary, "head").shared == 16);
  CHECK(row(summary, "head").shared_with == "blocks.0.0.in");
  CHECK(to_string(summary).find("16 with blocks.0.0.in\n") != std::string::npos);
}

/// Less its mean of all calls so far, which it keeps.
struct Centred {
  Variable mean{zeros({3})};
  Tensor operator()(const Tensor& x) const {
    mean.set(mean * 0.9 + nitinol::mean(x, {0}) * 0.1);
    return x - mean;
  }
};

TEST_CASE("a running mean is a buffer, and no output", "[nn][summary]") {
  struct Model {
    nn::Linear layer = nn::linear(2, 3);
    std::vector<Centred> centred = {Centred(), Centred()};
    Tensor operator()(const Tensor& x) const { return centred[1](relu(centred[0](layer(x)))); }
  };
  const Model model;
  const nn::Summary summary = nn::summary(model, ones({5, 2}));
  CHECK(row(summary, "").others == 6);
  CHECK(row(summary, "").parameters == 9);
  for (const char* path : {"centred.0", "centred.1"}) {
    CHECK(row(summary, path).others == 3);
    CHECK(row(summary, path).parameters == 0);
    CHECK(output(summary, path) == "float32[5, 3]");  // what reads the new mean is the module's
    CHECK(row(summary, path).operations >= 15 + 6);
  }
  CHECK(same_bits(model.centred[0].mean.get(), zeros({3})));

  // What is only kept is no output of anything.
  struct Counting {
    nn::Linear layer = nn::linear(2, 3);
    Variable largest{zeros({})};
    Tensor operator()(const Tensor& x) const {
      const Tensor y = layer(x);
      largest.set(maximum(largest, max(y)));
      return y;
    }
  };
  const nn::Summary of_counting = nn::summary(nn::Sequential(Counting()), ones({5, 2}));
  CHECK(output(of_counting, "0") == "float32[5, 3]");
  CHECK(output(of_counting, "0.layer") == "float32[5, 3]");

  // What is kept and given, as a state, is one.
  struct Cell {
    Variable weight = parameter(ones({3, 3})), state{zeros({5, 3})};
    Tensor operator()(const Tensor& x) const {
      state.set(tanh(matmul(x, weight) + state));
      return state;
    }
  };
  const nn::Summary of_cell = nn::summary(nn::Sequential(Cell(), nn::linear(3, 2)), ones({5, 3}));
  CHECK(output(of_cell, "0") == "float32[5, 3]");
  CHECK(row(of_cell, "0").others == 15);
  CHECK(output(of_cell, "1") == "float32[5, 2]");
}

TEST_CASE("a module without Variables has a row that says what is not known", "[nn][summary]") {
  struct Scale {
    double by = 2;
    Tensor operator()(const Tensor& x) const { return x * by; }
  };
  const nn::Sequential model(nn::linear(4, 3), Scale(), nn::dropout(0.5), nn::linear(3, 2));
  const nn::Summary summary = nn::summary(model, ones({5, 4}));
  REQUIRE(summary.rows.size() == 5);
  CHECK(row(summary, "1").type == "Scale");
  CHECK_FALSE(row(summary, "1").output);
  CHECK(row(summary, "1").parameters == 0);
  CHECK(row(summary, "1").shared == 0);
  CHECK_FALSE(row(summary, "2").output);
  CHECK(output(summary, "0") == "float32[5, 3]");
  CHECK(to_string(summary).find("  1         Scale       ?  ") != std::string::npos);
  CHECK(to_string(summary).ends_with(
      "\n? of modules whose Variables no operation of the result has read\n"));
  CHECK(to_string(nn::summary(model)).find('?') == std::string::npos);
  const nn::Summary alone = nn::summary(Scale(), ones({5, 4}));
  CHECK(output(alone, "") == "float32[5, 4]");
  CHECK(row(alone, "").operations == 20);
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

TEST_CASE("GPT-2 small has the literature's numbers", "[nn][summary][no-isa]") {
  const models::Gpt2 model = models::gpt2_small();
  CHECK(nn::summary(model).rows[0].parameters == 124'439'808);
}

}  // namespace nitinol::summary_test
