#include "backends/cpu/code/perf_map.h"

#include "core/log.h"
#include "core/native_tools.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace nitinol::cpu {
namespace {

/// A file descriptor, or -1 with the reason. Another compiler in this process may have begun the
/// file, or an earlier process of this number.
int open_map(const std::string& path, std::string& reason) {
  constexpr int flags = O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;
  int file = open(path.c_str(), flags | O_CREAT | O_EXCL, S_IRUSR | S_IWUSR);
  if (file >= 0) return file;
  if (errno == EEXIST) file = open(path.c_str(), flags);
  if (file < 0) {
    reason = errno == ELOOP ? "it is a link" : std::strerror(errno);
    return -1;
  }
  struct stat status = {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
      status.st_nlink == 1) {
    return file;
  }
  reason = "it is not a plain file of this user's with one name";
  close(file);
  return -1;
}

/// The file of this process; after a fork the child begins its own.
class PerfMap {
 public:
  /// Returns what to warn of.
  std::string write(const std::string& lines) {
    std::string warning;
    if (process_ != getpid()) warning = begin();
    if (file_ < 0) return warning;
    // A line that cannot be written is a name that perf does not show.
    [[maybe_unused]] const ssize_t written = ::write(file_, lines.data(), lines.size());
    return warning;
  }

 private:
  std::string begin() {
    if (file_ >= 0) close(file_);
    process_ = getpid();
    const std::string path = fmt::format("/tmp/perf-{}.map", process_);
    std::string reason;
    file_ = open_map(path, reason);
    if (file_ >= 0) return {};
    return fmt::format("NITINOL_PERF=1, but {} cannot be written: {}", path, reason);
  }

  pid_t process_ = 0;
  int file_ = -1;
};

}  // namespace

void map_for_perf(const CodeSymbols& symbols) {
  if (!tells_perf()) return;
  static std::mutex mutex;
  static PerfMap map;
  std::string lines, warning;
  for (const CodeSymbol& function : symbols.functions) {
    lines += fmt::format("{:x} {:x} {}\n", reinterpret_cast<uintptr_t>(function.code.data()),
                         function.code.size(), function.name);
  }
  {
    const std::scoped_lock lock(mutex);
    warning = map.write(lines);
  }
  if (!warning.empty()) log(LogLevel::warning, warning);
}

}  // namespace nitinol::cpu
