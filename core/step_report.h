// What a step of a Program is, for those who are shown it: explain() and profiles.
#pragma once

#include "core/build_report.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// What a step reads or writes of a value (program::ValueReport).
struct ValueAccess {
  std::size_t value = 0;  ///< its number in Report::values
  std::size_t bytes = 0;
  /// Read: number of the step that wrote it, from 0 on; -1: it was there. A value that several
  /// steps have written parts of is read from each of them.
  int from = -1;
};

/// One launch as explain() shows it.
struct StepReport {
  std::string kind;                               ///< "kernel" or "library"
  std::vector<std::string> ops;                   ///< names of the operations it does
  std::vector<uint32_t> nodes;                    ///< which they are of the graph
  std::vector<uint32_t> origins;                  ///< Node::origin of these, each once, in order
  std::vector<std::string> places = {};           ///< by explain(): "model.cpp:42", each once
  std::size_t launches = 1;                       ///< how many times it is run side by side
  std::size_t bytes_read = 0, bytes_written = 0;  ///< at these sizes, each operand once
  double operations = 0;  ///< arithmetic ones: instructions of a kernel, 2 m n k of a product
  BuildReport build = {};
  bool was_cached = false;  ///< a kernel of this structure existed already
  bool is_ordered = false;  ///< acts on the outside: at its place, when all checks have passed
  std::size_t beside = 0;   ///< how many launches after it run while it goes on
  std::string how = {};     ///< Executable::describe()
  std::vector<ValueAccess> reads = {}, writes = {};  ///< by explain()
};

/// "mul, add, relu" or, for repeated names, "mul x3, add".
[[nodiscard]] std::string list_of(const std::vector<std::string>& ops);

}  // namespace nitinol

#pragma GCC visibility pop
