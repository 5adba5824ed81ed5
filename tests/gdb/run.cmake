# Stops a program in gdb and looks at its tensors: alive, and in a core file, where nothing can be
# called. Arguments: gdb, program, trusted (the folder whose scripts gdb may load), work.

cmake_minimum_required(VERSION 3.25)

file(MAKE_DIRECTORY "${work}")
set(core "${work}/stopped.core")
file(REMOVE "${core}")

set(expected
  "vector = float32[3] on cpu at 0x[0-9a-f]+ = {1.5, -2, 0.1}"
  "matrix = int32[2, 3] on cpu at 0x[0-9a-f]+ = {0, 1, 2, 3, 4, 5}"
  "turned = int32[3, 2] on cpu at 0x[0-9a-f]+ = {0, 3, 1, 4, 2, 5}"
  "backwards = float64[100] on cpu at 0x[0-9a-f]+ = {99, 98, 97, 96, 95, 94, 93, 92, ...}"
  "halves = float16[3] on cpu at 0x[0-9a-f]+ = {1, 0.5, 65504}"
  "brains = bfloat16[2] on cpu at 0x[0-9a-f]+ = {1, -3}"
  "truths = bool[2] on cpu at 0x[0-9a-f]+ = {true, false}"
  "number = float64[] on cpu at 0x[0-9a-f]+ = {0.1}"
  "empty = float32[0, 4] on cpu at 0x[0-9a-f]+ = {}"
  "undefined = undefined tensor"
  "weight = Variable [0-9]+: float32[2] on cpu at 0x[0-9a-f]+ = {1, 1}"
  "rate = 0.25"
  "count = 3"
  "shape = [4, 5]"
)

function(look output)
  foreach(line IN LISTS expected)
    # A literal text but for the addresses.
    string(REGEX REPLACE "([][+.*()^{}|\\?])" "\\\\\\1" pattern "${line}")
    string(REPLACE "0x\\[0-9a-f\\]\\+" "0x[0-9a-f]+" pattern "${pattern}")
    string(REPLACE "Variable \\[0-9\\]\\+" "Variable [0-9]+" pattern "${pattern}")
    if(NOT output MATCHES "\n${pattern}\n")
      message(SEND_ERROR "gdb does not show\n${line}\nbut\n${output}")
    endif()
  endforeach()
endfunction()

set(gdb_batch "${gdb}" -nx -batch -iex "set auto-load safe-path ${trusted}"
    -iex "set debuginfod enabled off" -iex "set width 0")
execute_process(
  COMMAND ${gdb_batch} -ex run -ex "generate-core-file ${core}" -ex "frame function main"
          -ex "info locals" "${program}"
  OUTPUT_VARIABLE output ERROR_VARIABLE errors)
if(NOT EXISTS "${core}")
  if("${output}${errors}" MATCHES "ptrace|Cannot trace|personality|not permitted")
    message("SKIPPED: gdb may not run programs here\n${errors}")
    return()
  endif()
  message(FATAL_ERROR "no core file\n${output}\n${errors}")
endif()
look("${output}")

execute_process(
  COMMAND ${gdb_batch} -ex "frame function main" -ex "info locals" "${program}" "${core}"
  OUTPUT_VARIABLE output ERROR_VARIABLE errors)
look("\n${output}")
file(REMOVE "${core}")
