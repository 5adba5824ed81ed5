#include "backends/cpu/code/outside_functions.h"

#include <cmath>
#include <cstring>

namespace nitinol::cpu {

const void* outside_function(std::string_view name) {
  if (name == "fma") {
    return reinterpret_cast<const void*>(static_cast<double (*)(double, double, double)>(std::fma));
  }
  if (name == "memset") return reinterpret_cast<const void*>(&std::memset);
  if (name == "memcpy") return reinterpret_cast<const void*>(&std::memcpy);
  return nullptr;
}

}  // namespace nitinol::cpu
