// fit() by several ranks: what one with all samples comes to, and the same steps on all of them.
#include "tests/dist/ranks.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <utility>
#include <vector>

namespace nitinol::fit_by_ranks_test {
namespace {

using namespace nitinol::test;

struct Net {
  nn::Linear hidden = nn::linear(5, 12), out = nn::linear(12, 2);
  Tensor operator()(const Tensor& x) const { return out(tanh(hidden(x))); }
};
struct Noisy {
  nn::Linear hidden = nn::linear(5, 12), out = nn::linear(12, 2);
  nn::BatchNorm norm = nn::batch_norm(12);
  nn::Dropout drop = nn::dropout(0.25);
  Tensor operator()(const Tensor& x) const { return out(drop(tanh(norm(hidden(x))))); }
};

/// The same on all ranks.
nn::DataLoader loader_of(int64_t rows, const nn::DataLoaderOptions& options) {
  const Tensor x = randn({rows, 5}, f32, Generator(4));
  return nn::DataLoader({x, cast(sum(x, {-1}) > 0, i64)}, options);
}

Tensor loss_of(const Tensor& out, const Tensor& y) {
  return nn::cross_entropy(out, y);
}

/// That all ranks have the same bits.
void check_alike(const std::vector<nn::NamedVariable>& variables) {
  for (const nn::NamedVariable& one : variables) {
    INFO(one.name);
    CHECK(same_bits(dist::broadcast(one.variable.get(), 0), one.variable.get()));
  }
}
void check_alike(const nn::History& history) {
  std::vector<double> values;
  for (const nn::Epoch& epoch : history)
    for (const auto& [name, value] : epoch.values) values.push_back(value);
  const int64_t count =
      dist::broadcast(tensor(static_cast<int64_t>(values.size())), 0).item<int64_t>();
  REQUIRE(count == static_cast<int64_t>(values.size()));
  const Tensor own = tensor(std::span<const double>(values));
  CHECK(same_bits(dist::broadcast(own, 0), own));
}

std::filesystem::path shared_path(const std::string& name) {
  const int64_t number = dist::broadcast(tensor(int64_t{getpid()}), 0).item<int64_t>();
  return std::filesystem::temp_directory_path() / ("nitinol_" + name + std::to_string(number));
}

}  // namespace

TEST_CASE("fit() by ranks with parts of a batch ends where one with all of it does", "[dist]") {
  const nn::Shard shard = nn::shard_of(dist::world());
  const dist::Group alone = dist::world().split(rank());
  for (const bool is_compiled : {true, false}) {
    CAPTURE(is_compiled);
    const auto trained = [&](const Net& net, bool is_alone) {
      nn::DataLoader loader = loader_of(240, {.batch = is_alone ? 60 : 60 / ranks(),
                                              .seed = 3,
                                              .shard = is_alone ? nn::Shard{} : shard});
      nn::DataLoader held_out = loader_of(
          60, {.batch = 60, .is_shuffled = false, .shard = is_alone ? nn::Shard{} : shard});
      const nn::Adam optimizer(nn::parameters(net), {.rate = 0.02});
      return nn::fit(
          net, loss_of, optimizer, loader,
          {.epochs = 3,
           .validation = &held_out,
           .metrics = {nn::accuracy(),
                       nn::Metric{"greatest",
                                  [](const Tensor& out, const Tensor&) { return max(out, {-1}); },
                                  [](const Tensor& rows) { return cast(max(rows), f64); }}},
           .largest_norm = 0.5,
           .is_compiled = is_compiled,
           .group = is_alone ? std::optional(alone) : std::nullopt});
    };
    manual_seed(static_cast<uint64_t>(7 + rank()));  // but all begin with what rank 0 has
    const Net net;
    manual_seed(7);
    const Net expected;
    const nn::History history = trained(net, false), of_one = trained(expected, true);
    REQUIRE(history.size() == 3);
    for (std::size_t i = 0; i < history.size(); ++i) {
      for (const auto& [name, value] : of_one[i].values) {
        INFO(name);
        CHECK(history[i].value(name) == Approx(value).epsilon(1e-4));
      }
    }
    const auto got = nn::parameters(net), wanted = nn::parameters(expected);
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK(allclose(got[i].get(), wanted[i].get(), 1e-3, 1e-5).item<bool>());
    check_alike(nn::named_variables(net));
    check_alike(history);
  }
}

TEST_CASE("fit() by ranks with unequally many batches makes as many steps on each", "[dist]") {
  const bool is_stream = GENERATE(false, true);
  CAPTURE(is_stream);
  const int64_t batches = 3 + rank();
  const Tensor x = randn({8 * batches, 5}, f32, Generator(static_cast<uint64_t>(rank())));
  const Tensor y = cast(sum(x, {-1}) > 0, i64);
  nn::DataLoader of_tensors({x, y}, {.batch = 8});
  nn::DataLoader of_stream(nn::stream([&] {
                             return [&, i = int64_t{0}]() mutable -> std::optional<nn::Batch> {
                               if (i == 8 * batches) return std::nullopt;
                               const int64_t row = i++;
                               return nn::Batch{x[row], y[row]};
                             };
                           }),
                           {.batch = 8});
  nn::DataLoader& loader = is_stream ? of_stream : of_tensors;
  nn::DataLoader held_out({x, y}, {.batch = 5});
  const Net net;
  const nn::Adam optimizer(nn::parameters(net), {.rate = 0.01});
  std::vector<int64_t> steps;
  const nn::History history = nn::fit(net, loss_of, optimizer, loader,
                                      {.epochs = 3,
                                       .validation = &held_out,
                                       .metrics = {nn::accuracy()},
                                       .schedule = [&](int64_t step) {
                                         steps.push_back(step);
                                         return 0.01;
                                       }});
  CHECK(steps.size() == 9);
  CHECK(loader.is_between_passes());
  check_alike(nn::named_variables(net));
  check_alike(history);
  // Of the whole validation, whoever has however much of it.
  nn::eval(net);
  const Tensor out = net(x);
  const Tensor right = dist::all_reduce(sum(cast(argmax(out, -1) == y, f64)));
  const Tensor count = dist::all_reduce(tensor(static_cast<double>(x.shape()[0]), f64));
  CHECK(history[2].value("validation accuracy") ==
        Approx((right / count).item<double>()).epsilon(1e-12));
}

TEST_CASE("fit() by ranks stops early on all of them", "[dist]") {
  // Rank 0's own samples get worse from the second epoch on, those of all together from the third.
  nn::DataLoader loader =
      loader_of(24, {.batch = 24 / ranks(), .shard = nn::shard_of(dist::world())});
  const Net net;
  const nn::Sgd optimizer(nn::parameters(net), {.rate = 0.0});
  double epoch = 0;
  const nn::Metric told = {"told", [&](const Tensor& out, const Tensor&) {
                             const double lasts = rank() == 0 ? 1 : 30;
                             const double value = std::abs(++epoch - lasts);
                             return full({out.shape()[0]}, value, f64);
                           }};
  const nn::History history =
      nn::fit(net, loss_of, optimizer, loader,
              {.epochs = 9,
               .metrics = {told},
               .early_stopping = nn::EarlyStopping{.monitor = "told", .patience = 2},
               .is_compiled = false});
  check_alike(history);
  CHECK(history.size() == (ranks() == 1 ? 3 : ranks() == 2 ? 3 : 9));
}

TEST_CASE("what fit() calls and writes is rank 0's", "[dist]") {
  nn::DataLoader loader =
      loader_of(48, {.batch = 12 / ranks(), .shard = nn::shard_of(dist::world())});
  const Net net;
  const nn::Sgd optimizer(nn::parameters(net), {.rate = 0.1});
  const std::filesystem::path folder = shared_path("log_");
  std::optional<nn::MetricLog> log;
  if (rank() == 0) log.emplace(folder);  // the others need not have one
  int called = 0, explained = 0;
  const nn::FitOptions options = {.epochs = 2,
                                  .log = log ? &*log : nullptr,
                                  .after_epoch =
                                      [&](const nn::Epoch&) {
                                        ++called;
                                        optimizer.set_rate(0.05);
                                        net.out.bias->set(net.out.bias->get() + 1);
                                      },
                                  .explain = [&](const Explanation&) { ++explained; }};
  nn::fit(net, loss_of, optimizer, loader, options);
  CHECK(called == (rank() == 0 ? 2 : 0));
  CHECK(explained == (rank() == 0 ? 1 : 0));
  CHECK(optimizer.rate().get().item<double>() == 0.05);
  check_alike(nn::named_variables(net));
  dist::barrier();
  if (rank() == 0) std::filesystem::remove_all(folder);
}

TEST_CASE("fit() by ranks goes on from a checkpoint with the bits it would have had", "[dist]") {
  const std::filesystem::path path = shared_path("fit_");
  struct Interrupt : std::runtime_error {
    Interrupt() : std::runtime_error("the power is gone") {}
  };
  const auto trained = [&](const std::vector<int64_t>& stops) {
    for (std::size_t run = 0; run <= stops.size(); ++run) {
      manual_seed(run == 0 ? 5 : 77);
      const Noisy net;
      nn::seed_ranks(9);
      const nn::AdamW optimizer(nn::parameters(net), {.rate = 0.02});
      nn::DataLoader loader =
          loader_of(96, {.batch = 24 / ranks(), .seed = 3, .shard = nn::shard_of(dist::world())});
      int64_t steps = 0;
      try {
        const nn::History history = nn::fit(net, loss_of, optimizer, loader,
                                            {.epochs = 3,
                                             .metrics = {nn::accuracy()},
                                             .checkpoint = path,
                                             .checkpoint_steps = 3,
                                             .schedule = [&](int64_t) {
                                               if (run < stops.size() && steps++ == stops[run])
                                                 throw Interrupt();
                                               return 0.01;
                                             }});
        check_alike(nn::named_variables(net));
        std::vector<Tensor> state;
        for (const nn::NamedVariable& one : nn::named_variables(net))
          state.push_back(one.variable.get());
        for (const nn::NamedVariable& one : nn::named_variables(optimizer))
          state.push_back(one.variable.get());
        state.push_back(default_generator().state().get());
        return std::pair(state, history);
      } catch (const Interrupt&) {
        REQUIRE(run < stops.size());
      }
    }
    return std::pair(std::vector<Tensor>(), nn::History());
  };
  const auto [whole, history] = trained({});
  dist::barrier();
  if (rank() == 0) std::filesystem::remove(path);
  dist::barrier();
  const auto [resumed, again] = trained({4, 5});
  REQUIRE(whole.size() == resumed.size());
  for (std::size_t i = 0; i < whole.size(); ++i) CHECK(same_bits(whole[i], resumed[i]));
  REQUIRE(history.size() == again.size());
  for (std::size_t i = 0; i < history.size(); ++i)
    CHECK(history[i].value("loss") == Approx(again[i].value("loss")).epsilon(1e-12));
  // Ranks drew numbers of their own.
  const Tensor key = slice(default_generator().state().get(), 0, {.start = 0, .stop = 1});
  const std::vector<int64_t> keys = dist::all_gather(key).to_vector<int64_t>();
  for (std::size_t r = 1; r < keys.size(); ++r) CHECK(keys[r] != keys[r - 1]);
  dist::barrier();
  if (rank() == 0) std::filesystem::remove(path);
}

TEST_CASE("fit() by ranks with a sharded optimizer comes to the bits of a whole one", "[dist]") {
  const bool is_compiled = GENERATE(true, false);
  CAPTURE(is_compiled);
  const auto trained = [&](const Net& net, const auto& optimizer, nn::FitOptions options) {
    nn::DataLoader loader =
        loader_of(96, {.batch = 24 / ranks(), .seed = 3, .shard = nn::shard_of(dist::world())});
    options.epochs = 3;
    options.is_compiled = is_compiled;
    return nn::fit(net, loss_of, optimizer, loader, options);
  };
  const auto check_with = [&](const nn::FitOptions& options, bool is_exact) {
    // Made before the ranks agree on the model: its parts are those of the model that fit() shares.
    manual_seed(static_cast<uint64_t>(7 + rank()));
    const Net net;
    const nn::Sharded<nn::Adam> sharded(nn::parameters(net), {.rate = 0.02});
    manual_seed(7);
    const Net other;
    const nn::Adam whole(nn::parameters(other), {.rate = 0.02});
    const nn::History history = trained(net, sharded, options),
                      expected = trained(other, whole, options);
    for (std::size_t i = 0; i < history.size(); ++i)
      CHECK(history[i].value("loss") == Approx(expected[i].value("loss")).epsilon(1e-5));
    const auto got = nn::parameters(net), wanted = nn::parameters(other);
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(allclose(got[i].get(), wanted[i].get(), 1e-4, 1e-6).item<bool>());
      if (is_exact) CHECK(same_bits(got[i].get(), wanted[i].get()));
    }
    check_alike(nn::named_variables(net));
    check_alike(history);
    // And goes on from what the model holds: a step of no rate moves nothing.
    sharded.set_rate(0);
    sharded.zero_grad();
    sum(net(ones({3, 5}))).backward();
    const std::vector<Tensor> before = {got[0].get(), got[1].get()};
    sharded.step();
    for (std::size_t i = 0; i < before.size(); ++i) CHECK(same_bits(got[i].get(), before[i]));
  };
  check_with({}, true);
  // A norm of parts is summed in another order.
  check_with({.loss_scale = nn::LossScale(), .largest_norm = 0.05}, false);
  // The epochs get worse.
  double epoch = 0;
  const nn::Metric worse = {"worse", [&](const Tensor& out, const Tensor&) {
                              return full({out.shape()[0]}, ++epoch, f64);
                            }};
  if (!is_compiled)
    check_with({.metrics = {worse},
                .early_stopping = nn::EarlyStopping{.monitor = "worse", .patience = 1}},
               true);
}

TEST_CASE("what fit() calls may change the model and the rate of a sharded optimizer", "[dist]") {
  nn::DataLoader loader =
      loader_of(48, {.batch = 12 / ranks(), .shard = nn::shard_of(dist::world())});
  const Net net;
  const nn::Sharded<nn::Sgd> optimizer(nn::parameters(net), {.rate = 0.1});
  nn::fit(net, loss_of, optimizer, loader, {.epochs = 2, .after_epoch = [&](const nn::Epoch&) {
                                              optimizer.set_rate(0);
                                              net.out.bias->set(full({2}, 5.0F));
                                            }});
  CHECK(optimizer.rate().get().item<double>() == 0);
  CHECK(same_bits(net.out.bias->get(), full({2}, 5.0F)));  // the second epoch moves nothing
  check_alike(nn::named_variables(net));
}

TEST_CASE("fit() goes on from a sharded optimizer's checkpoint, by whoever reads it", "[dist]") {
  const std::filesystem::path path = shared_path("sharded_");
  const dist::Group alone = dist::world().split(rank());
  // Each step has the gradients of the same batch, however many ranks there are.
  const auto trained = [&](int64_t epochs, const dist::Group& group, bool is_sharded) {
    manual_seed(static_cast<uint64_t>(50 + epochs));
    const Net net;
    nn::DataLoader loader = loader_of(24, {.batch = 24, .is_shuffled = false});
    const nn::FitOptions options = {.epochs = epochs, .checkpoint = path, .group = group};
    nn::History history;
    if (is_sharded) {
      const nn::Sharded<nn::Adam> optimizer(nn::parameters(net), {.rate = 0.02}, group);
      history = nn::fit(net, loss_of, optimizer, loader, options);
    } else {
      const nn::Adam optimizer(nn::parameters(net), {.rate = 0.02});
      history = nn::fit(net, loss_of, optimizer, loader, options);
    }
    CHECK(history.size() == static_cast<std::size_t>(epochs));
    std::vector<Tensor> values;
    for (const Variable& one : nn::parameters(net)) values.push_back(one.get());
    dist::barrier();  // files of groups of one lie at the same place
    return values;
  };
  const auto begin = [&] {
    if (rank() == 0) std::filesystem::remove(path);
    dist::barrier();
    static_cast<void>(trained(2, dist::world(), true));
  };
  begin();
  const std::vector<Tensor> by_all = trained(5, dist::world(), true);
  begin();
  const std::vector<Tensor> whole = trained(5, dist::world(), false);
  begin();
  const std::vector<Tensor> again = [&] {  // one rank after the other
    std::vector<Tensor> values;
    for (int r = 0; r < ranks(); ++r) {
      if (r > 0) begin();
      if (r == rank()) {
        manual_seed(99);
        const Net net;
        nn::DataLoader loader = loader_of(24, {.batch = 24, .is_shuffled = false});
        const nn::Sharded<nn::Adam> optimizer(nn::parameters(net), {.rate = 0.5}, alone);
        nn::fit(net, loss_of, optimizer, loader, {.epochs = 5, .checkpoint = path});
        for (const Variable& one : nn::parameters(net)) values.push_back(one.get());
      }
      dist::barrier();
    }
    return values;
  }();
  for (std::size_t i = 0; i < by_all.size(); ++i) {
    CHECK(same_bits(by_all[i], whole[i]));
    CHECK(allclose(by_all[i], again[i], 1e-4, 1e-6).item<bool>());
  }
  if (rank() == 0) std::filesystem::remove(path);
}

TEST_CASE("fit() refuses another group than its sharded optimizer has", "[dist]") {
  const dist::Group alone = dist::world().split(rank());
  const Net net;
  const nn::Sharded<nn::Sgd> optimizer(nn::parameters(net), {.rate = 0.1});
  nn::DataLoader loader = loader_of(24, {.batch = 24});
  CHECK_THROWS_WITH(nn::fit(net, loss_of, optimizer, loader, {.group = alone}),
                    Catch::StartsWith("fit: the option `group`: expected the group of the "
                                      "Sharded optimizer, got another"));
}

TEST_CASE("fit() says so where all ranks have got the same samples", "[dist]") {
  std::string said;
  const struct Sink {
    explicit Sink(LogSink sink) { set_log_sink(std::move(sink)); }
    ~Sink() { set_log_sink({}); }
  } sink([&](LogLevel, std::string_view text) { said += text; });
  const Net net;
  const nn::Sgd optimizer(nn::parameters(net), {.rate = 0.1});
  nn::DataLoader forgotten = loader_of(24, {.batch = 24});
  nn::fit(net, loss_of, optimizer, forgotten);
  const bool has_said = said.find("all ranks have got the same samples") != std::string::npos;
  said.clear();
  nn::DataLoader parts = loader_of(24, {.batch = 24, .shard = nn::shard_of(dist::world())});
  nn::fit(net, loss_of, optimizer, parts);
  CHECK(has_said == (ranks() > 1 && rank() == 0));
  CHECK(said.find("all ranks have got the same samples") == std::string::npos);
}

}  // namespace nitinol::fit_by_ranks_test
