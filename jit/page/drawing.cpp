#include "jit/page/drawing.h"

#include "jit/figures.h"
#include "jit/page/html.h"
#include "jit/page/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace nitinol::jit {
namespace {

using program::StepReport;
using program::ValueReport;
using Kind = ValueReport::Kind;

constexpr std::size_t most_letters = 29;  ///< of a line in a box

/// A box of the graph: a step, or some values that were there before or that the Plan gives.
struct Box {
  std::string style, title, below, tip, link;
};

/// A graph whose lines are told apart by what they join.
class Graph {
 public:
  std::size_t add(Box box) {
    boxes_.push_back(std::move(box));
    return boxes_.size() - 1;
  }
  void join(std::size_t from, std::size_t to, std::size_t bytes, std::string_view what) {
    auto& [sum, tip] = lines_[{from, to}];
    sum += bytes;
    if (tip.size() < most_tip) tip += fmt::format("\n{}: {}", what, jit::bytes(bytes));
  }
  [[nodiscard]] std::string drawn() const;

 private:
  static constexpr std::size_t most_tip = 400;
  std::vector<Box> boxes_;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::string>> lines_;
};

std::string drawn(const Box& box, const Layout::Point& at) {
  const int middle = at.x + Layout::box_width / 2;
  std::string text = fmt::format(
      "<g><title>{}</title><rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" "
      "rx=\"5\"/><text class=\"title\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>"
      "<text class=\"faint\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text></g>",
      escaped(box.tip), box.style, at.x, at.y, Layout::box_width, Layout::box_height, middle,
      at.y + 18, escaped(shortened(box.title, most_letters)), middle, at.y + 34,
      escaped(shortened(box.below, most_letters + 3)));
  return box.link.empty() ? text : fmt::format("<a href=\"#{}\">{}</a>", box.link, text);
}

std::string Graph::drawn() const {
  constexpr std::size_t most_sizes = 9;  // there is room for as many, in two heights
  std::vector<Line> lines;
  for (const auto& [ends, line] : lines_) lines.push_back({ends.first, ends.second});
  const Layout layout = layout_of(boxes_.size(), lines);
  std::string text = fmt::format(
      "<svg class=\"graph\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\">\n",
      layout.width, layout.height);
  std::string sizes;
  std::size_t i = 0;
  for (const auto& [ends, line] : lines_) {
    const auto& [bytes, tip] = line;
    text += fmt::format("<path d=\"{}\"><title>{}</title></path>\n", layout.paths[i],
                        escaped(fmt::format("{} to {}{}", boxes_[ends.first].title,
                                            boxes_[ends.second].title, tip)));
    if (layout.crowds[i] <= most_sizes) {
      const bool is_higher = layout.crowds[i] > 4 && layout.places[i] % 2 == 1;
      sizes +=
          fmt::format("<text class=\"size\" text-anchor=\"middle\" x=\"{}\" y=\"{}\">{}</text>\n",
                      layout.ends[i].x, layout.ends[i].y - (is_higher ? 16 : 5), jit::bytes(bytes));
    }
    ++i;
  }
  for (std::size_t b = 0; b < boxes_.size(); ++b)
    text += jit::drawn(boxes_[b], layout.boxes[b]) + '\n';
  return text + sizes + "</svg>";
}

/// Values that are drawn as one box: what the same steps read or give.
struct Together {
  std::string name;
  std::set<std::size_t> steps;
  bool is_read = true;
  friend auto operator<=>(const Together&, const Together&) = default;
};

/// "argument" of "argument 1", which is like "argument 2".
std::string without_number(std::string_view name) {
  const std::size_t end = name.find_last_not_of("0123456789");
  return std::string(name.substr(0, name.find_last_not_of(' ', end) + 1));
}

class PlanGraph {
 public:
  PlanGraph(const PlanReport& plan, std::string_view id) : plan_(plan), id_(id) {}

  std::string drawn() {
    group();
    for (const auto& [together, values] : groups_) {
      if (together.is_read) add(together, values);
    }
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) add_step(s);
    join_steps();
    for (const auto& [together, values] : groups_) {
      if (!together.is_read) add(together, values);
    }
    return graph_.drawn();
  }

 private:
  void group() {
    std::vector<std::vector<std::size_t>> readers(plan_.values.size());
    std::vector<std::set<std::size_t>> writers(plan_.values.size());
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      for (const ValueAccess& read : plan_.steps[s].reads) {
        if (read.from < 0) readers[read.value].push_back(s);
      }
      for (const ValueAccess& write : plan_.steps[s].writes) writers[write.value].insert(s);
    }
    for (std::size_t v = 0; v < plan_.values.size(); ++v) {
      const ValueReport& value = plan_.values[v];
      const std::string name = without_number(value.name);
      if (value.kind == Kind::output && !writers[v].empty())
        groups_[{name, std::move(writers[v]), false}].push_back(v);
      for (std::set<std::size_t>& near : near_each_other(readers[v]))
        groups_[{name, std::move(near), true}].push_back(v);
    }
  }

  /// What was there before has a box wherever it is read, lest lines to it fill the drawing: the
  /// way forward reads a weight, and its update does at the end.
  static std::vector<std::set<std::size_t>> near_each_other(const std::vector<std::size_t>& steps) {
    constexpr std::size_t near = 8;
    std::vector<std::set<std::size_t>> groups;
    for (const std::size_t s : steps) {
      if (groups.empty() || s > *groups.back().rbegin() + near) groups.emplace_back();
      groups.back().insert(s);
    }
    return groups;
  }

  void add(const Together& together, const std::vector<std::size_t>& values) {
    constexpr std::size_t few = 2;
    if (values.size() > few) {
      add_box(together, values);
      return;
    }
    for (const std::size_t v : values) add_box(together, {v});
  }

  void add_box(const Together& together, const std::vector<std::size_t>& values) {
    const ValueReport& first = plan_.values[values[0]];
    std::size_t bytes = 0;
    std::string tip;
    for (const std::size_t v : values) {
      const ValueReport& value = plan_.values[v];
      bytes += value.bytes;
      if (tip.size() < 600) tip += fmt::format("{} {}\n", value.name, value.type);
    }
    const bool is_several = values.size() > 1;
    Box box = {
        .style = together.is_read ? "input" : "output",
        .title = is_several ? fmt::format("{} × {}", values.size(), together.name) : first.name,
        .below = is_several ? jit::bytes(bytes) : first.type,
        .tip = std::move(tip),
        .link = {}};
    if (first.is_in_place) box.below += ", in place";
    const std::size_t at = graph_.add(std::move(box));
    for (const std::size_t s : together.steps) {
      if (together.is_read) {
        for (const std::size_t v : values) box_of_.emplace(std::pair(v, s), at);
        continue;
      }
      for (const ValueAccess& write : plan_.steps[s].writes) {
        const bool is_here = std::ranges::find(values, write.value) != values.end();
        if (is_here) graph_.join(step_box_[s], at, write.bytes, plan_.values[write.value].name);
      }
    }
  }

  void add_step(std::size_t s) {
    const StepReport& step = plan_.steps[s];
    const std::string ops = list_of(step.ops);
    step_box_.push_back(graph_.add(
        {.style = step.kind == "kernel" ? "kernel" : "library",
         .title = fmt::format("{}. {}", s + 1, ops),
         .below = step.places.empty() ? step.kind : lines_of(step.places),
         .tip = fmt::format("step {}, {}: {}\nreads {}, writes {}", s + 1, step.kind, ops,
                            jit::bytes(step.bytes_read), jit::bytes(step.bytes_written)),
         .link = fmt::format("{}{}", id_, s + 1)}));
  }

  void join_steps() {
    for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
      for (const ValueAccess& read : plan_.steps[s].reads) {
        const ValueReport& value = plan_.values[read.value];
        const std::string what = value.name.empty() ? value.type : value.name + " " + value.type;
        if (read.from >= 0) {
          graph_.join(step_box_[static_cast<std::size_t>(read.from)], step_box_[s], read.bytes,
                      what);
        } else if (const auto box = box_of_.find({read.value, s}); box != box_of_.end()) {
          graph_.join(box->second, step_box_[s], read.bytes, what);
        }
      }
    }
  }

  const PlanReport& plan_;
  const std::string_view id_;
  Graph graph_;
  std::map<Together, std::vector<std::size_t>> groups_;  ///< values
  std::map<std::pair<std::size_t, std::size_t>, std::size_t>
      box_of_;  ///< by value and who reads it
  std::vector<std::size_t> step_box_;
};

}  // namespace

std::string drawn_graph(const PlanReport& plan, std::string_view id) {
  return PlanGraph(plan, id).drawn();
}

std::string drawn_memory(const PlanReport& plan) {
  constexpr int width = 1000, height = 220, left = 70, top = 8, bottom = 20;
  if (plan.arena_bytes == 0) return "";
  const double per_step =
      static_cast<double>(width - left) / static_cast<double>(plan.steps.size());
  const double per_byte = static_cast<double>(height) / static_cast<double>(plan.arena_bytes);
  std::string text = fmt::format(
      "<svg class=\"memory\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
      "viewBox=\"0 0 {0} {1}\">\n<path class=\"axis\" d=\"M{2} {3}V{4}H{0}\"/>"
      "<text class=\"faint\" text-anchor=\"end\" x=\"{5}\" y=\"{6}\">{7}</text>"
      "<text class=\"faint\" text-anchor=\"end\" x=\"{5}\" y=\"{4}\">0</text>"
      "<text class=\"faint\" x=\"{2}\" y=\"{1}\" dy=\"-4\">step 1</text>"
      "<text class=\"faint\" text-anchor=\"end\" x=\"{0}\" y=\"{1}\" dy=\"-4\">step {8}</text>\n",
      width, top + height + bottom, left, top, top + height, left - 6, top + 10,
      bytes(plan.arena_bytes), plan.steps.size());
  int color = 0;
  for (const ValueReport& value : plan.values) {
    if (value.kind != Kind::temporary) continue;
    const double steps = static_cast<double>(value.last_step - value.first_step + 1);
    const double high = static_cast<double>(value.bytes) * per_byte;
    constexpr int turn = 137;  // golden angle: neighbours differ
    color = (color + turn) % 360;
    text += fmt::format(
        "<rect class=\"block\" x=\"{:.1f}\" y=\"{:.2f}\" width=\"{:.1f}\" height=\"{:.2f}\" "
        "fill=\"hsl({} 55% 55%)\"><title>{} at byte {}, {}, steps {} to {}</title></rect>\n",
        left + static_cast<double>(value.first_step) * per_step,
        top + height - static_cast<double>(value.offset) * per_byte - high, steps * per_step,
        std::max(high, 0.5), color, escaped(value.type), value.offset, bytes(value.bytes),
        value.first_step + 1, value.last_step + 1);
  }
  return text + "</svg>";
}

std::string drawn_bound(const Bound& bound, double longest) {
  constexpr double width = 110;
  const auto length = [&](double s) { return longest > 0 ? s / longest * width : 0; };
  return fmt::format(
      "<svg width=\"{0}\" height=\"12\" viewBox=\"0 0 {0} 12\"><title>{1} for its bytes, {2} for "
      "its "
      "operations</title><rect class=\"track\" y=\"5.5\" width=\"{0}\" height=\"1\"/><rect "
      "class=\"move\" width=\"{3:.1f}\" height=\"5\"/><rect class=\"compute\" y=\"7\" "
      "width=\"{4:.1f}\" "
      "height=\"5\"/></svg>",
      width, seconds(bound.move_s), seconds(bound.compute_s), length(bound.move_s),
      length(bound.compute_s));
}

}  // namespace nitinol::jit
