// What tensors on a GPU ask of the driver, by the fake one (fake/README.md): in ctest's cuda.fake.
#include "tests/cuda/fake/fake.h"

#include "nitinol.h"
#include "tests/in_child.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <csignal>
#include <cstdio>
#include <dlfcn.h>
#include <optional>
#include <string>

using namespace nitinol;
using namespace nitinol::test;

namespace {

constexpr Device gpu = {.kind = Device::Kind::cuda, .index = 0};

/// The functions of the fake driver's that the real one does not have.
struct Fake {
  decltype(&fake_counts) counts;
  decltype(&fake_fail) fail;
};

/// Nothing, and a line that says so, if the driver is none or a real one.
std::optional<Fake> fake() {
  static_cast<void>(devices());  // opens it
  void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  void* const counts = library == nullptr ? nullptr : ::dlsym(library, "fake_counts");
  if (counts == nullptr) {
    std::puts("NOT RUN: the driver is not the fake one");
    return std::nullopt;
  }
  return Fake{reinterpret_cast<decltype(&fake_counts)>(counts),
              reinterpret_cast<decltype(&fake_fail)>(::dlsym(library, "fake_fail"))};
}

Tensor numbers(Device device) {
  return reshape(arange(12, f32, device) * 0.25 - 1, {3, 4});
}

std::string error_of(FunctionRef<void()> body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("a step on a GPU that reads no value waits for nothing", "[cuda][fake]") {
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

TEST_CASE("nobody reads a GPU's memory but the GPU", "[cuda][fake]") {
  if (!fake()) return;
  const Tensor x = numbers(gpu);
  CHECK(in_child([&] {
          std::signal(SIGSEGV, SIG_DFL);
          return *static_cast<const volatile float*>(x.internals().address()) > 0 ? 1 : 0;
        }) == 128 + SIGSEGV);
}

TEST_CASE("a GPU that has no more memory says what was asked for, and goes on", "[cuda][fake]") {
  const auto driver = fake();
  if (!driver) return;
  const Tensor x = numbers(gpu);
  const std::string error = error_of([] { static_cast<void>(zeros({int64_t{1} << 36}, u8, gpu)); });
  CHECK(has(error, "68719476736 bytes of cuda:0: the device has no more"));
  CHECK(has(error, "bytes in use"));
  CHECK(same_bits((x + 1).to(Device{}), numbers(Device{}) + 1));
}

TEST_CASE("the child of a process that has used a GPU is told that it cannot", "[cuda][fake]") {
  if (!fake()) return;
  const Tensor x = numbers(gpu);
  CHECK(in_child([&] {
          return has(error_of([&] { static_cast<void>(x.to_vector<float>()); }), "fork()") ? 7 : 1;
        }) == 7);
}

TEST_CASE("a call of the driver's that fails is an Error, and the next one works", "[cuda][fake]") {
  const auto driver = fake();
  if (!driver) return;
  constexpr int not_supported = 801;
  for (const char* const name : {"cuLaunchKernel", "cuMemcpyDtoHAsync_v2", "cuMemcpyHtoDAsync_v2",
                                 "cuEventRecord", "cuEventSynchronize", "cuCtxSetCurrent"}) {
    INFO(name);
    const auto body = [] {
      const Tensor x = numbers(Device{}).to(gpu);
      static_cast<void>((x * 3 + 1).to_vector<float>());
    };
    body();
    driver->fail(name, 1, not_supported);
    CHECK(has(error_of(body), "failed with error 801"));
    CHECK(error_of(body).empty());
  }
}

TEST_CASE("a lost GPU says in every call which launches it was lost in", "[cuda][fake]") {
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
