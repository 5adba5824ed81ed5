// What environment variables say. A value that means nothing is ignored, with a warning on stderr
// that names those that mean something.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol {

/// Which of `values` the variable has; nothing if it is not set, empty, or something else.
[[nodiscard]] std::optional<std::size_t> environment_choice(
    const char* name, std::span<const std::string_view> values);

/// Those of the variable's comma-separated items that are among `values`.
[[nodiscard]] std::vector<std::string> environment_list(const char* name,
                                                        std::span<const std::string_view> values);

/// The variable's value if it is a whole number from 1 to `limit`.
[[nodiscard]] std::optional<int> environment_count(const char* name, int limit);

/// The variable's value as it is, such as a path; empty if it is not set.
[[nodiscard]] std::string environment_text(const char* name);

/// What is said of a value that means nothing: "NITINOL_ISA=avx3 is ignored: expected
/// baseline, avx2 or avx512".
[[nodiscard]] std::string meaningless(std::string_view name, std::string_view value,
                                      std::span<const std::string_view> values);

}  // namespace nitinol
