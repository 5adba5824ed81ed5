# perf shows generated code: by the map while it records, and with instructions and lines by what
# `perf inject --jit` makes of the dump. Arguments: perf, program (tests/gdb/kernels.cpp), work.

cmake_minimum_required(VERSION 3.25)

file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}/dump")

execute_process(
  COMMAND "${CMAKE_COMMAND}" -E env NITINOL_CACHE=0 NITINOL_PERF=1 "JITDUMPDIR=${work}/dump"
    "${perf}" record -k 1 -e cpu-clock:u -o "${work}/perf.data" "${program}" loop
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  if(output MATCHES "[Pp]ermission|not permitted|paranoid|not supported|No such file")
    message("SKIPPED: perf may not record here\n${output}")
    return()
  endif()
  message(FATAL_ERROR "perf record fails\n${output}")
endif()

# The map is perf's only source here: it is read when the report is made.
function(report data output)
  execute_process(COMMAND "${perf}" report -i "${data}" --stdio --sort dso,symbol
    OUTPUT_VARIABLE text ERROR_VARIABLE errors)
  set(${output} "${text}${errors}" PARENT_SCOPE)
endfunction()

report("${work}/perf.data" output)
file(GLOB folder "${work}/dump/.debug/jit/nitinol-*")
if(folder MATCHES "nitinol-([0-9]+)-0$")
  file(REMOVE "/tmp/perf-${CMAKE_MATCH_1}.map")
endif()
if(NOT output MATCHES "\\[\\.\\] nitinol::kernel::mul_add_tanh")
  message(SEND_ERROR "perf report does not name the kernel\n${output}")
endif()

execute_process(
  COMMAND "${perf}" inject --jit -i "${work}/perf.data" -o "${work}/injected.data"
  OUTPUT_VARIABLE output ERROR_VARIABLE output COMMAND_ERROR_IS_FATAL ANY)
report("${work}/injected.data" output)
if(NOT output MATCHES "jitted-[0-9]+-[0-9]+\\.so +\\[\\.\\] nitinol::kernel::mul_add_tanh")
  message(SEND_ERROR "perf report does not name the kernel by its dump\n${output}")
endif()

execute_process(
  COMMAND "${perf}" annotate -i "${work}/injected.data" --stdio -l nitinol::kernel::mul_add_tanh
  OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT output MATCHES "Disassembly of section .text" OR NOT output MATCHES "model.cpp:9001")
  message(SEND_ERROR "perf annotate shows no instructions, or not the line\n${output}\n${errors}")
endif()
