// What the library has to say: a level, a sink, and nothing on stdout.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#pragma GCC visibility push(default)

namespace nitinol {

/// How much a message matters; `off` is above all.
enum class LogLevel : uint8_t { debug, info, warning, off };

/// "warning".
[[nodiscard]] std::string_view name_of(LogLevel level);

/// Receives each message at or above the level. Calls do not overlap; what it throws is ignored.
using LogSink = std::function<void(LogLevel, std::string_view)>;

/// Replaces the sink, which writes lines to stderr by default; an empty one restores that. When it
/// returns, the old sink is not running and will not be called again, except that a sink may
/// replace itself. Any thread.
void set_log_sink(LogSink sink);

/// From which level on messages are passed to the sink: initially that of the environment variable
/// NITINOL_LOG (debug, info, warning, off), else `warning`. Any thread.
void set_log_level(LogLevel level);
/// That level.
[[nodiscard]] LogLevel log_level();

/// Whether a message of this level would be passed on: ask before building an expensive one.
[[nodiscard]] bool is_logged(LogLevel level);

/// Never throws. Any thread; a sink that logs reaches itself.
void log(LogLevel level, std::string_view message) noexcept;

}  // namespace nitinol

#pragma GCC visibility pop
