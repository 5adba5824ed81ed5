// Names of a zip file's members, which come from strangers.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace nitinol::io {

inline constexpr std::size_t longest_zip_name = 65535;

/// Whether the text is UTF-8 (Unicode, table 3-7) without NUL.
[[nodiscard]] bool is_zip_name(std::string_view text);

/// What a message shows of a name, in quotes: no more than its beginning, and nothing that would
/// disturb the message.
[[nodiscard]] std::string shown_zip_name(std::string_view name);

}  // namespace nitinol::io
