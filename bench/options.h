// What the user of the benchmark asked for.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace nitinol::bench {

struct Options {
  std::vector<int> threads = {1, 2};
  std::vector<std::string> rows;  ///< prefixes of names; empty means all
  bool is_quick = false;          ///< few and short samples: a check that everything runs
  bool is_by_fastest = false;     ///< compare fastest samples, not medians
  bool is_profiled = false;       ///< each row once more while a Profile is open
  bool is_checked = false;        ///< and while NaN is looked for
  std::string json, against;
  std::string device = "cpu:0";  ///< where rows are computed

  // A benchmark runs in several processes; these say which one this is.
  bool is_worker = false;  ///< times the rows for threads[0] and prints them as JSON
  std::string cold;        ///< times the first calls of one function in this fresh process
  std::string store;       ///< cold: a folder of code on disk
  bool is_server = false;  ///< times the row that each line of standard input names

  /// Whether `row` was asked for: as in the peers harness, either may be a prefix of the other.
  [[nodiscard]] bool wants(std::string_view row) const {
    if (rows.empty()) return true;
    for (const std::string& prefix : rows) {
      if (row.starts_with(prefix) || prefix.starts_with(row)) return true;
    }
    return false;
  }
  /// Whether rows that begin with this were asked for by name.
  [[nodiscard]] bool names(std::string_view prefix) const { return !rows.empty() && wants(prefix); }
};

}  // namespace nitinol::bench
