#include "backends/code_store.h"

#include "core/error.h"
#include "core/log.h"
#include "tests/in_child.h"
#include "tests/on_threads.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <fstream>
#include <string_view>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

using namespace nitinol;
namespace fs = std::filesystem;

namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto* const first = reinterpret_cast<const std::byte*>(text.data());
  return {first, first + text.size()};
}

std::vector<fs::path> files_in(const fs::path& folder) {
  std::vector<fs::path> list;
  for (const auto& entry : fs::directory_iterator(folder)) list.push_back(entry.path());
  return list;
}

std::string content_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// While it lives, messages are kept instead of written.
class Messages {
 public:
  Messages() {
    set_log_sink([this](LogLevel, std::string_view text) { text_ += text; });
  }
  ~Messages() { set_log_sink({}); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
};

const std::vector<std::byte> key = bytes_of("the key"), code = bytes_of("some code");

}  // namespace

TEST_CASE("what is kept on disk is found by another store", "[code_store]") {
  const test::TemporaryFolder folder;
  CodeStore(folder / "store").keep(key, code);
  CodeStore other(folder / "store");
  CHECK(other.find(key) == code);
  CHECK(other.find(bytes_of("another key")) == std::nullopt);
  CHECK(other.counts().found == 1);
  CHECK(other.counts().missed == 1);
  CHECK(other.counts().rejected == 0);
  CodeStore(folder / "store").keep(key, bytes_of("newer code"));
  CHECK(other.find(key) == bytes_of("newer code"));
  CHECK(files_in(folder / "store").size() == 1);
}

TEST_CASE("damaged files are ignored, said, and replaced", "[code_store]") {
  const test::TemporaryFolder folder;
  CodeStore store(folder / "store");
  store.keep(key, code);
  const fs::path file = files_in(folder / "store").at(0);
  const std::string whole = content_of(file);
  std::vector<std::string> damaged = {"", "short", whole.substr(0, whole.size() - 1), whole + "x",
                                      std::string(whole.size(), 'x')};
  for (std::size_t at = 0; at < whole.size(); ++at) {
    damaged.push_back(whole);
    damaged.back()[at] = static_cast<char>(damaged.back()[at] ^ 0x10);
  }
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    CAPTURE(i);
    std::ofstream(file, std::ios::binary) << damaged[i];
    const Messages messages;
    CHECK(store.find(key) == std::nullopt);
    CHECK(messages.text().find("is ignored") != std::string::npos);
  }
  CHECK(store.counts().rejected == damaged.size());
  store.keep(key, code);
  CHECK(store.find(key) == code);
}

TEST_CASE("a file of the right name for another key is a miss without a word", "[code_store]") {
  const test::TemporaryFolder folder;
  CodeStore store(folder / "store");
  store.keep(key, code);
  const fs::path file = files_in(folder / "store").at(0);
  store.keep(bytes_of("another key"), bytes_of("other code"));
  for (const fs::path& other : files_in(folder / "store")) {
    if (other != file) fs::rename(other, file);
  }
  const Messages messages;
  CHECK(store.find(key) == std::nullopt);
  CHECK(messages.text().empty());
}

TEST_CASE("folders that others may write to, and links, hold no code", "[code_store]") {
  const test::TemporaryFolder folder;
  fs::create_directory(folder / "open");
  ::chmod((folder / "open").c_str(), 0777);
  CHECK_THROWS_AS(CodeStore(folder / "open"), Error);
  fs::create_directory(folder / "own");
  fs::create_directory_symlink(folder / "own", folder / "link");
  CHECK_THROWS_AS(CodeStore(folder / "link"), Error);
  std::ofstream(folder / "file") << "no folder";
  CHECK_THROWS_AS(CodeStore(folder / "file"), Error);
  const CodeStore made(folder / "new");
  struct stat found = {};
  REQUIRE(::stat((folder / "new").c_str(), &found) == 0);
  CHECK((found.st_mode & 0777) == 0700);
}

TEST_CASE("a link in the place of a file is not followed", "[code_store]") {
  const test::TemporaryFolder folder;
  CodeStore store(folder / "store");
  store.keep(key, code);
  const fs::path file = files_in(folder / "store").at(0);
  fs::rename(file, folder / "elsewhere");
  fs::create_symlink(folder / "elsewhere", file);
  CHECK(store.find(key) == std::nullopt);
  store.keep(key, code);
  CHECK(!fs::is_symlink(file));
  CHECK(store.find(key) == code);
}

TEST_CASE("what was not used for longest goes when there is too much", "[code_store]") {
  const test::TemporaryFolder folder;
  const std::vector<std::byte> large(1000);
  const auto number = [](int i) { return bytes_of("key " + std::to_string(i)); };
  {
    CodeStore store(folder / "store", 16 << 10);
    for (int i = 0; i < 10; ++i) store.keep(number(i), large);
    for (const fs::path& file : files_in(folder / "store"))
      fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(1));
    CHECK(store.find(number(3)));  // and so used now
    for (int i = 10; i < 20; ++i) store.keep(number(i), large);
  }
  CodeStore store(folder / "store", 16 << 10);
  CHECK(store.find(number(3)));
  CHECK(store.find(number(19)));
  int left = 0;
  for (int i = 0; i < 20; ++i) left += store.find(number(i)) ? 1 : 0;
  CHECK(left <= 16);
  CHECK(left >= 12);
}

TEST_CASE("files that a process left half written go after a while", "[code_store]") {
  const test::TemporaryFolder folder;
  CodeStore store(folder / "store", 16 << 10);
  std::ofstream(folder / "store" / "1.1.new") << "half";
  std::ofstream(folder / "store" / "1.2.new") << "half";
  fs::last_write_time(folder / "store" / "1.1.new",
                      fs::file_time_type::clock::now() - std::chrono::hours(2));
  store.keep(key, code);
  CHECK(!fs::exists(folder / "store" / "1.1.new"));
  CHECK(fs::exists(folder / "store" / "1.2.new"));
}

TEST_CASE("code that cannot be kept is no error", "[code_store]") {
  const test::TemporaryFolder folder;
  CodeStore store(folder / "store");
  fs::remove_all(folder / "store");
  store.keep(key, code);
  CHECK(store.find(key) == std::nullopt);
  CHECK(store.counts().kept == 0);
}

TEST_CASE("threads and processes may keep and find the same code", "[code_store][fork]") {
  const test::TemporaryFolder folder;
  const auto use = [&] {
    CodeStore store(folder / "store", 64 << 10);
    for (int i = 0; i < 200; ++i) {
      const std::vector<std::byte> large(static_cast<std::size_t>(500 + i % 7));
      store.keep(bytes_of("key " + std::to_string(i % 7)), large);
      const auto found = store.find(bytes_of("key " + std::to_string(i % 7)));
      if (found && found->size() != large.size()) return false;
    }
    return store.counts().rejected == 0;
  };
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) threads.emplace_back([&] { right += use() ? 1 : 0; });
  for (std::thread& thread : threads) thread.join();
  CHECK(right == 4);
}
