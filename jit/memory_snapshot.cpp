#include "jit/memory_snapshot.h"

#include "core/environment.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/memory_notes.h"
#include "io/file.h"
#include "jit/figures.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <span>
#include <string_view>
#include <utility>

namespace nitinol {
namespace {

using Json = nlohmann::ordered_json;

/// NITINOL_MEMORY=1: never ends.
[[maybe_unused]] const bool is_begun = [] {
  constexpr std::string_view values[] = {"0", "1"};
  const bool is_wanted = environment_choice("NITINOL_MEMORY", values) == 1;
  if (is_wanted) memory_notes::begin();
  return is_wanted;
}();

std::vector<std::string> texts_of(const std::vector<CallSite>& places) {
  std::vector<std::string> texts;
  for (const CallSite& place : places) {
    std::string text = place.text();
    if (!text.empty() && std::ranges::find(texts, text) == texts.end())
      texts.push_back(std::move(text));
  }
  return texts;
}

/// What the devices have in use beside the blocks that are noted.
std::size_t others_of(const std::vector<MemoryBlock>& blocks) {
  std::vector<std::pair<Device, std::size_t>> noted = {{Device{}, 0}};
  for (const MemoryBlock& block : blocks) {
    auto found = std::ranges::find(noted, block.device, &std::pair<Device, std::size_t>::first);
    if (found == noted.end()) found = noted.insert(found, {block.device, 0});
    found->second += block.bytes;
  }
  std::size_t others = 0;
  for (const auto& [device, bytes] : noted) {
    const std::size_t in_use = memory_statistics(device).in_use;
    others += in_use > bytes ? in_use - bytes : 0;
  }
  return others;
}

}  // namespace

MemoryNotes::MemoryNotes() {
  memory_notes::begin();
}

MemoryNotes::~MemoryNotes() {
  memory_notes::end();
}

MemorySnapshot memory_snapshot() {
  if (!memory_notes::is_on()) {
    throw Error(ErrorKind::value,
                {.where = "memory_snapshot",
                 .what = "blocks of memory",
                 .expected = "them to be noted",
                 .got = "nobody who wants that",
                 .fix = "Have a MemoryNotes live before, or set NITINOL_MEMORY=1."});
  }
  const memory_notes::Content content = memory_notes::content();
  const auto seconds = [&](int64_t time_ns) {
    return static_cast<double>(std::max<int64_t>(time_ns - content.begin_ns, 0)) * 1e-9;
  };
  MemorySnapshot out = {.blocks = {},
                        .lines = {},
                        .points = {},
                        .bytes = content.bytes,
                        .peak = content.peak,
                        .peak_s = seconds(content.peak_ns),
                        .length_s = seconds(content.now_ns)};
  std::vector<std::size_t> line_of;  // of makers, some of which are told apart by addresses alone
  std::map<std::pair<std::string, std::vector<std::string>>, std::size_t> known;
  for (const memory_notes::Maker& maker : content.makers) {
    std::vector<std::string> places = texts_of(maker.places);
    const auto [found, is_new] = known.try_emplace({maker.name, places}, out.lines.size());
    if (is_new) out.lines.push_back({.made_by = maker.name, .places = std::move(places)});
    line_of.push_back(found->second);
    MemoryLine& line = out.lines[found->second];
    line.bytes += maker.bytes, line.blocks += maker.blocks;
    line.at_peak += maker.at_peak, line.made += maker.made;
  }
  for (const memory_notes::Block& block : content.blocks) {
    MemoryLine& line = out.lines[line_of[block.maker]];
    if (block.holders > 0) line.held += block.bytes;
    out.blocks.push_back({.made_by = line.made_by,
                          .places = line.places,
                          .bytes = block.bytes,
                          .device = block.device,
                          .age_s = static_cast<double>(content.now_ns - block.made_ns) * 1e-9,
                          .is_held = block.holders > 0});
  }
  for (const memory_notes::Point& point : content.points)
    out.points.push_back({seconds(point.time_ns), point.bytes});
  out.others = others_of(out.blocks);
  std::ranges::stable_sort(out.blocks, std::greater<>(), &MemoryBlock::bytes);
  std::erase_if(out.lines,
                [](const MemoryLine& line) { return line.made == 0 && line.blocks == 0; });
  std::ranges::stable_sort(out.lines, std::greater<>(), [](const MemoryLine& line) {
    return std::pair(line.bytes, line.at_peak);
  });
  return out;
}

std::string to_string(const MemorySnapshot& snapshot, std::size_t rows) {
  std::string text = fmt::format(
      "{} in {} blocks, noted for {}; at most {}, at {}\n{} more was there before, or was made by "
      "no operation\n",
      jit::bytes(snapshot.bytes), snapshot.blocks.size(), jit::seconds(snapshot.length_s),
      jit::bytes(snapshot.peak), jit::seconds(snapshot.peak_s), jit::bytes(snapshot.others));
  if (snapshot.lines.empty()) return text;
  text += fmt::format("{:>9} {:>7} {:>13} {:>9} {:>8}  by\n", "now", "blocks", "of Variables",
                      "at peak", "made");
  for (std::size_t i = 0; i < std::min(rows, snapshot.lines.size()); ++i) {
    const MemoryLine& line = snapshot.lines[i];
    text +=
        fmt::format("{:>9} {:>7} {:>13} {:>9} {:>8}  {}  {}\n", jit::bytes(line.bytes), line.blocks,
                    line.held > 0 ? jit::bytes(line.held) : "", jit::bytes(line.at_peak), line.made,
                    line.made_by, jit::lines_of(line.places));
  }
  if (rows < snapshot.lines.size())
    text += fmt::format("and {} more lines\n", snapshot.lines.size() - rows);
  return text;
}

std::string MemorySnapshot::to_json() const {
  Json json = {{"bytes", bytes},
               {"others", others},
               {"peak", peak},
               {"peak_s", peak_s},
               {"length_s", length_s}};
  Json &all = json["blocks"] = Json::array(), &by = json["lines"] = Json::array(),
       &curve = json["points"] = Json::array();
  for (const MemoryBlock& block : blocks) {
    all.push_back({{"made_by", block.made_by},
                   {"places", block.places},
                   {"bytes", block.bytes},
                   {"device", describe(block.device)},
                   {"age_s", block.age_s},
                   {"is_held", block.is_held}});
  }
  for (const MemoryLine& line : lines) {
    by.push_back({{"made_by", line.made_by},
                  {"places", line.places},
                  {"bytes", line.bytes},
                  {"blocks", line.blocks},
                  {"held", line.held},
                  {"at_peak", line.at_peak},
                  {"made", line.made}});
  }
  for (const MemoryPoint& point : points) curve.push_back({point.time_s, point.bytes});
  return json.dump(1, ' ', false, Json::error_handler_t::replace);
}

// ---- the page

namespace {

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

constexpr std::string_view head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Memory</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
:root { color-scheme: light dark; --ink: #1d2433; --soft: #667085; --line: #d8dde6; --now: #3466c8;
  --held: #1d8a6b; --peak: #c9d6f2; --page: #fff; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ef; --soft: #98a2b3; --line: #344054;
  --now: #6f9bf2; --held: #4cc39f; --peak: #2b3a5c; --page: #12161f; } }
body { font: 14px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
  max-width: 64rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; margin: 0 0 .2rem; } h2 { font-size: 1rem; margin: 2rem 0 .5rem; }
p { color: var(--soft); margin: .2rem 0; }
svg { width: 100%; height: auto; } svg text { font-size: 12px; fill: var(--soft); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: right; padding: .25rem .5rem; border-bottom: 1px solid var(--line);
  font-variant-numeric: tabular-nums; white-space: nowrap; }
th { color: var(--soft); font-weight: 500; }
.by { text-align: left; white-space: normal; width: 55%; overflow-wrap: anywhere; }
.bar { position: relative; height: 8px; margin-top: 3px; }
.bar i { position: absolute; left: 0; top: 0; height: 100%; border-radius: 2px; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin: 0 .3rem 0 .8rem; }
code { color: var(--soft); }
</style></head><body>
)";

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
      "<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"Memory over time\">\n", width, height);
  for (const int part : {0, 1, 2}) {
    const std::size_t bytes = snapshot.peak / 2 * static_cast<std::size_t>(part);
    text += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"var(--line)\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        left, width, y(bytes), y(bytes), left - 8, y(bytes) + 4, jit::bytes(bytes));
  }
  text += fmt::format("<path d=\"{}\" fill=\"var(--peak)\" stroke=\"var(--now)\"/>\n", path);
  text += fmt::format("<text x=\"{}\" y=\"{}\">0 s</text>", left, height - 6);
  return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text></svg>\n", width,
                            height - 6, jit::seconds(snapshot.length_s));
}

std::string row_of(const MemoryLine& line, std::size_t most) {
  const auto bar = [&](std::size_t bytes, const char* colour) {
    return fmt::format("<i style=\"width:{:.1f}%;background:var(--{})\"></i>",
                       100 * static_cast<double>(bytes) / static_cast<double>(most), colour);
  };
  std::string places;
  for (const std::string& place : line.places)
    places += (places.empty() ? "" : ", ") + place.substr(place.rfind('/') + 1);
  return fmt::format(
      "<tr><td class=\"by\">{} <code>{}</code><div class=\"bar\">{}{}{}</div></td><td>{}</td>"
      "<td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
      escaped(line.made_by), escaped(places), bar(line.at_peak, "peak"), bar(line.bytes, "now"),
      bar(line.held, "held"), jit::bytes(line.bytes), line.blocks,
      line.held > 0 ? jit::bytes(line.held) : "", jit::bytes(line.at_peak), line.made);
}

}  // namespace

std::string MemorySnapshot::to_html() const {
  std::string text(head);
  text += fmt::format(
      "<h1>Memory</h1>\n<p>{} in {} blocks; at most {}, after {}. {} more was there before, or was "
      "made by no operation.</p>\n",
      jit::bytes(bytes), blocks.size(), jit::bytes(peak), jit::seconds(peak_s), jit::bytes(others));
  text += "<h2>Over time</h2>\n" + curve_of(*this);
  text +=
      "<h2>By operation and line</h2>\n<p class=\"key\"><i style=\"background:var(--held)\"></i>of "
      "Variables<i style=\"background:var(--now)\"></i>now<i "
      "style=\"background:var(--peak)\"></i>at the peak</p>\n<table><tr><th class=\"by\">made "
      "by</th><th>now</th><th>blocks</th><th>of Variables</th><th>at the "
      "peak</th><th>made</th></tr>\n";
  std::size_t most = 1;
  for (const MemoryLine& line : lines) most = std::max({most, line.bytes, line.at_peak});
  constexpr std::size_t most_rows = 500;
  for (std::size_t i = 0; i < std::min(lines.size(), most_rows); ++i)
    text += row_of(lines[i], most);
  text += "</table>\n";
  if (lines.size() > most_rows)
    text += fmt::format("<p>and {} more lines</p>\n", lines.size() - most_rows);
  return text + "</body></html>\n";
}

void MemorySnapshot::save(const std::string& path) const {
  const std::string text = path.ends_with(".html") ? to_html() : to_json();
  io::TemporaryFile file("MemorySnapshot::save", path);
  file.file().write(std::as_bytes(std::span(text)));
  file.publish();
}

}  // namespace nitinol
