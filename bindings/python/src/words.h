// Words that stand for one of a few values.
#pragma once

#include "bindings/python/src/from.h"
#include "core/error.h"

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
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

/// Words for the values of an enumeration, in their order: in word_lists.h, which generate.py
/// writes.
template <class T>
std::span<const std::string_view> words_of();

namespace parts {
template <class T>
requires std::is_enum_v<T>
struct Converter<T> {
  static T from(const From& from) {
    std::vector<std::pair<std::string_view, T>> words;
    for (const std::string_view word : words_of<T>())
      words.emplace_back(word, static_cast<T>(words.size()));
    return named<T>(from.where, from.name, convert<std::string>(from), words);
  }
};
}  // namespace parts

}  // namespace nitinol::python
