// Code on disk: what is kept is found, and what anything else wrote is not.
#include "backends/disk/code_store.h"

#include "core/error.h"
#include "core/log.h"
#include "tests/in_child.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <sched.h>
#include <string>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <utility>
#include <vector>

using namespace nitinol;
using test::in_child;
using test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;
using Code = std::vector<std::byte>;

Code code(std::size_t size, int seed) {
  Code bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::byte>((i * 7 + static_cast<std::size_t>(seed) * 13) & 255);
  return bytes;
}

/// The one file of a folder.
fs::path file_in(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) files.push_back(entry.path());
  REQUIRE(files.size() == 1);
  return files[0];
}

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& file, const std::string& bytes) {
  std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
}

uint64_t bytes_in(const fs::path& folder) {
  uint64_t sum = 0;
  for (const auto& entry : fs::directory_iterator(folder)) sum += entry.file_size();
  return sum;
}

std::size_t unfinished_in(const fs::path& folder) {
  std::size_t count = 0;
  for (const auto& entry : fs::directory_iterator(folder))
    count += entry.path().extension() == ".new" ? 1 : 0;
  return count;
}

/// What is logged while it lives.
class Notes {
 public:
  Notes() {
    set_log_sink([this](LogLevel, std::string_view text) { said += text; });
  }
  ~Notes() { set_log_sink(nullptr); }
  Notes(const Notes&) = delete;
  Notes& operator=(const Notes&) = delete;
  std::string said;
};

}  // namespace

TEST_CASE("code on disk is found by its key, by another store and another process",
          "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "new/store";
  CodeStore store(folder);
  CHECK((fs::status(folder).permissions() & fs::perms::all) == fs::perms::owner_all);
  CHECK(!store.find(code(100, 1)));
  for (const int i : {0, 1, 2})
    store.keep(code(100, i), code(1000 + static_cast<std::size_t>(i), i));
  store.keep(code(3, 3), {});
  for (const int i : {0, 1, 2})
    CHECK(CodeStore(folder).find(code(100, i)) == code(1000 + static_cast<std::size_t>(i), i));
  CHECK(store.find(code(3, 3)) == Code{});
  CHECK(!store.find(code(99, 1)));
  CHECK(in_child([&] { return CodeStore(folder).find(code(100, 2)) == code(1002, 2) ? 0 : 1; }) ==
        0);
  CHECK(store.counts().found == 1);
  CHECK(store.counts().missed == 2);
  CHECK(store.counts().kept == 4);
}

TEST_CASE("a damaged file of code is ignored with a note, and replaced", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "store";
  CodeStore store(folder);
  const Code key = code(37, 1), value = code(203, 2);
  store.keep(key, value);
  const fs::path file = file_in(folder);
  const std::string whole = read(file);
  const Notes notes;
  std::size_t rejected = 0;
  const auto check_ignored = [&](const std::string& bytes) {
    write(file, bytes);
    CHECK(!store.find(key));
    CHECK(store.counts().rejected == ++rejected);
  };
  for (std::size_t i = 0; i < whole.size(); ++i) {  // every byte, one bit of it
    INFO("byte " << i);
    std::string damaged = whole;
    damaged[i] = static_cast<char>(damaged[i] ^ (1 << (i % 8)));
    check_ignored(damaged);
  }
  for (std::size_t size = 0; size < whole.size(); ++size) check_ignored(whole.substr(0, size));
  check_ignored(whole + "x");
  check_ignored(std::string(500, 'x'));
  CHECK(notes.said.find(file.string()) != std::string::npos);
  CHECK(notes.said.find("checksum") != std::string::npos);
  store.keep(key, value);
  CHECK(store.find(key) == value);
}

TEST_CASE("code under the name of another key is not taken", "[code][no-isa]") {
  const TemporaryFolder temporary;
  CodeStore one(temporary / "one"), other(temporary / "other");
  one.keep(code(50, 1), code(60, 1));
  other.keep(code(50, 2), code(60, 2));
  fs::copy_file(file_in(one.folder()), file_in(other.folder()),
                fs::copy_options::overwrite_existing);
  CHECK(!other.find(code(50, 2)));
  CHECK(other.counts().rejected == 0);  // as two keys of one hash would be
  other.keep(code(50, 2), code(60, 2));
  CHECK(other.find(code(50, 2)) == code(60, 2));
}

TEST_CASE("a folder for code is the user's own", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "store";
  fs::create_directory(folder);
  for (const mode_t mode : {0720, 0702, 0777}) {
    ::chmod(folder.c_str(), mode);
    CHECK_THROWS_WITH(CodeStore(folder), Catch::Contains("others may write"));
  }
  ::chmod(folder.c_str(), 0700);
  CHECK_NOTHROW(CodeStore(folder));
  fs::create_directory_symlink(folder, temporary / "link");
  CHECK_THROWS_WITH(CodeStore(temporary / "link"), Catch::Contains("link"));
  write(temporary / "file", "");
  CHECK_THROWS_AS(CodeStore(temporary / "file"), Error);
  if (::geteuid() == 0) {
    REQUIRE(::chown(folder.c_str(), 12345, 12345) == 0);
    CHECK_THROWS_WITH(CodeStore(folder), Catch::Contains("another user"));
  }
}

TEST_CASE("links and pipes in a folder for code are not read", "[code][no-isa]") {
  const TemporaryFolder temporary;
  CodeStore store(temporary / "store");
  const Code key = code(20, 1);
  store.keep(key, key);
  const fs::path file = file_in(store.folder());
  fs::rename(file, temporary / "elsewhere");
  fs::create_symlink(temporary / "elsewhere", file);
  CHECK(!store.find(key));
  fs::remove(file);
  REQUIRE(::mkfifo(file.c_str(), 0600) == 0);
  const Notes notes;
  CHECK(!store.find(key));  // and does not wait for a writer
}

TEST_CASE("what cannot be kept is noted, and no error", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "store";
  CodeStore store(folder);
  fs::remove(folder);
  const Notes notes;
  set_log_level(LogLevel::info);
  store.keep(code(10, 1), code(10, 1));
  set_log_level(LogLevel::warning);
  CHECK(notes.said.find("not kept") != std::string::npos);
  CHECK(store.counts().kept == 0);
  // A folder that may not be written still serves; to root, nothing is read-only.
  fs::create_directory(folder);
  store.keep(code(10, 1), code(10, 1));
  ::chmod(folder.c_str(), 0500);
  CHECK(CodeStore(folder).find(code(10, 1)) == code(10, 1));
  CHECK_NOTHROW(CodeStore(folder).keep(code(10, 2), code(10, 2)));
  ::chmod(folder.c_str(), 0700);
}

TEST_CASE("of too much code on disk, what was not used for longest goes", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "store";
  constexpr uint64_t budget = 16 << 10;
  CodeStore store(folder, budget);
  const auto bytes = [&] { return bytes_in(folder); };
  for (int i = 0; i < 60; ++i) {
    store.keep(code(50, i), code(900, i));
    CHECK(store.find(code(50, 0)).has_value());  // in use
    CHECK(bytes() <= budget + budget / 8 + 1000);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  CHECK(bytes() > budget / 2);
  CHECK(!store.find(code(50, 1)));
  CHECK(store.find(code(50, 59)).has_value());
  store.keep(code(51, 0), code(budget / 4, 0));  // more than an eighth: not kept
  CHECK(!store.find(code(51, 0)));
}

TEST_CASE("a new store makes room that an earlier process left full", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "store";
  CodeStore large(folder);
  for (int i = 0; i < 40; ++i) large.keep(code(50, i), code(900, i));
  write(folder / "1.0.new", "left by a process that ended");
  fs::last_write_time(folder / "1.0.new", fs::file_time_type::clock::now() - std::chrono::hours(2));
  write(folder / "2.0.new", "being written");
  CodeStore small(folder, 16 << 10);
  small.keep(code(50, 50), code(900, 50));
  CHECK(bytes_in(folder) <= 16 << 10);
  CHECK(small.find(code(50, 50)).has_value());
  CHECK(!fs::exists(folder / "1.0.new"));
  CHECK(fs::exists(folder / "2.0.new"));
}

TEST_CASE("processes keep and find code in one folder at once", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "store";
  const auto work = [&] {
    CodeStore store(folder, 64 << 10);
    for (int i = 0; i < 400; ++i) {
      const int k = i % 20;
      const Code value = code(3000, k);
      const auto found = store.find(code(40, k));
      if (found && *found != value) return 1;
      store.keep(code(40, k), value);
    }
    return store.counts().rejected == 0 ? 0 : 2;
  };
  int child = -1;
  std::thread other([&] { child = in_child(work); });
  const int here = in_child(work);
  other.join();
  CHECK(child == 0);
  CHECK(here == 0);
}

TEST_CASE("a process that is killed while it writes leaves whole files", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "store";
  constexpr int keys = 4;
  std::vector<Code> values;
  for (int k = 0; k < keys; ++k) values.push_back(code(3'000'000, k));
  static_cast<void>(CodeStore(folder));
  std::size_t found = 0, unfinished = 0;
  for (int round = 0; round < 100; ++round) {
    std::array<int, 2> kept = {};
    REQUIRE(::pipe(kept.data()) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      CodeStore store(folder);
      for (std::size_t i = static_cast<std::size_t>(round);; ++i) {
        store.keep(code(40, static_cast<int>(i % keys)), values[i % keys]);
        if (::write(kept[1], "k", 1) != 1) _exit(1);
      }
    }
    char one = 0;
    REQUIRE(::read(kept[0], &one, 1) == 1);
    std::this_thread::sleep_for(std::chrono::microseconds(97 * round));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
    for (const int end : kept) ::close(end);
    unfinished = std::max(unfinished, unfinished_in(folder));
    CodeStore store(folder);
    const auto held = store.find(code(40, round % keys));
    if (held) ++found;
    if (held && *held != values[static_cast<std::size_t>(round % keys)]) FAIL("other code");
    CHECK(store.counts().rejected == 0);
  }
  CHECK(found > 50);
#if !defined(__SANITIZE_ADDRESS__)  // where most time passes between files
  CHECK(unfinished > 0);            // some were hit while they wrote
#endif
  // What they leave is in nobody's way, and goes when it is old.
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".new") continue;
    fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(2));
  }
  CodeStore store(folder);
  store.keep(code(41, 0), code(10, 0));
  CHECK(store.find(code(41, 0)) == code(10, 0));
  CHECK(unfinished_in(folder) == 0);
}

TEST_CASE("a fork while code is kept leaves the child a store that works", "[code][no-isa]") {
  const TemporaryFolder temporary;
  CodeStore store(temporary / "store", 64 << 10);  // makes room again and again
  std::atomic<bool> is_over = false;
  std::thread other([&] {
    for (int i = 0; !is_over; ++i) store.keep(code(40, i), code(7000, i));
  });
  int good = 0;
  for (int i = 0; i < 60; ++i) {
    good += in_child([&] {
              // The parent, which goes on, may have made room by what is kept here.
              for (int attempt = 0; attempt < 100; ++attempt) {
                store.keep(code(42, i), code(100, i));
                if (store.find(code(42, i)) == code(100, i)) return 0;
              }
              return 1;
            }) == 0
                ? 1
                : 0;
  }
  is_over = true;
  other.join();
  CHECK(good == 60);
}

TEST_CASE("what came with the library is found, and never touched", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path shipped = temporary / "shipped";
  for (const int each : {1, 2, 3}) CodeStore(shipped).keep(code(40, each), code(100, each));
  std::map<fs::path, std::pair<std::string, fs::file_time_type>> before;
  const auto look = [&](const auto& at) {
    for (const auto& entry : fs::directory_iterator(shipped))
      at(entry.path(), std::pair(read(entry.path()), entry.last_write_time()));
  };
  look([&](const fs::path& path, const auto& state) { before[path] = state; });

  CodeStore store(temporary / "store", CodeStore::default_budget, shipped);
  CodeOrigin origin = CodeOrigin::none;
  CHECK(store.find(code(40, 1), &origin) == code(100, 1));
  CHECK(origin == CodeOrigin::shipped);
  store.keep(code(40, 2), code(50, 0));  // the user's own comes first
  store.keep(code(40, 4), code(100, 4));
  CHECK(store.find(code(40, 2), &origin) == code(50, 0));
  CHECK(origin == CodeOrigin::disk);
  CHECK(store.find(code(40, 4), &origin) == code(100, 4));
  CHECK(origin == CodeOrigin::disk);
  CHECK_FALSE(store.find(code(40, 5)));
  CHECK(store.counts().found == 3);
  CHECK(store.counts().missed == 1);

  // Where nothing can be kept.
  CodeStore only({}, CodeStore::default_budget, shipped);
  CHECK(only.find(code(40, 3), &origin) == code(100, 3));
  CHECK(origin == CodeOrigin::shipped);
  only.keep(code(40, 6), code(100, 6));
  CHECK_FALSE(only.find(code(40, 6)));
  CHECK(only.counts().kept == 0);
  std::size_t seen = 0;
  look([&](const fs::path& path, const auto& state) {
    ++seen;
    CHECK(before.at(path) == state);
  });
  CHECK(seen == 3);

  // What is damaged there is ignored, and made anew in the user's.
  for (const auto& [path, state] : before) write(path, state.first.substr(0, 60));
  set_log_sink([](LogLevel, std::string_view) {});
  CHECK_FALSE(store.find(code(40, 1)));
  set_log_sink({});
  CHECK(store.counts().rejected == 1);
  store.keep(code(40, 1), code(100, 1));
  CHECK(store.find(code(40, 1)) == code(100, 1));
}

TEST_CASE("code that others could have shipped is not used", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path shipped = temporary / "shipped", link = temporary / "link";
  CodeStore(shipped).keep(code(40, 1), code(100, 1));
  fs::create_directory_symlink(shipped, link);
  std::string said;
  const auto finds = [&](const fs::path& folder) {
    said.clear();
    set_log_sink([&](LogLevel, std::string_view text) { said += text; });
    CodeStore store(temporary / "store", CodeStore::default_budget, folder);
    set_log_sink({});
    return store.find(code(40, 1)).has_value();
  };
  CHECK(finds(shipped));
  CHECK(said.empty());
  CHECK_FALSE(finds(link));
  CHECK(said.find("a link to one") != std::string::npos);
  for (const mode_t mode : {0775, 0757}) {
    REQUIRE(::chmod(shipped.c_str(), mode) == 0);
    CHECK_FALSE(finds(shipped));
    CHECK(said.find("others may write to it") != std::string::npos);
  }
  REQUIRE(::chmod(shipped.c_str(), 0555) == 0);
  CHECK(finds(shipped));
  if (::chown(shipped.c_str(), 12345, 12345) != 0) return;  // not root
  CHECK_FALSE(finds(shipped));
  CHECK(said.find("it belongs to another user") != std::string::npos);
  // Root's is anybody's to read.
  REQUIRE(::chown(shipped.c_str(), 0, 0) == 0);
  for (const fs::path& each : {temporary / "", shipped}) REQUIRE(::chmod(each.c_str(), 0755) == 0);
  for (const auto& entry : fs::directory_iterator(shipped))
    REQUIRE(::chmod(entry.path().c_str(), 0644) == 0);
  CHECK(in_child([&] {
          if (::setgid(54321) != 0 || ::setuid(54321) != 0) return 9;
          CodeStore store({}, CodeStore::default_budget, shipped);
          return store.find(code(40, 1)) ? 0 : 1;
        }) == 0);
}

TEST_CASE("ten thousand files of code are found, and make room", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "store";
  constexpr int count = 10'000;
  CodeStore large(folder);
  for (int i = 0; i < count; ++i) large.keep(code(20 + i / 256, i), code(100, i));
  const auto held = [&](CodeStore& store) {
    int found = 0;
    for (int i = 0; i < count; ++i) found += store.find(code(20 + i / 256, i)) ? 1 : 0;
    return found;
  };
  CHECK(held(large) == count);
  const uint64_t budget = bytes_in(folder) / 4;
  CodeStore small(folder, budget);
  small.keep(code(19, 0), code(10, 0));
  CHECK(bytes_in(folder) <= budget);
  CHECK(bytes_in(folder) > budget / 2);
  CHECK(small.find(code(19, 0)).has_value());
  CHECK(held(small) > count / 8);
}

TEST_CASE("a clock that goes back costs no code that works", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "store";
  constexpr uint64_t budget = 16 << 10;
  CodeStore store(folder, budget);
  const auto age = [&](std::chrono::hours hours) {
    for (const auto& entry : fs::directory_iterator(folder))
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() + hours);
  };
  for (int i = 0; i < 8; ++i) store.keep(code(50, i), code(900, i));
  age(std::chrono::hours(24 * 365));  // what was written before the clock went back
  for (int i = 8; i < 60; ++i) {
    store.keep(code(50, i), code(900, i));
    CHECK(store.find(code(50, i)) == code(900, i));
    CHECK(bytes_in(folder) <= budget + budget / 8 + 1000);
  }
  age(std::chrono::hours(-24 * 365));
  CHECK(store.find(code(50, 59)) == code(900, 59));
}

TEST_CASE("a full disk keeps no part of a file", "[code][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path disk = temporary / "disk";
  fs::create_directory(disk);
  // No larger files than that, as if there were no more room; a file system of 1 MB where one may
  // be made.
  const auto keep_much = [&](std::size_t most) {
    CodeStore store(disk / "store");
    set_log_sink([](LogLevel, std::string_view) {});
    for (int i = 0; i < 40; ++i) store.keep(code(40, i), code(100'000, i));
    if (store.counts().kept > most || unfinished_in(store.folder()) > 0) return 1;
    for (int i = 0; i < 40; ++i) {
      const auto held = store.find(code(40, i));
      if (held && *held != code(100'000, i)) return 2;
    }
    if (store.counts().rejected > 0) return 3;
    return 0;
  };
  CHECK(in_child([&] {
          const rlimit limit = {50'000, 50'000};
          ::signal(SIGXFSZ, SIG_IGN);
          if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 9;
          if (const int failed = keep_much(0); failed != 0) return failed;
          CodeStore store(disk / "store");
          store.keep(code(41, 0), code(1000, 0));
          return store.find(code(41, 0)) == code(1000, 0) ? 0 : 4;
        }) == 0);
  CHECK(in_child([&] {
          const bool is_own =
              ::unshare(CLONE_NEWNS) == 0 || ::unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0;
          const bool is_apart =
              is_own && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
          if (!is_apart || ::mount("none", disk.c_str(), "tmpfs", 0, "size=1m") != 0) return 0;
          return keep_much(10);
        }) == 0);
}
