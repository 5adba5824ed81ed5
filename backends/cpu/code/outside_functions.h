// What generated code may call.
#pragma once

#include <string_view>

namespace nitinol::cpu {

/// The address of a function of the C library that the code generator emits calls to: fma (double),
/// memset, memcpy. Null for others: a closed list, whoever wrote the code.
[[nodiscard]] const void* outside_function(std::string_view name);

}  // namespace nitinol::cpu
