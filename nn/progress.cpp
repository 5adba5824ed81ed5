#include "nn/progress.h"

#include "core/error.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <sys/ioctl.h>
#include <unistd.h>
#include <utility>

namespace nitinol::nn {
namespace {

constexpr std::chrono::milliseconds shortest_pause(100);

bool is_terminal(std::FILE* stream) {
  if (stream == nullptr) {
    throw Error(ErrorKind::value, {.where = "Progress",
                                   .what = "the setting `stream`",
                                   .expected = "an open file",
                                   .got = "a null pointer",
                                   .fix = "Check that it was opened."});
  }
  return isatty(fileno(stream)) != 0;
}

bool writes_in_place(std::FILE* stream, ProgressStyle style) {
  const bool is_shown_to_people = is_terminal(stream);
  switch (style) {
    case ProgressStyle::automatic:
    case ProgressStyle::on_terminal:
      return is_shown_to_people;
    case ProgressStyle::in_place:
      return true;
    case ProgressStyle::lines:
    case ProgressStyle::none:
      return false;
  }
  throw Error(ErrorKind::value, {.where = "Progress",
                                 .what = "the setting `style`",
                                 .expected = "automatic, in_place, lines, on_terminal or none",
                                 .got = fmt::format("{}", static_cast<int>(style)),
                                 .fix = {}});
}

/// Columns of the terminal; 80 if it does not say.
std::size_t columns_of(std::FILE* stream) {
  winsize size = {};
  if (ioctl(fileno(stream), TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

/// "0:09", "12:34", "1:02:03".
std::string clock_text(double seconds) {
  const auto all = static_cast<int64_t>(std::lround(std::min(seconds, 1e7)));
  const int64_t hours = all / 3600;
  const int64_t minutes = all / 60 % 60;
  if (hours > 0) return fmt::format("{}:{:02}:{:02}", hours, minutes, all % 60);
  return fmt::format("{}:{:02}", minutes, all % 60);
}

/// "61,240" from 10 on, else two digits: "1.7".
std::string rate_text(double rate) {
  if (rate < 10) return fmt::format("{:.2g}", rate);
  std::string text = fmt::format("{:.0f}", rate);
  for (int at = static_cast<int>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), ",");
  }
  return text;
}

}  // namespace

Progress::Progress(ProgressOptions options)
    : options_(std::move(options)),
      is_in_place_(writes_in_place(options_.stream, options_.style)),
      is_silent_(options_.style == ProgressStyle::none ||
                 (options_.style == ProgressStyle::on_terminal && !is_in_place_)) {
  check_at_least("Progress", "steps", options_.steps, 1);
  check_at_least("Progress", "items", options_.items, 1);
  check_at_least("Progress", "lines", options_.lines, 1);
}

bool Progress::is_due() const {
  if (is_silent_) return false;
  const int64_t next = done_ + 1;
  if (next >= options_.steps) return next == options_.steps;
  if (is_in_place_) return Clock::now() - shown_ >= shortest_pause;
  // Where a line's share of the steps ends.
  return next * options_.lines / options_.steps != done_ * options_.lines / options_.steps;
}

void Progress::step(const std::string& remark) {
  const bool writes = is_due();
  ++done_;
  if (!writes) return;
  shown_ = Clock::now();
  std::string line = text(remark);
  if (is_in_place_) {
    // What is longer than the terminal would wrap, and then not be overwritten. The last column is
    // left free: some terminals wrap when it is filled.
    line.resize(std::min(line.size(), columns_of(options_.stream) - 1));
    line = "\r" + line + "\x1b[K";  // clears the rest of a longer line before
  }
  const bool ends = !is_in_place_ || done_ == options_.steps;
  fmt::print(options_.stream, "{}{}", line, ends ? "\n" : "");
  std::fflush(options_.stream);
}

std::string Progress::text(const std::string& remark) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  const auto done = static_cast<double>(done_);
  const int64_t all = options_.steps;
  const auto steps = static_cast<double>(all);
  std::string line = options_.name.empty() ? "" : fmt::format("{:<9} ", options_.name);
  line += fmt::format("{:>{}}/{}", done_, fmt::formatted_size("{}", all), all);
  if (is_in_place_) {
    constexpr int width = 20;
    line += fmt::format(" [{:<{}}]",
                        std::string(static_cast<std::size_t>(width * done / steps), '='), width);
  }
  if (!remark.empty()) line += "  " + remark;
  const double rate = done * static_cast<double>(options_.items) / std::max(seconds, 1e-9);
  line += fmt::format("  {} {}/s", rate_text(rate), options_.unit);
  line += done_ == options_.steps
              ? fmt::format("  in {}", clock_text(seconds))
              : fmt::format("  {} left", clock_text(seconds / done * (steps - done)));
  return line;
}

}  // namespace nitinol::nn
