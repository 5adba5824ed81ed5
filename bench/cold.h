// What a fresh process pays: the first calls of a compiled function, until it runs its Plan.
#pragma once

#include "bench/options.h"
#include "bench/row.h"

#include <string>
#include <vector>

namespace nitinol::bench {

/// The functions whose first calls are timed: "W1a" ... "W1d" on 100,000 elements, "W3.chain10",
/// "W7.shapes", and "chain10000" on 1,000; "error" is a wrong call.
[[nodiscard]] std::vector<std::string> cold_functions();
/// In a fresh process: times the first calls of options.cold and prints rows W6.<name>.first,
/// .ready and .warm.
void print_cold_rows(const Options& options);

}  // namespace nitinol::bench
