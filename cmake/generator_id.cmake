# Writes a header that names what generated code depends on: the generator's sources and its LLVM.
# Objects on disk that were made by another one are not this one's.
#
# cmake -D root=… -D llvm=<version> -D output=<header> -P generator_id.cmake

file(GLOB sources RELATIVE "${root}" "${root}/backends/cpu/jit/*.cpp" "${root}/backends/cpu/jit/*.h"
  "${root}/backends/cpu/*.h" "${root}/backends/cpu/code/generated_object.h"
  "${root}/backends/host/*.h" "${root}/core/*.h" "${root}/core/math/*.h"
  "${root}/core/kernel.cpp" "${root}/core/expr.cpp")
list(SORT sources)
set(text "LLVM ${llvm}\n")
foreach(source IN LISTS sources)
  file(SHA256 "${root}/${source}" hash)
  string(APPEND text "${source} ${hash}\n")
endforeach()
string(SHA256 id "${text}")
string(SUBSTRING "${id}" 0 32 id)
file(CONFIGURE OUTPUT "${output}" CONTENT "#pragma once\n#define NITINOL_GENERATOR_ID \"${id}\"\n" @ONLY)
