// What a call's arguments look like to a person: one word for each leaf.
#pragma once

#include "core/reflect.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::jit {

/// One leaf of the arguments.
struct Word {
  enum class Kind : uint8_t {
    tensor,
    variable,
    scalar,
    fixed,   ///< a value, of which each is a signature of its own
    length,  ///< how many leaves follow, or their structure: not shown in a signature
  };
  std::string where;  ///< "argument 1", "argument 0, field 2, element 3", "params['w']"
  std::string text;   ///< "float32[3]", "0.1", "\"adam\""
  Kind kind = Kind::fixed;
  /// `where` is how the user's code would write the leaf, and a signature shows it:
  /// "params['w']: float32[3], flag=True".
  bool is_named = false;
  std::string_view advice = {};  ///< what to do if it keeps changing, or nothing; a literal
  uint64_t identity = 0;         ///< of an object that may look like others
};

[[nodiscard]] std::string describe_leaf(const Tensor& tensor);
[[nodiscard]] std::string describe_leaf(const Variable& variable);
[[nodiscard]] std::string describe_leaf(const Scalar& scalar);
[[nodiscard]] std::string describe_leaf(bool value);
[[nodiscard]] std::string describe_leaf(int64_t value);
[[nodiscard]] std::string describe_leaf(uint64_t value);
[[nodiscard]] std::string describe_leaf(double value);
[[nodiscard]] std::string describe_leaf(std::string_view value);

/// "float32[3], Scalar float64".
[[nodiscard]] std::string join(std::span<const Word> words);
/// The leaf, in a sentence: "argument 1", "`flag`".
[[nodiscard]] std::string subject(const Word& word);
/// "argument 1 is 0.1, was 0.2", or nothing if they look the same.
[[nodiscard]] std::string first_difference(std::span<const Word> before, std::span<const Word> now);

/// A visitor of leaves (core/reflect.h) that writes a word for each.
class Describer {
 public:
  /// The next leaves are of parameter number `position`, which may have a name.
  void begin_argument(std::size_t position, std::string_view name);

  void tensor(const Tensor& tensor) { add(describe_leaf(tensor), Word::Kind::tensor); }
  void variable(const Variable& variable) { add(describe_leaf(variable), Word::Kind::variable); }
  void scalar(const Scalar& scalar) { add(describe_leaf(scalar), Word::Kind::scalar); }
  void fixed(uint64_t bits) { add(describe_leaf(static_cast<int64_t>(bits))); }
  template <class T>
  void value(const T& value) {
    if constexpr (std::same_as<T, bool> || std::convertible_to<T, std::string_view>)
      add(describe_leaf(value));
    else if constexpr (std::is_enum_v<T>)
      add(describe_leaf(static_cast<int64_t>(value)));
    else if constexpr (std::is_floating_point_v<T>)
      add(describe_leaf(static_cast<double>(value)));
    else if constexpr (std::is_unsigned_v<T>)
      add(describe_leaf(static_cast<uint64_t>(value)));
    else
      add(describe_leaf(static_cast<int64_t>(value)));
  }
  void length(std::size_t count);
  void enter(std::string_view kind, std::size_t position);
  void leave() { path_.pop_back(); }

  [[nodiscard]] std::vector<Word> take() { return std::move(words_); }

 private:
  void add(std::string text, Word::Kind kind = Word::Kind::fixed);

  std::vector<std::string> path_;
  std::vector<Word> words_;
};

}  // namespace nitinol::jit

#pragma GCC visibility pop
