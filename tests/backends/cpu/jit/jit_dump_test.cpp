// The file from which `perf inject --jit` takes code, read by what Linux's
// tools/perf/Documentation/jitdump-specification.txt says. Each case runs in a process of its own,
// whose name begins with a dot; without its folder, as when a whole file is asked for, it does
// nothing.
#include "backends/cpu/code/jit_dump.h"

#include "core/place.h"
#include "nitinol.h"
#include "tests/in_child.h"
#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <array>
#include <barrier>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <elf.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace nitinol::jit_dump_test {
namespace {

namespace fs = std::filesystem;

bool is_child() {
  return std::getenv("TEST_FOLDER") != nullptr;  // NOLINT(concurrency-mt-unsafe)
}
fs::path folder_of_child() {
  return std::getenv("TEST_FOLDER");  // NOLINT(concurrency-mt-unsafe)
}
fs::path path_of(const test::TemporaryFolder& folder) {
  return (folder / "inside").parent_path();
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Files of code below the folder.
std::vector<fs::path> dumps_in(const fs::path& folder) {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) found.push_back(entry.path());
  }
  return found;
}

/// Takes values off the front of bytes.
struct Bytes {
  std::string_view rest;

  std::string_view take(std::size_t count) {
    REQUIRE(count <= rest.size());
    const std::string_view taken = rest.substr(0, count);
    rest.remove_prefix(count);
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string text() {
    const std::size_t end = rest.find('\0');
    REQUIRE(end != std::string_view::npos);
    std::string found(take(end));
    take(1);
    return found;
  }
};

struct Load {
  std::string name, code;
  uint32_t process = 0, thread = 0;
  uint64_t address = 0, number = 0;
  std::string file;  ///< of its line; empty: not known
  uint32_t line = 0;
};

struct Dump {
  uint32_t process = 0;
  std::vector<Load> loads;
  bool is_closed = false;
};

/// A line of the next load.
void read_lines(Bytes& record, Load& next) {
  CHECK(next.file.empty());
  next.address = record.number<uint64_t>();
  const auto count = record.number<uint64_t>();
  REQUIRE(count == 2);
  for (uint64_t i = 0; i < count; ++i) {
    const auto address = record.number<uint64_t>();
    const auto line = record.number<uint32_t>();
    CHECK(record.number<uint32_t>() == 0);
    const std::string file = record.text();
    if (i == 0) {
      CHECK(address == next.address);
      next.file = file;
      next.line = line;
    } else {
      CHECK(address > next.address);
      CHECK(line == next.line);
      CHECK(file == "\xff");  // the same
    }
  }
}

void read_load(Bytes& record, Load& next) {
  const uint64_t known = next.address;
  next.process = record.number<uint32_t>();
  next.thread = record.number<uint32_t>();
  next.address = record.number<uint64_t>();
  if (!next.file.empty()) CHECK(known == next.address);
  CHECK(record.number<uint64_t>() == next.address);
  const auto size = record.number<uint64_t>();
  next.number = record.number<uint64_t>();
  next.name = record.text();
  next.code = record.take(size);
}

Dump read_dump(const std::string& text) {
  Bytes bytes{text};
  Dump dump;
  CHECK(bytes.number<uint32_t>() == 0x4a695444);
  CHECK(bytes.number<uint32_t>() == 1);
  CHECK(bytes.number<uint32_t>() == 40);
#if defined(__x86_64__)
  CHECK(bytes.number<uint32_t>() == EM_X86_64);
#else
  CHECK(bytes.number<uint32_t>() == EM_AARCH64);
#endif
  CHECK(bytes.number<uint32_t>() == 0);
  dump.process = bytes.number<uint32_t>();
  auto before = bytes.number<uint64_t>();
  CHECK(bytes.number<uint64_t>() == 0);
  Load next;
  while (!bytes.rest.empty()) {
    REQUIRE_FALSE(dump.is_closed);
    const auto kind = bytes.number<uint32_t>();
    const auto size = bytes.number<uint32_t>();
    const auto time = bytes.number<uint64_t>();
    CHECK(time >= before);
    before = time;
    REQUIRE(size >= 16);
    Bytes record{bytes.take(size - 16)};
    switch (kind) {
      case 0:
        read_load(record, next);
        dump.loads.push_back(std::exchange(next, {}));
        break;
      case 2:
        read_lines(record, next);
        break;
      case 3:
        dump.is_closed = true;
        break;
      default:
        FAIL("a record of kind " << kind);
    }
    CHECK(record.rest.empty());
  }
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  const auto seconds = static_cast<uint64_t>(now.tv_sec);
  CHECK(before / 1'000'000'000 <= seconds);
  CHECK(before / 1'000'000'000 + 600 >= seconds);
  return dump;
}

/// What perf_map_test.cpp looks at.
void remove_map() {
  fs::remove("/tmp/perf-" + std::to_string(getpid()) + ".map");
}

struct Compiled {
  std::vector<std::string> warnings;
  std::vector<std::string> places;  ///< that explain() shows
  int line = 0;                     ///< of the operations
};

/// Generates code of as many kernels.
Compiled compile_kernels(int count) {
  Compiled result;
  set_log_sink([&](LogLevel, std::string_view text) { result.warnings.emplace_back(text); });
  for (int kernel = 0; kernel < count; ++kernel) {
    const auto f = compile([kernel](const Tensor& x) {
      Tensor y = exp(x);
      for (int i = 0; i < kernel; ++i) y = y * x;
      return y + x;
    });
    result.line = __LINE__ - 2;
    Tensor last;
    for (int call = 0; call < 3; ++call) last = f(zeros({5}));
    CHECK(sum(last).item<float>() == (kernel == 0 ? 5 : 0));
    const Explanation told = f.explain();
    CHECK(told.plan_calls == 1);
    result.places = told.signatures.at(0).plan.steps.at(0).places;
  }
  set_log_sink({});
  remove_map();
  return result;
}

void check_refused(const std::string& path, const std::string& reason) {
  const std::vector<std::string> warnings = compile_kernels(2).warnings;
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] == "NITINOL_PERF=1, but " + path + " cannot be written: " + reason);
}

/// Runs a case with the folder as `variable`.
void check_child(const char* name, const fs::path& folder, const std::string& perf = "1",
                 const std::string& variable = "JITDUMPDIR") {
  const std::string assigned = "='" + folder.string() + "'";
  const Run run = run_self("env -u JITDUMPDIR NITINOL_PERF=" + perf + " TEST_FOLDER" + assigned +
                               " " + variable + assigned,
                           std::string("[.jit-dump-") + name + "]");
  INFO(name << "\n" << run.output);
  CHECK(run.status == 0);
}

unsigned mode_of(const fs::path& path) {
  struct stat status = {};
  REQUIRE(lstat(path.c_str(), &status) == 0);
  return status.st_mode & 0777;
}

}  // namespace

TEST_CASE("a new dump", "[.jit-dump-new][no-isa]") {
  if (!is_child()) return;
  const fs::path planted =
      folder_of_child() / ".debug/jit" / ("nitinol-" + std::to_string(getpid()) + "-0");
  fs::create_directories(planted);  // of an earlier process of this number
  const Compiled compiled = compile_kernels(2);
  CHECK(compiled.warnings.empty());
  const std::vector<fs::path> files = dumps_in(folder_of_child());
  REQUIRE(files.size() == 1);
  CHECK(files[0].filename() == "jit-" + std::to_string(getpid()) + ".dump");
  CHECK(mode_of(files[0]) == 0600);
  CHECK(mode_of(files[0].parent_path()) == 0700);
  CHECK(files[0].parent_path() != planted);
  const Dump dump = read_dump(text_of(files[0]));
  CHECK(dump.process == static_cast<uint32_t>(getpid()));
  CHECK_FALSE(dump.is_closed);
  REQUIRE(dump.loads.size() == 2);
  CHECK(dump.loads[0].name == "nitinol::kernel::exp_add");
  CHECK(dump.loads[1].name == "nitinol::kernel::exp_mul_add");
  for (uint64_t i = 0; i < 2; ++i) {
    const Load& load = dump.loads[i];
    CHECK(load.number == i);
    CHECK(load.process == dump.process);
    CHECK(load.thread == static_cast<uint32_t>(gettid()));
    REQUIRE(load.code.size() > 20);
    // The cache of executables keeps it loaded.
    CHECK(std::memcmp(reinterpret_cast<const void*>(load.address), load.code.data(),
                      load.code.size()) == 0);
    CHECK(load.file.empty() == compiled.places.empty());
    if (load.file.empty()) continue;
    CHECK(load.file.ends_with("jit_dump_test.cpp"));
    CHECK(load.line == static_cast<uint32_t>(compiled.line));
  }
  // How perf finds the file. (A regular expression for all of it is more than a sanitizer's stack.)
  std::istringstream maps(text_of("/proc/self/maps"));
  bool is_mapped = false;
  for (std::string line; std::getline(maps, line);) {
    is_mapped |= line.find(" r-xp 00000000 ") != std::string::npos &&
                 line.find(files[0].filename().string()) != std::string::npos;
  }
  CHECK(is_mapped);
}

TEST_CASE("a dump of a child", "[.jit-dump-fork][no-isa]") {
  if (!is_child()) return;
  compile_kernels(1);
  CHECK(dumps_in(folder_of_child()).size() == 1);
  CHECK(test::in_child([] {
          compile_kernels(2);
          const std::string own = "jit-" + std::to_string(getpid()) + ".dump";
          for (const fs::path& path : dumps_in(folder_of_child())) {
            const Dump dump = read_dump(text_of(path));
            const bool is_own = path.filename() == own;
            if (is_own != (dump.process == static_cast<uint32_t>(getpid()))) return 1;
            if (dump.loads.size() != 1) return 2;  // exp_add was there before the fork
            if (dump.loads[0].number != 0) return 3;
          }
          return dumps_in(folder_of_child()).size() == 2 ? 0 : 4;
        }) == 0);
  // A child that ends without having made anything leaves the parent's file alone.
  CHECK(test::in_child([]() -> int {
          std::fflush(nullptr);
          std::exit(0);  // NOLINT(concurrency-mt-unsafe)
        }) == 0);
  for (const fs::path& path : dumps_in(folder_of_child()))
    CHECK_FALSE(read_dump(text_of(path)).is_closed);
  compile_kernels(3);
  for (const fs::path& path : dumps_in(folder_of_child())) {
    const Dump dump = read_dump(text_of(path));
    CHECK(dump.loads.size() == (dump.process == static_cast<uint32_t>(getpid()) ? 3 : 1));
  }
}

TEST_CASE("a dump of threads", "[.jit-dump-threads][no-isa]") {
  if (!is_child()) return;
  std::barrier together(6);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 6; ++thread) {
    threads.emplace_back([&together, thread] {
      static const std::array<std::byte, 64> code = {};
      const cpu::CodeSymbols symbols = {
          .functions = {{"nitinol::kernel::none", code}}, .unwind = {}, .line = {}};
      together.arrive_and_wait();  // one of them begins the file
      for (int i = 0; i < 500; ++i) cpu::dump_for_perf(symbols);
      const auto f = compile([thread](const Tensor& x) {
        Tensor y = tanh(x);
        for (int i = 0; i < thread; ++i) y = exp(y);
        return y + x;
      });
      for (int call = 0; call < 3; ++call) static_cast<void>(f(zeros({5})));
    });
  }
  for (std::thread& thread : threads) thread.join();
  remove_map();
  const std::vector<fs::path> files = dumps_in(folder_of_child());
  REQUIRE(files.size() == 1);
  const Dump dump = read_dump(text_of(files[0]));
  constexpr std::size_t kernels = 6, all = kernels + 6 * 500;
  CHECK(dump.loads.size() == all);
  std::set<uint64_t> numbers, addresses;
  for (const Load& load : dump.loads) {
    numbers.insert(load.number);
    addresses.insert(load.address);
  }
  CHECK(numbers.size() == all);
  CHECK(*numbers.rbegin() == all - 1);
  CHECK(addresses.size() == kernels + 1);
}

TEST_CASE("a dump of another language's lines", "[.jit-dump-language][no-isa]") {
  if (!is_child()) return;
  const PlaceScope scope([](void*) { return std::string("model.py:42"); });
  compile_kernels(1);
  const std::vector<fs::path> files = dumps_in(folder_of_child());
  REQUIRE(files.size() == 1);
  const Dump dump = read_dump(text_of(files[0]));
  REQUIRE(dump.loads.size() == 1);
  CHECK(dump.loads[0].file == "model.py");
  CHECK(dump.loads[0].line == 42);
}

TEST_CASE("a dump without a folder", "[.jit-dump-no-folder][no-isa]") {
  if (!is_child()) return;
  check_refused(folder_of_child(),
                fs::exists(folder_of_child()) ? "Not a directory" : "No such file or directory");
}

TEST_CASE("a dump where no folder can be made", "[.jit-dump-read-only][no-isa]") {
  if (!is_child()) return;
  check_refused(folder_of_child() / ".debug", "No such file or directory");  // what /proc says
}

TEST_CASE("a dump behind a link", "[.jit-dump-link][no-isa]") {
  if (!is_child()) return;
  const fs::path other = folder_of_child() / "other", debug = folder_of_child() / ".debug";
  fs::create_directory(other);
  fs::path link = debug;
  if (fs::exists(folder_of_child() / "deeper")) {
    fs::create_directory(debug);
    link = debug / "jit";
  }
  fs::create_directory_symlink(other, link);
  check_refused(link, "it is a link");
  CHECK(fs::is_empty(other));
}

TEST_CASE("a dump in a folder of everybody's", "[.jit-dump-shared][no-isa]") {
  if (!is_child()) return;
  const fs::path debug = folder_of_child() / ".debug";
  fs::create_directory(debug);
  fs::permissions(debug, fs::perms::all);
  check_refused(debug, "it is not this user's alone to write to");
  CHECK(fs::is_empty(debug));
}

TEST_CASE("a dump on a full disk", "[.jit-dump-full][no-isa]") {
  if (!is_child()) return;
  std::signal(SIGXFSZ, SIG_IGN);  // NOLINT(cert-err33-c)
  const rlimit limit = {.rlim_cur = 500, .rlim_max = RLIM_INFINITY};
  REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  const std::vector<std::string> warnings = compile_kernels(3).warnings;
  const std::vector<fs::path> files = dumps_in(folder_of_child());
  REQUIRE(files.size() == 1);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0] ==
        "NITINOL_PERF=1, but " + files[0].string() + " cannot be written: File too large");
  // No half of a record.
  CHECK(read_dump(text_of(files[0])).loads.size() < 3);
}

TEST_CASE("no dump", "[.jit-dump-off][no-isa]") {
  if (!is_child()) return;
  CHECK(compile_kernels(1).warnings.empty());
  CHECK(dumps_in(folder_of_child()).empty());
}

TEST_CASE("perf is given code with names and lines", "[cpu][jit][perf][tools][no-isa]") {
  {
    const test::TemporaryFolder folder;
    check_child("new", path_of(folder));
    const std::vector<fs::path> files = dumps_in(path_of(folder));
    REQUIRE(files.size() == 1);
    CHECK(read_dump(text_of(files[0])).is_closed);
  }
  for (const char* const name : {"threads", "language"}) {
    const test::TemporaryFolder folder;
    check_child(name, path_of(folder));
  }
#if !defined(__SANITIZE_THREAD__)  // the sanitizer does not follow threads into a fork
  const test::TemporaryFolder forked;
  check_child("fork", path_of(forked));
#endif
  const test::TemporaryFolder home;
  check_child("new", path_of(home), "1", "HOME");
  CHECK(dumps_in(path_of(home)).size() == 1);
}

TEST_CASE("what perf is given goes to a new file of ours, or nowhere",
          "[cpu][jit][perf][tools][no-isa]") {
  for (const char* const name : {"link", "shared", "full"}) {
    const test::TemporaryFolder folder;
    check_child(name, path_of(folder));
  }
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "deeper");
  check_child("link", path_of(folder));
  std::ofstream(folder / "file") << "precious";
  check_child("no-folder", folder / "file");
  CHECK(text_of(folder / "file") == "precious");
  check_child("no-folder", folder / "none");
  CHECK_FALSE(fs::exists(folder / "none"));
  check_child("read-only", "/proc");
}

TEST_CASE("perf is given nothing unless asked for", "[cpu][jit][perf][tools][no-isa]") {
  const test::TemporaryFolder folder;
  check_child("off", path_of(folder), "0");
  check_child("off", path_of(folder), "");
}

}  // namespace nitinol::jit_dump_test
