// Graphs that cannot be made, changed or launched, by the fake driver. In ctest's cuda.fake.calls.
#include "backends/cuda/runtime/libraries.h"
#include "tests/cuda/replayed.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"

#include <string>
#include <thread>
#include <vector>

namespace nitinol::graph_failures_test {

using namespace nitinol::test;

TEST_CASE("a lost GPU names the launches of a graph", "[.loses-gpu-in-graph]") {
  const auto driver = fake();
  REQUIRE(driver);
  const auto f = compile(several_steps, {.check = Check::never});
  const Tensor x = input(1);
  warm_up(f, x);
  synchronize(gpu);
  driver->fail("cuEventSynchronize", 1, 700);
  const Tensor y = f(x);
  const std::string error = error_of([&] { static_cast<void>(y.to_vector<float>()); });
  CHECK(has(error, "a graph of "));
  CHECK(has(error, "a product of 40 x 100 x 40"));
}

TEST_CASE("a GPU that is lost in a graph says which launches that had", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const Run run = run_self("", "[.loses-gpu-in-graph]");
  INFO(run.output);
  CHECK(run.status == 0);
}

TEST_CASE("what the driver refuses leaves the Plan as it is, and explain() says why",
          "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  const Tensor x = input(1), expected = several_steps(x).to(Device{});
  const uint64_t graphs = live_graphs();
  for (const char* const name :
       {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphCreate", "cuGraphAddKernelNode_v2",
        "cuGraphAddChildGraphNode", "cuGraphInstantiateWithFlags"}) {
    INFO(name);
    const auto f = compile(several_steps, {.check = Check::never});
    driver->fail(name, 1, 999);
    for (int call = 0; call < 10; ++call) CHECK(same_bits(f(x).to(Device{}), expected));
    CHECK(has(to_string(f.explain()), "no graph: "));
    CHECK(has(to_string(f.explain()), "error 999"));
  }
  CHECK(live_graphs() == graphs);
}

TEST_CASE("a library that is refused in a capture keeps its way", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  const auto fail = exported<decltype(&fake_fail)>("libcudnn.so.9", "fake_fail");
  if (!driver || fail == nullptr) return;
  constexpr int not_supported = 3000;
  const auto step = [](const Tensor& v) {
    const Tensor y = conv2d(v, reshape(arange(4, f32, gpu), {1, 1, 2, 2}));
    return softmax(y) + sum(exp(y), 3, KeepDims::yes);
  };
  const auto f = compile(step, {.check = Check::never});
  const Tensor x = reshape(input(1), {10, 1, 20, 20}), expected = step(x).to(Device{});
  for (int call = 0; call < 4; ++call) CHECK(same_bits(f(x).to(Device{}), expected));
  fail("cudnnConvolutionForward", 1, not_supported);
  for (int call = 0; call < 4; ++call) CHECK(same_bits(f(x).to(Device{}), expected));
  INFO(to_string(f.explain()));
  CHECK(has(to_string(f.explain()), "no graph: conv2d is refused by its library in a graph"));
  CHECK(has(to_string(f.explain()), "cuDNN, algorithm"));
}

TEST_CASE("a graph that cannot be launched is an Error, and the next call works",
          "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  const auto f = compile(several_steps, {.check = Check::never});
  const Tensor x = input(1), expected = several_steps(x).to(Device{});
  warm_up(f, x);
  driver->fail("cuGraphLaunch", 1, 999);
  CHECK(has(error_of([&] { static_cast<void>(f(x)); }), "launching a graph failed"));
  CHECK(same_bits(f(x).to(Device{}), expected));
}

TEST_CASE("each function for graphs fails once, and replays go on", "[cuda][fake][no-isa]") {
  const auto driver = fake();
  if (!driver) return;
  std::vector<Tensor> inputs, expected;
  for (int i = 0; i < 6; ++i) {
    inputs.push_back(input(i));
    expected.push_back(several_steps(inputs.back()).to(Device{}));
  }
  const auto run = [&](const auto& f, int calls) {
    int failed = 0;
    for (int call = 0; call < calls; ++call) {
      const std::size_t i = static_cast<std::size_t>(call / 3) % inputs.size();
      Tensor y;
      const std::string error = error_of([&] { y = f(inputs[i]); });
      failed += error.empty() ? 0 : 1;
      if (error.empty()) CHECK(same_bits(y.to(Device{}), expected[i]));
    }
    return failed;
  };
  const uint64_t graphs = live_graphs(), in_use = memory_statistics(gpu).in_use;
  for (const char* const name :
       {"cuStreamBeginCapture_v2", "cuStreamEndCapture", "cuGraphCreate", "cuGraphAddKernelNode_v2",
        "cuGraphAddChildGraphNode", "cuGraphInstantiateWithFlags", "cuGraphLaunch",
        "cuGraphExecKernelNodeSetParams_v2", "cuGraphExecChildGraphNodeSetParams",
        "cublasLtMatmul"}) {
    for (const uint64_t at : {1, 3, 10}) {
      INFO(name << " fails at call " << at);
      const auto f = compile(several_steps, {.check = Check::never});
      const bool is_library = std::string(name) == "cublasLtMatmul";
      static_cast<void>(run(f, 8));
      if (is_library)
        exported<decltype(&fake_fail)>("libcublasLt.so.13", "fake_fail")(name, at, 14);
      else
        driver->fail(name, at, 999);
      CHECK(run(f, 80) <= 1);
      // What has not come to it.
      if (!is_library) driver->fail(name, 0, 0);
    }
  }
  CHECK(live_graphs() == graphs);
  CHECK(memory_statistics(gpu).in_use == in_use);
}

TEST_CASE("the fake driver refuses what has no place in a capture", "[cuda][fake][no-isa]") {
  if (!fake()) return;
  const cuda::Driver& driver = cuda::driver();
  constexpr int unsupported = 900, broken = 901, illegal_state = 401;
  synchronize(gpu);
  cuda::Driver::Context context = nullptr;
  CHECK(driver.cuDevicePrimaryCtxRetain(&context, 0) == 0);
  CHECK(driver.cuCtxSetCurrent(context) == 0);
  cuda::Driver::Stream stream = nullptr;
  CHECK(driver.cuStreamCreate(&stream, 1) == 0);
  cuda::Driver::Graph graph = nullptr;
  CHECK(driver.cuStreamBeginCapture_v2(nullptr, cuda::Driver::relaxed) == unsupported);
  CHECK(driver.cuStreamEndCapture(stream, &graph) == illegal_state);
  const auto breaks = [&](FunctionRef<int()> call) {
    CHECK(driver.cuStreamBeginCapture_v2(stream, cuda::Driver::relaxed) == 0);
    CHECK(driver.cuStreamBeginCapture_v2(stream, cuda::Driver::relaxed) == illegal_state);
    CHECK(call() == unsupported);
    CHECK(driver.cuStreamEndCapture(stream, &graph) == broken);
    CHECK(graph == nullptr);
  };
  cuda::Driver::Address address = 0;
  breaks([&] { return driver.cuStreamSynchronize(stream); });
  breaks([&] { return driver.cuMemAlloc_v2(&address, 512); });
  const Tensor x = zeros({64}, f32, gpu);
  const auto at = cuda::Driver::address_of(x.internals().address());
  float host = 0;
  breaks([&] { return driver.cuMemcpyHtoDAsync_v2(at, &host, sizeof host, stream); });
  breaks([&] { return driver.cuMemcpyDtoHAsync_v2(&host, at, sizeof host, stream); });
  breaks([&] {
    int result = 0;
    std::jthread([&] {
      driver.cuCtxSetCurrent(context);
      result = driver.cuMemsetD32Async(at, 1, 1, stream);
    }).join();
    return result;
  });
  // What has been noted is done by launches alone, as often as there are some.
  CHECK(driver.cuStreamBeginCapture_v2(stream, cuda::Driver::relaxed) == 0);
  CHECK(driver.cuMemsetD32Async(at, 7, 2, stream) == 0);
  CHECK(driver.cuStreamEndCapture(stream, &graph) == 0);
  CHECK(driver.cuStreamSynchronize(stream) == 0);
  const auto first = [&] { return x.at({0}).to(i64).item<int64_t>() + 0; };
  CHECK(first() == 0);
  cuda::Driver::GraphExec exec = nullptr;
  CHECK(driver.cuGraphInstantiateWithFlags(&exec, graph, 0) == 0);
  CHECK(driver.cuGraphLaunch(exec, stream) == 0);
  CHECK(driver.cuStreamSynchronize(stream) == 0);
  CHECK(x.to_vector<float>()[1] != 0);
  CHECK(driver.cuGraphExecDestroy(exec) == 0);
  CHECK(driver.cuGraphDestroy(graph) == 0);
  driver.cuCtxSetCurrent(nullptr);
}

}  // namespace nitinol::graph_failures_test
