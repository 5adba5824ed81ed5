#include "backends/host/copy_apart.h"

#include "core/word.h"

#include <array>
#include <cstddef>
#include <cstring>
#include <type_traits>
#include <utility>

namespace nitinol::host {
namespace {

template <std::size_t size>
void copy_apart(const char* from, int64_t from_step, char* to, int64_t to_step, int64_t count) {
  for (int64_t i = 0; i < count; ++i, from += from_step, to += to_step) std::memcpy(to, from, size);
}

/// A few columns of a number that the compiler knows are a few stores.
template <class T, class Columns>
void spread_words(const T* values, int64_t rows, Columns columns, T* to) {
  for (int64_t row = 0; row < rows; ++row, to += columns) {
    for (int64_t column = 0; column < columns; ++column) to[column] = values[row];
  }
}

template <int64_t number>
constexpr std::integral_constant<int64_t, number> known = {};

}  // namespace

CopyApart copy_apart_of(int64_t size) {
  static constexpr auto all = []<std::size_t... sizes>(std::index_sequence<sizes...>) {
    return std::array{&copy_apart<sizes + 1>...};
  }
  (std::make_index_sequence<longest_piece>());
  return all[static_cast<std::size_t>(size - 1)];
}

void spread(const char* values, int64_t size, int64_t rows, int64_t columns, char* to) {
  with_word(static_cast<std::size_t>(size), [&](auto word) {
    using Word = decltype(word);
    const auto as = [&](auto number) {
      spread_words(reinterpret_cast<const Word*>(values), rows, number,
                   reinterpret_cast<Word*>(to));
    };
    switch (columns) {
      case 2:
        return as(known<2>);
      case 3:
        return as(known<3>);
      case 4:
        return as(known<4>);
      case 8:
        return as(known<8>);
      default:
        return as(columns);
    }
  });
}

}  // namespace nitinol::host
