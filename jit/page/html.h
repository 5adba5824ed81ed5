// HTML: what the parts of a page have in common.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nitinol::jit {

/// `text` as the content of an element, or of an attribute in double quotes: it is what it says,
/// whatever it says.
[[nodiscard]] std::string escaped(std::string_view text);

/// The first `most` characters (of UTF-8), with "…" if there are more; not escaped.
[[nodiscard]] std::string shortened(std::string_view text, std::size_t most);

/// The sheet of styles, dark and light.
extern const std::string_view page_style;

}  // namespace nitinol::jit
