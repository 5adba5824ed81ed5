#include "core/native_tools.h"

#include "core/environment.h"

#include <array>
#include <string_view>

namespace nitinol {

bool tells_perf() {
  static const bool is_wanted = [] {
    constexpr std::array<std::string_view, 2> values = {"0", "1"};
    return environment_choice("NITINOL_PERF", values) == 1;
  }();
  return is_wanted;
}

}  // namespace nitinol
