# Compiler flags of everything built here.
#
# The floating-point flags are part of the promise that eager and compiled code give the same bits,
# so they hold in every build type. There is never a -march or -m flag: loops choose their
# instruction set per function, and a file compiled for a newer one would leak it through shared
# inline functions into the baseline path.

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  if(PROJECT_IS_TOP_LEVEL)
    set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
  else()
    set(CMAKE_BUILD_TYPE Release)  # here only
  endif()
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 12)
  message(FATAL_ERROR "Nitinol needs g++ 12 or newer; found ${CMAKE_CXX_COMPILER_VERSION}.\n"
    "On Debian 12: apt-get install g++")
endif()

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_SCAN_FOR_MODULES OFF)

option(NITINOL_WERROR "Turn warnings into errors" ${PROJECT_IS_TOP_LEVEL})
set(NITINOL_SANITIZE "" CACHE STRING "address, undefined or thread")

# What tests and examples run with. libgomp, which oneDNN brings, gives false races: one thread for
# it, two for our own pool. A Plan locks the cells of all Variables that it assigns, in the order of
# their ids; the sanitizer's search for deadlocks ends the process at 64 locks. And it ends children
# of fork() that start threads, as tests do, unless told not to.
set(sanitizer_environment "")
if(NITINOL_SANITIZE STREQUAL "thread")
  set(sanitizer_environment
    "OMP_NUM_THREADS=1;NITINOL_NUM_THREADS=2;TSAN_OPTIONS=halt_on_error=1:detect_deadlocks=0:die_after_fork=0")
endif()

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
  find_program(NITINOL_CCACHE ccache)
  if(NITINOL_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    # Without the sloppiness ccache gives up on precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER env "CCACHE_SLOPPINESS=pch_defines,time_macros"
        "${NITINOL_CCACHE}")
  endif()
endif()

# nitinol_flags(<target>)
function(nitinol_flags target)
  target_compile_options(${target} PRIVATE
    -ffp-contract=off -fno-math-errno -fno-trapping-math
    -Wall -Wextra -Wconversion -Wshadow
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>  # g++ 12 sees overlaps in every "text" + string
    $<$<CONFIG:Release>:-O3 -g1>  # line tables, so that errors can name file and line
    # g++ collects its garbage from 128 MB on, again and again, which is a tenth of its time.
    $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=400000>
    # __FILE__ and std::source_location name files from the root, wherever it was built
    "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
  if(NITINOL_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(NITINOL_SANITIZE)
    # The instrumentation makes g++ 12 see paths that do not exist.
    target_compile_options(${target} PRIVATE -O1 -g1 -fno-omit-frame-pointer
      -fsanitize=${NITINOL_SANITIZE} -fno-sanitize-recover=all
      -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds -Wno-tsan)
    target_link_options(${target} PRIVATE -fsanitize=${NITINOL_SANITIZE})
  endif()
endfunction()

# nitinol_driver(<target or sources ...>)
# For programs and files that compute nothing themselves: options, tables, the library's calls. The
# parser of options alone takes seven seconds with -O3. Like the sanitizers, -Og makes g++ 12 see paths
# that do not exist.
set(nitinol_driver_flags
  "$<$<CONFIG:Release>:-Og;-Wno-maybe-uninitialized;-Wno-stringop-overflow;-Wno-array-bounds>")
function(nitinol_driver)
  foreach(name IN LISTS ARGN)
    if(TARGET ${name})
      target_compile_options(${name} PRIVATE "${nitinol_driver_flags}")
    else()
      set_source_files_properties(${name} PROPERTIES
        COMPILE_OPTIONS "${nitinol_driver_flags}" SKIP_PRECOMPILE_HEADERS ON)
    endif()
  endforeach()
endfunction()

# nitinol_precompiled(<target> <headers beside these>)
# The standard library and fmt are a third of the time of a file. No header of ours is among them: an
# edit would build everything anew.
function(nitinol_precompiled target)
  target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <cmath> <cstdint>
    <functional> <limits> <map> <memory> <mutex> <optional> <span> <string> <string_view>
    <unordered_map> <utility> <variant> <vector> <fmt/format.h> ${ARGN})
  # g++ 12 warns of what it inlines from precompiled system headers, and sees there what cannot be.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-stringop-overflow;-Wno-array-bounds>)
endfunction()

# nitinol_unity(<target> <pattern of sources that stay alone>)
# With NITINOL_UNITY, eight files of a folder are compiled as one, which takes three quarters of the
# time; but who edits one waits for those beside it. Long ones stay alone, so that no core waits for
# them, and those that use a name for two things.
function(nitinol_unity target alone)
  if(NOT NITINOL_UNITY)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "[.]cpp$")
  list(SORT sources)
  set(folder "")
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE name)
    cmake_path(RELATIVE_PATH name BASE_DIRECTORY "${PROJECT_SOURCE_DIR}")
    cmake_path(GET name PARENT_PATH own)
    if(NOT own STREQUAL folder)
      set(folder "${own}")
      set(count 0)
    endif()
    if(NOT name MATCHES "^(${alone})[.]cpp$")
      math(EXPR part "${count} / 8")
      math(EXPR count "${count} + 1")
      string(MAKE_C_IDENTIFIER "${own}_${part}" group)
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP ${group})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  target_compile_options(${target} PRIVATE -Wno-shadow)  # by names of the file before
endfunction()

# nitinol_hidden(<target>)
# Names are exported where a header says so: `#pragma GCC visibility push(default)` in each that a
# user's nitinol.h includes (docs/decisions/0008-hidden-symbols.md).
function(nitinol_hidden target)
  set_target_properties(${target} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()
