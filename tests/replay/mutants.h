// Mutants: printed kernels with one mistake each, which the replay has to find.
#pragma once

#include "tests/replay/batch.h"

#include <cstddef>
#include <string>
#include <vector>

namespace nitinol::test {

struct Mutant {
  const char* mistake;  ///< which kind
  int line;             ///< of the text, from 1
  std::string text;     ///< the whole kernel
};

/// The mistakes that can be made in this text, one at a time: a barrier left out, a fold over half
/// the distance, the bound of a tail, a vector's or a gate's condition left out, a wrong report.
[[nodiscard]] std::vector<Mutant> mutants_of(const std::string& text);

/// Makes them in `of_each_shape` kernels of each shape and prints, by kind, how many the replay
/// found, and which it did not; those files are kept as `<path><number>.cu`. Returns whether it
/// found one of each kind at least: many change nothing, as a barrier before the first use does.
[[nodiscard]] bool finds_mutants(const std::vector<Printed>& all, std::size_t of_each_shape,
                                 const std::string& shim, const std::string& compiler,
                                 const std::string& path);

}  // namespace nitinol::test
