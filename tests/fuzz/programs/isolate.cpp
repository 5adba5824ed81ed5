#include "tests/fuzz/programs/isolate.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <exception>
#include <sys/wait.h>
#include <unistd.h>

namespace nitinol::fuzz {
namespace {

constexpr int finished = 17;  // sanitizers end processes with codes of their own

[[noreturn]] void run_child(int to_parent, FunctionRef<std::string()> body) {
  std::string text;
  try {
    text = body();
  } catch (const std::exception& error) {
    text = fmt::format("exception: {}", error.what());
  }
  std::fflush(stdout);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = write(to_parent, text.data() + sent, text.size() - sent);
    if (count <= 0) break;
    sent += static_cast<std::size_t>(count);
  }
  _exit(finished);
}

}  // namespace

ChildOutcome run_in_child(FunctionRef<std::string()> body) {
  std::fflush(stdout);
  std::array<int, 2> ends = {};
  if (pipe(ends.data()) != 0) return {"pipe() failed", true};
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    run_child(ends[1], body);
  }
  close(ends[1]);
  ChildOutcome outcome;
  std::array<char, 4096> buffer = {};
  for (ssize_t count = 0; (count = read(ends[0], buffer.data(), buffer.size())) > 0;) {
    outcome.text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == finished) return outcome;
  outcome.has_crashed = true;
  outcome.text = WIFSIGNALED(status)
                     ? fmt::format("crash: {}", strsignal(WTERMSIG(status)))
                     : fmt::format("the process ended with code {}", WEXITSTATUS(status));
  return outcome;
}

}  // namespace nitinol::fuzz
