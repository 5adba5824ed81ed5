// Recurrent layers against their cells, which have the usual tape, and cells against formulas.
#include "nn/recurrent.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <vector>

using namespace nitinol;

namespace {

Tensor noise(const Shape& shape, uint64_t seed) {
  const Generator generator(seed);
  return randn(shape, f64, generator);
}

double difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  return a.size() == 0 ? 0 : max(abs(a - b)).item<double>();
}

/// What a layer gives: the hidden values of all steps, and the last states.
struct Given {
  Tensor sequence;
  std::vector<Tensor> last;
};

Given run(const nn::Lstm& layer, const Tensor& x, const std::vector<Tensor>& first,
          const std::optional<Tensor>& lengths) {
  const nn::Lstm::Output out = layer(x, nn::Lstm::State{first[0], first[1]}, lengths);
  return {out.sequence, {out.last.hidden, out.last.cell}};
}
template <class Layer>
Given run(const Layer& layer, const Tensor& x, const std::vector<Tensor>& first,
          const std::optional<Tensor>& lengths) {
  const auto out = layer(x, first[0], lengths);
  return {out.sequence, {out.hidden}};
}

std::vector<Tensor> step(const nn::LstmCell& cell, const Tensor& x,
                         const std::vector<Tensor>& states) {
  const nn::LstmCell::State next = cell(x, nn::LstmCell::State{states[0], states[1]});
  return {next.hidden, next.cell};
}
template <class Cell>
std::vector<Tensor> step(const Cell& cell, const Tensor& x, const std::vector<Tensor>& states) {
  return {cell(x, states[0])};
}

/// The same by cells, each sequence of the batch alone and as long as it is.
template <class Layer>
Given by_cells(const Layer& layer, const Tensor& x, const std::vector<Tensor>& first,
               const std::vector<int64_t>& lengths) {
  const int64_t steps = x.shape()[0];
  const int64_t batch = x.shape()[1];
  const std::size_t directions = layer.backward_layers.empty() ? 1 : 2;
  std::vector<Tensor> sequences;
  std::vector<std::vector<Tensor>> lasts(first.size());
  for (int64_t b = 0; b < batch; ++b) {
    const int64_t length = lengths[static_cast<std::size_t>(b)];
    std::vector<Tensor> values;
    for (int64_t t = 0; t < length; ++t) values.push_back(slice(x[t], 0, {b, b + 1}));
    std::vector<std::vector<Tensor>> last(first.size());
    for (std::size_t i = 0; i < layer.layers.size(); ++i) {
      std::vector<std::vector<Tensor>> sides;
      for (std::size_t d = 0; d < directions; ++d) {
        const auto& cell = d == 0 ? layer.layers[i] : layer.backward_layers[i];
        std::vector<Tensor> states;
        for (const Tensor& one : first)
          states.push_back(slice(one[static_cast<int64_t>(i * directions + d)], 0, {b, b + 1}));
        std::vector<Tensor> side(values.size());
        for (std::size_t k = 0; k < values.size(); ++k) {
          const std::size_t t = d == 0 ? k : values.size() - 1 - k;
          states = step(cell, values[t], states);
          side[t] = states[0];
        }
        for (std::size_t k = 0; k < first.size(); ++k) last[k].push_back(states[k]);
        sides.push_back(side);
      }
      for (std::size_t t = 0; t < values.size(); ++t)
        values[t] = directions == 1 ? sides[0][t] : concat({sides[0][t], sides[1][t]}, 1);
    }
    while (values.size() < static_cast<std::size_t>(steps)) {
      const int64_t width = static_cast<int64_t>(directions) * first[0].shape()[2];
      values.push_back(zeros({1, width}, f64));
    }
    sequences.push_back(stack(values));
    for (std::size_t k = 0; k < first.size(); ++k) lasts[k].push_back(stack(last[k]));
  }
  Given all = {concat(sequences, 1), {}};
  for (const auto& one : lasts) all.last.push_back(concat(one, 1));
  return all;
}

/// Values and gradients of inputs, states and weights agree, with and without lengths; compiled
/// they are the same bits.
template <class Layer>
void check_layer_of_cells(const Layer& made, std::size_t states) {
  const Layer layer = nn::to(made, f64);
  const Tensor x = noise({4, 3, 2}, 1);
  const auto sides = static_cast<int64_t>(layer.layers.size() + layer.backward_layers.size());
  std::vector<Tensor> first;
  for (std::size_t k = 0; k < states; ++k) first.push_back(noise({sides, 3, 2}, 2 + k));
  const std::vector<int64_t> whole = {4, 4, 4};
  const std::vector<int64_t> parts = {2, 4, 1};
  for (const bool is_whole : {true, false}) {
    const std::vector<int64_t>& lengths = is_whole ? whole : parts;
    const auto by_layer = [&](const Tensor& in, const std::vector<Tensor>& from) {
      return run(layer, in, from, is_whole ? std::nullopt : std::optional(tensor(lengths)));
    };
    const auto slowly = [&](const Tensor& in, const std::vector<Tensor>& from) {
      return by_cells(layer, in, from, lengths);
    };
    const Variable in = parameter(x);
    std::vector<Variable> from;
    for (const Tensor& one : first) from.push_back(parameter(one));
    const auto slopes = [&](const auto& f) {
      in.clear_grad();
      for (const Variable& one : from) one.clear_grad();
      for (const Variable& p : nn::parameters(layer)) p.clear_grad();
      const Given out = f(in.get(), std::vector<Tensor>(from.begin(), from.end()));
      Tensor loss = sum(out.sequence * noise(out.sequence.shape(), 9));
      for (const Tensor& one : out.last) loss = loss + sum(square(one));
      loss.backward();
      std::vector<Tensor> all = {out.sequence, in.grad()};
      all.insert(all.end(), out.last.begin(), out.last.end());
      for (const Variable& one : from) all.push_back(one.grad());
      for (const Variable& p : nn::parameters(layer)) all.push_back(p.grad());
      for (Tensor& one : all) one = stop_gradient(one);
      return all;
    };
    const std::vector<Tensor> expected = slopes(slowly);
    const std::vector<Tensor> got = slopes(by_layer);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(i);
      CHECK(difference(got[i], expected[i]) < 1e-12);
    }
    const auto compiled = compile([&] { return slopes(by_layer); }, {.check = Check::never});
    test::settle(compiled);
    const std::vector<Tensor> by_plan = compiled();
    CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
    for (std::size_t i = 0; i < got.size(); ++i) CHECK(same_bits(got[i], by_plan[i]));
  }
}

double sigmoid_of(double x) {
  return 1 / (1 + std::exp(-x));
}

/// x W + h U and biases, number by number.
double product(const std::vector<double>& x, const Tensor& weight, int64_t column) {
  double total = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    total += x[i] * weight.at({static_cast<int64_t>(i), column}).item<double>();
  return total;
}

}  // namespace

TEST_CASE("recurrent layers are their cells, step by step", "[nn]") {
  for (const bool is_bidirectional : {false, true}) {
    for (const int64_t layers : {1, 2}) {
      const nn::RecurrentOptions options = {.layers = layers, .is_bidirectional = is_bidirectional};
      INFO(layers << (is_bidirectional ? " layers of two directions" : " layers"));
      check_layer_of_cells(nn::lstm(2, 2, options), 2);
      check_layer_of_cells(nn::gru(2, 2, options), 1);
      check_layer_of_cells(nn::rnn(2, 2, nn::Nonlinearity::tanh, options), 1);
      check_layer_of_cells(nn::rnn(2, 2, nn::Nonlinearity::relu, options), 1);
    }
  }
}

TEST_CASE("cells by their formulas", "[nn]") {
  const Tensor x = noise({1, 3}, 1);
  const Tensor h = noise({1, 2}, 2);
  const Tensor c = noise({1, 2}, 3);
  const auto xs = x.to_vector<double>();
  const auto hs = h.to_vector<double>();
  const auto cs = c.to_vector<double>();
  const auto sums = [&](const auto& cell, int64_t j) {
    return product(xs, cell.input_weight, j) + cell.bias.get()[j].template item<double>();
  };
  const auto lstm = nn::lstm_cell(3, 2, f64);
  const auto gru = nn::gru_cell(3, 2, f64);
  const auto rnn = nn::rnn_cell(3, 2, nn::Nonlinearity::relu, f64);
  const nn::LstmCell::State next = lstm(x, nn::LstmCell::State{h, c});
  const Tensor by_gru = gru(x, h);
  const Tensor by_rnn = rnn(x, h);
  for (int64_t j = 0; j < 2; ++j) {
    const auto at = static_cast<std::size_t>(j);
    const auto gate = [&](int64_t k) {
      return sums(lstm, 2 * k + j) + product(hs, lstm.hidden_weight, 2 * k + j);
    };
    const double cell = sigmoid_of(gate(1)) * cs[at] + sigmoid_of(gate(0)) * std::tanh(gate(2));
    CHECK(next.cell.at({0, j}).item<double>() == Approx(cell).epsilon(1e-13));
    CHECK(next.hidden.at({0, j}).item<double>() ==
          Approx(sigmoid_of(gate(3)) * std::tanh(cell)).epsilon(1e-13));
    const auto of_hidden = [&](int64_t k) {
      return product(hs, gru.hidden_weight, 2 * k + j) +
             gru.hidden_bias.get()[2 * k + j].item<double>();
    };
    const double reset = sigmoid_of(sums(gru, j) + of_hidden(0));
    const double update = sigmoid_of(sums(gru, 2 + j) + of_hidden(1));
    const double fresh = std::tanh(sums(gru, 4 + j) + reset * of_hidden(2));
    CHECK(by_gru.at({0, j}).item<double>() ==
          Approx((1 - update) * fresh + update * hs[at]).epsilon(1e-13));
    CHECK(by_rnn.at({0, j}).item<double>() ==
          Approx(std::max(0.0, sums(rnn, j) + product(hs, rnn.hidden_weight, j))).margin(1e-14));
  }
}

TEST_CASE("batch-first sequences, and states that are not given", "[nn]") {
  nn::Gru layer = nn::to(nn::gru(3, 2, {.is_bidirectional = true}), f64);
  const Tensor x = noise({5, 4, 3}, 1);
  const nn::Gru::Output out = layer(x);
  CHECK(same_bits(out.sequence, layer(x, zeros({2, 4, 2}, f64)).sequence));
  layer.is_batch_first = true;
  const nn::Gru::Output turned = layer(transpose(x, 0, 1));
  CHECK(turned.sequence.shape() == Shape{4, 5, 4});
  CHECK(difference(turned.sequence, transpose(out.sequence, 0, 1)) < 1e-14);
  CHECK(difference(turned.hidden, out.hidden) < 1e-14);
  CHECK(same_bits(nn::lstm_cell(3, 2)(ones({4, 3})).hidden,
                  nn::lstm_cell(3, 2)(ones({4, 3})).hidden) == false);
}

TEST_CASE("one Plan serves sequences of all lengths", "[nn][jit]") {
  const nn::Lstm layer = nn::lstm(3, 4, {.layers = 2, .is_bidirectional = true});
  const Tensor x = randn({6, 2, 3});
  const auto last = [&](const Tensor& lengths) { return layer(x, {}, lengths).last.hidden; };
  const auto compiled = compile(last, {.check = Check::never});
  for (int64_t i = 1; i <= 6; ++i) {
    const Tensor lengths = tensor({i, 7 - i});
    CHECK(same_bits(compiled(lengths), last(lengths)));
  }
  CHECK(compiled.explain().signatures.size() == 1);
  CHECK(compiled.explain().plan_calls == 4);
}

TEST_CASE("what goes from one recurrent layer to the next is dropped while training", "[nn]") {
  const Tensor x = ones({3, 2, 4});
  const nn::Gru one = nn::gru(4, 5, {.dropout = 0.5});
  CHECK(same_bits(one(x).sequence, one(x).sequence));
  const nn::Gru two = nn::gru(4, 5, {.layers = 2, .dropout = 0.5});
  CHECK(!same_bits(two(x).sequence, two(x).sequence));
  nn::eval(two);
  CHECK(same_bits(two(x).sequence, two(x).sequence));
}

TEST_CASE("recurrent layers refuse what does not fit", "[nn]") {
  const nn::Lstm lstm = nn::lstm(3, 4);
  const Tensor x = ones({5, 2, 3});
  CHECK_THROWS_WITH(lstm(ones({5, 2, 4})),
                    Catch::Contains("Lstm") && Catch::Contains("3 features"));
  CHECK_THROWS_WITH(lstm(ones({0, 2, 3})), Catch::Contains("at least one step"));
  CHECK_THROWS_WITH(lstm(x, nn::Lstm::State{ones({2, 4}), ones({2, 4})}),
                    Catch::Contains("the state is float32[2, 4]") && Catch::Contains("[1, 2, 4]"));
  CHECK_THROWS_WITH(lstm(x, {}, ones({2})), Catch::Contains("expected integers, got float32"));
  CHECK_THROWS_WITH(lstm(x, {}, ones({3}, i64)), Catch::Contains("`lengths`"));
  CHECK_THROWS_WITH(nn::gru(3, 4)(x, ones({1, 3, 4})), Catch::Contains("the state"));
  CHECK_THROWS_WITH(nn::gru(3, 0), Catch::Contains("gru: the setting `hidden`"));
  CHECK_THROWS_WITH(nn::lstm(3, 4, {.layers = 0}), Catch::Contains("`layers`"));
  CHECK_THROWS_WITH(nn::lstm(3, 4, {.dropout = 1}), Catch::Contains("`dropout`"));
  CHECK_THROWS_WITH(nn::rnn(3, 4, nn::Nonlinearity::gelu), Catch::Contains("tanh or relu"));
  CHECK_THROWS_WITH(nn::rnn_cell(3, 4)(ones({3})), Catch::Contains("unsqueeze"));
  nn::Gru uneven = nn::gru(3, 4, {.layers = 2});
  uneven.backward_layers.push_back(nn::gru_cell(3, 4));
  CHECK_THROWS_WITH(uneven(x), Catch::Contains("2 layers and 1 backward ones"));
}
