# Builds the consumer beside this file in one of the ways in which a project gets the library, and
# runs it. Arguments: way; build, config, generator, compiler of the existing build; llvm ("llvm" if
# kernels must come from it); shipped ("shipped" if an install tree brings code along); unity, zip and
# images, options of that build.
#
#     find_package, pkg-config   against an install tree
#     add_subdirectory           against the sources
#     static                     against an install tree of a static library
#
# What must be compiled a second time for the last two is taken from the existing build (reuse.sh).

cmake_minimum_required(VERSION 3.25)

get_filename_component(source "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
set(root "${build}/package/${way}")
file(REMOVE_RECURSE "${root}")

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# install(<build folder> <prefix>): moved, so that nothing is found by where it was built for.
function(install from to)
  step("${CMAKE_COMMAND}" --install "${from}" --config "${config}" --prefix "${to}.first")
  file(RENAME "${to}.first" "${to}")
endfunction()

# consume(<more arguments of cmake>): builds the consumer in ${root}/consumer, and runs it.
function(consume)
  step("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${root}/consumer" -G "${generator}"
       "-DCMAKE_CXX_COMPILER=${compiler}" ${ARGN})
  step("${CMAKE_COMMAND}" --build "${root}/consumer")
  step("${root}/consumer/consumer" ${llvm} ${found_there})
  message(STATUS "${output}")
endfunction()

set(reuse "-DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CURRENT_LIST_DIR}/reuse.sh"
          "-DCMAKE_BUILD_TYPE=${config}")
set(ENV{REUSED_BUILD} "${build}")
set(same_parts -DNITINOL_LLVM=OFF)
if(llvm)
  set(same_parts -DNITINOL_LLVM=ON)
endif()
list(APPEND same_parts "-DNITINOL_UNITY=${unity}" "-DNITINOL_ZIP=${zip}"
     "-DNITINOL_IMAGES=${images}")

# What a package must not hold: internal headers, and includes that a user's header could answer.
function(check_headers include)
  file(GLOB_RECURSE headers RELATIVE "${include}" "${include}/*")
  if(NOT "nitinol/nitinol.h" IN_LIST headers)
    message(FATAL_ERROR "no nitinol/nitinol.h in ${include}: ${headers}")
  endif()
  foreach(header IN LISTS headers)
    if(NOT header MATCHES "^nitinol/(nitinol\\.h|(core|dist|program|eager|tracer|autograd|jit|io|nn)/.*\\.h)$")
      message(FATAL_ERROR "installed, but not a public header: ${header}")
    endif()
    file(STRINGS "${include}/${header}" wrong REGEX "^ *# *include \"")
    list(FILTER wrong EXCLUDE REGEX "\"nitinol/[a-z0-9_/]+\\.h\"")
    if(wrong)
      message(FATAL_ERROR "${header}: ${wrong}")
    endif()
  endforeach()
endfunction()

if(way STREQUAL "find_package")
  install("${build}" "${root}/installed")
  check_headers("${root}/installed/include")
  file(GLOB_RECURSE printers "${root}/installed/lib*/libnitinol.so.*-gdb.py")
  if(NOT printers)
    message(FATAL_ERROR "gdb would find no printers beside the library")
  endif()
  if(shipped)  # the first process has no need of the code generator
    set(ENV{NITINOL_CACHE} "${root}/cache")
  endif()
  set(found_there ${shipped})
  consume(-Dway=find_package "-DCMAKE_PREFIX_PATH=${root}/installed")
  # As a module of a program that knows nothing of it.
  file(GLOB library "${root}/installed/lib*/libnitinol.so" "${root}/installed/lib*/*/libnitinol.so")
  step("${root}/consumer/opener" "${library}" "${root}/consumer/libconsumer_part.so" ${llvm})
elseif(way STREQUAL "pkg-config")
  install("${build}" "${root}/installed")
  file(GLOB_RECURSE pc "${root}/installed/nitinol.pc")
  get_filename_component(pc_dir "${pc}" DIRECTORY)
  set(ENV{PKG_CONFIG_PATH} "${pc_dir}")
  consume(-Dway=pkg-config)
elseif(way STREQUAL "add_subdirectory")
  consume(-Dway=add_subdirectory "-Dnitinol_source=${source}" ${reuse} ${same_parts})
elseif(way STREQUAL "static")
  step("${CMAKE_COMMAND}" -S "${source}" -B "${root}/library" -G "${generator}"
       "-DCMAKE_CXX_COMPILER=${compiler}" ${reuse} ${same_parts} -DBUILD_SHARED_LIBS=OFF
       -DNITINOL_TESTS=OFF -DNITINOL_EXAMPLES=OFF -DNITINOL_BENCH=OFF)
  step("${CMAKE_COMMAND}" --build "${root}/library")
  install("${root}/library" "${root}/installed")
  check_headers("${root}/installed/include")
  consume(-Dway=find_package "-DCMAKE_PREFIX_PATH=${root}/installed")
else()
  message(FATAL_ERROR "no such way: ${way}")
endif()
file(REMOVE_RECURSE "${root}")
