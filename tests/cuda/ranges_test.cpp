// What a tool that traces the GPU is told, by the fake libraries (fake/README.md). The case with a
// tool runs in a process of its own, as a process decides once whether there is one.
#include "nitinol.h"
#include "tests/cuda/using_fake.h"
#include "tests/run_self.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>

namespace nitinol::ranges_test {
namespace {

using namespace nitinol::test;

using FakeRanges = void (*)(std::string*);

FakeRanges fake_ranges() {
  return exported<FakeRanges>("libnvtx3interop.so.1", "fake_ranges");
}

void compute() {
  const auto f = compile([](const Tensor& x) { return tanh(x * x + 1.0); });
  for (int call = 0; call < 3; ++call) static_cast<void>(f(numbers(gpu)).to_vector<float>());
  REQUIRE(f.explain().plan_calls == 1);
  const Tensor x = numbers(gpu);
  static_cast<void>(matmul(x, transpose(x)).to_vector<float>());
  static_cast<void>(sort(x, 1).to_vector<float>());
}

}  // namespace

TEST_CASE("with a tool", "[.ranges-tool]") {
  const char* const tool = std::getenv("NVTX_INJECTION64_PATH");  // NOLINT(concurrency-mt-unsafe)
  if (tool == nullptr || !fake()) return;
  compute();
  REQUIRE(fake_ranges() != nullptr);
  std::string text;
  fake_ranges()(&text);
  INFO(text);
  CHECK(has("\n" + text, "\nnitinol::kernel::mul_add_tanh: 1\n"));
  CHECK(has("\n" + text, "\nnitinol::matmul: "));
  CHECK(has("\n" + text, "\nnitinol::sort: "));
  CHECK(has("\n" + text, "\nnitinol::kernel::mul: 1\n"));  // eager's
}

TEST_CASE("a tool that traces the GPU is told what is launched", "[cuda][fake][tools][no-isa]") {
  if (!fake()) return;
  const Run run = run_self("NVTX_INJECTION64_PATH=/a/tool.so", "[.ranges-tool]");
  INFO(run.output);
  CHECK(run.status == 0);
}

TEST_CASE("without a tool no library for it is opened", "[cuda][fake][tools][no-isa]") {
  if (!fake()) return;
  compute();
  CHECK(fake_ranges() == nullptr);
}

}  // namespace nitinol::ranges_test
