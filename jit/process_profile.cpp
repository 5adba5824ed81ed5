// NITINOL_PROFILE: a profile of the whole process, from when the library is loaded until it ends.
//
// A child of a fork leaves the file to its parent.
#include "core/environment.h"
#include "core/error.h"
#include "core/log.h"
#include "jit/profile.h"

#include <fmt/format.h>

#include <cstdlib>
#include <exception>
#include <string>
#include <unistd.h>

namespace nitinol {
namespace {

struct ProcessProfile {
  std::string path;
  Profile profile;
  pid_t process = getpid();
};

ProcessProfile* of_process = nullptr;  // never destroyed: threads may still run

void save_of_process() {
  if (getpid() != of_process->process) return;
  try {
    of_process->profile.stop();
    of_process->profile.save(of_process->path);
  } catch (const std::exception& error) {
    log(LogLevel::warning, fmt::format("NITINOL_PROFILE: {}", error.what()));
  }
}

/// Whether there is one. What keeps it from being written is said now, as far as it is known.
bool begin() {
  std::string path = environment_text("NITINOL_PROFILE");
  if (path.empty()) return false;
  try {
    Profile profile;
    profile.save(path);  // empty: it can be written
    of_process = new ProcessProfile{std::move(path), Profile()};
  } catch (const std::exception& error) {
    log(LogLevel::warning, fmt::format("NITINOL_PROFILE is ignored: {}", error.what()));
    return false;
  }
  return std::atexit(save_of_process) == 0;
}

[[maybe_unused]] const bool is_begun = begin();

}  // namespace
}  // namespace nitinol
