// The user's calls of collectives, by number: ops name them by an attribute, so that a step of a
// compiled function can still say which line it is.
#pragma once

#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

namespace nitinol::dist {

/// The number of "`function` at `place`", in this process. A binding's place counts first
/// (core/place.h).
[[nodiscard]] int64_t number_of_call(std::string_view function, const std::source_location& place);
/// That text; "?" of what is no such number.
[[nodiscard]] const std::string& call_text(int64_t number);

}  // namespace nitinol::dist
