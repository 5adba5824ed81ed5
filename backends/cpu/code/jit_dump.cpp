// The format and its rules are Linux's, tools/perf/Documentation/jitdump-specification.txt. perf
// notes where files are mapped: the mapping of this one as code is how it learns of the file. What
// runs at an address at a time is the latest record before, so that addresses may be used again.

#include "backends/cpu/code/jit_dump.h"

#include "backends/cpu/code/elf_object.h"
#include "core/environment.h"
#include "core/log.h"
#include "core/native_tools.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/mman.h>
#include <sys/stat.h>
#include <type_traits>
#include <unistd.h>
#include <utility>
#include <vector>

namespace nitinol::cpu {
namespace {

struct DumpHeader {
  uint32_t magic = 0x4a695444;  // "JiTD"
  uint32_t version = 1;
  uint32_t bytes = sizeof(DumpHeader);
  uint32_t machine = this_machine();
  uint32_t unused = 0;
  uint32_t process = 0;
  uint64_t time = 0;
  uint64_t flags = 0;
};

enum class RecordKind : uint32_t { load = 0, debug_info = 2, close = 3 };

struct RecordHeader {
  RecordKind kind;
  uint32_t bytes;  ///< of the record, with this
  uint64_t time;
};

struct LoadRecord {  ///< then the name, with its end, and the code
  uint32_t process, thread;
  uint64_t address, same_address;
  uint64_t bytes;
  uint64_t number;  ///< of its kind in the file
};

struct DebugInfoRecord {  ///< of the next load; then its lines
  uint64_t address;
  uint64_t lines;
};

struct LineEntry {  ///< of what comes before the next one; then the file's name
  uint64_t address;
  uint32_t line;
  uint32_t discriminator = 0;
};

/// CLOCK_MONOTONIC, as `perf record -k 1` has it.
uint64_t dump_time() {
  constexpr uint64_t second = 1'000'000'000;
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * second + static_cast<uint64_t>(now.tv_nsec);
}

template <class T>
void append(std::vector<std::byte>& bytes, const T& value) {
  static_assert(std::has_unique_object_representations_v<T>, "no gaps");
  const auto more = std::as_bytes(std::span(&value, 1));
  bytes.insert(bytes.end(), more.begin(), more.end());
}
void append_text(std::vector<std::byte>& bytes, std::string_view text) {
  const auto more = std::as_bytes(std::span(text));
  bytes.insert(bytes.end(), more.begin(), more.end());
  bytes.push_back({});
}

void append_lines(std::vector<std::byte>& out, const CodeSymbol& function, const SourceLine& at) {
  constexpr std::string_view same_file = "\xff";
  const std::size_t bytes = sizeof(RecordHeader) + sizeof(DebugInfoRecord) + 2 * sizeof(LineEntry) +
                            at.file.size() + 1 + same_file.size() + 1;
  append(out, RecordHeader{RecordKind::debug_info, static_cast<uint32_t>(bytes), dump_time()});
  const auto address = reinterpret_cast<uintptr_t>(function.code.data());
  append(out, DebugInfoRecord{.address = address, .lines = 2});
  append(out, LineEntry{.address = address, .line = at.line});
  append_text(out, at.file);
  append(out, LineEntry{.address = address + function.code.size(), .line = at.line});  // the end
  append_text(out, same_file);
}

void append_load(std::vector<std::byte>& out, const CodeSymbol& function, uint64_t number) {
  const std::size_t bytes =
      sizeof(RecordHeader) + sizeof(LoadRecord) + function.name.size() + 1 + function.code.size();
  append(out, RecordHeader{RecordKind::load, static_cast<uint32_t>(bytes), dump_time()});
  const auto address = reinterpret_cast<uintptr_t>(function.code.data());
  append(out, LoadRecord{.process = static_cast<uint32_t>(getpid()),
                         .thread = static_cast<uint32_t>(gettid()),
                         .address = address,
                         .same_address = address,
                         .bytes = function.code.size(),
                         .number = number});
  append_text(out, function.name);
  out.insert(out.end(), function.code.begin(), function.code.end());
}

/// An open file or folder, closed at the end; its path is for messages.
class Opened {
 public:
  Opened() = default;
  Opened(int file, std::string path) : file_(file), path_(std::move(path)) {}
  Opened(Opened&& other) noexcept
      : file_(std::exchange(other.file_, -1)), path_(std::move(other.path_)) {}
  Opened& operator=(Opened other) noexcept {
    std::swap(file_, other.file_);
    std::swap(path_, other.path_);
    return *this;
  }
  ~Opened() {
    if (file_ >= 0) close(file_);
  }
  [[nodiscard]] int file() const { return file_; }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  int file_ = -1;
  std::string path_;
};

/// Why there is no file.
struct DumpFailure {
  std::string path, reason;
};
[[noreturn]] void fail_dump(std::string path, std::string reason = std::strerror(errno)) {
  throw DumpFailure{std::move(path), std::move(reason)};
}

/// Opens a folder of the user's own. Others may write where `parent` is: what they put there is not
/// followed.
Opened open_folder(const Opened& parent, const char* name) {
  std::string path = fmt::format("{}/{}", parent.path(), name);
  const int file = openat(parent.file(), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) {
    struct stat status = {};
    const int error = errno;
    if (fstatat(parent.file(), name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode))
      fail_dump(path, "it is a link");
    fail_dump(path, std::strerror(error));
  }
  Opened folder(file, std::move(path));
  struct stat status = {};
  if (fstat(folder.file(), &status) != 0 || status.st_uid != geteuid() ||
      (status.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    fail_dump(folder.path(), "it is not this user's alone to write to");
  return folder;
}

/// The folder of that name, made if it is not there.
Opened make_folder(const Opened& parent, const char* name) {
  if (mkdirat(parent.file(), name, S_IRWXU) != 0 && errno != EEXIST)
    fail_dump(fmt::format("{}/{}", parent.path(), name));
  return open_folder(parent, name);
}

/// A folder that was not there before.
Opened make_new_folder(const Opened& parent) {
  constexpr int most_tries = 1000;  // a process number comes again
  for (int number = 0; number < most_tries; ++number) {
    const std::string name = fmt::format("nitinol-{}-{}", getpid(), number);
    if (mkdirat(parent.file(), name.c_str(), S_IRWXU) == 0)
      return open_folder(parent, name.c_str());
    if (errno != EEXIST) break;
  }
  fail_dump(fmt::format("{}/nitinol-{}", parent.path(), getpid()));
}

Opened make_file() {
  std::string base = environment_text("JITDUMPDIR");
  if (base.empty()) base = environment_text("HOME");
  if (base.empty()) base = ".";
  const Opened home(open(base.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC), base);
  if (home.file() < 0) fail_dump(base);
  const Opened folder = make_new_folder(make_folder(make_folder(home, ".debug"), "jit"));
  const std::string name = fmt::format("jit-{}.dump", getpid());
  Opened file(openat(folder.file(), name.c_str(),
                     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR),
              fmt::format("{}/{}", folder.path(), name));
  if (file.file() < 0) fail_dump(file.path());
  return file;
}

/// The file of this process. With a lock held.
class JitDump {
 public:
  /// Returns what to warn of.
  std::string add(const CodeSymbols& symbols) {
    try {
      if (process_ != getpid()) begin();
      if (file_.file() < 0) return {};
      std::vector<std::byte> records;
      for (const CodeSymbol& function : symbols.functions) {
        if (symbols.line) append_lines(records, function, *symbols.line);
        append_load(records, function, loads_++);
      }
      write(records);
      return {};
    } catch (const DumpFailure& failure) {
      file_ = {};
      return fmt::format("NITINOL_PERF=1, but {} cannot be written: {}", failure.path,
                         failure.reason);
    }
  }

  /// Says that no more will come.
  void end() {
    if (process_ != getpid() || file_.file() < 0) return;
    std::vector<std::byte> record;
    append(record, RecordHeader{RecordKind::close, sizeof(RecordHeader), dump_time()});
    try {
      write(record);
    } catch (const DumpFailure&) {  // NOLINT(bugprone-empty-catch): perf does without it
    }
    file_ = {};
  }

 private:
  void begin() {
    process_ = getpid();
    loads_ = written_ = 0;
    file_ = {};
    Opened file = make_file();
    std::swap(file, file_);
    const DumpHeader header = {.process = static_cast<uint32_t>(process_), .time = dump_time()};
    write(std::as_bytes(std::span(&header, 1)));
    // What tells perf. Never taken back, as a mapping that is gone would be forgotten.
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    if (mmap(nullptr, page, PROT_READ | PROT_EXEC, MAP_PRIVATE, file_.file(), 0) == MAP_FAILED)
      fail_dump(file_.path());
  }

  /// All or nothing.
  void write(std::span<const std::byte> bytes) {
    for (std::size_t done = 0; done < bytes.size();) {
      const ssize_t count = ::write(file_.file(), bytes.data() + done, bytes.size() - done);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) {
        const std::string reason = std::strerror(errno);
        if (ftruncate(file_.file(), static_cast<off_t>(written_)) != 0) {
          // A record that is cut short is the last that perf reads.
        }
        fail_dump(file_.path(), reason);
      }
      done += static_cast<std::size_t>(count);
    }
    written_ += bytes.size();
  }

  pid_t process_ = 0;
  Opened file_;
  uint64_t loads_ = 0, written_ = 0;
};

constinit std::mutex dump_mutex;

/// Never destroyed, as kernels are made until the process is gone.
JitDump& jit_dump() {
  static JitDump& dump = *[] {
    auto* const made = new JitDump;
    std::atexit([] {
      const std::scoped_lock lock(dump_mutex);
      jit_dump().end();
    });
    return made;
  }();
  return dump;
}

}  // namespace

void dump_for_perf(const CodeSymbols& symbols) {
  if (!tells_perf()) return;
  std::string warning;
  {
    const std::scoped_lock lock(dump_mutex);
    warning = jit_dump().add(symbols);
  }
  if (!warning.empty()) log(LogLevel::warning, warning);
}

}  // namespace nitinol::cpu
