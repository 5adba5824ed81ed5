// Files: what is written appears whole or not at all, and nothing is left lying about.
#include "io/file.h"

#include "core/host_access.h"
#include "nitinol.h"
#include "tests/same_bits.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <sys/resource.h>
#include <unistd.h>
#include <vector>

using namespace nitinol;
using io::File;
using io::TemporaryFile;
using test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

/// Writes beyond this many bytes fail while it lives, as on a full disk.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    rlimit limit = before_;
    limit.rlim_cur = bytes;
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~SizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }
  SizeLimit(const SizeLimit&) = delete;
  SizeLimit& operator=(const SizeLimit&) = delete;

 private:
  void (*handler_)(int);
  rlimit before_ = {};
};

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

std::span<const std::byte> bytes(const std::string& text) {
  return std::as_bytes(std::span(text));
}

}  // namespace

TEST_CASE("a file takes its name when it is published, not before", "[eager][io]") {
  const TemporaryFolder folder;
  {
    TemporaryFile file("save", folder / "a");
    file.file().write(bytes("whole"));
    CHECK_FALSE(fs::exists(folder / "a"));
    CHECK(folder.names().size() == 1);
    file.publish();
  }
  CHECK(folder.names() == std::vector<std::string>{"a"});
  CHECK(contents(folder / "a") == "whole");
}

TEST_CASE("what was not published leaves nothing, and the old file as it was", "[eager][io]") {
  const TemporaryFolder folder;
  write(folder / "a", "old");
  {
    const TemporaryFile file("save", folder / "a");
    file.file().write(bytes("half"));
  }
  CHECK(folder.names() == std::vector<std::string>{"a"});
  CHECK(contents(folder / "a") == "old");
}

TEST_CASE("a save that fails half way leaves no temporary file and the old one", "[eager][io]") {
  const TemporaryFolder folder;
  const Tensor small = ones({4});
  const Tensor large = zeros({1 << 16});
  save_safetensors(folder / "a", {{"x", small}});
  save_npy(folder / "b.npy", small);
  const std::string old = contents(folder / "a");
  const std::string old_npy = contents(folder / "b.npy");
  {
    const SizeLimit limit(4096);
    CHECK_THROWS_WITH(save_safetensors(folder / "a", {{"x", large}}),
                      Catch::Contains("cannot be written"));
    CHECK_THROWS_WITH(save_npy(folder / "b.npy", large), Catch::Contains("cannot be written"));
    CHECK_THROWS_WITH(save_npy(folder / "c.npy", transpose(reshape(large, {256, 256}))),
                      Catch::Contains("cannot be written"));
    CHECK_THROWS_WITH(nn::save(folder / "d", nn::linear(256, 256)),
                      Catch::Contains("cannot be written"));
  }
  CHECK(contents(folder / "a") == old);
  CHECK(contents(folder / "b.npy") == old_npy);
  CHECK(folder.names().size() == 2);
}

TEST_CASE("a failed write is an Error(io) that names the file and the reason", "[eager][io]") {
  const TemporaryFolder folder;
  const SizeLimit limit(8);
  const TemporaryFile file("save", folder / "a");
  try {
    file.file().write(bytes("more than eight bytes"));
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::io);
    CHECK_THAT(error.message(), Catch::StartsWith("save: \""));
    CHECK_THAT(error.message(), Catch::Contains("cannot be written: File too large"));
  }
}

TEST_CASE("a symbolic link stays, and what it points to is replaced", "[eager][io]") {
  const TemporaryFolder folder;
  write(folder / "target", "old");
  fs::create_symlink(folder / "target", folder / "link");
  {
    TemporaryFile file("save", folder / "link");
    file.file().write(bytes("new"));
    file.publish();
  }
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(contents(folder / "target") == "new");
  CHECK(folder.names().size() == 2);
}

TEST_CASE("devices and folders are refused as targets", "[eager][io]") {
  const TemporaryFolder folder;
  fs::create_directory(folder / "sub");
  CHECK_THROWS_WITH(TemporaryFile("save", folder / "sub"), Catch::Contains("not a regular file"));
  CHECK_THROWS_WITH(TemporaryFile("save", "/dev/null"), Catch::Contains("not a regular file"));
  CHECK_THROWS_WITH(TemporaryFile("save", folder / "no" / "a"),
                    Catch::Contains("no/a\" cannot be opened: No such file"));
  TemporaryFile file("save", folder / "a");
  errno = ENOSPC;
  CHECK_THROWS_WITH(file.file().fail("cannot be written"),
                    Catch::Contains("/a\" cannot be written: No space left"));
}

TEST_CASE("elements of views are written in row-major order", "[eager][io]") {
  const TemporaryFolder folder;
  const Tensor x = reshape(arange(6, u8), {2, 3});
  {
    TemporaryFile file("save", folder / "a");
    file.write_elements(HostElements(transpose(x).internals()));
    file.write_elements(HostElements(flip(x).internals()));
    file.publish();
  }
  CHECK(contents(folder / "a") == std::string("\0\3\1\4\2\5\5\4\3\2\1\0", 12));
}

TEST_CASE("reading says what is missing", "[eager][io]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(File("load", folder / "a", O_RDONLY),
                    Catch::StartsWith("load: \"") && Catch::Contains("No such file"));
  write(folder / "a", "12345");
  const File file("load", folder / "a", O_RDONLY);
  CHECK(file.size() == 5);
  std::vector<std::byte> buffer(3);
  file.read(buffer);
  CHECK(buffer[2] == std::byte{'3'});
  CHECK_THROWS_WITH(file.read(buffer), Catch::Contains("ends 1 bytes early"));
  const File directory("load", folder / ".", O_RDONLY);
  CHECK_THROWS_WITH(directory.size(), Catch::Contains("not a regular file"));
}
