// Reads digits.csv: 64 pixels from 0 to 16 and a label from 0 to 9 in each row.
#pragma once

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace digits {

inline constexpr int64_t pixels = 64;
inline constexpr int64_t classes = 10;

/// Images as rows of `pixels` numbers from 0 to 1, and what they show.
struct Rows {
  std::vector<float> images;
  std::vector<int64_t> labels;
  [[nodiscard]] int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

/// Every fifth row is held out for testing.
struct Split {
  Rows train, test;
};

/// The integer in `text`, which must be from 0 to `most`.
inline int read_number(std::string_view text, int most, std::string_view place) {
  int value = -1;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0 || value > most) {
    throw std::runtime_error(
        fmt::format("{}: \"{}\" is not a whole number from 0 to {}", place, text, most));
  }
  return value;
}

/// Appends one line of the file to `rows`.
inline void read_row(std::string_view line, std::string_view place, Rows& rows) {
  for (int64_t column = 0; column <= pixels; ++column) {
    const bool is_last = column == pixels;
    const std::size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != is_last) {
      throw std::runtime_error(fmt::format("{}: {} columns expected, found {}", place, pixels + 1,
                                           is_last ? "more" : fmt::format("{}", column + 1)));
    }
    const std::string_view field = line.substr(0, comma);
    if (is_last) {
      rows.labels.push_back(read_number(field, classes - 1, place));
      return;
    }
    rows.images.push_back(static_cast<float>(read_number(field, 16, place)) / 16);
    line.remove_prefix(comma + 1);
  }
}

/// Reads the whole file. Throws std::runtime_error naming file and line for anything unexpected.
inline Split read_csv(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("cannot open {}", path.string()));
  Split split;
  std::string line;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || (number == 1 && line.starts_with('p'))) continue;
    const std::string place = fmt::format("{}:{}", path.string(), number);
    read_row(line, place, number % 5 == 0 ? split.test : split.train);
  }
  if (file.bad()) throw std::runtime_error(fmt::format("{}: reading failed", path.string()));
  if (split.train.count() == 0 || split.test.count() == 0) {
    throw std::runtime_error(fmt::format("{}: too few rows", path.string()));
  }
  return split;
}

/// Where digits.csv lies: `given` if not empty, else beside the program, else in the source tree,
/// in `folder`.
inline std::filesystem::path find_data(const std::string& given, const char* program,
                                       const std::filesystem::path& folder) {
  if (!given.empty()) return given;
  const std::filesystem::path beside = std::filesystem::path(program).parent_path() / "digits.csv";
  const std::filesystem::path source = folder / "digits.csv";
  for (const std::filesystem::path& path : {beside, source}) {
    if (std::filesystem::exists(path)) return path;
  }
  throw std::runtime_error(
      fmt::format("digits.csv is neither {} nor {}; say where it is with --data", beside.string(),
                  source.string()));
}

}  // namespace digits
