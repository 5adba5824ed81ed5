// Sugiyama's way, kept small. A box stands one row below the lowest of those above it; what has
// nothing above it, as inputs, right above the first that reads it. Boxes of a row are ordered by
// where their neighbours stand, in a few sweeps; what has no room beside the others goes below
// them, with its neighbours. A line to the next row is a curve. One that passes rows runs beside
// the graph, in a lane that all such lines of its upper box share; so nothing runs through a box,
// whatever the graph is.
#include "jit/page/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>

namespace nitinol::jit {
namespace {

constexpr int gap_x = 24, gap_y = 60, lane_width = 6, margin = 16;
constexpr std::size_t most_in_row = 6;
constexpr int sweeps = 6;

class Layouting {
 public:
  Layouting(std::size_t boxes, const std::vector<Line>& lines)
      : lines_(lines), above_(boxes), below_(boxes), row_(boxes, 0), at_(boxes, 0) {
    for (const Line& line : lines) {
      above_[line.to].push_back(line.from);
      below_[line.from].push_back(line.to);
    }
  }

  Layout run() {
    choose_rows();
    order_rows();
    cut_rows();
    place_boxes();
    place_ends();
    draw_lines();
    return std::move(out_);
  }

 private:
  using Rows = std::vector<std::vector<std::size_t>>;

  void choose_rows() {
    const std::size_t count = row_.size();
    std::vector<std::size_t> missing(count), ready;
    for (std::size_t b = 0; b < count; ++b) {
      missing[b] = above_[b].size();
      if (missing[b] == 0) ready.push_back(b);
    }
    for (std::size_t i = 0; i < ready.size(); ++i) {
      for (const std::size_t next : below_[ready[i]]) {
        row_[next] = std::max(row_[next], row_[ready[i]] + 1);
        if (--missing[next] == 0) ready.push_back(next);
      }
    }
    for (std::size_t b = 0; b < count; ++b) {
      if (!above_[b].empty() || below_[b].empty()) continue;
      std::size_t first = SIZE_MAX;
      for (const std::size_t next : below_[b]) first = std::min(first, row_[next]);
      row_[b] = first - 1;
    }
    for (std::size_t b = 0; b < count; ++b) {
      if (rows_.size() <= row_[b]) rows_.resize(row_[b] + 1);
      rows_[row_[b]].push_back(b);
    }
  }

  /// Where in its row a box stands: 0 in the middle.
  void note_places(const std::vector<std::size_t>& row) {
    for (std::size_t i = 0; i < row.size(); ++i)
      at_[row[i]] = static_cast<double>(i) - static_cast<double>(row.size() - 1) / 2;
  }

  void order_row(std::vector<std::size_t>& row, const Rows& neighbours) {
    std::vector<std::pair<double, std::size_t>> wanted;
    for (const std::size_t b : row) {
      double sum = 0;
      for (const std::size_t other : neighbours[b]) sum += at_[other];
      const auto count = static_cast<double>(neighbours[b].size());
      wanted.emplace_back(count > 0 ? sum / count : at_[b], b);
    }
    std::ranges::stable_sort(wanted, {}, &std::pair<double, std::size_t>::first);
    for (std::size_t i = 0; i < row.size(); ++i) row[i] = wanted[i].second;
    note_places(row);
  }

  void order_rows() {
    for (const std::vector<std::size_t>& row : rows_) note_places(row);
    for (int sweep = 0; sweep < sweeps; ++sweep) {
      for (std::vector<std::size_t>& row : rows_) order_row(row, above_);
      for (std::size_t r = rows_.size(); r-- > 0;) order_row(rows_[r], below_);
    }
  }

  /// A long row becomes several, one below the other. So do several in a row together, as those of
  /// branches side by side: as many branches as have room, with all of their rows, then the next.
  void cut_rows() {
    Rows cut;
    for (std::size_t r = 0; r < rows_.size();) {
      std::size_t end = r + 1;
      const auto is_wide = [&](std::size_t i) { return rows_[i].size() > most_in_row; };
      while (is_wide(r) && end < rows_.size() && is_wide(end)) ++end;
      for (Rows& part : parts_of(r, end)) {
        for (const std::vector<std::size_t>& row : part) cut_row(row, cut);
      }
      r = end;
    }
    rows_ = std::move(cut);
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      for (const std::size_t b : rows_[r]) row_[b] = r;
      note_places(rows_[r]);
    }
  }
  static void cut_row(std::span<const std::size_t> row, Rows& to) {
    for (; !row.empty(); row = row.subspan(std::min(most_in_row, row.size()))) {
      const std::span<const std::size_t> part = row.first(std::min(most_in_row, row.size()));
      to.emplace_back(part.begin(), part.end());
    }
  }

  /// What lines join within the rows from `first` to `end`, as many of these as have room beside
  /// each other. What many read that has nothing above it joins nothing, and comes first.
  std::vector<Rows> parts_of(std::size_t first, std::size_t end) {
    std::vector<Rows> parts = {Rows(end - first)};
    std::vector<bool> is_done(row_.size());
    const auto is_hub = [&](std::size_t b) {
      return above_[b].empty() && below_[b].size() > most_in_row;
    };
    for (const bool takes_hubs : {true, false}) {
      for (std::size_t r = first; r < end; ++r) {
        for (const std::size_t start : rows_[r]) {
          if (is_done[start] || is_hub(start) != takes_hubs) continue;
          Rows joined(end - first);
          std::vector<std::size_t> waiting = {start};
          is_done[start] = true;
          while (!waiting.empty()) {
            const std::size_t b = waiting.back();
            waiting.pop_back();
            joined[row_[b] - first].push_back(b);
            if (takes_hubs) continue;
            for (const std::vector<std::size_t>* others : {&above_[b], &below_[b]}) {
              for (const std::size_t next : *others) {
                if (is_done[next] || row_[next] < first || row_[next] >= end) continue;
                is_done[next] = true;
                waiting.push_back(next);
              }
            }
          }
          add(std::move(joined), parts);
        }
      }
    }
    for (Rows& part : parts) {
      for (std::vector<std::size_t>& row : part)
        std::ranges::stable_sort(row, {}, [&](std::size_t b) { return at_[b]; });
    }
    return parts;
  }
  /// To the last part, or a new one.
  static void add(Rows&& joined, std::vector<Rows>& parts) {
    bool has_room = true;
    for (std::size_t r = 0; r < joined.size(); ++r) {
      const std::size_t before = parts.back()[r].size();
      has_room = has_room &&
                 (before == 0 || joined[r].empty() || before + joined[r].size() <= most_in_row);
    }
    if (!has_room) parts.emplace_back(joined.size());
    for (std::size_t r = 0; r < joined.size(); ++r)
      parts.back()[r].insert(parts.back()[r].end(), joined[r].begin(), joined[r].end());
  }

  static int width_of(const std::vector<std::size_t>& row) {
    return static_cast<int>(row.size()) * (Layout::box_width + gap_x) - gap_x;
  }
  static int top_of(std::size_t row) {
    return margin + static_cast<int>(row) * (Layout::box_height + gap_y);
  }
  [[nodiscard]] bool is_long(const Line& line) const { return row_[line.to] > row_[line.from] + 1; }

  void place_boxes() {
    out_.boxes.resize(row_.size());
    int widest = 0;
    for (const std::vector<std::size_t>& row : rows_) widest = std::max(widest, width_of(row));
    const int lanes_left = choose_lanes(true);
    const int lanes_right = choose_lanes(false);
    left_ = margin + lanes_left * lane_width + (lanes_left > 0 ? gap_x : 0);
    right_ = left_ + widest;
    for (std::size_t r = 0; r < rows_.size(); ++r) {
      int x = left_ + (widest - width_of(rows_[r])) / 2;
      for (const std::size_t b : rows_[r]) {
        out_.boxes[b] = {x, top_of(r)};
        x += Layout::box_width + gap_x;
      }
    }
    out_.width = right_ + margin + lanes_right * lane_width + (lanes_right > 0 ? gap_x : 0);
    out_.height = top_of(rows_.size()) - gap_y + margin;
  }

  /// Gives each box of one half of its row, from which long lines go, a lane that is free down to
  /// the last of them; how many lanes that takes.
  int choose_lanes(bool is_left) {
    lane_.resize(row_.size(), 0);
    std::vector<std::size_t> ends;  // per lane: the row where it is free again
    for (const std::vector<std::size_t>& row : rows_) {
      for (const std::size_t b : row) {
        std::size_t last = 0;
        for (const std::size_t next : below_[b]) last = std::max(last, row_[next]);
        if (last <= row_[b] + 1 || (at_[b] < 0) != is_left) continue;
        std::size_t lane = 0;
        while (lane < ends.size() && ends[lane] > row_[b]) ++lane;
        if (lane == ends.size()) ends.emplace_back();
        ends[lane] = last;
        lane_[b] = static_cast<int>(lane) + 1;
      }
    }
    return static_cast<int>(ends.size());
  }

  [[nodiscard]] int lane_x(std::size_t box) const {
    const int away = gap_x + lane_[box] * lane_width;
    return at_[box] < 0 ? left_ - away : right_ + away;
  }

  /// From where a line comes down to its lower box.
  [[nodiscard]] int coming_x(const Line& line) const {
    return is_long(line) ? lane_x(line.from) : out_.boxes[line.from].x;
  }

  void place_ends() {
    std::vector<std::vector<std::size_t>> coming(row_.size());
    for (std::size_t i = 0; i < lines_.size(); ++i) coming[lines_[i].to].push_back(i);
    out_.ends.resize(lines_.size());
    out_.places.resize(lines_.size());
    out_.crowds.resize(lines_.size());
    for (std::vector<std::size_t>& some : coming) {
      std::ranges::stable_sort(some, {}, [&](std::size_t i) { return coming_x(lines_[i]); });
      for (std::size_t k = 0; k < some.size(); ++k) {
        const Layout::Point box = out_.boxes[lines_[some[k]].to];
        const auto share = static_cast<int>(k + 1) * Layout::box_width;
        out_.ends[some[k]] = {box.x + share / static_cast<int>(some.size() + 1), box.y};
        out_.places[some[k]] = k;
        out_.crowds[some[k]] = some.size();
      }
    }
  }

  void draw_lines() {
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      const Line& line = lines_[i];
      const Layout::Point box = out_.boxes[line.from];
      const Layout::Point end = out_.ends[i];
      int x = box.x + Layout::box_width / 2;
      const int y = box.y + Layout::box_height;
      if (!is_long(line)) {
        out_.paths.push_back(fmt::format("M{} {}C{} {} {} {} {} {}", x, y, x, y + gap_y / 2, end.x,
                                         end.y - gap_y / 2, end.x, end.y));
        continue;
      }
      // Beside the curves, and not all at one height.
      x += at_[line.from] < 0 ? -Layout::box_width / 4 : Layout::box_width / 4;
      const int down = y + 6 + lane_[line.from] % 5 * 2;
      const int in = end.y - 22 - lane_[line.from] % 5 * 2;
      out_.paths.push_back(
          fmt::format("M{} {}V{}H{}V{}H{}V{}", x, y, down, lane_x(line.from), in, end.x, end.y));
    }
  }

  const std::vector<Line>& lines_;
  Rows above_, below_;            ///< per box
  std::vector<std::size_t> row_;  ///< per box
  std::vector<double> at_;        ///< per box
  std::vector<int> lane_;         ///< per box, from 1 on
  Rows rows_;                     ///< boxes by row
  int left_ = 0, right_ = 0;      ///< between them are the boxes
  Layout out_;
};

}  // namespace

Layout layout_of(std::size_t boxes, const std::vector<Line>& lines) {
  return Layouting(boxes, lines).run();
}

}  // namespace nitinol::jit
