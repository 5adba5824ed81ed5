// Programs run by tests; this test program run again, for what a process decides once, at its
// start.
#pragma once

#include <array>
#include <cstdio>
#include <filesystem>
#include <string>

namespace nitinol {

/// What a program prints, and the status it ends with.
struct Run {
  int status = 0;
  std::string output;  ///< stdout and stderr
};

/// Runs a command of the shell.
inline Run run_command(const std::string& command) {
  Run run;
  std::FILE* const pipe = popen((command + " 2>&1").c_str(), "r");  // NOLINT(cert-env33-c): a test
  if (pipe == nullptr) return {-1, "popen failed"};
  std::array<char, 4096> piece = {};
  while (const std::size_t size = std::fread(piece.data(), 1, piece.size(), pipe)) {
    run.output.append(piece.data(), size);
  }
  run.status = pclose(pipe);
  return run;
}

/// Runs the cases that `filter` names ("[.tag]" for hidden ones) in a process of their own.
/// `environment`: assignments for the shell, "A=1 B=2".
inline Run run_self(const std::string& environment, const std::string& filter) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  return run_command(environment + " '" + self + "' -w NoTests '" + filter + "'");
}

}  // namespace nitinol
