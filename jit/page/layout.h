// Layout: where the boxes of a graph stand, and how the lines between them run.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace nitinol::jit {

/// A line from one box down to another one.
struct Line {
  std::size_t from = 0, to = 0;  ///< numbers of boxes, the first the smaller in some order
};

/// Sizes in pixels; y goes down.
struct Layout {
  static constexpr int box_width = 190, box_height = 44;
  struct Point {
    int x = 0, y = 0;
  };
  std::vector<Point> boxes;        ///< per box: its upper left corner
  std::vector<std::string> paths;  ///< per line, as SVG draws it
  std::vector<Point> ends;         ///< per line: where it meets its lower box
  std::vector<std::size_t>
      places;  ///< per line: which of those that meet there it is, from the left
  std::vector<std::size_t> crowds;  ///< per line: how many these are
  int width = 0, height = 0;
};

/// In rows, each box below those that lines come from. Lines must not go in circles. Takes
/// milliseconds for a thousand boxes.
[[nodiscard]] Layout layout_of(std::size_t boxes, const std::vector<Line>& lines);

}  // namespace nitinol::jit
