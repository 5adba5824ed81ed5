// The one exception type that leaves the library, and the check for broken invariants.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <source_location>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// What a caller could react to; bindings map each to an exception of their language.
enum class ErrorKind : uint8_t {
  shape,        ///< shapes, axes or indices do not fit
  dtype,        ///< an element type that the operation does not take
  device,       ///< no such device, or tensors on different ones
  value,        ///< an argument or element out of its range; also memory that cannot be had
  io,           ///< files
  compile,      ///< code generation failed
  unsupported,  ///< meaningful, but not offered
  internal,     ///< a bug in the library
};

/// "shape".
[[nodiscard]] std::string_view name_of(ErrorKind kind);

/// The parts of a message, each optional:
///
///     matmul: inner dimensions of float32[4, 3] and float32[5, 6] differ: expected b.shape[-2] ==
///     3, got 5. Transpose b, or check the layer's in_features.
struct ErrorReport {
  std::string where{};     ///< the operation, as the user called it
  std::string what{};      ///< what is wrong, with the shapes and dtypes involved
  std::string expected{};  ///< what would have been right
  std::string got{};       ///< what came instead
  std::string fix{};       ///< a sentence: the likely remedy
};

/// Copying shares the text, so it cannot fail. An Error that the library makes knows the place in
/// the caller's code at which the library was entered, if the library is a shared one: operators
/// and conversions, which cannot take a std::source_location, need nothing more.
class Error : public std::exception {
 public:
  Error(ErrorKind kind, ErrorReport report);

  [[nodiscard]] ErrorKind kind() const noexcept;
  [[nodiscard]] const ErrorReport& report() const noexcept;

  /// The report as text; the same for eager and compiled code.
  [[nodiscard]] const std::string& message() const noexcept;
  /// The place in the caller's code: "file:line", "function + 0x1f" where the program has no line
  /// table, or empty if it was not recorded; or what the thread's PlaceProvider says
  /// (core/place.h). Looked up at the first use.
  [[nodiscard]] const std::string& location() const noexcept;
  /// message(), and "at location()" in a line of its own if there is one.
  [[nodiscard]] const char* what() const noexcept override;

  /// The same error with the place of the call. A later call wins, so that of nested named calls
  /// the outermost, which is the user's, is reported. Nothing changes for a location without a
  /// line.
  [[nodiscard]] Error with_location(std::source_location location) const;
  /// The same for functions that cannot take a location, such as operators, if their Error does not
  /// know its place: where they return to.
  [[nodiscard]] Error with_return_address(const void* address) const;

 private:
  struct State;
  explicit Error(std::shared_ptr<State> state) noexcept;
  [[nodiscard]] std::shared_ptr<State> copy_of_state() const;
  std::shared_ptr<State> state_;
};

/// Throws Error(internal) that names the condition, the reason and the place.
[[noreturn]] void assertion_failed(std::string_view condition, std::string_view reason,
                                   std::source_location location);

/// "file:line", or "function + 0x1f", or "0x7f..."; of the call that returns to `address`.
[[nodiscard]] std::string describe_return_address(const void* address);
/// The same of the call in the user's code that the library is working for: not of a header's
/// inline function in between. Empty if that is not known.
[[nodiscard]] std::string describe_users_call();

}  // namespace nitinol

/// Checks what must hold whatever the user passes; `reason` says why it must. Checked in release
/// too, and throws rather than aborts: a bug here must not end the program around it.
#define NITINOL_ASSERT(condition, reason) \
  (static_cast<bool>(condition)           \
       ? static_cast<void>(0)             \
       : ::nitinol::assertion_failed(#condition, reason, std::source_location::current()))

#pragma GCC visibility pop
