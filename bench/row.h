// Row: one figure of the benchmark, and its JSON.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>

namespace nitinol::bench {

/// What a call must do at least, from which its bound follows: bytes to move, or operations.
struct Work {
  double bytes = 0;
  double flops = 0;
};

/// One workload in one mode at one thread count. The names are those of the peers harness.
struct Row {
  std::string workload = {}, mode = {};
  int threads = 1;
  double median_s = 0, min_s = 0;
  int repeats = 0;
  int64_t inner = 1;  ///< calls in one sample
  double first_call_s = 0;
  std::optional<double> check = {};         ///< mean magnitude of the results
  std::optional<double> rate = {};          ///< limit.*: 1e9 bytes or operations per second
  std::optional<double> bound_s = {};       ///< the least time that the machine's limits allow
  std::optional<double> probe_copy_s = {};  ///< a 32 MiB copy just after the row: the weather
  /// On a device: what asking for a call takes, and what the call takes there (DeviceClock).
  std::optional<double> host_s = {}, device_s = {};
  std::string notes = {};
};

[[nodiscard]] nlohmann::json to_json(const Row& row);
/// A row of ours or of the peers harness. A peers row that could not run has median_s 0.
[[nodiscard]] Row row_of(const nlohmann::json& json);

}  // namespace nitinol::bench
