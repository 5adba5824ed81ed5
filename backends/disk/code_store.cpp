// A file: a head of five numbers, the key, the code. Its name is a hash of the key.

#include "backends/disk/code_store.h"

#include "core/descriptor.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/log.h"
#include "core/own_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <mutex>
#include <pwd.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace nitinol {
namespace {

namespace fs = std::filesystem;
using Bytes = std::span<const std::byte>;

constexpr const char* extension = ".code";
constexpr const char* unfinished = ".new";  ///< of what is being written

struct Head {
  uint64_t magic = 0x31636f646e69746e;  // "ntindoc1"
  uint64_t checksum = 0;                ///< of all that follows
  uint64_t key_bytes = 0, code_bytes = 0;
};

/// FNV-1a by words of eight bytes, with a final mix; the same in every process.
uint64_t hash_of(Bytes bytes, uint64_t seed) {
  uint64_t state = 0xcbf29ce484222325 ^ seed;
  const auto mix = [&](uint64_t word) {
    state = (state ^ word) * 0x100000001b3;
    state ^= state >> 29;
  };
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data(), 8);
    mix(word);
  }
  for (const std::byte b : bytes) mix(static_cast<uint64_t>(b) + 256);
  mix(bytes.size());
  return std::rotl(state * 0x9e3779b97f4a7c15, 31) * 0xbf58476d1ce4e5b9;
}

[[noreturn]] void reject(const fs::path& folder, const std::string& why) {
  throw Error(ErrorKind::io, {.where = "code on disk",
                              .what = fmt::format("{} cannot be used: {}", folder.string(), why),
                              .fix = "Let NITINOL_CACHE name a folder of your own, or be 0."});
}

std::string last_error() {
  return std::generic_category().message(errno);
}

/// What it is; neither a link nor writable by others.
struct stat checked(const fs::path& folder) {
  struct stat found = {};
  if (::lstat(folder.c_str(), &found) != 0) reject(folder, last_error());
  if (!S_ISDIR(found.st_mode)) reject(folder, "it is no folder, or a link to one");
  if ((found.st_mode & (S_IWGRP | S_IWOTH)) != 0) reject(folder, "others may write to it");
  return found;
}

void check(const fs::path& folder) {
  if (checked(folder).st_uid != ::geteuid()) reject(folder, "it belongs to another user");
}

/// The folder, or an empty path, with a warning, if others could have written to it.
fs::path usable_shipped(fs::path folder) {
  if (folder.empty()) return folder;
  try {
    const uid_t owner = checked(folder).st_uid;
    struct stat library = {};
    const bool is_librarys = ::stat(own_file().c_str(), &library) == 0 && library.st_uid == owner;
    if (owner != 0 && owner != ::geteuid() && !is_librarys)
      reject(folder, "it belongs to another user");
  } catch (const Error& error) {  // its fix is that of the user's folder
    log(LogLevel::warning,
        fmt::format("code that came with the library is not used: {}", error.report().what));
    return {};
  }
  return folder;
}

/// The folder to use, or an empty path if there is none.
fs::path folder_of_user(const std::string& asked) {
  if (!asked.empty()) return asked;
  if (const std::string cache = environment_text("XDG_CACHE_HOME"); cache.starts_with('/'))
    return fs::path(cache) / "nitinol";
  if (const std::string home = environment_text("HOME"); home.starts_with('/'))
    return fs::path(home) / ".cache" / "nitinol";
  return {};
}

/// What came with the library, or an empty path.
fs::path shipped_folder() {
  const std::string library = own_file();
  if (library.empty()) return {};
  fs::path folder = fs::path(library).parent_path() / "nitinol" / "code";
  std::error_code error;
  return fs::exists(folder, error) ? folder : fs::path();
}

/// All of a regular file of at most `most` bytes, or nothing.
std::optional<std::vector<std::byte>> content_of(const Descriptor& file, uint64_t most) {
  struct stat found = {};
  if (::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return std::nullopt;
  if (static_cast<uint64_t>(found.st_size) > most) return std::nullopt;
  std::vector<std::byte> bytes(static_cast<std::size_t>(found.st_size));
  for (std::size_t at = 0; at < bytes.size();) {
    const ssize_t count = ::read(file.get(), bytes.data() + at, bytes.size() - at);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return std::nullopt;
    at += static_cast<std::size_t>(count);
  }
  return bytes;
}

/// The code in a file for `key`, or what is wrong with the file; neither if it is for another key.
struct Read {
  std::optional<std::vector<std::byte>> code;
  std::string fault;
};
Read read_file(const std::vector<std::byte>& bytes, Bytes key) {
  Head head;
  if (bytes.size() < sizeof head) return {{}, "it is too short"};
  std::memcpy(&head, bytes.data(), sizeof head);
  const Bytes rest = Bytes(bytes).subspan(sizeof head);
  if (head.magic != Head().magic) return {{}, "it was written by something else"};
  if (head.key_bytes > rest.size() || head.code_bytes != rest.size() - head.key_bytes)
    return {{}, "it is cut off"};
  if (head.checksum != hash_of(rest, head.key_bytes)) return {{}, "its checksum is wrong"};
  if (!std::ranges::equal(rest.first(head.key_bytes), key)) return {};
  const Bytes code = rest.subspan(head.key_bytes);
  return {std::vector<std::byte>(code.begin(), code.end()), {}};
}

std::string file_name_of(Bytes key) {
  return fmt::format("{:016x}{:016x}{}", hash_of(key, 1), hash_of(key, 2), extension);
}

}  // namespace

CodeStore::CodeStore(fs::path folder, uint64_t budget, fs::path shipped)
    : folder_(std::move(folder)), budget_(budget), shipped_(usable_shipped(std::move(shipped))) {
  if (folder_.empty()) return;
  std::error_code error;
  if (folder_.has_parent_path()) fs::create_directories(folder_.parent_path(), error);
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) reject(folder_, last_error());
  check(folder_);
}

CodeStore* CodeStore::of_user() {
  static CodeStore* const instance = []() -> CodeStore* {
    // With other rights than its user's a process takes no code from files.
    const std::string asked = environment_text("NITINOL_CACHE");
    if (::getauxval(AT_SECURE) != 0 || asked == "0") return nullptr;
    const fs::path shipped = shipped_folder();
    if (const fs::path folder = folder_of_user(asked); !folder.empty()) {
      try {
        return new CodeStore(folder, default_budget, shipped);
      } catch (const std::exception& error) {
        log(LogLevel::warning, error.what());
      }
    }
    return shipped.empty() ? nullptr : new CodeStore({}, default_budget, shipped);
  }();
  return instance;
}

std::optional<std::vector<std::byte>> CodeStore::find(Bytes key, CodeOrigin* origin) {
  for (const fs::path* const folder : std::array<const fs::path*, 2>{&folder_, &shipped_}) {
    if (folder->empty()) continue;
    if (auto code = find_in(*folder, key)) {
      ++found_;
      if (origin != nullptr) *origin = folder == &folder_ ? CodeOrigin::disk : CodeOrigin::shipped;
      return code;
    }
  }
  ++missed_;
  return std::nullopt;
}

std::optional<std::vector<std::byte>> CodeStore::find_in(const fs::path& folder, Bytes key) {
  const fs::path path = folder / file_name_of(key);
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file.is_open()) return std::nullopt;
  const auto bytes = content_of(file, budget_);
  Read read = bytes ? read_file(*bytes, key) : Read{{}, "it cannot be read"};
  if (read.code && &folder == &folder_) ::futimens(file.get(), nullptr);  // it was used now
  if (!read.fault.empty()) {
    ++rejected_;
    log(LogLevel::warning, fmt::format("{} is ignored: {}", path.string(), read.fault));
  }
  return std::move(read.code);
}

void CodeStore::keep(Bytes key, Bytes code) noexcept {
  if (folder_.empty()) return;
  try {
    std::vector<std::byte> rest(key.begin(), key.end());
    rest.insert(rest.end(), code.begin(), code.end());
    Head head;
    head.key_bytes = key.size();
    head.code_bytes = code.size();
    head.checksum = hash_of(rest, head.key_bytes);
    std::vector<std::byte> content(sizeof head);
    std::memcpy(content.data(), &head, sizeof head);
    content.insert(content.end(), rest.begin(), rest.end());
    if (content.size() > budget_ / 8) return;
    write(folder_ / file_name_of(key), content);
    ++kept_;
    const std::lock_guard lock(mutex_);
    written_ += content.size();
    if (has_been_seen_ && written_ < budget_ / 8) return;
    make_room();
    has_been_seen_ = true;
    written_ = 0;
  } catch (const std::exception& error) {
    log(LogLevel::info, fmt::format("code is not kept on disk: {}", error.what()));
  }
}

void CodeStore::write(const fs::path& file, Bytes content) {
  // A number of the process would not do: another machine's or container's may be the same.
  std::string temporary = folder_ / (std::string("XXXXXX") + unfinished);
  {
    const int length = static_cast<int>(std::strlen(unfinished));
    const Descriptor out(::mkostemps(temporary.data(), length, O_CLOEXEC));
    if (!out.is_open()) reject(folder_, last_error());
    for (Bytes left = content; !left.empty();) {
      const ssize_t count = ::write(out.get(), left.data(), left.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        const std::string why = last_error();
        ::unlink(temporary.c_str());
        reject(folder_, why);
      }
      left = left.subspan(static_cast<std::size_t>(count));
    }
  }
  if (::rename(temporary.c_str(), file.c_str()) == 0) return;
  const std::string why = last_error();
  ::unlink(temporary.c_str());
  reject(folder_, why);
}

void CodeStore::make_room() {
  struct Known {
    fs::file_time_type used;
    uint64_t bytes;
    fs::path path;
  };
  std::vector<Known> files;
  uint64_t bytes = 0;
  std::error_code error;
  const auto now = fs::file_time_type::clock::now();
  for (fs::directory_iterator i(folder_, error), end; !error && i != end; i.increment(error)) {
    std::error_code ignored;
    const fs::path& path = i->path();
    Known file = {fs::last_write_time(path, ignored), fs::file_size(path, ignored), path};
    if (ignored) continue;
    if (path.extension() == unfinished) {  // by a process that ended while it wrote
      if (now - file.used > std::chrono::hours(1)) fs::remove(path, ignored);
    } else if (path.extension() == extension) {
      bytes += file.bytes;
      files.push_back(std::move(file));
    }
  }
  if (bytes <= budget_) return;
  std::ranges::sort(files, {}, &Known::used);
  for (const Known& file : files) {
    if (bytes <= budget_ - budget_ / 8) return;
    std::error_code ignored;
    if (fs::remove(file.path, ignored)) bytes -= file.bytes;
  }
}

CodeStore::Counts CodeStore::counts() const {
  return {.found = found_, .missed = missed_, .kept = kept_, .rejected = rejected_};
}

}  // namespace nitinol
