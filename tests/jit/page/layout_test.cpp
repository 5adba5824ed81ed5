// Where boxes stand, and that lines go where they should.
#include "jit/page/layout.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

using namespace nitinol;

namespace nitinol::layout_test {

/// Whether two boxes cover a common point.
bool overlap(const jit::Layout::Point& a, const jit::Layout::Point& b) {
  return std::abs(a.x - b.x) < jit::Layout::box_width &&
         std::abs(a.y - b.y) < jit::Layout::box_height;
}

std::vector<jit::Line> random_lines(std::size_t boxes, std::size_t lines) {
  std::mt19937 random(7);
  std::set<std::pair<std::size_t, std::size_t>> chosen;
  while (chosen.size() < lines) {
    const std::size_t to = 1 + random() % (boxes - 1);
    chosen.emplace(random() % to, to);
  }
  std::vector<jit::Line> out;
  for (const auto& [from, to] : chosen) out.push_back({from, to});
  return out;
}

}  // namespace nitinol::layout_test

using namespace nitinol::layout_test;

TEST_CASE("no two boxes overlap, all lie inside, and lines go down", "[jit][page]") {
  constexpr std::size_t boxes = 120;
  const std::vector<jit::Line> lines = random_lines(boxes, 200);
  const jit::Layout layout = jit::layout_of(boxes, lines);
  REQUIRE(layout.boxes.size() == boxes);
  for (std::size_t a = 0; a < boxes; ++a) {
    CHECK(layout.boxes[a].x >= 0);
    CHECK(layout.boxes[a].y >= 0);
    CHECK(layout.boxes[a].x + jit::Layout::box_width <= layout.width);
    CHECK(layout.boxes[a].y + jit::Layout::box_height <= layout.height);
    for (std::size_t b = 0; b < a; ++b) CHECK_FALSE(overlap(layout.boxes[a], layout.boxes[b]));
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(layout.boxes[lines[i].from].y < layout.boxes[lines[i].to].y);
    CHECK(layout.ends[i].y == layout.boxes[lines[i].to].y);
    CHECK(layout.ends[i].x > layout.boxes[lines[i].to].x);
    CHECK(layout.ends[i].x < layout.boxes[lines[i].to].x + jit::Layout::box_width);
  }
}

TEST_CASE("a line that passes rows runs beside all boxes", "[jit][page]") {
  // A chain, and a line from its begin to its end.
  const jit::Layout layout = jit::layout_of(4, {{0, 1}, {1, 2}, {2, 3}, {0, 3}});
  int left = layout.width, right = 0;
  for (const jit::Layout::Point& box : layout.boxes) {
    left = std::min(left, box.x);
    right = std::max(right, box.x + jit::Layout::box_width);
  }
  const std::string& path = layout.paths[3];
  const std::size_t at = path.find('H');
  REQUIRE(at != std::string::npos);
  const int lane = std::stoi(path.substr(at + 1));
  CHECK((lane < left || lane > right));
  CHECK(lane > 0);
  CHECK(lane < layout.width);
  CHECK(layout.paths[0].find('C') != std::string::npos);  // to the next row: a curve
}

TEST_CASE("what has nothing above it stands right above who reads it", "[jit][page]") {
  // 3 is an input of 2, the last of the chain 0, 1, 2.
  const jit::Layout layout = jit::layout_of(4, {{0, 1}, {1, 2}, {3, 2}});
  CHECK(layout.boxes[3].y == layout.boxes[1].y);
}

TEST_CASE("a wide row is cut into several", "[jit][page]") {
  std::vector<jit::Line> lines;
  for (std::size_t b = 1; b <= 40; ++b) lines.push_back({0, b});
  const jit::Layout layout = jit::layout_of(41, lines);
  CHECK(layout.width < 2000);
  CHECK(layout.height > 6 * jit::Layout::box_height);
}

TEST_CASE("wide rows of branches side by side are cut alike", "[jit][page]") {
  // 30 branches of 4 boxes, each with inputs of its own, out of one box that all of them read.
  constexpr std::size_t branches = 30, deep = 4;
  std::vector<jit::Line> lines;
  const auto box = [](std::size_t branch, std::size_t row) { return 1 + branch * 2 * deep + row; };
  for (std::size_t b = 0; b < branches; ++b) {
    lines.push_back({0, box(b, 0)});
    for (std::size_t r = 0; r + 1 < deep; ++r) {
      lines.push_back({box(b, r), box(b, r + 1)});
      lines.push_back({box(b, deep + r), box(b, r + 1)});
    }
  }
  const jit::Layout layout = jit::layout_of(1 + branches * 2 * deep, lines);
  int curves = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    CHECK(layout.boxes[lines[i].from].y < layout.boxes[lines[i].to].y);
    curves += layout.paths[i].find('C') != std::string::npos ? 1 : 0;
  }
  // Inside of a branch a line goes to the next row; what all read passes those of others.
  CHECK(curves >= static_cast<int>(branches * (deep - 1) * 2));
  CHECK(layout.width < 2000);
}

TEST_CASE("a thousand boxes take milliseconds", "[jit][page]") {
  const std::vector<jit::Line> lines = random_lines(1000, 2500);
  const std::clock_t start = std::clock();  // what this process computes
  const jit::Layout layout = jit::layout_of(1000, lines);
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(layout.paths.size() == lines.size());
  CHECK(took < 0.5);
}
