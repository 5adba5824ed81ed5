# gdb knows generated code: by the names of its operations, where it was made and where it came from
# disk, at each instruction, with the user's line if that is known, and no longer than it is there.
# Arguments: gdb, program, work.

cmake_minimum_required(VERSION 3.25)
set(debugger gdb)
include("${CMAKE_CURRENT_LIST_DIR}/shown.cmake")

file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")

# Runs the program in gdb: stops in a kernel, in kernels_are_there() and in kernels_are_gone().
function(stop_in_kernel environment output)
  # Into the kernel, where registers are saved.
  foreach(step RANGE 1 8)
    list(APPEND steps -ex "stepi 2" -ex "bt 1" -ex "bt -1")
  endforeach()
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env ${environment} "${gdb}" -nx -batch
      -iex "set auto-load off" -iex "set debuginfod enabled off" -iex "set width 0"
      -ex "set breakpoint pending on" -ex "break nitinol::kernel::mul_add_tanh"
      -ex "break kernels_are_there" -ex "break kernels_are_gone"
      -ex run -ex bt ${steps} -ex "delete 1"
      -ex continue -ex "echo [there]\\n" -ex "info functions ^nitinol::kernel::"
      -ex continue -ex "echo [gone]\\n" -ex "info functions ^nitinol::kernel::" -ex kill
      "${program}"
    OUTPUT_VARIABLE text ERROR_VARIABLE errors)
  if("${text}${errors}" MATCHES "ptrace|Cannot trace|personality|not permitted")
    message("SKIPPED: gdb may not run programs here\n${errors}")
    set(skipped TRUE PARENT_SCOPE)
  endif()
  set(${output} "${errors}${text}" PARENT_SCOPE)
endfunction()

function(check_kernel output)
  # The kernel is between our frames and the user's.
  expect("${output}" "\n#0 [^\n]*nitinol::kernel::mul_add_tanh \\(\\)[^\n]*\n#1 [^\n]*launch[^\n]*\n([^\n]*\n)*#[0-9]+ [^\n]* main \\(")
  expect_stacks("${output}" "\n#0 [^\n]* in nitinol::kernel::mul_add_tanh \\(\\)" 8
                "\n#[0-9]+ [^\n]* in main \\(")
  # A kernel of several stages is as many functions.
  expect("${output}" "\\[there\\]([^[]*\n)*[^\n]*nitinol::kernel::mul_max_[a-z_]*::stage1")
  if(output MATCHES "\\[gone\\].*nitinol::kernel::[a-z]")
    message(SEND_ERROR "gdb knows functions that are gone\n${output}")
  endif()
  expect("${output}" "\\[gone\\]")
endfunction()

stop_in_kernel("NITINOL_CACHE=0" output)
if(skipped)
  return()
endif()
check_kernel("${output}")
expect("${output}" "code is generated")

set(cached "NITINOL_CACHE=${work}/cache")
execute_process(COMMAND "${CMAKE_COMMAND}" -E env "${cached}" "${program}" COMMAND_ERROR_IS_FATAL ANY)
stop_in_kernel("${cached}" output)
check_kernel("${output}")
expect("${output}" "code is from disk")

stop_in_kernel("NITINOL_CACHE=0;NITINOL_PERF=1;JITDUMPDIR=${work}" output)
check_kernel("${output}")
expect("${output}" "#0 +nitinol::kernel::mul_add_tanh \\(\\) at [^\n]*model.cpp:9001\n")
file(GLOB folder "${work}/.debug/jit/nitinol-*")
if(folder MATCHES "nitinol-([0-9]+)-0$")
  file(REMOVE "/tmp/perf-${CMAKE_MATCH_1}.map")
endif()
