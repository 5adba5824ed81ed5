// The page of memory_snapshot(). Memory over time is drawn as areas on top of one another, one for
// each of the user's lines that had most; those that live longest lie at the bottom, as what comes
// and goes above them does not move them then.
#include "core/step_report.h"
#include "jit/figures.h"
#include "jit/memory_snapshot.h"
#include "jit/page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

using jit::escaped;

/// Beside page_style.
constexpr std::string_view own_style = R"css(
.memory { width: 100%; height: auto; } .memory line { stroke: var(--rule); }
.memory path, .memory path:hover { stroke: none; } .memory path:hover { fill-opacity: .75; }
.memory path.all, .memory path.all:hover { fill: none; stroke: var(--text); stroke-width: 1; pointer-events: none; }
.areas { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; margin: .3rem 0; }
.areas i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: .4rem; }
.lines { width: 100%; font-variant-numeric: tabular-nums; }
.lines th, .lines td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
.lines .by { text-align: left; white-space: normal; width: 55%; min-width: 11rem; overflow-wrap: anywhere; padding-left: 0; }
.bar { position: relative; height: 8px; margin-top: 3px; }
.bar i { position: absolute; left: 0; top: 0; height: 100%; border-radius: 2px; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin: 0 .3rem 0 .8rem; }
.peak { background: var(--kernel); } .now { background: var(--move); } .held { background: var(--output-edge); }
)css";

/// Operations of one of the user's lines; of what has no line, one operation.
struct Area {
  std::string name;
  std::vector<std::string> ops;
  std::vector<std::size_t> bytes;  ///< at each of the times that are drawn
  std::size_t most = 0;
  double lived_s = 0;  ///< how long it had any
  std::string color = {};
};

/// Memory over time, in steps: between two points nothing is known but the most.
class Curves {
 public:
  explicit Curves(const MemorySnapshot& snapshot)
      : snapshot_(snapshot), length_(std::max(snapshot.length_s, 1e-9)) {
    choose_points();
    make_areas();
    choose_areas();
  }

  [[nodiscard]] std::string drawn() const {
    std::string text = fmt::format(
        "<svg class=\"memory\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Memory over "
        "time\">\n",
        width, height);
    std::vector<std::size_t> floor(points_.size());
    for (const Area& area : areas_) {
      std::vector<std::size_t> roof = floor;
      for (std::size_t i = 0; i < roof.size(); ++i) roof[i] += area.bytes[i];
      text += fmt::format("<path style=\"fill:{}\" d=\"{}{}Z\"><title>{}</title></path>\n",
                          area.color, forwards(roof), backwards(floor), escaped(tip_of(area)));
      floor = std::move(roof);
    }
    text += fmt::format("<path class=\"all\" d=\"{}\"/>\n", forwards(floor));
    for (const int part : {0, 1, 2}) {
      const std::size_t bytes = snapshot_.peak / 2 * static_cast<std::size_t>(part);
      text += fmt::format(
          "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
          left, width, y(bytes), y(bytes), left - 8, y(bytes) + 4, jit::bytes(bytes));
    }
    text += fmt::format("<text x=\"{}\" y=\"{}\">0 s</text>", left, height - 6);
    text += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>\n", width,
                        height - 6, jit::seconds(snapshot_.length_s));
    return text + key();
  }

 private:
  static constexpr double width = 1000, height = 260, left = 70, bottom = 24, top = 12;

  [[nodiscard]] double x(double time) const {
    return left + (width - left) * std::min(time / length_, 1.0);
  }
  [[nodiscard]] double y(std::size_t bytes) const {
    const double most = std::max(static_cast<double>(snapshot_.peak), 1.0);
    return height - bottom - (height - bottom - top) * static_cast<double>(bytes) / most;
  }

  /// Where several are nearer to each other than can be seen, the one of most bytes.
  void choose_points() {
    double column = -1;
    for (const MemoryPoint& point : snapshot_.points) {
      const double own = std::floor(x(point.time_s));
      if (own != column) {
        column = own;
        points_.push_back(&point);
      } else if (point.bytes > points_.back()->bytes) {
        points_.back() = &point;
      }
    }
  }

  void make_areas() {
    std::map<std::string, std::size_t> known;
    std::vector<std::size_t> area_of;
    for (const MemoryLine& line : snapshot_.lines) {
      const std::string name = line.places.empty() ? line.made_by : jit::lines_of(line.places);
      const auto [found, is_new] = known.try_emplace(name, areas_.size());
      if (is_new) areas_.push_back({name, {}, std::vector<std::size_t>(points_.size())});
      area_of.push_back(found->second);
      std::vector<std::string>& ops = areas_[found->second].ops;
      if (!line.places.empty() && std::ranges::find(ops, line.made_by) == ops.end())
        ops.push_back(line.made_by);
    }
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const double end = i + 1 < points_.size() ? points_[i + 1]->time_s : length_;
      for (const MemoryPoint::Share& share : points_[i]->shares) {
        Area& area = areas_[area_of[share.line]];
        area.bytes[i] += share.bytes;
        area.most = std::max(area.most, area.bytes[i]);
      }
      for (Area& area : areas_) area.lived_s += area.bytes[i] > 0 ? end - points_[i]->time_s : 0;
    }
  }

  /// Those that had most have colors, the others one together.
  void choose_areas() {
    constexpr std::size_t most_colors = 10, seen = 200;  // a two hundredth of the height is seen
    std::ranges::stable_sort(areas_, std::greater<>(), &Area::most);
    while (!areas_.empty() &&
           (areas_.size() > most_colors || areas_.back().most <= snapshot_.peak / seen))
      areas_.pop_back();
    std::ranges::stable_sort(areas_, std::greater<>(), &Area::lived_s);
    constexpr int hues[most_colors] = {212, 28, 145, 340, 265, 185, 52, 0, 95, 300};
    Area others = {"other lines", {}, {}};
    for (const MemoryPoint* point : points_) others.bytes.push_back(point->bytes);
    for (std::size_t a = 0; a < areas_.size(); ++a) {
      areas_[a].color = fmt::format("hsl({} 58% 55%)", hues[a]);
      for (std::size_t i = 0; i < points_.size(); ++i)
        others.bytes[i] -= std::min(others.bytes[i], areas_[a].bytes[i]);
    }
    for (const std::size_t bytes : others.bytes) others.most = std::max(others.most, bytes);
    others.color = "var(--input-edge)";
    if (others.most > 0) areas_.push_back(std::move(others));
  }

  /// A curve from the first point to the end, and back below it.
  [[nodiscard]] std::string forwards(const std::vector<std::size_t>& bytes) const {
    std::string path = fmt::format("M{:.1f} {:.1f}", left, y(0));
    for (std::size_t i = 0; i < points_.size(); ++i) {
      const bool is_news = i == 0 || bytes[i] != bytes[i - 1];
      if (is_news) path += fmt::format("H{:.1f}V{:.1f}", x(points_[i]->time_s), y(bytes[i]));
    }
    return path + fmt::format("H{:.1f}", x(length_));
  }
  [[nodiscard]] std::string backwards(const std::vector<std::size_t>& bytes) const {
    std::string path;
    for (std::size_t i = points_.size(); i-- > 0;) {
      const bool is_news = i == 0 || bytes[i] != bytes[i - 1];
      if (i + 1 == points_.size()) path += fmt::format("V{:.1f}", y(bytes[i]));
      if (!is_news) continue;
      path += fmt::format("H{:.1f}V{:.1f}", x(points_[i]->time_s), y(i > 0 ? bytes[i - 1] : 0));
    }
    return path;
  }

  static std::string tip_of(const Area& area) {
    return fmt::format("{} {}\nat most {}", area.name, list_of(area.ops), jit::bytes(area.most));
  }

  [[nodiscard]] std::string key() const {
    std::string text = "<p class=\"areas\">";
    for (const Area& area : areas_) {
      text += fmt::format(
          "<span><i style=\"background:{}\"></i><code>{}</code> <span "
          "class=\"faint\">{} {}</span></span>\n",
          area.color, escaped(area.name), escaped(jit::shortened(list_of(area.ops), 40)),
          jit::bytes(area.most));
    }
    return text + "</p>\n";
  }

  const MemorySnapshot& snapshot_;
  const double length_;
  std::vector<const MemoryPoint*> points_;  ///< that are drawn
  std::vector<Area> areas_;                 ///< from the bottom up
};

std::string row_of(const MemoryLine& line, std::size_t most) {
  const auto bar = [&](std::size_t bytes, const char* kind) {
    return fmt::format("<i class=\"{}\" style=\"width:{:.1f}%\"></i>", kind,
                       100 * static_cast<double>(bytes) / static_cast<double>(most));
  };
  std::string places;
  for (const std::string& place : line.places)
    places += (places.empty() ? "" : ", ") + place.substr(place.rfind('/') + 1);
  return fmt::format(
      "<tr><td class=\"by\">{} <code class=\"faint\">{}</code><div "
      "class=\"bar\">{}{}{}</div></td><td>{}</td>"
      "<td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
      escaped(line.made_by), escaped(places), bar(line.at_peak, "peak"), bar(line.bytes, "now"),
      bar(line.held, "held"), jit::bytes(line.bytes), line.blocks,
      line.held > 0 ? jit::bytes(line.held) : "", jit::bytes(line.at_peak), line.made);
}

}  // namespace

std::string MemorySnapshot::to_html() const {
  std::string text = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
      "'unsafe-inline'\">\n<meta name=\"viewport\" content=\"width=device-width\">\n"
      "<title>Memory</title>\n<style>{}{}</style></head>\n<body>\n",
      jit::page_style, own_style);
  text += fmt::format(
      "<h1>Memory</h1>\n<p class=\"faint\">{} in {} blocks; at most {}, after {}. {} more was "
      "there before, or was "
      "made by no operation.</p>\n",
      jit::bytes(bytes), blocks.size(), jit::bytes(peak), jit::seconds(peak_s), jit::bytes(others));
  text += "<h2>Over time, by line</h2>\n" + Curves(*this).drawn();
  text +=
      "<h2>By operation and line</h2>\n<p class=\"key faint\"><i class=\"held\"></i>of "
      "Variables<i class=\"now\"></i>now<i "
      "class=\"peak\"></i>at the peak</p>\n<table class=\"lines\"><tr><th class=\"by\">made "
      "by</th><th>now</th><th>blocks</th><th>of Variables</th><th>at the "
      "peak</th><th>made</th></tr>\n";
  std::size_t most = 1;
  for (const MemoryLine& line : lines) most = std::max({most, line.bytes, line.at_peak});
  constexpr std::size_t most_rows = 500;
  for (std::size_t i = 0; i < std::min(lines.size(), most_rows); ++i)
    text += row_of(lines[i], most);
  text += "</table>\n";
  if (lines.size() > most_rows)
    text += fmt::format("<p class=\"faint\">and {} more lines</p>\n", lines.size() - most_rows);
  return text + "</body></html>\n";
}

}  // namespace nitinol
