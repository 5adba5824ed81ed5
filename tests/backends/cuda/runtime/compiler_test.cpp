// NVRTC and what is kept of its work. Cases that need it say [nvrtc]: ctest runs them as
// cuda.nvrtc.
#include "backends/cuda/runtime/compiler.h"

#include "backends/cuda/runtime/libraries.h"
#include "backends/disk/code_store.h"
#include "core/error.h"
#include "eager/all_ops.h"
#include "tests/backends/kernels.h"
#include "tests/on_threads.h"
#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::cuda;

namespace {

/// Whether NVRTC is there; says that the case was not run if it is not.
bool can_compile() {
  if (has_nvrtc()) return true;
  std::puts("NOT RUN: NVRTC was not found");
  return false;
}

/// A kernel of its own for each number: one op, on operands of a dtype.
Kernel kernel(int number) {
  static constexpr std::string_view names[] = {"add", "sub", "mul", "maximum"};
  const DType dtype = number / 4 == 0 ? f32 : f64;
  const Operand input = {.dtype = dtype}, output = {.role = Role::output, .dtype = dtype};
  const Operand operands[] = {input, input, output};
  for (const Op* op : all_ops())
    if (op->name == names[number % 4]) return test::elementwise(*op, operands);
  FAIL("no such op");
  return {};
}

struct Requests {
  std::vector<Kernel> kernels;
  std::vector<Request> list;
  explicit Requests(int count) {
    for (int i = 0; i < count; ++i) kernels.push_back(kernel(i));
    for (const Kernel& k : kernels)
      list.push_back({.kernel = &k, .schedule = {}, .architecture = 90});
  }
};

bool is_elf(const Cubin& cubin) {
  return cubin.size() > 64 && cubin[0] == std::byte{0x7f} && cubin[1] == std::byte{'E'};
}

}  // namespace

TEST_CASE("text is compiled for each architecture", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  const std::string text = "extern \"C\" __global__ void f(float* x) { x[threadIdx.x] += 1; }\n";
  for (const int architecture : {80, 90, 100}) CHECK(is_elf(compile_text(text, architecture)));
  // For a GPU newer than NVRTC the driver makes it of PTX, which ends with a zero.
  const Cubin ptx = compile_text(text, 990);
  const std::string_view words(reinterpret_cast<const char*>(ptx.data()), ptx.size());
  CHECK(words.find(".target sm_1") != std::string_view::npos);
  CHECK(words.back() == 0);
  CHECK(ptx_of(text, 90).find(".entry f") != std::string::npos);
}

TEST_CASE("products and sums of text are not contracted", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  const std::string ptx = ptx_of(
      "extern \"C\" __global__ void f(float* x, double* y) { *x = x[1] * x[2] + x[3]; *y = y[1] * "
      "y[2] + y[3]; x[4] = x[5] / x[6]; }\n",
      90);
  CHECK(ptx.find("fma.") == std::string::npos);
  CHECK(ptx.find("ftz") == std::string::npos);
  CHECK(ptx.find("div.rn.f32") != std::string::npos);
}

TEST_CASE("text that does not compile is shown where it fails", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  std::string text;
  for (int i = 0; i < 40; ++i) text += "// line " + std::to_string(i + 1) + "\n";
  text += "extern \"C\" __global__ void f() { unknown_word(); }\n// after\n// far\n";
  try {
    (void)compile_text(text, 90);
    FAIL("this compiles");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::compile);
    const std::string& message = error.message();
    CHECK(message.find("\"unknown_word\" is undefined") != std::string::npos);
    CHECK(message.find("sm_90") != std::string::npos);
    CHECK(message.find("\n    40 // line 40\n    41 extern") != std::string::npos);
    CHECK(message.find("\n    42 // after") != std::string::npos);
    CHECK(message.find("// line 39") == std::string::npos);
    CHECK(message.find("// far") == std::string::npos);
  }
  CHECK_THROWS_WITH(compile_text("\n", 7), Catch::Contains("sm_7"));
  CHECK_THROWS_AS(compile_text("#include <stdio.h>\n", 90), Error);
}

TEST_CASE("a cubin says what its functions take", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  const Cubin cubin = compile_text(
      "extern \"C\" __global__ void small(float* x) { x[threadIdx.x] += 1; }\n"
      "extern \"C\" __global__ void stack(int* x) {\n"
      "  int a[64]; for (int i = 0; i < 64; ++i) a[i] = x[i];\n"
      "  for (int i = 0; i < 64; ++i) x[i] = a[x[i] & 63]; }\n",
      90);
  const std::vector<Resources> list = resources_of(cubin);
  REQUIRE(list.size() == 2);
  for (const Resources& r : list) {
    INFO(r.function);
    CHECK((r.function == "small" || r.function == "stack"));
    CHECK(r.registers >= 4);
    CHECK(r.registers <= 255);
    CHECK(r.code_bytes >= 128);
    CHECK(r.code_bytes % 16 == 0);
    CHECK(r.stack_bytes == (r.function == "stack" ? 256 : 0));
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{63}, cubin.size() / 2})
    CHECK_THROWS_AS(resources_of(std::span(cubin).first(size)), Error);
}

TEST_CASE("a cubin is compiled once and kept in memory", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  CubinCache cache(nullptr);
  const Requests requests(2);
  std::vector<Code> got(4);
  std::vector<std::thread> threads;
  for (auto& place : got) threads.emplace_back([&] { place = cache.get(requests.list[0]); });
  for (std::thread& thread : threads) thread.join();
  for (const Code& code : got) CHECK((code == got[0]));
  CHECK(is_elf(*got[0].cubin));
  CHECK(cache.counts().compiled == 1);
  CHECK(cache.counts().in_memory == 3);

  // All that a cubin depends on is part of its key.
  CHECK(cache.get(requests.list[1]).cubin != got[0].cubin);
  Request other = requests.list[0];
  other.architecture = 80;
  CHECK(cache.get(other).cubin != got[0].cubin);
  other = requests.list[0];
  other.schedule.width = 4;
  CHECK(cache.get(other).cubin != got[0].cubin);
  other.schedule.is_aligned = true;
  (void)cache.get(other);
  CHECK(cache.counts().compiled == 5);
}

TEST_CASE("cubins in memory are bounded", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  CubinCache cache(nullptr, 1);
  const Requests requests(2);
  const auto first = cache.get(requests.list[0]);
  CHECK((cache.get(requests.list[0]) == first));  // the last stays
  (void)cache.get(requests.list[1]);
  CHECK(*cache.get(requests.list[0]).cubin == *first.cubin);
  CHECK(cache.counts().compiled == 3);
}

TEST_CASE("a failure is told to all who wait, and tried again", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  CubinCache cache(nullptr);
  const Requests requests(1);
  Request bad = requests.list[0];
  bad.architecture = 7;
  const std::vector<Request> list = {bad, requests.list[0], bad};
  for (const int count : {2, 1}) {
    const Threads threads(count);
    CHECK_THROWS_AS(cache.get_all(list), Error);
  }
  CHECK(is_elf(*cache.get(requests.list[0]).cubin));
  CHECK(cache.counts().compiled == 1);
}

TEST_CASE("many kernels are compiled side by side, several in a program", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  const test::TemporaryFolder temporary;
  CodeStore store(temporary / "store");
  CubinCache cache(&store);
  const Requests requests(7);
  std::vector<Request> list(requests.list.begin(), requests.list.begin() + 5);
  list.push_back(list[0]);
  const Threads two(2);
  const std::vector<Code> codes = cache.get_all(list);
  REQUIRE(codes.size() == 6);
  CHECK((codes[5] == codes[0]));
  CHECK(cache.counts().compiled == 5);
  std::set<std::pair<const Cubin*, int>> parts;
  for (const Code& code : codes) {
    CHECK(parts.contains({code.cubin.get(), code.part}) == (&code == &codes[5]));
    parts.emplace(code.cubin.get(), code.part);
    // Its own function is among those of its program.
    const std::vector<Resources> all = resources_of(*code.cubin);
    CHECK((all.size() == 2 || all.size() == 3));
    CHECK(std::ranges::count(all, function_name(code.part, 0), &Resources::function) == 1);
  }
  // One by one they are the same; what is left alone is a program by itself.
  for (std::size_t i = 0; i < 5; ++i) CHECK((cache.get(list[i]) == codes[i]));
  const std::vector<Code> later = cache.get_all(requests.list);
  CHECK((later[4] == codes[4]));
  CHECK(later[5].part == 0);
  CHECK(function_name(0, 1) == "entry1");
  // As is what another process finds on disk.
  CubinCache other(&store);
  const std::vector<Code> found = other.get_all(requests.list);
  CHECK(other.counts().compiled == 0);
  CHECK(other.counts().on_disk == 7);
  for (std::size_t i = 0; i < found.size(); ++i) {
    CHECK(found[i].part == later[i].part);
    CHECK(*found[i].cubin == *later[i].cubin);
  }
}

// Run by the next, in a process of its own.
TEST_CASE("eight cubins of the user's store", "[.cubins][nvrtc]") {
  const Requests requests(8);
  const auto begin = std::chrono::steady_clock::now();
  const int version = nvrtc_version();
  const auto opened = std::chrono::steady_clock::now();
  CubinCache& cache = CubinCache::instance();
  for (const Request& request : requests.list) CHECK(is_elf(*cache.get(request).cubin));
  const auto end = std::chrono::steady_clock::now();
  const auto us = [](auto time) {
    return static_cast<long>(std::chrono::duration_cast<std::chrono::microseconds>(time).count());
  };
  std::printf("NVRTC %d opened in %ld us, cubins in %ld us; compiled %d, on disk %d.\n", version,
              us(opened - begin), us(end - opened), static_cast<int>(cache.counts().compiled),
              static_cast<int>(cache.counts().on_disk));
}

TEST_CASE("a second process compiles nothing", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  const test::TemporaryFolder temporary;
  const std::string environment = "NITINOL_CACHE=" + (temporary / "store").string();
  const Run first = run_self(environment, "[.cubins]"), second = run_self(environment, "[.cubins]");
  INFO(first.output << second.output);
  CHECK(first.status == 0);
  CHECK(first.output.find("compiled 8, on disk 0.") != std::string::npos);
  CHECK(second.status == 0);
  CHECK(second.output.find("compiled 0, on disk 8.") != std::string::npos);
  const Run without = run_self("NITINOL_CACHE=0", "[.cubins]");
  CHECK(without.output.find("compiled 8, on disk 0.") != std::string::npos);
  const Run elsewhere =
      run_self("NITINOL_CACHE= XDG_CACHE_HOME=" + (temporary / "cache").string(), "[.cubins]");
  CHECK(elsewhere.output.find("compiled 8, on disk 0.") != std::string::npos);
  CHECK(!std::filesystem::is_empty(temporary / "cache/nitinol"));
}

TEST_CASE("launches made as one are compiled without a stack", "[cuda][nvrtc][no-isa]") {
  if (!can_compile()) return;
  const Kernel add = kernel(0);
  Schedule schedule;
  schedule.parts = 64;
  const Cubin cubin =
      compile_text(text_of({.kernel = &add, .schedule = schedule, .architecture = 90}), 90);
  CHECK(resources_of(cubin).at(0).stack_bytes == 0);
}
