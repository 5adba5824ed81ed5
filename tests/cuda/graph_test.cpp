// Calls of compiled functions as one launch: by the fake driver, whose graphs run their nodes in
// the latest order that their edges allow, in ctest's cuda.fake.calls; and but for what looks at
// that driver by a real one, in ./dev gpu.
#include "core/backend.h"
#include "core/executables.h"
#include "jit/profile.h"
#include "nitinol.h"
#include "tests/cuda/replayed.h"
#include "tests/jit/passes/pass_text.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace nitinol::graph_test {

using namespace nitinol::test;

TEST_CASE("a warm call on a GPU is one launch, with the same bits", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  const Tensor x = input(1), expected = several_steps(x).to(Device{});
  const auto f = compile(several_steps, {.check = Check::never});
  warm_up(f, x);
  const FakeCounts before = driver->counts();
  const Tensor y = f(x);
  const FakeCounts after = driver->counts();
  CHECK(after.graph_launches == before.graph_launches + 1);
  CHECK(after.launches == before.launches);
  CHECK(after.waits == before.waits);
  CHECK(same_bits(y.to(Device{}), expected));
  const program::ReplayReport replays = replays_of(f);
  CHECK(replays.replays == 3);
  CHECK(replays.updated == 0);
  CHECK(has(to_string(f.explain()), "graph: 3 replays, 1 made, 0 updated\n"));
  CHECK(has(f.explain().to_json(), "\"made\": 1"));
}

TEST_CASE("graphs are left out with the pass, and the bits stay", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const Tensor x = input(1), expected = several_steps(x).to(Device{});
  const WithoutPasses step_by_step({"cuda_graph"});
  const auto f = compile(several_steps, {.check = Check::never});
  Tensor y;
  for (int call = 0; call < 8; ++call) y = f(x);
  CHECK(same_bits(y.to(Device{}), expected));
  CHECK(replays_of(f).replays == 0);
  CHECK(has(to_string(f.explain()), "no graph: it is left out\n"));
}

TEST_CASE("few steps make no graph, and the CPU none", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const auto f = compile([](const Tensor& v) { return exp(v) * 2; }, {.check = Check::never});
  const Tensor x = input(1), here = x.to(Device{});
  for (int call = 0; call < 8; ++call) static_cast<void>(f(x));
  CHECK(has(to_string(f.explain()), "no graph: 1 step is too few\n"));
  const auto g = compile(several_steps, {.check = Check::never});
  for (int call = 0; call < 8; ++call) static_cast<void>(g(here));
  CHECK(!has(to_string(g.explain()), "graph:"));
}

TEST_CASE("no replay stores where an earlier result is", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const auto f = compile(several_steps, {.check = Check::never});
  std::vector<Tensor> inputs, results;
  for (int i = 0; i < 3; ++i) inputs.push_back(input(i));
  for (int call = 0; call < 40; ++call) {
    results.push_back(f(inputs[static_cast<std::size_t>(call) % 3]));
    if (call % 8 == 7) results.erase(results.begin(), results.begin() + 5);
    for (std::size_t i = 0; i < results.size(); ++i) {
      const std::size_t made_by = static_cast<std::size_t>(call) + 1 - results.size() + i;
      CHECK(same_bits(results[i].to(Device{}), several_steps(inputs[made_by % 3]).to(Device{})));
    }
  }
}

TEST_CASE("a replay reads its own arguments, not those that lay there", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const auto f = compile(several_steps, {.check = Check::never});
  Tensor x = input(1);
  warm_up(f, x);
  const void* const address = x.internals().address();
  for (int round = 2; round < 12; ++round) {
    const Tensor kept = round % 2 == 0 ? Tensor() : x;
    x = Tensor();
    const Tensor poison = full({40, 100}, NAN, f32, gpu);  // where x has lain, unless that is kept
    CHECK((poison.internals().address() == address) == !kept.is_defined());
    x = input(round);
    const Tensor expected = several_steps(x).to(Device{});
    CHECK(same_bits(f(x).to(Device{}), expected));
    x = Tensor();
    if (!kept.is_defined()) continue;
    x = kept;
  }
}

TEST_CASE("up to sixteen graphs are made where addresses change, and then changed",
          "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const auto f = compile(several_steps, {.check = Check::never});
  std::vector<Tensor> inputs, expected;
  for (int i = 0; i < 18; ++i) {
    inputs.push_back(input(i));
    expected.push_back(several_steps(inputs.back()).to(Device{}));
  }
  const auto run = [&](std::size_t count, int calls) {
    for (int call = 0; call < calls; ++call) {
      const std::size_t i = static_cast<std::size_t>(call) % count;
      CHECK(same_bits(f(inputs[i]).to(Device{}), expected[i]));
    }
  };
  run(3, 60);
  program::ReplayReport replays = replays_of(f);
  CHECK(replays.made == 3);
  CHECK(replays.updated == 0);
  CHECK(replays.replays > 40);
  // More than are kept: what a library launches is captured again, each once.
  run(18, 200);
  replays = replays_of(f);
  CHECK(replays.made == 16);
  CHECK(replays.updated > 0);
  const uint64_t captures = calls_of("cuStreamBeginCapture_v2");
  run(18, 60);
  CHECK(calls_of("cuStreamBeginCapture_v2") == captures);
  CHECK(replays_of(f).replays == replays.replays + 60);
}

TEST_CASE("what never comes again to a library is not captured at each call",
          "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const auto f = compile(several_steps, {.check = Check::never});
  std::vector<Tensor> kept;
  const uint64_t before = calls_of("cuStreamBeginCapture_v2");
  for (int call = 0; call < 40; ++call) {
    kept.push_back(input(call));
    CHECK(same_bits(f(kept.back()).to(Device{}), several_steps(kept.back()).to(Device{})));
  }
  CHECK(replays_of(f).made <= 1);
  CHECK(calls_of("cuStreamBeginCapture_v2") <= before + 2);
}

TEST_CASE("kernels of a graph are given other addresses where no library sees them",
          "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const auto step = [](const Tensor& x, const Tensor& y) {
    return std::vector<Tensor>{sum(exp(x), 0), sum(exp(x) * 2, 1) + sum(y), cumsum(y, 0)};
  };
  const auto f = compile(step, {.check = Check::never});
  const Tensor x = input(1);
  std::vector<Tensor> kept;
  for (int call = 0; call < 30; ++call) {
    kept.push_back(input(call));  // never where an earlier one was
    const std::vector<Tensor> expected = step(x, kept.back()), results = f(x, kept.back());
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(same_bits(results[i].to(Device{}), expected[i].to(Device{})));
  }
  const program::ReplayReport replays = replays_of(f);
  INFO(to_string(f.explain()));
  CHECK(replays.made == 1);
  CHECK(replays.updated > 15);
  CHECK(replays.replays == replays.updated + 1);
}

TEST_CASE("numbers of a call are a graph's, too", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const auto step = [](const Tensor& x, const Scalar& factor) {
    return softmax(matmul(x, transpose(x)) * factor) + sum(x * factor);
  };
  const auto f = compile(step, {.check = Check::never});
  const Tensor x = input(1);
  for (int call = 0; call < 20; ++call) {
    const double factor = 0.25 * call;
    const Tensor expected = step(x, factor);
    CHECK(same_bits(f(x, factor).to(Device{}), expected.to(Device{})));
  }
  CHECK(replays_of(f).made == 1);
  CHECK(replays_of(f).updated > 10);
}

TEST_CASE("random numbers go on from replay to replay", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const Device before = default_device();
  set_default_device(gpu);
  const auto step = [](const Tensor& x) {
    return matmul(x, transpose(x)) + sum(x * rand({40, 100})) + sum(rand({7}));
  };
  const Tensor x = input(1);
  std::vector<Tensor> expected;
  manual_seed(7);
  for (int call = 0; call < 12; ++call) expected.push_back(step(x).to(Device{}));
  const auto f = compile(step, {.check = Check::never});
  manual_seed(7);
  for (int call = 0; call < 12; ++call)
    CHECK(same_bits(f(x).to(Device{}), expected.at(static_cast<std::size_t>(call))));
  CHECK(replays_of(f).replays > 3);
  set_default_device(before);
}

namespace {

std::vector<float> value(const Variable& variable) {
  return variable.get().to_vector<float>();
}

}  // namespace

TEST_CASE("a failed check within a graph discards its call and those that followed",
          "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  Model model;
  const auto step = model.step();
  const Tensor good = tensor(std::vector{1, 3}).to(gpu), bad = tensor(std::vector{1, 4}).to(gpu);
  for (int call = 0; call < 30; ++call) static_cast<void>(step(good));
  synchronize(gpu);
  INFO(to_string(step.explain()));
  REQUIRE(replays_of(step).made > 0);
  const std::vector<float> before = value(model.table), count = value(model.count);
  const uint64_t waits = counts_of_fake().waits;
  Tensor failed = step(bad);
  for (int call = 0; call < 3; ++call) static_cast<void>(step(good));
  CHECK(counts_of_fake().waits == waits);
  const std::string error = error_of([&] { static_cast<void>(failed.item<float>()); });
  CHECK(has(error, "4"));
  CHECK(value(model.table) == before);
  CHECK(value(model.count) == count);
  // And the next ones do what they are asked for.
  static_cast<void>(error_of([&] { static_cast<void>(step(good)); }));
  for (int call = 0; call < 20; ++call) static_cast<void>(step(good));
  synchronize(gpu);
  CHECK(value(model.count)[0] >= count[0] + 20);
  CHECK(value(model.table)[0] == before[0] - 0.5F * (value(model.count)[0] - count[0]));
}

TEST_CASE("checks of a function that two models use are each its own", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const auto step = compile(
      [](const Variable& table, const Tensor& places) {
        const Tensor taken = take(table, places, 0);
        table -= 0.5;
        return sum(matmul(taken, transpose(taken)));
      },
      {.check = Check::never});
  const Tensor good = tensor(std::vector{1, 3}).to(gpu), bad = tensor(std::vector{1, 4}).to(gpu);
  const Variable a(reshape(arange(12, f32, gpu), {4, 3})), b(reshape(arange(12, f32, gpu), {4, 3}));
  for (int call = 0; call < 40; ++call) static_cast<void>(step(call % 2 == 0 ? a : b, good));
  synchronize(gpu);
  REQUIRE(replays_of(step).replays > 8);
  const std::vector<float> of_a = value(a), of_b = value(b);
  const Tensor failed = step(a, bad), right = step(b, good);
  static_cast<void>(right.item<float>());
  CHECK(!error_of([&] { static_cast<void>(failed.item<float>()); }).empty());
  CHECK(value(a) == of_a);
  CHECK(value(b)[0] == of_b[0] - 0.5F);
}

TEST_CASE("convolutions are captured, with the copies that they need", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  for (const DType dtype : {f32, f16}) {
    const auto step = [](const Tensor& images, const Tensor& filter) {
      const Tensor y = relu(conv2d(images, filter));
      return sum(conv2d(transpose(y, 2, 3), filter)) + y;
    };
    const Tensor images = reshape(cast(arange(2 * 8 * 9 * 9) % 7 - 3, dtype).to(gpu), {2, 8, 9, 9});
    const Tensor filter = reshape(cast(arange(8 * 8 * 9) % 5 - 2, dtype).to(gpu), {8, 8, 3, 3});
    const Tensor expected = step(images, filter).to(Device{});
    const auto f = compile(step, {.check = Check::never});
    std::vector<Tensor> others;  // in what a graph would have let go
    for (int call = 0; call < 12; ++call) {
      CHECK(same_bits(f(images, filter).to(Device{}), expected));
      for (int i = 0; i < 4; ++i) others.push_back(full({2, 8, 9, 9}, i, dtype, gpu));
    }
    INFO(to_string(f.explain()));
    CHECK(replays_of(f).replays > 0);
    for (std::size_t i = 0; i < others.size(); ++i)
      CHECK(max(abs(others[i] - static_cast<double>(i % 4))).item<float>() == 0);
  }
}

TEST_CASE("several threads replay one function, and several functions", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const auto f = compile(several_steps, {.check = Check::never});
  const auto g = compile([](const Tensor& x) { return several_steps(x) + several_steps(x * 2); },
                         {.check = Check::never});
  const Tensor x = input(1), of_f = f(x).to(Device{}), of_g = g(x).to(Device{});
  std::atomic<int> wrong = 0;
  const auto work = [&](int thread) {
    const Tensor own = input(1);
    std::vector<Tensor> results;
    for (int call = 0; call < 40; ++call) results.push_back((call + thread) % 3 ? f(own) : g(own));
    for (int call = 0; call < 40; ++call) {
      const Tensor& result = results[static_cast<std::size_t>(call)];
      wrong += same_bits(result.to(Device{}), (call + thread) % 3 ? of_f : of_g) ? 0 : 1;
    }
  };
  {
    std::vector<std::jthread> all;
    for (int thread = 0; thread < 4; ++thread) all.emplace_back(work, thread);
  }
  CHECK(wrong == 0);
  CHECK(replays_of(f).made > 0);
}

TEST_CASE("a profile sees the steps of what is replayed otherwise", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  const auto f = compile(several_steps, {.check = Check::never});
  const Tensor x = input(1);
  warm_up(f, x);
  const FakeCounts before = driver->counts();
  Profile profile;
  static_cast<void>(f(x));
  profile.stop();
  CHECK(driver->counts().graph_launches == before.graph_launches);
  CHECK(driver->counts().launches > before.launches);
  static_cast<void>(f(x));
  CHECK(driver->counts().graph_launches == before.graph_launches + 1);
}

TEST_CASE("calls that wait after each launch are not replayed", "[.waits]") {
  if (!has_gpu()) return;
  const auto f = compile(several_steps, {.check = Check::never});
  for (int call = 0; call < 8; ++call) static_cast<void>(f(input(1)));
  std::printf("%s\n", to_string(f.explain()).c_str());
}

TEST_CASE("where launches are looked at one by one, explain() says that there is no graph",
          "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  CHECK(has(run_self("NITINOL_CUDA_WAIT=1", "[.waits]").output,
            "no graph: NITINOL_CUDA_WAIT is 1\n"));
  if (!fake()) return;
  CHECK(has(run_self("NVTX_INJECTION64_PATH=/a/tool.so", "[.waits]").output,
            "no graph: a tool takes ranges"));
}

TEST_CASE("a call as a graph on each of two GPUs", "[.two-gpus-replay]") {
  if (!has_gpu()) return;
  const auto f = compile(several_steps, {.check = Check::never});
  const Device second = {.kind = Device::Kind::cuda, .index = 1};
  const Tensor x = input(1), there = x.to(second);
  const Tensor expected = several_steps(x).to(Device{});
  for (int call = 0; call < 10; ++call) {
    CHECK(same_bits(f(x).to(Device{}), expected));
    CHECK(same_bits(f(there).to(Device{}), expected));
  }
  const Explanation explanation = f.explain();
  REQUIRE(explanation.signatures.size() == 2);
  for (const SignatureReport& signature : explanation.signatures)
    CHECK(signature.plan.replays.made == 1);
}

TEST_CASE("two GPUs have graphs of their own", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run run = run_self("NITINOL_TEST_DEVICE= NITINOL_FAKE_DEVICES=2", "[.two-gpus-replay]");
  INFO(run.output);
  CHECK(run.status == 0);
}

TEST_CASE("graphs go with their functions, and what they keep of memory", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  const Tensor x = input(1);
  static_cast<void>(several_steps(x).to(Device{}));
  const uint64_t graphs = live_graphs(), in_use = memory_statistics(gpu).in_use;
  for (int round = 0; round < 3; ++round) {
    const auto f = compile(several_steps, {.check = Check::never});
    warm_up(f, x);
    CHECK(live_graphs() > graphs);
  }
  CHECK(live_graphs() == graphs);
  CHECK(memory_statistics(gpu).in_use == in_use);
}

namespace {

/// The number of NITINOL_TEST_REPLAYS, to be large by hand.
int replays_or(int usual) {
  const char* const wanted = std::getenv("NITINOL_TEST_REPLAYS");  // NOLINT(concurrency-mt-unsafe)
  return wanted != nullptr ? std::atoi(wanted) : usual;            // NOLINT(cert-err34-c)
}

}  // namespace

TEST_CASE("nothing grows by replays", "[cuda][fake][no-isa]") {
  if (!has_gpu()) return;
  const int calls = replays_or(2000);
  Model model;
  const auto step = model.step();
  const Tensor good = tensor(std::vector{1, 3}).to(gpu);
  const auto run = [&](int count) {
    for (int call = 0; call < count; ++call) {
      static_cast<void>(step(good));
      if (call % 50 == 49) synchronize(gpu);
    }
    synchronize(gpu);
  };
  run(100);
  const FakeCounts before = counts_of_fake();
  const MemoryStatistics memory = memory_statistics(gpu);
  const program::ReplayReport replays = replays_of(step);
  run(calls);
  const FakeCounts after = counts_of_fake();
  CHECK(after.graphs == before.graphs);
  CHECK(after.events == before.events);
  CHECK(after.pinned == before.pinned);
  CHECK(memory_statistics(gpu).in_use == memory.in_use);
  CHECK(memory_statistics(gpu).system_allocations == memory.system_allocations);
  CHECK(replays_of(step).made == replays.made);
  CHECK(replays_of(step).replays == replays.replays + static_cast<uint64_t>(calls));
}

// By hand: what docs/gpu.md says of the host's time.
TEST_CASE("the host's time of a warm step of training an MLP", "[.host-time]") {
  if (!has_gpu()) return;
  set_default_device(gpu);
  const auto layers = std::tuple(nn::linear(100, 128), nn::linear(128, 10));
  const auto& [hidden, out] = layers;
  const nn::Adam optimizer(nn::parameters(layers));
  const Tensor classes = arange(32) * 7 % 10, x = rand({32, 100});
  const auto step = [&](const Tensor& input) {
    optimizer.zero_grad();
    const Tensor loss = nn::cross_entropy(out(relu(hidden(input))), classes);
    loss.backward();
    optimizer.step();
    return stop_gradient(loss);
  };
  const auto time = [&](const char* name) {
    const auto f = compile(step, {.check = Check::never});
    constexpr std::size_t in_a_row = 7;  // as many as may be on their way
    const auto rounds = static_cast<std::size_t>(replays_or(200));
    std::array<std::vector<double>, in_a_row> times;
    for (std::size_t round = 0; round < rounds; ++round) {
      for (std::vector<double>& of_call : times) {
        const auto begin = std::chrono::steady_clock::now();
        static_cast<void>(f(x));
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - begin;
        of_call.push_back(took.count());
      }
      synchronize(gpu);  // whose work throws out of the caches what the next call needs
    }
    std::printf("%s, us of the first to the seventh call in a row, medians:", name);
    for (std::vector<double>& of_call : times) {
      std::ranges::nth_element(of_call, of_call.begin() + static_cast<std::ptrdiff_t>(rounds / 2));
      std::printf(" %.1f", of_call[rounds / 2]);
    }
    std::printf("\n%s\n", to_string(f.explain()).c_str());
  };
  time("with graphs");
  const WithoutPasses step_by_step({"cuda_graph"});
  time("without");
}

}  // namespace nitinol::graph_test
