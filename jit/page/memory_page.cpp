// The page of memory_snapshot().
#include "jit/figures.h"
#include "jit/memory_snapshot.h"
#include "jit/page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace nitinol {
namespace {

using jit::escaped;

/// Beside page_style.
constexpr std::string_view own_style = R"css(
.memory { width: 100%; height: auto; } .memory line { stroke: var(--rule); }
.memory path, .memory path:hover { fill: var(--kernel); stroke: var(--move); stroke-width: 1.2; }
.lines { width: 100%; font-variant-numeric: tabular-nums; }
.lines th, .lines td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--rule); white-space: nowrap; }
.lines .by { text-align: left; white-space: normal; width: 55%; overflow-wrap: anywhere; padding-left: 0; }
.bar { position: relative; height: 8px; margin-top: 3px; }
.bar i { position: absolute; left: 0; top: 0; height: 100%; border-radius: 2px; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin: 0 .3rem 0 .8rem; }
.peak { background: var(--kernel); } .now { background: var(--move); } .held { background: var(--output-edge); }
)css";

/// Memory over time, in steps: between two points nothing is known but the most.
std::string curve_of(const MemorySnapshot& snapshot) {
  constexpr double width = 1000, height = 220, left = 70, bottom = 24, top = 12;
  const double length = std::max(snapshot.length_s, 1e-9);
  const double most = std::max(static_cast<double>(snapshot.peak), 1.0);
  const auto x = [&](double time) { return left + (width - left) * std::min(time / length, 1.0); };
  const auto y = [&](std::size_t bytes) {
    return height - bottom - (height - bottom - top) * static_cast<double>(bytes) / most;
  };
  std::string path = fmt::format("M{:.1f} {:.1f}", left, y(0));
  for (const MemoryPoint& point : snapshot.points)
    path += fmt::format("H{:.1f}V{:.1f}", x(point.time_s), y(point.bytes));
  path += fmt::format("H{:.1f}V{:.1f}Z", x(length), y(0));
  std::string text = fmt::format(
      "<svg class=\"memory\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Memory over time\">\n",
      width, height);
  for (const int part : {0, 1, 2}) {
    const std::size_t bytes = snapshot.peak / 2 * static_cast<std::size_t>(part);
    text += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        left, width, y(bytes), y(bytes), left - 8, y(bytes) + 4, jit::bytes(bytes));
  }
  text += fmt::format("<path d=\"{}\"/>\n", path);
  text += fmt::format("<text x=\"{}\" y=\"{}\">0 s</text>", left, height - 6);
  return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>\n", width,
                            height - 6, jit::seconds(snapshot.length_s));
}

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
  text += "<h2>Over time</h2>\n" + curve_of(*this);
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
