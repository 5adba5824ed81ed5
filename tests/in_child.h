// Code that runs in a child process.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

namespace nitinol::test {

/// Runs `body` in a child of a fork: its result if it returns an int below 100 in time, 128 + the
/// signal that ended it otherwise (142: after 30 seconds).
template <class Body>
int in_child(const Body& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    int result = 99;
    try {
      result = body();
    } catch (...) {  // NOLINT(bugprone-empty-catch): 99
    }
    _exit(result);
  }
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace nitinol::test
