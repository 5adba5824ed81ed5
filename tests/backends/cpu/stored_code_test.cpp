// Code of the processor on disk: a second process generates nothing, whatever is there.
#include "backends/cpu/stored_code.h"

#include "backends/disk/code_store.h"
#include "eager/all_ops.h"
#include "nitinol.h"
#include "tests/backends/kernels.h"
#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <array>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

namespace fs = std::filesystem;

bool has_generator() {
  return backend(Device{}).can_generate_code();
}

/// Whether the code generator was opened in this process.
bool is_generator_open() {
  std::ifstream maps("/proc/self/maps");
  const std::string text((std::istreambuf_iterator<char>(maps)), {});
  return text.find("nitinol_llvm") != std::string::npos;
}

std::set<fs::path> files_in(const fs::path& folder) {
  std::set<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.insert(entry.path());
  return files;
}

}  // namespace

// Run by those below, in processes of their own.
TEST_CASE("a step by code of the user's store", "[.stored]") {
  const auto f = compile(
      [](const Tensor& x) { return std::pair(sum(tanh(x) * 2 + 1, {1}), softmax(exp(x * 0.5))); },
      {.check = Check::never});
  const Tensor x = reshape(sin(arange(0, 4096, 1, f32)), {64, 64});
  const Tensor softened = softmax(x + 1.0);  // a composite that eager makes
  static_cast<void>(softmax(x + 1.0));
  uint64_t hash = 0;
  for (int call = 0; call < 4; ++call) {
    const auto [sums, rows] = f(x);
    for (const Tensor& tensor : {sums, rows, softened}) {
      for (const float element : tensor.to_vector<float>())
        hash = hash * 31 + std::bit_cast<uint32_t>(element);
    }
  }
  const Explanation explanation = f.explain();
  std::printf("bits %016lx, plans %d, generated %d, from disk %d, generator %s.\n",
              static_cast<unsigned long>(hash), static_cast<int>(explanation.plan_calls),
              static_cast<int>(explanation.signatures.at(0).plan.kernels_generated),
              static_cast<int>(executable_statistics().from_disk),
              is_generator_open() ? "open" : "not opened");
}

namespace {

/// What the process printed: bits, and the rest.
struct Said {
  std::string bits, rest, output;
};

Said say(const std::string& environment) {
  const Run run = run_self(environment, "[.stored]");
  INFO(run.output);
  CHECK(run.status == 0);
  const std::size_t at = run.output.find("bits ");
  REQUIRE(at != std::string::npos);
  const std::size_t comma = run.output.find(',', at);
  return {run.output.substr(at, comma - at),
          run.output.substr(comma, run.output.find('\n', comma) - comma), run.output};
}

}  // namespace

TEST_CASE("a second process opens no code generator", "[cpu][stored][no-isa]") {
  if (!has_generator()) return;
  const test::TemporaryFolder temporary;
  const std::string environment = "NITINOL_CACHE=" + (temporary / "store").string();
  const Said first = say(environment), second = say(environment);
  CHECK(first.rest.find("from disk 0, generator open.") != std::string::npos);
  CHECK(second.bits == first.bits);
  CHECK(second.rest.find("plans 2, generated 0,") != std::string::npos);
  CHECK(second.rest.find("from disk 0,") == std::string::npos);
  CHECK(second.rest.find("generator not opened.") != std::string::npos);
  // Another level's code is another's, and nothing is kept or found where none is wanted.
  const Said lower = say(environment + " NITINOL_ISA=baseline");
  CHECK(lower.bits == first.bits);
  if (current_isa() != Isa::baseline)
    CHECK(lower.rest.find("from disk 0, generator open.") != std::string::npos);
  const Said without = say("NITINOL_CACHE=0");
  CHECK(without.bits == first.bits);
  CHECK(without.rest.find("from disk 0, generator open.") != std::string::npos);
  const Said homeless = say("NITINOL_CACHE= XDG_CACHE_HOME= HOME=");
  CHECK(homeless.bits == first.bits);
  CHECK(homeless.rest.find("from disk 0, generator open.") != std::string::npos);
  // To see what the generator writes it has to write it.
  const Said dumped = say(environment + " NITINOL_DUMP=llvm");
  CHECK(dumped.output.find("define") != std::string::npos);
}

TEST_CASE("a program with other rights than its user's keeps no code", "[cpu][stored][no-isa]") {
  const test::TemporaryFolder temporary;
  const fs::path copy = temporary / "program";
  struct statvfs disk = {};
  const bool may_be = ::geteuid() == 0 && ::statvfs((temporary / ".").c_str(), &disk) == 0 &&
                      (disk.f_flag & ST_NOSUID) == 0;
  if (!has_generator() || !may_be) return;
  fs::copy_file("/proc/self/exe", copy);
  constexpr uid_t nobody = 65534;
  REQUIRE(::chown(copy.c_str(), nobody, nobody) == 0);
  fs::permissions(temporary / ".", fs::perms::all);  // where its user could keep some
  for (const mode_t mode : {0755, 04755}) {
    REQUIRE(::chmod(copy.c_str(), mode) == 0);
    const fs::path store = temporary / (mode == 0755 ? "own" : "other");
    const Run run = run_command("NITINOL_CACHE=" + store.string() + " '" + copy.string() +
                                "' -w NoTests '[.stored]'");
    if (run.status != 0 && mode == 04755) return;  // that user may not read the library
    REQUIRE(run.status == 0);
    CHECK(fs::exists(store) == (mode == 0755));
  }
}

TEST_CASE("code on disk that is damaged is made anew", "[cpu][stored][no-isa]") {
  if (!has_generator()) return;
  const test::TemporaryFolder temporary;
  const fs::path store = temporary / "store";
  const std::string environment = "NITINOL_CACHE=" + store.string();
  const Said first = say(environment);
  const std::set<fs::path> files = files_in(store);
  REQUIRE(!files.empty());
  int number = 0;
  for (const fs::path& file : files) {  // each in another way
    const auto size = fs::file_size(file);
    if (number % 3 == 0) fs::resize_file(file, size / 2);
    if (number % 3 == 1) {
      std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
      bytes.seekp(static_cast<std::streamoff>(size / 2));
      bytes.put('\x55');
    }
    if (number % 3 == 2) std::ofstream(file, std::ios::trunc) << "something else";
    ++number;
  }
  const Said second = say(environment);
  CHECK(second.bits == first.bits);
  CHECK(second.rest.find("from disk 0, generator open.") != std::string::npos);
  CHECK(second.output.find("warning") != std::string::npos);
  const Said third = say(environment);
  CHECK(third.rest.find("generator not opened.") != std::string::npos);
}

TEST_CASE("code is kept for other levels if that is asked for", "[cpu][stored][no-isa]") {
  if (!has_generator()) return;
  const test::TemporaryFolder temporary;
  const std::string environment = "NITINOL_CACHE=" + (temporary / "store").string();
  const Said first = say(environment + " NITINOL_ISA=avx2 NITINOL_KEEP_FOR=baseline,avx512");
  for (const char* const level : {"baseline", "avx2", "avx512"}) {
    const Said second = say(environment + " NITINOL_ISA=" + level);
    CHECK(second.bits == first.bits);
    CHECK(second.rest.find("generator not opened.") != std::string::npos);
  }
}

TEST_CASE("what is kept for a level is that level's code", "[cpu][stored]") {
  if (!has_generator()) return;
  const test::TemporaryFolder temporary;
  CodeStore store(temporary / "store"), own(temporary / "own");
  const std::array<Operand, 2> operands = {Operand{.role = Role::input},
                                           Operand{.role = Role::output}};
  const Kernel kernel = test::elementwise(*find_op("exp"), operands);
  const std::array<Isa, 3> levels = {Isa::baseline, Isa::avx2, Isa::avx512};
  cpu::keep_code(kernel, levels, store);
  std::set<std::vector<std::byte>> different;
  for (const Isa level : levels) {
    const std::vector<std::byte> key = cpu::code_key(kernel, level);
    REQUIRE(cpu::code_of(kernel, level, &own, cpu::Effort::full));
    REQUIRE(store.find(key));
    CHECK(store.find(key) == own.find(key));
    different.insert(*store.find(key));
  }
  CHECK(different.size() == levels.size());
}

TEST_CASE("an object that is none, under the right key, is made anew", "[cpu][stored]") {
  if (!has_generator()) return;
  const test::TemporaryFolder temporary;
  CodeStore store(temporary / "store");
  const std::array<Operand, 2> operands = {Operand{.role = Role::input},
                                           Operand{.role = Role::output}};
  const Kernel kernel = test::elementwise(*find_op("exp"), operands);
  const auto origin = [&](CodeStore* from) {
    const auto codes = cpu::code_of(kernel, current_isa(), from, cpu::Effort::full);
    REQUIRE(codes);
    CHECK(codes->stages.size() == kernel.stages.size());
    CHECK(codes->report.origin != CodeOrigin::none);
    return codes->report.origin == CodeOrigin::disk;
  };
  CHECK_FALSE(origin(&store));
  CHECK(origin(&store));
  CHECK_FALSE(origin(nullptr));
  const std::vector<std::byte> key = cpu::code_key(kernel, current_isa());
  const std::vector<std::byte> good = store.find(key).value();
  for (const std::size_t size : {std::size_t{0}, good.size() / 2, good.size() - 1}) {
    store.keep(key, std::span(good).first(size));
    CHECK_FALSE(origin(&store));
    CHECK(store.find(key) == good);
  }
  store.keep(key, good);
  CHECK(origin(&store));
}

TEST_CASE("processes that compile at the same time give the same", "[cpu][stored][no-isa]") {
  if (!has_generator()) return;
  const test::TemporaryFolder temporary;
  const std::string environment = "NITINOL_CACHE=" + (temporary / "store").string();
  std::vector<Said> said(4);
  {
    std::vector<std::jthread> threads;
    for (Said& each : said) {
      threads.emplace_back([&] {
        const Run run = run_self(environment, "[.stored]");
        const std::size_t at = run.output.find("bits ");
        if (at != std::string::npos)
          each.bits = run.output.substr(at, run.output.find(',', at) - at);
      });
    }
  }
  for (const Said& each : said) CHECK((!each.bits.empty() && each.bits == said[0].bits));
  CHECK(say(environment).rest.find("generator not opened.") != std::string::npos);
}
