#include "backends/cpu/code/perf_map.h"

#include "core/environment.h"
#include "core/log.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

namespace nitinol::cpu {
namespace {

bool is_wanted() {
  static const bool wanted = [] {
    constexpr std::array<std::string_view, 2> values = {"0", "1"};
    return environment_choice("NITINOL_PERF", values) == 1;
  }();
  return wanted;
}

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
  std::string write(const std::string& line) {
    std::string warning;
    if (process_ != getpid()) warning = begin();
    if (file_ < 0) return warning;
    // A line that cannot be written is a name that perf does not show.
    [[maybe_unused]] const ssize_t written = ::write(file_, line.data(), line.size());
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

void tell_perf(std::string_view function, const void* code, std::size_t bytes) {
  if (!is_wanted()) return;
  static std::mutex mutex;
  static PerfMap map;
  const std::string line =
      fmt::format("{:x} {:x} nitinol:{}\n", reinterpret_cast<uintptr_t>(code), bytes, function);
  std::string warning;
  {
    const std::scoped_lock lock(mutex);
    warning = map.write(line);
  }
  if (!warning.empty()) log(LogLevel::warning, warning);
}

}  // namespace nitinol::cpu
