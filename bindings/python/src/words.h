// Words that stand for one of a few values.
#pragma once

#include "core/error.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace nitinol::python {

/// What a word stands for. Throws Error(value), which names all words, for another one.
template <class T>
T named(const char* where, const char* what, const std::string& word,
        const std::vector<std::pair<std::string_view, T>>& words) {
  std::string expected;
  for (const auto& [name, value] : words) {
    if (name == word) return value;
    expected += (expected.empty() ? "" : ", ") + fmt::format("\"{}\"", name);
  }
  throw Error(ErrorKind::value, {.where = where,
                                 .what = what,
                                 .expected = expected,
                                 .got = fmt::format("\"{}\"", word),
                                 .fix = {}});
}

}  // namespace nitinol::python
