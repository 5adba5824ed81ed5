// Code that is made quickly and replaced while it runs; in processes of their own, which know all
// that was made in them.
#include "backends/cpu/improving_code.h"

#include "backends/cpu/jit_loader.h"
#include "backends/host/stage.h"
#include "core/backend.h"
#include "eager/all_ops.h"
#include "nitinol.h"
#include "tests/backends/kernels.h"
#include "tests/in_child.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

const CompileOptions quick_at_first = {.name = "f", .check = Check::never, .quick_code = true};

bool has_generator() {
  return backend(Device{}).can_generate_code();
}

uint64_t compilations() {
  return cpu::jit_plugin()->compilations();
}

Tensor ramp(const Shape& shape) {
  return sin(reshape(arange(0, element_count(shape), 1, f32), shape));
}

/// Elementwise code and one of rows; 2 kernels.
std::vector<Tensor> two_kernels(const Tensor& x) {
  const Tensor y = tanh(x) * 2 + 1;
  return {y, matmul(y, x), softmax(exp(x * 0.5)) + sum(x, {1}, keepdims)};
}

void check_same(const std::vector<Tensor>& got, const std::vector<Tensor>& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (!same_bits(got[i], expected[i])) FAIL("result " << i);  // CHECK is for one thread
  }
}

std::size_t files_in(const std::filesystem::path& folder) {
  const std::filesystem::directory_iterator files(folder);
  return static_cast<std::size_t>(std::distance(begin(files), end(files)));
}

}  // namespace

TEST_CASE("quick code is replaced by better code of the same bits", "[.improving][.replaced]") {
  const Tensor x = ramp({64, 64});
  const std::vector<Tensor> expected = two_kernels(x);  // by loops of single ops
  const uint64_t before = compilations();
  const auto f = compile(two_kernels, quick_at_first);
  for (int call = 0; call < 2; ++call) check_same(f(x), expected);  // the second makes the Plan
  const uint64_t quick = compilations() - before;
  CHECK(quick == 2);
  for (int call = 0; call < 2; ++call) check_same(f(x), expected);
  const Explanation explanation = f.explain();
  REQUIRE(explanation.plan_calls == 2);
  CHECK(to_string(explanation).find("quickly generated in") != std::string::npos);
  cpu::wait_for_better_code();
  CHECK(compilations() - before == 2 * quick);
  for (int call = 0; call < 3; ++call) check_same(f(x), expected);
  cpu::wait_for_better_code();
  CHECK(compilations() - before == 2 * quick);
  // A function that asks for the best code gets what is there.
  const auto best = compile(two_kernels, {.check = Check::never});
  for (int call = 0; call < 3; ++call) check_same(best(x), expected);
  CHECK(compilations() - before == 2 * quick);
  const auto other =
      compile([](const Tensor& y) { return exp(y) * 3 - y; }, {.check = Check::never});
  for (int call = 0; call < 6; ++call) static_cast<void>(other(x));
  cpu::wait_for_better_code();
  CHECK(compilations() - before == 2 * quick + 1);
}

TEST_CASE("code is replaced under eight threads, and functions end meanwhile",
          "[.improving][.threads]") {
  const Tensor x = ramp({64, 64});
  const std::vector<Tensor> expected = two_kernels(x);
  for (int round = 0; round < 10; ++round) {
    clear_executables();
    const auto f = compile(two_kernels, quick_at_first);
    for (int call = 0; call < 2; ++call) check_same(f(x), expected);
    std::atomic<int> wrong = 0;
    const auto work = [&](int thread) {
      for (int call = 0; call < 40; ++call) {
        if (thread == 8) {  // makes kernels, has them improved, and destroys them
          const auto g =
              compile([call](const Tensor& y) { return exp(y) * call + y; }, quick_at_first);
          for (int each = 0; each < 4; ++each) static_cast<void>(g(x));
          clear_executables();
          continue;
        }
        const std::vector<Tensor> got = f(x);
        for (std::size_t i = 0; i < got.size(); ++i)
          wrong += same_bits(got[i], expected[i]) ? 0 : 1;
      }
    };
    {
      std::vector<std::jthread> threads;
      for (int thread = 0; thread < 9; ++thread) threads.emplace_back(work, thread);
    }
    CHECK(wrong == 0);
  }
  cpu::wait_for_better_code();
}

TEST_CASE("a fork while code is made better leaves a child that goes on", "[.improving][.fork]") {
  const Tensor x = ramp({16, 16});
  const std::vector<Tensor> expected = two_kernels(x);
  for (int round = 0; round < 12; ++round) {
    clear_executables();
    const auto f = compile(two_kernels, quick_at_first);
    for (int call = 0; call < 4 + round % 3; ++call) static_cast<void>(f(x));
    CHECK(in_child([&] {
            const uint64_t before = compilations();
            const auto g = compile([](const Tensor& y) { return exp(y) * 3 + y; }, quick_at_first);
            for (int call = 0; call < 5; ++call) {
              static_cast<void>(g(x));
              check_same(f(x), expected);
            }
            cpu::wait_for_better_code();
            return compilations() - before >= 2 ? 0 : 1;
          }) == 0);
    check_same(f(x), expected);
  }
}

TEST_CASE("a program may end while code is made better", "[.improving][.exit]") {
  const auto f = compile(two_kernels, quick_at_first);
  const Tensor x = ramp({16, 16});
  for (int call = 0; call < 4; ++call) static_cast<void>(f(x));
}

TEST_CASE("quick code is replaced, and better code alone is kept on disk",
          "[cpu][improving][no-isa]") {
  if (!has_generator()) return;
  const auto run = [](const std::string& environment, const char* filter) {
    const Run ran = run_self(environment, filter);
    INFO(ran.output);
    CHECK(ran.status == 0);
  };
  run("NITINOL_CACHE=0", "[.replaced]");
  run("NITINOL_CACHE=0", "[.threads]");
// The one allows no thread in the child of a fork, the other's allocator may be locked there.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
  run("NITINOL_CACHE=0", "[.fork]");
#endif
  for (int i = 0; i < 10; ++i) run("NITINOL_CACHE=0", "[.exit]");
  const TemporaryFolder temporary;
  const std::string store = (temporary / "store").string();
  const auto kept_by = [&](const char* code) {
    std::filesystem::remove_all(store);
    const Run ran = run_self("NITINOL_CACHE=" + store + " " + code, "[.kept]");
    INFO(ran.output);
    CHECK(ran.status == 0);
    return files_in(store);
  };
  const std::size_t best = kept_by("NITINOL_CODE=best");
  CHECK(best >= 2);
  CHECK(kept_by("") == best);
  CHECK(kept_by("NITINOL_CODE=least") == 0);
}

namespace {

std::atomic<int> quick_calls = 0;

void as_if_quick(const void*, const host::StageCall&) {
  ++quick_calls;
}

}  // namespace

TEST_CASE("better code is what runs when it is there", "[cpu][improving]") {
  if (!has_generator()) return;
  const Operand in = {.role = Role::input}, out = {.role = Role::output};
  const Kernel kernel = elementwise(ops::add(), std::array{in, in, out});
  const auto code = std::make_shared<cpu::ImprovingCode>(
      kernel, current_isa(),
      cpu::StageCodes{.object = {}, .stages = {{.function = as_if_quick}}, .report = {}}, nullptr);
  const host::StageCode held = code->stages()[0];  // as what is prepared for a Plan holds it
  std::vector<float> x(8, 2.0F), y(8, 3.0F), sum(8);
  const Call call = {
      .buffers = {x.data(), y.data(), sum.data()}, .sizes = {8}, .strides = {1, 1, 1}};
  for (int launch = 1; launch <= 2; ++launch) {
    host::run_loop_nest(kernel, &held, call.launch());
    CHECK(quick_calls == launch);
  }
  cpu::wait_for_better_code();
  host::run_loop_nest(kernel, &held, call.launch());
  CHECK(quick_calls == 2);
  CHECK(sum == std::vector<float>(8, 5.0F));
}

TEST_CASE("some calls, and what is made for them is waited for", "[.improving][.kept]") {
  const auto f = compile(two_kernels, quick_at_first);
  const Tensor x = ramp({16, 16});
  for (int call = 0; call < 6; ++call) static_cast<void>(f(x));
  cpu::wait_for_better_code();
}
