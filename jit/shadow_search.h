// The search for the cause of a difference between a compiled call and its ops one by one.
#pragma once

#include "jit/experiment.h"

#include <string>
#include <vector>

namespace nitinol::jit {

/// What a search has found.
struct Finding {
  std::string cause;       ///< "the pass `simplify`: left out, the bits are the same"
  std::string difference;  ///< of `smallest`
  Experiment smallest;     ///< that differs, with `variation`
  Variation variation;
  bool is_repeated = true;  ///< false: it did not differ again
};

/// Cuts the experiment, which has differed in a call, down to what still does, and finds what it
/// depends on. Takes up to half a minute.
[[nodiscard]] Finding find_cause(const Experiment& experiment, const Variation& variation);

/// Writes the finding to a new folder of the user's own: graph.txt, the inputs as .npy files, and
/// repro.cpp, a program that shows it. Returns the folder. Throws Error(io) if it cannot.
[[nodiscard]] std::string write_repro(const Finding& finding, const std::string& function);

}  // namespace nitinol::jit
