// nitinol_warm, by the fake driver (tests/cuda/fake/README.md): in ctest's cuda.fake.
#include "backends/cuda/runtime/compiler.h"
#include "nitinol.h"
#include "tests/cuda/using_fake.h"
#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <tuple>

using namespace nitinol;

namespace {

namespace fs = std::filesystem;

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What the program prints and ends with; `environment` as for run_self().
Run run_warm(const std::string& environment, const std::string& arguments) {
  return run_command(environment + " '" + std::getenv("NITINOL_WARM") + "' " + arguments);
}

/// Whether there is a program and a driver; else a line that says so.
bool can_run() {
  const char* const program = std::getenv("NITINOL_WARM");
  if (program != nullptr && *program != '\0') return true;
  std::puts("NOT RUN: it is run in cuda.fake, with NITINOL_WARM");
  return false;
}

}  // namespace

TEST_CASE("after nitinol_warm a step of training compiles nothing", "[cuda][fake][no-isa]") {
  if (!can_run()) return;
  const test::TemporaryFolder temporary;
  const std::string environment = "NITINOL_CACHE=" + (temporary / "store").string();
  const Run warm = run_warm(environment, "--only 'a step of Adam with'");
  INFO(warm.output);
  CHECK(warm.status == 0);
  CHECK(has(warm.output, "6 of 6 done on cuda:0"));
  const Run step = run_self(environment, "[.warmed]");
  INFO(step.output);
  CHECK(step.status == 0);
  CHECK(has(step.output, "compiled 0, on disk"));
  CHECK(!has(step.output, "on disk 0."));
}

// Run by the case above, in a process of its own.
TEST_CASE("a step of training on a device that is warm", "[.warmed]") {
  set_default_device({.kind = Device::Kind::cuda, .index = 0});
  const auto layers = std::tuple(nn::linear(784, 128), nn::linear(128, 10));
  const auto& [hidden, out] = layers;
  const nn::Adam optimizer(nn::parameters(layers));
  const Tensor x = rand({64, 784}), classes = arange(64) % 10;
  for (int step = 0; step < 3; ++step) {
    optimizer.zero_grad();
    nn::cross_entropy(out(relu(hidden(x))), classes).backward();
    optimizer.step();
  }
  const auto counts = cuda::CubinCache::instance().counts();
  std::printf("compiled %d, on disk %d.\n", static_cast<int>(counts.compiled),
              static_cast<int>(counts.on_disk));
}

TEST_CASE("nitinol_warm makes tensors of each floating dtype", "[cuda][fake][no-isa]") {
  if (!can_run()) return;
  const test::TemporaryFolder temporary;
  const std::string environment = "NITINOL_CACHE=" + (temporary / "store").string();
  const Run run = run_warm(environment, "--only create --dtypes float32,float16,bfloat16,float64");
  INFO(run.output);
  CHECK(run.status == 0);
  CHECK(has(run.output, "4 of 4 done on cuda:0"));
}

TEST_CASE("nitinol_warm keeps code of the processor, for what it is asked for",
          "[cuda][fake][no-isa]") {
  if (!can_run()) return;
  const test::TemporaryFolder temporary;
  const auto files = [&] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& each : fs::directory_iterator(temporary / "store")) ++count;
    return count;
  };
  const std::string environment = "NITINOL_CACHE=" + (temporary / "store").string();
  const Run own = run_warm(environment, "--device cpu:0 --only mse_loss");
  INFO(own.output);
  CHECK(own.status == 0);
  CHECK(has(own.output, "36 of 36 done on cpu:0"));
  const std::size_t kernels = files();
  CHECK(kernels > 10);
  const Run all =
      run_warm(environment, "--device cpu:0 --only mse_loss --for baseline,avx2,avx512");
  CHECK(all.status == 0);
  CHECK(files() == 3 * kernels);
  const Run wrong = run_warm(environment, "--device cpu:0 --only l1_loss --for avx3");
  CHECK(has(wrong.output, "NITINOL_KEEP_FOR=avx3 is ignored: expected baseline, avx2"));
}

TEST_CASE("nitinol_warm says what it cannot do", "[cuda][fake][no-isa]") {
  if (!can_run()) return;
  const auto fails = [](const std::string& environment, const std::string& arguments,
                        const char* says) {
    const Run run = run_warm(environment, arguments);
    INFO(arguments << ": " << run.output);
    CHECK(run.status != 0);
    CHECK(has(run.output, says));
  };
  fails("", "--device here", "'here' is no device");
  fails("", "--dtypes int64", "'int64' is no floating dtype");
  fails("", "--device cuda:7", "the driver sees");
  fails("", "--only none", "nothing begins with 'none' for float32");
  fails("NITINOL_CACHE=0", "--only create", "NITINOL_CACHE is 0, so that nothing would be kept");
  if (nitinol::test::fake()) fails("NITINOL_CUDA_PATH=/nowhere", "", "no GPU can be used");
}
