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
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
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
  out.others = others_of(out.blocks);
  std::ranges::stable_sort(out.blocks, std::greater<>(), &MemoryBlock::bytes);
  // By bytes; lines of before that are gone are none.
  std::vector<std::size_t> order(out.lines.size()), number(out.lines.size(), SIZE_MAX);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::erase_if(order,
                [&](std::size_t i) { return out.lines[i].made == 0 && out.lines[i].blocks == 0; });
  std::ranges::stable_sort(order, std::greater<>(), [&](std::size_t i) {
    return std::pair(out.lines[i].bytes, out.lines[i].at_peak);
  });
  std::vector<MemoryLine> sorted;
  for (const std::size_t i : order) {
    number[i] = sorted.size();
    sorted.push_back(std::move(out.lines[i]));
  }
  out.lines = std::move(sorted);
  for (const memory_notes::Point& point : content.points) {
    MemoryPoint& made =
        out.points.emplace_back(MemoryPoint{seconds(point.time_ns), point.bytes, {}});
    for (const memory_notes::Share& share : point.shares) {
      const std::size_t line = number[line_of[share.maker]];
      if (line != SIZE_MAX) made.shares.push_back({line, share.bytes});
    }
  }
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
  for (const MemoryPoint& point : points) {
    Json shares = Json::array();
    for (const MemoryPoint::Share& share : point.shares)
      shares.push_back({share.line, share.bytes});
    curve.push_back({point.time_s, point.bytes, std::move(shares)});
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void MemorySnapshot::save(const std::string& path) const {
  io::write_text("MemorySnapshot::save", path, path.ends_with(".html") ? to_html() : to_json());
}

}  // namespace nitinol
