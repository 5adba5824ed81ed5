// Writer: text in the making, indented.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <string>
#include <utility>

namespace nitinol::cuda {

class Writer {
 public:
  template <class... A>
  void line(fmt::format_string<A...> format, A&&... arguments) {
    text_.append(2 * depth_, ' ');
    fmt::format_to(std::back_inserter(text_), format, std::forward<A>(arguments)...);
    text_ += '\n';
  }
  /// The same, and a block begins.
  template <class... A>
  void open(fmt::format_string<A...> format, A&&... arguments) {
    line("{} {{", fmt::format(format, std::forward<A>(arguments)...));
    ++depth_;
  }
  /// Ends the block.
  void close(const char* end = "}") {
    --depth_;
    line("{}", end);
  }
  void append(const std::string& text) { text_ += text; }
  [[nodiscard]] std::string take() { return std::move(text_); }

 private:
  std::string text_;
  std::size_t depth_ = 0;
};

}  // namespace nitinol::cuda
