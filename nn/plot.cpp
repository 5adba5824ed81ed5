// The curve is drawn into a raster of points, a few of which make a character.
#include "nn/plot.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <string_view>
#include <vector>

namespace nitinol::nn {
namespace {

constexpr double nothing = std::numeric_limits<double>::quiet_NaN();

bool says_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string lower = value;
    for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
    return lower.find("utf-8") != std::string::npos || lower.find("utf8") != std::string::npos;
  }
  return false;
}

bool is_braille(PlotStyle style) {
  switch (style) {
    case PlotStyle::automatic:
      return says_utf8();
    case PlotStyle::braille:
      return true;
    case PlotStyle::ascii:
      return false;
  }
  throw Error(ErrorKind::value, {.where = "plot",
                                 .what = "the setting `style`",
                                 .expected = "automatic, braille or ascii",
                                 .got = fmt::format("{}", static_cast<int>(style)),
                                 .fix = {}});
}

/// The mean of the finite ones; NaN if there are none.
double mean_of(std::span<const double> values) {
  double sum = 0, count = 0;
  for (const double value : values) {
    if (std::isfinite(value)) sum += value, ++count;
  }
  return count > 0 ? sum / count : nothing;
}

/// One value for each column: the mean of those that fall into it, or between the two next to it.
std::vector<double> in_columns(std::span<const double> values, std::size_t columns) {
  std::vector<double> all(columns);
  const std::size_t count = values.size();
  for (std::size_t c = 0; c < columns; ++c) {
    if (count > columns) {
      const std::size_t first = c * count / columns;
      all[c] = mean_of(values.subspan(first, (c + 1) * count / columns - first));
      continue;
    }
    const double at =
        static_cast<double>(c) * static_cast<double>(count - 1) / static_cast<double>(columns - 1);
    const auto before = static_cast<std::size_t>(at);
    const double share = at - static_cast<double>(before);
    all[c] =
        share > 0 ? values[before] + (values[before + 1] - values[before]) * share : values[before];
  }
  return all;
}

class Raster {
 public:
  Raster(std::size_t width, std::size_t height, bool braille)
      : braille_(braille),
        across_(braille ? 2 : 1),
        down_(braille ? 4 : 2),
        columns_(width * across_),
        rows_(height * down_),
        points_(columns_ * rows_) {}
  [[nodiscard]] std::size_t columns() const { return columns_; }
  [[nodiscard]] std::size_t rows() const { return rows_; }
  /// All points of a column from one row to another.
  void draw(std::size_t column, std::size_t from, std::size_t to) {
    for (std::size_t row = std::min(from, to); row <= std::max(from, to); ++row)
      points_[row * columns_ + column] = true;
  }
  /// A line of characters, without blanks at its end.
  [[nodiscard]] std::string line(std::size_t number) const {
    std::string text, blanks;
    for (std::size_t column = 0; column < columns_; column += across_) {
      const std::string character = character_at(number * down_, column);
      if (character == " ") {
        blanks += ' ';
        continue;
      }
      text += blanks + character;
      blanks.clear();
    }
    return text;
  }

 private:
  [[nodiscard]] bool is_set(std::size_t row, std::size_t column) const {
    return points_[row * columns_ + column];
  }
  [[nodiscard]] std::string character_at(std::size_t row, std::size_t column) const {
    if (!braille_) {
      const char* const characters[] = {" ", "'", ".", ":"};
      return characters[(is_set(row, column) ? 1 : 0) + (is_set(row + 1, column) ? 2 : 0)];
    }
    // U+2800 and a bit for each point: down the left, down the right, then the lowest two.
    constexpr uint32_t bits[4][2] = {{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}};
    uint32_t found = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      for (std::size_t k = 0; k < 2; ++k) found |= is_set(row + i, column + k) ? bits[i][k] : 0;
    }
    if (found == 0) return " ";
    return {static_cast<char>(0xE2), static_cast<char>(0xA0 | found >> 6),
            static_cast<char>(0x80 | (found & 0x3F))};
  }

  bool braille_;
  std::size_t across_, down_;  ///< points of a character
  std::size_t columns_, rows_;
  std::vector<bool> points_;
};

void check_between(const char* setting, int64_t value) {
  check_at_least("plot", setting, value, 2);
  if (value <= 1000) return;
  throw Error(ErrorKind::value, {.where = "plot",
                                 .what = fmt::format("the setting `{}`", setting),
                                 .expected = "at most 1000",
                                 .got = fmt::format("{}", value),
                                 .fix = {}});
}

}  // namespace

std::string plot(std::span<const double> values, const PlotOptions& options) {
  check_between("width", options.width);
  check_between("height", options.height);
  const auto width = static_cast<std::size_t>(int64_t{options.width});
  const auto height = static_cast<std::size_t>(int64_t{options.height});
  Raster raster(width, height, is_braille(options.style));
  std::string text = options.title.empty() ? "" : options.title + "\n";
  if (values.empty()) return text + "no values\n";

  const std::vector<double> curve = in_columns(values, raster.columns());
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  for (const double value : curve) {
    if (std::isfinite(value)) least = std::min(least, value), greatest = std::max(greatest, value);
  }
  const bool is_flat = least == greatest;
  const auto last_row = static_cast<double>(raster.rows() - 1);
  const double range = greatest - least;  // infinite: then in halves
  const auto row_of = [&](double value) {
    const double share = is_flat ? 0.5
                         : std::isfinite(range)
                             ? (greatest - value) / range
                             : (greatest / 2 - value / 2) / (greatest / 2 - least / 2);
    return static_cast<std::size_t>(std::lround(share * last_row));
  };
  for (std::size_t c = 0; c < curve.size(); ++c) {
    if (!std::isfinite(curve[c])) continue;
    const std::size_t row = row_of(curve[c]);
    const bool goes_on = c > 0 && std::isfinite(curve[c - 1]);
    const std::size_t before = goes_on ? row_of(curve[c - 1]) : row;
    // From behind the point before to this one.
    raster.draw(c, before < row ? before + 1 : before > row ? before - 1 : row, row);
  }

  std::vector<std::string> labels(height);
  if (std::isfinite(least)) {
    labels[height / 2] = fmt::format("{:.3g}", greatest / 2 + least / 2);
    if (!is_flat) {
      labels.front() = fmt::format("{:.3g}", greatest);
      labels.back() = fmt::format("{:.3g}", least);
    }
  }
  const std::size_t margin =
      std::ranges::max(labels, {}, [](const std::string& label) { return label.size(); }).size();
  for (std::size_t i = 0; i < height; ++i) {
    const std::string line = fmt::format("{:>{}} {}", labels[i], margin, raster.line(i));
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  const std::string end = fmt::format("{} {}", values.size(), options.unit);
  text += fmt::format("{:{}} 1{:>{}}", "", margin, end, std::max(width - 1, end.size() + 1));
  const auto bad = std::ranges::count_if(values, [](double v) { return !std::isfinite(v); });
  if (bad > 0) text += fmt::format(" ({} not finite)", bad);
  return text + "\n";
}

std::string plot(const Tensor& values, const PlotOptions& options) {
  return plot(cast(values, f64).to_vector<double>(), options);
}

}  // namespace nitinol::nn
