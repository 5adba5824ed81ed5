// What the benchmark shows: the table, the comparison with peers, the JSON file.
#pragma once

#include "bench/row.h"

#include <filesystem>
#include <string>
#include <vector>

namespace nitinol::bench {

/// "1.23 us".
[[nodiscard]] std::string human_time(double seconds);

/// Which figure of a row is compared.
enum class Figure { median, fastest };

/// A row of the peers harness.
struct PeerRow {
  std::string name;  ///< "jax/jit"
  Row row;
};

/// Reads what the peers harness wrote: a list of rows, or {"rows": list}. Rows without a time are
/// left out. Throws std::runtime_error if the file cannot be read or is something else.
[[nodiscard]] std::vector<PeerRow> read_peers(const std::filesystem::path& path);
/// Prints our rows, one line for each workload and thread count.
void print_table(const std::vector<Row>& rows);
/// Prints for each of our workloads how many times longer than our compiled mode every peer takes.
void print_against(const std::vector<Row>& rows, const std::vector<PeerRow>& peers, Figure figure);
/// Prints the workloads whose modes gave different results; returns how many.
int print_differences(const std::vector<Row>& rows);
/// Writes {"rows": [...], "build": text, "device": name}. Throws std::runtime_error if the file
/// cannot be written.
void write_json(const std::filesystem::path& path, const std::string& device,
                const std::vector<Row>& rows);

}  // namespace nitinol::bench
