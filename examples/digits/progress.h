// A progress line: one that updates in place on a terminal, a few lines in a file or pipe.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <unistd.h>

namespace digits {

class Progress {
 public:
  Progress(std::string name, int steps) : name_(std::move(name)), steps_(steps) {}

  /// Shows that `done` of the steps are behind us, with a remark.
  void show(int done, const std::string& remark) const {
    const bool is_last = done == steps_;
    if (isatty(STDOUT_FILENO) == 0) {
      const int every = std::max(1, steps_ / 3);
      if (is_last || done % every == 0)
        fmt::print("{:<9} {:>3}/{}  {}\n", name_, done, steps_, remark);
    } else {
      const int filled = done * width / steps_;
      fmt::print("\r{:<9} {:>3}/{} [{:=<{}}{:{}}] {}{}", name_, done, steps_, "", filled, "",
                 width - filled, remark, is_last ? "\n" : "");
    }
    std::fflush(stdout);
  }

 private:
  static constexpr int width = 30;
  std::string name_;
  int steps_;
};

}  // namespace digits
