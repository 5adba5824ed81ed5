#include "bench/output.h"

#include "jit/build_info.h"
#include "nitinol.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

namespace nitinol::bench {

namespace {

/// The rows of one workload at one thread count, by mode; in the order in which they were timed.
struct Line {
  std::string workload;
  int threads;
  std::map<std::string, Row> modes;
  [[nodiscard]] const Row* find(const std::string& mode) const {
    const auto found = modes.find(mode);
    return found == modes.end() ? nullptr : &found->second;
  }
};

std::vector<Line> lines_of(const std::vector<Row>& rows) {
  std::vector<Line> lines;
  for (const Row& row : rows) {
    const auto same = [&](const Line& line) {
      return line.workload == row.workload && line.threads == row.threads;
    };
    auto found = std::find_if(lines.begin(), lines.end(), same);
    if (found == lines.end()) found = lines.insert(lines.end(), {row.workload, row.threads, {}});
    found->modes[row.mode] = row;
  }
  return lines;
}

double figure_of(const Row& row, Figure figure) {
  return figure == Figure::median ? row.median_s : row.min_s;
}

std::string bound_of(const Row& row) {
  return row.bound_s ? fmt::format("{:.0f}%", 100 * *row.bound_s / row.median_s) : "";
}

/// The row that peers have instead of ours: they know one kind of first call, without a cache.
std::string peer_name_of(const std::string& workload) {
  if (!workload.starts_with("W6.") || !workload.ends_with(".ready")) return workload;
  return workload.substr(0, workload.size() - 5) + "cold";
}

}  // namespace

std::string human_time(double seconds) {
  constexpr std::pair<const char*, double> units[] = {{"s", 1}, {"ms", 1e3}, {"us", 1e6}};
  for (const auto& [unit, factor] : units) {
    if (seconds * factor >= 1) return fmt::format("{:.3g} {}", seconds * factor, unit);
  }
  return fmt::format("{:.3g} ns", seconds * 1e9);
}

std::vector<PeerRow> read_peers(const std::filesystem::path& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(fmt::format("cannot open {}", path.string()));
  std::vector<PeerRow> peers;
  try {
    const nlohmann::json json = nlohmann::json::parse(file);
    for (const nlohmann::json& entry : json.is_object() ? json.at("rows") : json) {
      const Row row = row_of(entry);
      if (row.median_s > 0)
        peers.push_back({entry.at("peer").get<std::string>() + "/" + row.mode, row});
    }
  } catch (const nlohmann::json::exception& error) {
    throw std::runtime_error(
        fmt::format("{} is no file of the peers harness: {}", path.string(), error.what()));
  }
  return peers;
}

namespace {

/// "compiled-profiled 1.01": modes in other circumstances, as multiples of the mode.
std::string twins_of(const Line& line) {
  std::string text;
  for (const auto& [name, row] : line.modes) {
    const std::size_t dash = name.find('-');
    const Row* const plain = dash == std::string::npos ? nullptr : line.find(name.substr(0, dash));
    if (plain != nullptr) text += fmt::format("  {} {:.3f}", name, row.median_s / plain->median_s);
  }
  return text;
}

}  // namespace

void print_table(const std::vector<Row>& rows) {
  fmt::print("{:<22} {:>7} {:>10} {:>10} {:>8} {:>9} {:>9}\n", "workload", "threads", "eager",
             "compiled", "ratio", "of bound", "first");
  for (const Line& line : lines_of(rows)) {
    const Row *const eager = line.find("eager"), *const compiled = line.find("compiled");
    if (eager == nullptr && compiled == nullptr) {
      const Row& row = line.modes.begin()->second;
      fmt::print("{:<22} {:>7} {:>10.1f} {}\n", line.workload, line.threads, row.rate.value_or(0),
                 row.notes);
      continue;
    }
    const Row& best = compiled != nullptr ? *compiled : *eager;
    const bool has_both = eager != nullptr && compiled != nullptr;
    fmt::print("{:<22} {:>7} {:>10} {:>10} {:>8} {:>9} {:>9}  {}\n", line.workload, line.threads,
               eager != nullptr ? human_time(eager->median_s) : "",
               compiled != nullptr ? human_time(compiled->median_s) : "",
               has_both ? fmt::format("{:.2f}", eager->median_s / compiled->median_s) : "",
               bound_of(best), best.first_call_s > 0 ? human_time(best.first_call_s) : "",
               eager == nullptr ? best.notes : twins_of(line));
  }
}

void print_against(const std::vector<Row>& rows, const std::vector<PeerRow>& peers, Figure figure) {
  fmt::print("\nTimes of peers as multiples of ours, compiled ({}); above 1 we are faster.\n",
             figure == Figure::median ? "medians" : "fastest samples");
  for (const Line& line : lines_of(rows)) {
    const Row* const ours = line.find("compiled");
    if (ours == nullptr) continue;
    std::vector<std::pair<double, std::string>> ratios;
    for (const PeerRow& peer : peers) {
      if (peer.row.workload != peer_name_of(line.workload) || peer.row.threads != line.threads)
        continue;
      ratios.emplace_back(figure_of(peer.row, figure) / figure_of(*ours, figure), peer.name);
    }
    if (ratios.empty()) continue;
    std::sort(ratios.begin(), ratios.end());
    fmt::print("{:<22} t{}  best {:>5.2f} {:<20}", line.workload, line.threads, ratios[0].first,
               ratios[0].second);
    for (std::size_t i = 1; i < ratios.size(); ++i)
      fmt::print("  {} {:.2f}", ratios[i].second, ratios[i].first);
    fmt::print("\n");
  }
}

int print_differences(const std::vector<Row>& rows) {
  int count = 0;
  for (const Line& line : lines_of(rows)) {
    const Row *const eager = line.find("eager"), *const compiled = line.find("compiled");
    if (eager == nullptr || compiled == nullptr || eager->check == compiled->check) continue;
    fmt::print("differs: {} with {} threads\n", line.workload, line.threads);
    ++count;
  }
  return count;
}

void write_json(const std::filesystem::path& path, const std::string& device,
                const std::vector<Row>& rows) {
  nlohmann::json json = {
      {"build", build_info()}, {"device", device}, {"rows", nlohmann::json::array()}};
  for (const Row& row : rows) json["rows"].push_back(to_json(row));
  std::ofstream file(path);
  file << json.dump(1) << '\n';
  if (!file.flush()) throw std::runtime_error(fmt::format("cannot write {}", path.string()));
}

}  // namespace nitinol::bench
