#include "backends/cuda/compiler.h"

#include "backends/code_store.h"
#include "backends/cuda/libraries.h"
#include "core/error.h"
#include "core/kernel.h"
#include "tests/backends/kernels.h"
#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <fstream>
#include <thread>

using namespace nitinol;
using namespace nitinol::cuda;

namespace {

/// Says so, too.
bool lacks_nvrtc() {
  if (!has_nvrtc()) WARN("not run: there is no NVRTC");
  return !has_nvrtc();
}

/// A kernel for tests: the sums of rows.
const Kernel& sums() {
  static const Kernel kernel = test::reduction(Combine::add, f32, f32, Order::lanes);
  return kernel;
}

Request request_of(const Kernel& kernel, int architecture = 90) {
  const std::vector<void*> buffers = {nullptr, nullptr};
  const std::vector<int64_t> sizes = {100, 1000}, strides = {1000, 1, 1, 0};
  return {
      &kernel,
      schedule_of(
          kernel,
          {.buffers = buffers, .sizes = sizes, .strides = strides, .offsets = {}, .scalars = {}}),
      architecture};
}

}  // namespace

TEST_CASE("a text with a mistake is shown with its lines", "[cuda][nvrtc]") {
  if (lacks_nvrtc()) return;
  try {
    static_cast<void>(compile_text("int f() { return 1; }\nint g() { return nothing; }\n", 90));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::compile);
    const std::string message = error.what();
    CHECK(message.find("nothing") != std::string::npos);
    CHECK(message.find("   2 int g()") != std::string::npos);
    CHECK(message.find("sm_90") != std::string::npos);
  }
  CHECK_THROWS_AS(compile_text("", 1), Error);
}

TEST_CASE("cubins say what they use", "[cuda][nvrtc]") {
  if (lacks_nvrtc()) return;
  for (const int architecture : {80, 90, 100}) {
    const Cubin cubin = compile_text(text_of(request_of(sums())), architecture);
    const std::vector<Resources> list = resources_of(cubin);
    REQUIRE(list.size() == 1);
    CHECK(list[0].function == "entry0");
    CHECK(list[0].registers > 8);
    CHECK(list[0].registers <= 64);
    CHECK(list[0].stack_bytes == 0);
    CHECK(list[0].code_bytes > 500);
    for (std::size_t size = 0; size < cubin.size(); size += 97) {
      try {
        static_cast<void>(resources_of({cubin.data(), size}));
      } catch (const Error&) {
      }
    }
  }
  CHECK_THROWS_AS(resources_of({}), Error);
}

TEST_CASE("a kernel is compiled once for all who ask", "[cuda][nvrtc]") {
  if (lacks_nvrtc()) return;
  CubinCache cache(nullptr);
  std::vector<std::thread> threads;
  std::atomic<int> got = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] { got += cache.get(request_of(sums()))->empty() ? 0 : 1; });
  for (std::thread& thread : threads) thread.join();
  CHECK(got == 4);
  CHECK(cache.counts().compiled == 1);
  CHECK(cache.counts().in_memory == 3);
  static_cast<void>(cache.get(request_of(sums(), 80)));
  CHECK(cache.counts().compiled == 2);
  const Kernel products = test::reduction(Combine::multiply, f32, f32, Order::lanes);
  Request wide = request_of(sums());
  wide.schedule.is_wide = true;
  const std::vector<Request> requests = {request_of(sums()), request_of(products), wide};
  CHECK(cache.get_all(requests).size() == 3);
  CHECK(cache.counts().compiled == 4);
}

TEST_CASE("a cache of cubins stays within its bytes", "[cuda][nvrtc]") {
  if (lacks_nvrtc()) return;
  CubinCache cache(nullptr, 1);  // so that one alone stays
  static_cast<void>(cache.get(request_of(sums(), 80)));
  static_cast<void>(cache.get(request_of(sums(), 90)));
  static_cast<void>(cache.get(request_of(sums(), 90)));
  CHECK(cache.counts().compiled == 2);
  static_cast<void>(cache.get(request_of(sums(), 80)));
  CHECK(cache.counts().compiled == 3);
}

TEST_CASE("a second process compiles nothing", "[cuda][nvrtc]") {
  if (lacks_nvrtc()) return;
  const test::TemporaryFolder folder;
  const std::string environment = "NITINOL_CACHE='" + (folder / "store").string() + "'";
  const Run first = run_self(environment, "[.cubin_cache]");
  CHECK(first.output.find("compiled 1, on disk 0") != std::string::npos);
  const Run second = run_self(environment, "[.cubin_cache]");
  CHECK(second.output.find("compiled 0, on disk 1") != std::string::npos);
  for (const auto& entry : std::filesystem::directory_iterator(folder / "store"))
    std::ofstream(entry.path(), std::ios::app) << "damage";
  const Run third = run_self(environment, "[.cubin_cache]");
  CHECK(third.output.find("compiled 1, on disk 0") != std::string::npos);
  CHECK(third.output.find("is ignored") != std::string::npos);
  const Run without = run_self("NITINOL_CACHE=0", "[.cubin_cache]");
  CHECK(without.output.find("compiled 1, on disk 0") != std::string::npos);
}

TEST_CASE("compiles one kernel with the user's store", "[.cubin_cache]") {
  static_cast<void>(CubinCache::instance().get(request_of(sums())));
  const CubinCache::Counts counts = CubinCache::instance().counts();
  std::printf("compiled %d, on disk %d\n", static_cast<int>(counts.compiled),
              static_cast<int>(counts.on_disk));
}
