# lldb knows generated code as gdb does (kernels.cmake): by the names of its operations, at each
# instruction, with the user's line if that is known, and no longer than it is there. Its interface
# to just-in-time compilers is a setting, and names with :: are found by regular expressions alone.
# Arguments: lldb, program, work.

cmake_minimum_required(VERSION 3.25)
set(debugger lldb)
include("${CMAKE_CURRENT_LIST_DIR}/shown.cmake")

file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")

# Runs the program in lldb: stops in a kernel, in kernels_are_there() and in kernels_are_gone().
function(stop_in_kernel environment output)
  foreach(step RANGE 1 8)  # into the kernel, where registers are saved
    list(APPEND steps -o "stepi" -o "stepi" -o "thread backtrace")
  endforeach()
  set(look "image lookup --regex --name ^nitinol::kernel::")
  execute_process(
    COMMAND "${CMAKE_COMMAND}" -E env ${environment} "${lldb}" --no-lldbinit --batch
      -o "settings set plugin.jit-loader.gdb.enable on" -o "settings set use-color false"
      -o "breakpoint set --func-regex ^nitinol::kernel::mul_add_tanh"
      -o "breakpoint set --name kernels_are_there" -o "breakpoint set --name kernels_are_gone"
      -o run -o "thread backtrace" ${steps} -o "breakpoint disable 1"
      -o continue -o "${look}" -o continue -o "${look}" -o "process kill" "${program}"
    OUTPUT_VARIABLE text ERROR_VARIABLE errors TIMEOUT 300)
  if("${text}${errors}" MATCHES "ptrace|personality|not permitted|process launch failed")
    message("SKIPPED: lldb may not run programs here\n${errors}")
    set(skipped TRUE PARENT_SCOPE)
  endif()
  string(REPLACE ";" "," text "${text}")  # which would take it apart
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

function(check_kernel output)
  # The kernel is between our frames and the user's.
  expect("${output}" "frame #0: [^\n]*`nitinol::kernel::mul_add_tanh[^\n]*\n +frame #1: [^\n]*launch[^\n]*\n( +frame [^\n]*\n)* +frame #[0-9]+: [^\n]*`main\\(")
  expect_stacks("${output}" "\\* frame #0: [^\n]*`nitinol::kernel::mul_add_tanh" 9
                "\n +frame #[0-9]+: [^\n]*`main\\(")
  string(FIND "${output}" "`(anonymous namespace)::kernels_are_there" there)
  string(FIND "${output}" "`(anonymous namespace)::kernels_are_gone() at" gone REVERSE)
  if(there LESS 0 OR gone LESS there)
    message(FATAL_ERROR "lldb does not stop in the program's functions\n${output}")
  endif()
  math(EXPR between "${gone} - ${there}")
  string(SUBSTRING "${output}" ${there} ${between} known)
  string(SUBSTRING "${output}" ${gone} -1 later)
  # A kernel of several stages is as many functions.
  expect("${known}" "Summary: [^\n]*`nitinol::kernel::mul_max_[a-z_]*::stage1")
  if(later MATCHES "`nitinol::kernel::")
    message(SEND_ERROR "lldb knows functions that are gone\n${later}")
  endif()
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
expect("${output}" "`nitinol::kernel::mul_add_tanh[^\n]* at model.cpp:9001")
file(GLOB folder "${work}/.debug/jit/nitinol-*")
if(folder MATCHES "nitinol-([0-9]+)-0$")
  file(REMOVE "/tmp/perf-${CMAKE_MATCH_1}.map")
endif()
