// Training by several ranks: the same as one rank on the whole batch.
#include "tests/dist/ranks.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <type_traits>
#include <unistd.h>
#include <vector>

namespace nitinol::distributed_training_test {
namespace {

using namespace nitinol::test;

struct Model {
  nn::Linear hidden = nn::linear(12, 31);
  nn::Linear out = nn::linear(31, 5);
  Tensor operator()(const Tensor& x) const { return out(relu(hidden(x))); }
};

/// The same on all ranks: samples of as many as all together see in a step.
struct Batch {
  Tensor x, y;
};
Batch whole_batch(int step) {
  const int64_t count = 8 * ranks();
  return {reshape(sin(arange(0, count * 12, 1, f32) * 0.37 + step), {count, 12}),
          reshape(cos(arange(0, count * 5, 1, f32) * 0.11 + step), {count, 5})};
}
Batch part_of(const Batch& all, int r) {
  const Range rows = {.start = 8 * r, .stop = 8 * (r + 1)};
  return {slice(all.x, 0, rows), slice(all.y, 0, rows)};
}

Tensor loss_of(const Model& model, const Batch& batch) {
  return mean(square(model(batch.x) - batch.y));
}

std::vector<Tensor> values_of(const std::vector<Variable>& variables) {
  std::vector<Tensor> values;
  for (const Variable& variable : variables) values.push_back(variable.get());
  return values;
}

void check_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(same_bits(a[i], b[i]));
}

/// The same model on all ranks, whose initial values are those of a seed.
Model model_of(uint64_t seed) {
  default_generator().manual_seed(seed);
  return {};
}

}  // namespace

TEST_CASE("broadcast gives all ranks the model of one", "[dist]") {
  const int root = ranks() - 1;
  const Model model = model_of(static_cast<uint64_t>(rank()));
  nn::broadcast(model, root);
  check_same(values_of(nn::parameters(model)),
             values_of(nn::parameters(model_of(static_cast<uint64_t>(root)))));
}

TEST_CASE("ranks with parts of a batch train as one with all of it", "[dist]") {
  for (const bool is_compiled : {false, true}) {
    for (const int64_t bucket : {int64_t{1}, int64_t{700}, int64_t{8'000'000}}) {
      CAPTURE(is_compiled, bucket);
      const Model model = model_of(3), alone = model_of(3);
      const nn::Adam optimizer(nn::parameters(model), {.rate = 1e-2});
      const nn::Adam other(nn::parameters(alone), {.rate = 1e-2});
      const auto step = [&](const Tensor& x, const Tensor& y) {
        optimizer.zero_grad();
        const Tensor loss = loss_of(model, {x, y});
        loss.backward();
        nn::average_gradients(nn::parameters(model), {.bucket_bytes = bucket});
        optimizer.step();
        return dist::all_reduce(loss, dist::Reduce::mean);
      };
      const auto f = compile(step, {.name = "step", .check = Check::never});
      for (int k = 0; k < 8; ++k) {
        const Batch batch = whole_batch(k), part = part_of(batch, rank());
        const Tensor loss = is_compiled ? f(part.x, part.y) : step(part.x, part.y);
        other.zero_grad();
        const Tensor expected = loss_of(alone, batch);
        expected.backward();
        other.step();
        CHECK(std::abs(loss.item<float>() - expected.item<float>()) < 1e-5F);
      }
      if (is_compiled) CHECK(f.explain().plan_calls == 6);
      for (const Variable& parameter : nn::parameters(model))
        CHECK(same_bits(dist::broadcast(parameter.get(), 0), parameter.get()));
    }
  }
}

TEST_CASE("a sharded optimizer gives the bits of a whole one", "[dist]") {
  const auto check = [&](auto tag, const auto& options) {
    using Rule = typename decltype(tag)::type;
    for (const bool is_compiled : {false, true}) {
      const Model model = model_of(5), other = model_of(5);
      nn::Sharded<Rule> optimizer(nn::parameters(model), options);
      const Rule expected(nn::parameters(other), options);
      const auto step = [&](const Tensor& x, const Tensor& y) {
        optimizer.zero_grad();
        const Tensor loss = loss_of(model, {x, y});
        loss.backward();
        optimizer.step();
        return loss;
      };
      const auto f = compile(step, {.check = Check::never});
      const auto both = [&](int k) {
        const Batch part = part_of(whole_batch(k), rank());
        static_cast<void>(is_compiled ? f(part.x, part.y) : step(part.x, part.y));
        expected.zero_grad();
        loss_of(other, part).backward();
        nn::average_gradients(nn::parameters(other));
        expected.step();
      };
      for (int k = 0; k < 5; ++k) both(k);
      check_same(values_of(nn::parameters(model)), values_of(nn::parameters(other)));
      // What is saved of it is what the whole one saves.
      const Rule gathered = optimizer.gathered();
      const auto state = nn::named_variables(gathered),
                 state_of_other = nn::named_variables(expected);
      REQUIRE(state.size() == state_of_other.size());
      for (std::size_t i = 0; i < state.size(); ++i) {
        CHECK(state[i].name == state_of_other[i].name);
        CHECK(same_bits(state[i].variable.get(), state_of_other[i].variable.get()));
      }
      // And a new one goes on from it.
      const Model later = model_of(6);
      const auto values = values_of(nn::parameters(model));
      for (std::size_t i = 0; i < values.size(); ++i) nn::parameters(later)[i].set(values[i]);
      const nn::Sharded<Rule> resumed(nn::parameters(later), options);
      resumed.scatter(gathered);
      const Batch part = part_of(whole_batch(9), rank());
      resumed.zero_grad();
      loss_of(later, part).backward();
      resumed.step();
      both(9);
      check_same(values_of(nn::parameters(later)), values_of(nn::parameters(other)));
    }
  };
  check(std::type_identity<nn::Adam>{}, nn::AdamOptions{.rate = 1e-2, .weight_decay = 1e-3});
  check(std::type_identity<nn::Sgd>{}, nn::SgdOptions{.rate = 1e-2, .momentum = 0.9});
  check(std::type_identity<nn::NAdam>{}, nn::NAdamOptions{});
  check(std::type_identity<nn::AdamW>{}, nn::AdamWOptions{});
  check(std::type_identity<nn::Lion>{}, nn::LionOptions{});
}

TEST_CASE("a sharded optimizer clips by the norm of the mean of all gradients", "[dist]") {
  for (const bool is_compiled : {false, true}) {
    const Model model = model_of(5), other = model_of(5);
    const nn::Sharded<nn::Sgd> optimizer(nn::parameters(model), {.rate = 0.1, .momentum = 0.9});
    const nn::Sgd expected(nn::parameters(other), {.rate = 0.1, .momentum = 0.9});
    const auto step = [&](const Tensor& x, const Tensor& y) {
      optimizer.zero_grad();
      loss_of(model, {x, y}).backward();
      const Tensor norm = optimizer.clip_gradient_norm(0.05);
      optimizer.clip_gradient_value(0.01);
      optimizer.step();
      return norm;
    };
    const auto f = compile(step, {.check = Check::never});
    for (int k = 0; k < 5; ++k) {
      const Batch part = part_of(whole_batch(k), rank());
      const Tensor norm = is_compiled ? f(part.x, part.y) : step(part.x, part.y);
      expected.zero_grad();
      loss_of(other, part).backward();
      nn::average_gradients(nn::parameters(other));
      const Tensor wanted = nn::clip_gradient_norm(nn::parameters(other), 0.05);
      nn::clip_gradient_value(nn::parameters(other), 0.01);
      expected.step();
      CHECK(wanted.item<float>() > 0.05F);
      CHECK(norm.item<float>() == Approx(wanted.item<float>()).epsilon(1e-5));
      CHECK(same_bits(dist::broadcast(norm, 0), norm));
    }
    const auto a = values_of(nn::parameters(model)), b = values_of(nn::parameters(other));
    for (std::size_t i = 0; i < a.size(); ++i) {
      CHECK(allclose(a[i], b[i], 1e-5, 1e-6).item<bool>());
      CHECK(same_bits(dist::broadcast(a[i], 0), a[i]));
    }
  }
}

TEST_CASE("gradients that overflow on one rank hold back all parts", "[dist]") {
  const Model model = model_of(5);
  const nn::Sharded<nn::Adam> optimizer(nn::parameters(model));
  const nn::LossScale scale;
  const std::vector<Tensor> before = values_of(nn::parameters(model));
  const auto step = [&](float factor) {
    optimizer.zero_grad();
    scale(loss_of(model, part_of(whole_batch(0), rank())) * factor).backward();
    // In one parameter, of which one rank has the part.
    if (rank() == ranks() - 1 && factor > 1) {
      const Variable last = nn::parameters(model).back();
      last.set_grad(full(last.shape(), std::numeric_limits<float>::infinity()));
    }
    const Tensor is_finite = optimizer.unscale(scale);
    optimizer.step(is_finite);
    return is_finite.item<bool>();
  };
  CHECK_FALSE(step(2));
  check_same(values_of(nn::parameters(model)), before);
  CHECK(scale.value().item<float>() == 32768);
  CHECK(step(1));
  CHECK_FALSE(same_bits(nn::parameters(model)[0].get(), before[0]));
  for (const Tensor& value : values_of(nn::parameters(model)))
    CHECK(same_bits(dist::broadcast(value, 0), value));
}

TEST_CASE("the norm of gradients of which each rank has a part", "[dist]") {
  const Variable own = parameter(zeros({2}));
  own.set_grad(full({2}, 1.0F + static_cast<float>(rank())));
  double squares = 0;
  for (int r = 0; r < ranks(); ++r) squares += 2.0 * (1 + r) * (1 + r);
  const Tensor norm = nn::clip_gradient_norm({own}, 1.0, dist::world());
  CHECK(norm.item<float>() == Approx(std::sqrt(squares)));
  CHECK(own.grad().to_vector<float>()[0] == Approx((1.0 + rank()) / std::sqrt(squares)));
}

TEST_CASE("resuming on another number of ranks", "[dist]") {
  // Saved by all ranks, read by groups of one and of all.
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() /
      ("nitinol_dist_" +
       std::to_string(dist::broadcast(tensor(int64_t{getpid()}), 0).item<int64_t>()));
  struct Saved {
    Model model;
    nn::Adam optimizer;
  };
  const Model model = model_of(8);
  const nn::Sharded<nn::Adam> optimizer(nn::parameters(model), {.rate = 1e-2});
  const auto step = [](const Model& m, const auto& o, const Batch& batch) {
    o.zero_grad();
    loss_of(m, batch).backward();
    o.step();
  };
  for (int k = 0; k < 3; ++k) step(model, optimizer, part_of(whole_batch(k), rank()));
  const Saved saved = {model, optimizer.gathered()};
  if (rank() == 0) nn::save(path, saved);
  dist::barrier();
  // One rank alone, on the same part as the others, ends where the whole does on that part.
  const dist::Group alone = dist::world().split(rank());
  const Model first = model_of(1), second = model_of(2);
  const Saved read = {first, nn::Adam(nn::parameters(first), {.rate = 1e-2})};
  nn::load(path, read);
  const nn::Sharded<nn::Adam> of_one(nn::parameters(first), {.rate = 1e-2}, alone);
  of_one.scatter(read.optimizer);
  const Saved again = {second, nn::Adam(nn::parameters(second), {.rate = 1e-2})};
  nn::load(path, again);
  const nn::Sharded<nn::Adam> of_all_again(nn::parameters(second), {.rate = 1e-2});
  of_all_again.scatter(again.optimizer);
  for (int k = 3; k < 6; ++k) {
    const Batch same = part_of(whole_batch(k), 0);
    step(first, of_one, same);
    step(second, of_all_again, same);
  }
  const auto a = values_of(nn::parameters(first)), b = values_of(nn::parameters(second));
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(allclose(a[i], b[i], 1e-5, 1e-6).item<bool>());
  dist::barrier();
  if (rank() == 0) std::filesystem::remove(path);
}

TEST_CASE("statistics of all ranks together", "[dist]") {
  for (const bool is_compiled : {false, true}) {
    const nn::BatchNorm own_layer = nn::batch_norm(5, {.is_synchronized = true});
    const nn::BatchNorm whole_layer = nn::batch_norm(5);
    // Of unequal sizes: rank r has 3 + r samples.
    std::vector<Tensor> all;
    for (int r = 0; r < ranks(); ++r) all.push_back(of_rank(r, {3 + r, 5, 4}, f32));
    const Variable x = parameter(all[static_cast<std::size_t>(rank())]);
    const Variable whole = parameter(concat(all));
    const auto f = compile(
        [&](const Tensor&) {
          x.clear_grad();
          const Tensor y = own_layer(x.get());
          sum(square(y) * sin(y)).backward();
          return y;
        },
        {.check = Check::never});
    for (int call = 0; call < 4; ++call) {
      Tensor y;
      if (is_compiled) {
        y = f(zeros({}));
      } else {
        x.clear_grad();
        y = own_layer(x.get());
        sum(square(y) * sin(y)).backward();
      }
      whole.clear_grad();
      const Tensor expected = whole_layer(whole.get());
      sum(square(expected) * sin(expected)).backward();
      int64_t begin = 0;
      for (int r = 0; r < rank(); ++r) begin += 3 + r;
      const Range rows = {.start = begin, .stop = begin + 3 + rank()};
      CHECK(allclose(y, slice(expected, 0, rows), 1e-4, 1e-5).item<bool>());
      CHECK(allclose(x.grad(), slice(whole.grad(), 0, rows), 1e-3, 1e-4).item<bool>());
      CHECK(allclose(own_layer.running_mean.get(), whole_layer.running_mean.get(), 1e-5, 1e-5)
                .item<bool>());
      CHECK(allclose(own_layer.running_var.get(), whole_layer.running_var.get(), 1e-4, 1e-5)
                .item<bool>());
    }
    if (is_compiled) CHECK(f.explain().plan_calls >= 1);
  }
}

TEST_CASE("seeds of ranks", "[dist]") {
  nn::seed_ranks(4);
  const Tensor drawn = randn({1000});
  const Tensor all = reshape(dist::all_gather(drawn), {ranks(), 1000});
  for (int r = 0; r < ranks(); ++r) CHECK(same_bits(all[r], drawn) == (r == rank()));
  nn::seed_ranks(4);
  CHECK(same_bits(randn({1000}), drawn));
}

TEST_CASE("each rank sees its share of the data", "[dist]") {
  const int64_t count = 103;
  nn::DataLoader loader({arange(0, count, 1, i64)},
                        {.batch = 4, .seed = 2, .shard = nn::shard_of(dist::world())});
  std::vector<int64_t> seen;
  int64_t batches = 0;
  for (const auto& batch : loader) {
    const std::vector<int64_t> some = batch[0].to_vector<int64_t>();
    seen.insert(seen.end(), some.begin(), some.end());
    ++batches;
  }
  CHECK(batches == loader.size());
  const auto share = static_cast<std::size_t>((count + ranks() - 1) / ranks());
  CHECK(seen.size() == share);
  std::vector<int64_t> all =
      dist::all_gather(tensor(std::span<const int64_t>(seen))).to_vector<int64_t>();
  std::ranges::sort(all);
  all.erase(std::unique(all.begin(), all.end()), all.end());
  CHECK(all.size() == static_cast<std::size_t>(count));
}

}  // namespace nitinol::distributed_training_test
