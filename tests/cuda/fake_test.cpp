// What tensors on a GPU ask of the driver, by the fake one (fake/README.md): in ctest's cuda.fake.
#include "backends/cuda/runtime/libraries.h"
#include "core/backend.h"
#include "eager/launch.h"
#include "nitinol.h"
#include "tests/cuda/using_fake.h"
#include "tests/in_child.h"
#include "tests/jit/passes/pass_text.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

TEST_CASE("a step on a GPU that reads no value waits for nothing", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  const Tensor x = numbers(gpu);
  const auto step = [](const Tensor& v) { return softmax(matmul(v, transpose(v)) + 1); };
  static_cast<void>(step(x).to_vector<float>());
  const FakeCounts before = driver->counts();
  const Tensor y = step(x);
  const FakeCounts asked = driver->counts();
  CHECK(asked.waits == before.waits);
  CHECK(asked.launches > before.launches);
  CHECK(asked.queued > 0);
  CHECK(asked.downloaded == before.downloaded);
  static_cast<void>(y.to_vector<float>());
  const FakeCounts read = driver->counts();
  CHECK(read.queued == 0);
  CHECK(read.waits == asked.waits + 1);
  CHECK(read.downloaded == asked.downloaded + 9 * sizeof(float));
}

TEST_CASE("a Plan with checks overwrites no Variable if one fails", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  Variable table(reshape(arange(12, f32, gpu), {4, 3}));
  Variable count(zeros({}, f32, gpu)), square(zeros({2, 2}, f32, gpu));
  const auto step = compile([&](const Tensor& rows) {
    const Tensor taken = take(table, rows);
    table -= 0.5;
    count += 1;
    square = matmul(taken, transpose(taken));  // no gate holds back a library
    return sum(taken);
  });
  const Tensor good = tensor(std::vector{1, 3}).to(gpu), bad = tensor(std::vector{1, 4}).to(gpu);
  Tensor result;
  for (int i = 0; i < 3; ++i) result = step(good);
  const auto value = [](const Variable& variable) { return variable.get().to_vector<float>(); };
  const std::vector<float> before = value(table);
  const FakeCounts first = driver->counts();
  result = step(good);  // call 4 is compared with a new recording
  for (int i = 0; i < 3; ++i) result = step(good);
  REQUIRE(step.explain().plan_calls == 4);
  CHECK(step.explain().signatures[0].plan.waits == 0);
  CHECK(step.explain().signatures[0].plan.in_place_bytes > 0);
  const FakeCounts second = driver->counts();
  CHECK(second.waits == first.waits + 1);  // the recording: for the check in take()
  CHECK(second.downloaded == first.downloaded + 4 * sizeof(uint32_t));  // what checks have found
  CHECK(second.uploaded == first.uploaded);
  CHECK(has(to_string(step.explain()),
            "on cuda:0: a call copies nothing to or from the host, and "
            "waits for nothing; who reads"));

  result = step(good);  // call 8, compared again
  const std::vector<float> kept = value(table), kept_square = value(square);
  CHECK(kept[0] == before[0] - 2.5F);
  const auto* const address = table.get().internals().address();
  CHECK(has(error_of([&] { static_cast<void>(step(bad).item<float>()); }), "4"));
  CHECK(step.explain().failed_checks == 1);
  CHECK(value(table) == kept);
  CHECK(value(count) == std::vector<float>{8});
  CHECK(value(square) == kept_square);
  result = step(good);
  CHECK(value(table)[0] == kept[0] - 0.5F);
  CHECK(table.get().internals().address() == address);  // computed in place
}

TEST_CASE("the word of checks is the device's, and ok for whoever gets it next",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Backend& device = backend(gpu);
  Status* const word = device.take_status(nullptr);
  CHECK(exported<decltype(&fake_holds)>("libcuda.so.1", "fake_holds")(word, sizeof(Status)));
  CHECK(device.read_status(word) == Status::ok);
  device.fill(word, Status::division_by_zero, sizeof(Status), 1);
  CHECK(device.read_status(word) == Status::division_by_zero);
  device.give_status(word, false);
  Status* const again = device.take_status(nullptr);
  CHECK(again == word);
  CHECK(device.read_status(again) == Status::ok);
  device.give_status(again, true);
}

TEST_CASE("explain() tells what runs each step on a GPU, and where its code came from",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Tensor x = reshape(arange(96, f32, gpu), {8, 12});
  const Tensor w = reshape(arange(48, f32, gpu), {12, 4}), v = ones({12, 13}, f32, gpu);
  const auto explained = [&](auto f) {
    const auto compiled = compile(f, {.check = Check::never});
    for (int i = 0; i < 4; ++i) static_cast<void>(compiled(x));
    REQUIRE(compiled.explain().plan_calls > 0);
    return to_string(compiled.explain());
  };
  const auto curve = [](const Tensor& z) { return tanh(z * 0.8125) / 3.25 - 17.5; };
  const std::string first = explained([&](const Tensor& y) { return curve(matmul(y, w)); });
  CHECK(has(first, "cuBLASLt, algorithm 21, sums in 4 parts"));
  CHECK(has(first, ": compiled"));
  const std::string again = explained([&](const Tensor& y) { return curve(matmul(y + 1, w)); });
  CHECK(has(again, ": code from memory"));
  const std::string refused = explained([&](const Tensor& y) { return matmul(y, v); });
  CHECK(has(refused, "a kernel of our own: "));
  const std::string images = explained([](const Tensor& y) {
    return conv2d(reshape(y, {1, 1, 8, 12}), ones({1, 1, 2, 2}, f32, gpu));
  });
  CHECK(has(images, "cuDNN, algorithm 2, channels first"));  // f32: without tensor cores
  const std::string doubles = explained([](const Tensor& y) {
    return conv2d(reshape(y.to(f64), {1, 2, 8, 6}), ones({1, 2, 2, 2}, f64, gpu));
  });
  CHECK(has(doubles, "cuDNN, algorithm 2, channels first, packed: operand 1"));
}

TEST_CASE("launches of one kernel that a Plan makes together are one", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  const auto f = [](const std::vector<Tensor>& list) {
    std::vector<Tensor> results;
    for (const Tensor& x : list) results.push_back(relu(x * 3 - 1) + x);
    return results;
  };
  const auto compiled = compile(f);
  std::vector<Tensor> host, list;
  // Four and 250, as 224 and 30, that are loaded four at a time; two others; one of nothing.
  for (const int64_t size : {8, 4096, 400, 64, 7, 1023, 0}) host.push_back(arange(size, f32) - 5);
  for (int64_t i = 0; i < 250; ++i) host.push_back(arange(4 * i + 4, f32) * 0.125);
  for (Tensor& x : host) list.push_back((x = x.to(Device{})).to(gpu));
  std::vector<Tensor> results;
  for (int i = 0; i < 3; ++i) results = compiled(list);
  REQUIRE(compiled.explain().plan_calls == 1);
  const FakeCounts before = driver->counts();
  results = compiled.explain().calls == 3 ? compiled(list) : results;  // call 4: recorded again
  const FakeCounts recorded = driver->counts();
  CHECK(recorded.launches > before.launches + 3 * 250);
  results = compiled(list);
  CHECK(driver->counts().launches == recorded.launches + 3);
  const std::vector<Tensor> expected = f(host);
  for (std::size_t i = 0; i < host.size(); ++i) {
    INFO(i);
    CHECK(same_bits(results[i].to(Device{}), expected[i]));
  }
}

TEST_CASE("a step of Adam over 200 tensors is two launches, with checks, too",
          "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  for (const bool has_checks : {false, true}) {
    std::vector<Variable> parameters;
    for (int64_t i = 0; i < 200; ++i) {
      parameters.push_back(parameter(ones({4 + i % 3, 8}, f32, gpu) * i));
      parameters.back().set_grad(ones({4 + i % 3, 8}, f32, gpu));
    }
    const nn::Adam optimizer(parameters);
    const WithoutPasses one_by_one({"cuda_graph"});
    const auto step = compile([&](const Tensor& places) {
      Tensor taken = has_checks ? take(places, places, 0) : places;
      optimizer.step();
      return taken;
    });
    const Tensor places = arange(4, i64, gpu);
    for (int i = 0; i < 5; ++i) step(places);
    const FakeCounts before = driver->counts();
    step(places);
    const uint64_t launches = driver->counts().launches - before.launches;
    CHECK(launches == (has_checks ? 3 : 2));
    CHECK(step.explain().plan_calls == 3);
  }
}

TEST_CASE("any number of launches finds its parts", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const auto f = [](const std::vector<Tensor>& list) {
    std::vector<Tensor> results;
    for (const Tensor& x : list) results.push_back(relu(x * 3 - 1) + x);
    return results;
  };
  for (const int64_t count : {2, 3, 63, 65, 97, 224}) {
    const auto compiled = compile(f);
    std::vector<Tensor> list;
    for (int64_t i = 0; i < count; ++i)  // of one block of threads, or of several
      list.push_back((arange(i % 5 == 1 ? 4100 : 4, f32) * 0.125 + i).to(gpu));
    for (int i = 0; i < 5; ++i) {
      const std::vector<Tensor> results = compiled(list), expected = f(list);
      for (std::size_t k = 0; k < list.size(); ++k) {
        INFO(k << " of " << count);
        REQUIRE(same_bits(results[k].to(Device{}), expected[k].to(Device{})));
      }
    }
    CHECK(compiled.explain().plan_calls > 0);
  }
}

TEST_CASE("launches made as one pass no more arguments than an old driver takes",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const TemporaryFolder older;  // such a driver loads no code of CUDA 13
  const std::filesystem::path fakes = std::getenv("NITINOL_CUDA_PATH");
  std::filesystem::create_symlink(fakes / "libcuda.so.1", older / "libcuda.so.1");
  std::filesystem::create_symlink(fakes / "libnvrtc.so.13", older / "libnvrtc.so.12");
  const Run run = run_self("NITINOL_FAKE_VERSION=12000 NITINOL_CUDA_PATH=" + (older / "").string(),
                           "[.old-driver]");
  INFO(run.output);
  CHECK(has(run.output, "All tests passed"));
}

TEST_CASE("launches many of one kernel", "[.old-driver]") {
  const auto f = [](const std::vector<Tensor>& list) {
    std::vector<Tensor> results;
    for (const Tensor& x : list) results.push_back(relu(x * 3 - 1) + x);
    return results;
  };
  const auto compiled = compile(f);
  std::vector<Tensor> list;
  for (int64_t i = 0; i < 70; ++i) list.push_back((arange(4 * i + 4, f32) * 0.125).to(gpu));
  for (int i = 0; i < 5; ++i) {
    const std::vector<Tensor> results = compiled(list), expected = f(list);
    for (std::size_t k = 0; k < list.size(); ++k)
      REQUIRE(same_bits(results[k].to(Device{}), expected[k].to(Device{})));
  }
  CHECK(compiled.explain().plan_calls > 0);
}

TEST_CASE("threads that share a GPU get what they would get alone", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const auto f = [](const Tensor& x) {
    return cumsum(softmax(matmul(x, transpose(x)) + sum(x)), 0);
  };
  const auto compiled = compile(f);
  std::vector<Tensor> inputs;
  for (int i = 0; i < 4; ++i) inputs.push_back(numbers(gpu) * (i + 1));
  std::vector<Tensor> expected;
  for (const Tensor& x : inputs) expected.push_back(f(x).to(Device{}));
  std::atomic<int> wrong = 0;
  const auto work = [&](std::size_t thread) {
    for (std::size_t round = 0; round < 20; ++round) {
      const std::size_t i = (thread + round) % inputs.size();
      const Tensor result = round % 2 == 0 ? compiled(inputs[i]) : f(inputs[i]);
      wrong += same_bits(result.to(Device{}), expected[i]) ? 0 : 1;
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t thread = 0; thread < 4; ++thread) threads.emplace_back(work, thread);
  }
  CHECK(wrong == 0);
}

TEST_CASE("launches of several threads that share the workspace do not mix",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run run = run_self("NITINOL_FAKE_YIELD=1", "[.shares-workspace]");
  INFO(run.output);
  CHECK(run.status == 0);
}

TEST_CASE("threads share the workspace", "[.shares-workspace]") {
  // Long rows are cut: blocks leave what a stage finds in the workspace, for the next stage's
  // launch.
  const auto f = compile([](const Tensor& x) -> Tensor { return logsumexp(x); });
  constexpr std::size_t threads = 4, launches = 50;
  std::vector<Tensor> inputs, expected;
  for (std::size_t i = 0; i < threads; ++i) {
    inputs.push_back(rand({40'000}).to(gpu));
    for (int call = 0; call < 4; ++call) expected.resize(i + 1, f(inputs[i]).to(Device{}));
  }
  std::atomic<int> wrong = 0;
  const auto work = [&](std::size_t i) {
    std::vector<Tensor> results(launches);
    for (Tensor& each : results) each = f(inputs[i]);
    for (const Tensor& each : results) wrong += same_bits(each.to(Device{}), expected[i]) ? 0 : 1;
  };
  {
    std::vector<std::jthread> all;
    for (std::size_t i = 0; i < threads; ++i) all.emplace_back(work, i);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a budget bounds a GPU's memory, and what is cached goes first", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  Backend& device = backend(gpu);
  constexpr int64_t count = 4 << 20;
  const auto large = [] { return zeros({count}, f32, gpu) + 1; };
  device.release_cached_memory();  // of other tests
  static_cast<void>(large());      // cached from here on
  const MemoryStatistics now = device.memory();
  CHECK(now.cached >= count * sizeof(float));
  device.set_memory_budget(now.in_use + now.cached + (8 << 20));
  const std::string error = error_of([&] { const Tensor a = large(), b = large(), c = large(); });
  CHECK(has(error, "it is beyond the budget"));
  CHECK(has(error, "a budget of"));
  // Of another size than the cached ones, which are given back for it.
  CHECK((zeros({count + 4096}, f32, gpu) + 1).at({count}).item<float>() == 1);
  device.set_memory_budget(0);
  {
    const Tensor a = large(), b = large(), c = large();
    CHECK(c.at({count - 1}).item<float>() == 1);
  }
  device.release_cached_memory();
}

TEST_CASE("a process may end while a GPU has work and tensors live", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run run = run_self("", "[.ends-early]");
  INFO(run.output);
  CHECK(run.status == 0);
  CHECK(has(run.output, "All tests passed"));
}

TEST_CASE("leaves work and tensors behind", "[.ends-early]") {
  static Tensor kept;  // goes after the driver's own objects may have gone
  static const auto compiled = compile([](const Tensor& x) { return x * 2 + 1; });
  thread_local Tensor of_thread;
  for (int i = 0; i < 5; ++i) of_thread = kept = compiled(numbers(gpu));
  CHECK(exported<decltype(&fake_counts)>("libcuda.so.1", "fake_counts")().queued > 0);
}

TEST_CASE("nobody reads a GPU's memory but the GPU", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Tensor x = numbers(gpu);
  CHECK(in_child([&] {
          std::signal(SIGSEGV, SIG_DFL);
          return *static_cast<const volatile float*>(x.internals().address()) > 0 ? 1 : 0;
        }) == 128 + SIGSEGV);
}

TEST_CASE("a GPU that has no more memory says what was asked for, and goes on",
          "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  const Tensor x = numbers(gpu);
  const std::string error = error_of([] { static_cast<void>(zeros({int64_t{1} << 36}, u8, gpu)); });
  CHECK(has(error, "68719476736 bytes of cuda:0: the device has no more"));
  CHECK(has(error, "bytes in use"));
  CHECK(same_bits((x + 1).to(Device{}), numbers(Device{}) + 1));
}

TEST_CASE("the child of a process that has used a GPU is told that it cannot",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Tensor x = numbers(gpu);
  CHECK(in_child([&] {
          return has(error_of([&] { static_cast<void>(x.to_vector<float>()); }), "fork()") ? 7 : 1;
        }) == 7);
}

TEST_CASE("so is the child of one that has asked for devices() alone", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run run = run_self("", "[.asks-for-devices]");
  INFO(run.output);
  CHECK(run.status == 0);
  CHECK(has(run.output, "All tests passed"));
}

TEST_CASE("asks for devices, and forks", "[.asks-for-devices]") {
  CHECK(devices().size() > 1);
  CHECK(in_child([&] {
          return has(error_of([&] { static_cast<void>(zeros({2}, f32, gpu)); }), "fork()") ? 7 : 1;
        }) == 7);
}

// ---- each function of the libraries fails once

namespace {

/// Uses most of what the backend asks of the libraries. Throws Error; returns what differs from
/// what the host gives.
std::string use_gpu() {
  const auto run = [](Device device) {
    const Tensor x = numbers(Device{}).to(device);
    const Tensor filled = full({5}, (int64_t{1} << 40) + 1, i64, device) +
                          full({5}, 3, u8, device) + full({5}, 2, i16, device);
    for (const DType dtype : {u8, i16, i64})
      eager::fill(Tensor(filled.to(dtype)), uint64_t{5} << 32 | 7);
    const Tensor rows = tensor(std::vector{2, 0, 2, 1}).to(device);
    Variable table(x * 2);
    const auto step = compile([&](const Tensor& places) {
      const Tensor taken = take(Tensor(table), places, 0);
      table = Tensor(table) + sum(taken) * 0.5;
      return softmax(matmul(taken, transpose(taken)));
    });
    Tensor last;
    for (int i = 0; i < 4; ++i) last = step(rows);
    // Of more addresses than there are graphs, and of numbers that change.
    const auto replayed = compile(
        [](const Tensor& v, const Scalar& s) {
          return softmax(matmul(v, transpose(v))) + sum(exp(v) * s, 1) + sum(v * s);
        },
        {.check = Check::never});
    std::vector<Tensor> moved, replays;
    for (int i = 0; i < 18; ++i) moved.push_back(x + i);
    for (int i = 0; i < 39; ++i) {
      const Tensor& v = moved[static_cast<std::size_t>(std::max(0, (i - 3) / 2))];
      replays.push_back(replayed(v, i == 4 ? 0.5 : 0.25));
    }
    const Tensor large = zeros({300'000}, f32, device);
    Tensor copied = large;
    for (int i = 0; i < 2; ++i) copied = copied + ones({300'000}, f32, Device{}).to(device);
    const Variable images = parameter(reshape(x, {1, 1, 3, 4}));
    const Variable filter = parameter(reshape(x, {2, 1, 2, 3}));
    sum(tanh(conv2d(images, filter))).backward();
    return std::vector{matmul(x, transpose(x)),
                       stack(replays),
                       images.grad(),
                       filter.grad(),
                       exp(x),
                       sum(large + 1).to(i64).to(f32),
                       sum(copied),
                       scatter_add(ones({4, 4}, f32, device), rows, 3),
                       filled,
                       last,
                       Tensor(table)};
  };
  static const std::vector<Tensor> expected = run(Device{});
  const std::vector<Tensor> got = run(gpu);
  std::ostringstream wrong;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const Tensor here = got[i].to(Device{});
    const bool is_near = is_floating(here.dtype())
                             ? max(abs(here - expected[i])).item<float>() < 1e-5F
                             : same_bits(here, expected[i]);
    if (!is_near) wrong << ' ' << i;
  }
  return wrong.str();
}

/// use_gpu(), and all that is kept for later let go.
std::string use_and_release() {
  const std::string wrong = use_gpu();
  clear_executables();
  static_cast<void>(softmax(numbers(Device{})) + 1);  // now this thread has none at hand either
  backend(gpu).release_cached_memory();
  return wrong;
}

std::string live_objects() {
  const auto counts = exported<decltype(&fake_counts)>("libcuda.so.1", "fake_counts")();
  std::ostringstream text;
  text << "live:";
  // Pinned memory, each piece with its event, is kept; how much depends on when copies end.
  constexpr uint64_t most_pinned = 24;
  CHECK(counts.pinned <= most_pinned);
  for (const uint64_t count : {counts.blocks, counts.streams, counts.events - counts.pinned,
                               counts.modules, counts.graphs})
    text << ' ' << count;
  for (const char* const library : {"libnvrtc.so.13", "libcublasLt.so.13", "libcudnn.so.9"}) {
    const auto live = exported<decltype(&fake_live)>(library, "fake_live");
    text << ' ' << (live == nullptr ? 0 : live());
  }
  text << ' ' << memory_statistics(gpu).in_use;
  return text.str();
}

}  // namespace

TEST_CASE("calls of the fake libraries", "[.gpu-calls]") {
  CHECK(use_and_release().empty());
  CHECK(use_and_release().empty());
  for (const char* const library :
       {"libcuda.so.1", "libnvrtc.so.13", "libcublasLt.so.13", "libcudnn.so.9"})
    std::fputs(exported<decltype(&fake_calls)>(library, "fake_calls")(), stdout);
  std::printf("%s\n", live_objects().c_str());
}

TEST_CASE("a call of the fake libraries fails", "[.gpu-call-fails]") {
  std::string latest;
  bool has_failed = false;
  for (int i = 0; i < 4 && !(has_failed && latest.empty()); ++i) {
    std::string wrong;
    latest = error_of([&] { wrong = use_and_release(); });
    has_failed |= !latest.empty();
    CHECK(wrong.empty());
    std::printf("round %d: %s\n", i, latest.empty() ? "right" : latest.c_str());
  }
  if (latest.empty()) std::printf("recovered\n%s\n", live_objects().c_str());
}

TEST_CASE("a call of CUDA's that fails is an Error, nothing leaks, and the next call works",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run clean = run_self("", "[.gpu-calls]");
  REQUIRE(clean.status == 0);
  std::map<std::string, int> calls;
  std::string live;
  std::istringstream lines(clean.output);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("live:")) live = line;
    std::istringstream words(line);
    std::string name;
    int count = 0;
    if ((words >> name >> count) && (name.starts_with("cu") || name.starts_with("nvrtc")))
      calls[name] = count;
  }
  std::ostringstream unused;
  for (const char* const name : cuda::driver_functions()) {
    if (!calls.contains(name)) unused << ' ' << name;
  }
  // What only the program that times kernels uses, and what takes two devices.
  CHECK(unused.str() ==
        " cuGetErrorName cuCtxEnablePeerAccess cuMemcpyDtoDAsync_v2 cuMemcpyPeerAsync "
        "cuEventElapsedTime");
  for (const auto& [name, count] : calls) {
    for (const int call : std::set{1, count}) {
      // What is to end an object, or to wait before that, and fails has not ended it.
      const bool ends_objects = has(name, "Destroy") || has(name, "Unload") ||
                                name == "cuStreamSynchronize" || name == "cuInit";
      std::ostringstream failure;
      failure << "NITINOL_TEST_DEVICE= NITINOL_FAKE_FAIL=" << name << ':' << call << ":999";
      if (ends_objects) failure << " ASAN_OPTIONS=detect_leaks=0";
      const Run run = run_self(failure.str(), "[.gpu-call-fails]");
      INFO(name << " fails at call " << call << " of " << count << "\n" << run.output);
      CHECK(run.status == 0);
      CHECK(has(run.output, "All tests passed"));
      // A process that could not begin says why at each use.
      CHECK(has(run.output, name == "cuInit" ? "cuInit failed with error 999" : "recovered"));
      // Without a handle of cuDNN's, convolutions are our own from then on.
      const bool gives_up = name == "cudnnCreate" || name == "cudnnSetStream";
      if (!ends_objects && !gives_up) CHECK(has(run.output, live));
    }
  }
}

TEST_CASE("a GPU that is lost while it gives memory is said to be, at each place",
          "[cuda][fake][no-isa]") {
  if (!fake()) return;
  for (int call = 1; call <= 6; ++call) {  // one that waits for itself is stopped
    std::ostringstream failure;
    failure << "NITINOL_TEST_DEVICE= NITINOL_FAKE_FAIL=cuMemAlloc_v2:" << call << ":700 timeout 60";
    const Run run = run_self(failure.str(), "[.gpu-call-fails]");
    INFO("call " << call << "\n" << run.output);
    CHECK(run.status == 0);
    CHECK(has(run.output, "lost to this process"));
  }
}

TEST_CASE("a lost GPU says in every call which launches it was lost in", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run run = run_self("", "[.loses-gpu]");  // no device can be made anew in a process
  INFO(run.output);
  CHECK(run.status == 0);
  CHECK(has(run.output, "All tests passed"));
}

TEST_CASE("loses the GPU", "[.loses-gpu]") {
  const auto driver = fake();
  REQUIRE(driver);
  constexpr int illegal_address = 700;
  const Tensor x = numbers(gpu);
  static_cast<void>(x.to_vector<float>());
  driver->fail("cuEventSynchronize", 1, illegal_address);
  const Tensor y = matmul(x, transpose(x));
  const auto read = [&] { static_cast<void>(y.to_vector<float>()); };
  const std::string first = error_of(read);
  CHECK(has(first, "the device is lost to this process"));
  CHECK(has(first, "error 700"));
  CHECK(has(first, "a product of 3 x 4 x 3"));
  CHECK(has(first, "NITINOL_CUDA_WAIT=1"));
  CHECK(has(error_of(read), "a product of 3 x 4 x 3"));
  CHECK(has(error_of([&] { static_cast<void>(x + 1); }), "a product of 3 x 4 x 3"));
}
