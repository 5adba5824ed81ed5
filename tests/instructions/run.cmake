# Instructions of warm calls, counted by valgrind: repeatable where times are not. A call may take 3 %
# more than the ceiling; whoever makes calls cheaper lowers it.
#
# cmake -D valgrind=… -D program=… -D work=… -P run.cmake

set(ceilings
  eager_add 1232
  eager_scale 1984
  eager_pow 10000
  compiled_add 2087
  compiled_chain10 1898
  eager_softmax 6870
  eager_adds31 38700)

# What a compiled function may take, in thousandths of the same function by itself: asked to run eagerly
# by eager(), and in segments, of a function that has looked at data. The latter sees what composites
# expand to, which is why small ones are measured to be faster eagerly, and left to that.
set(eager_paths
  asked_softmax 1040
  segments_softmax 2300
  asked_layer_norm 1030
  segments_layer_norm 1450
  asked_adds31 1030
  segments_adds31 710
  asked_mlp 1030
  segments_mlp 830)

file(REMOVE_RECURSE "${work}")
file(MAKE_DIRECTORY "${work}")
set(failures "")

execute_process(
  COMMAND "${valgrind}" --tool=callgrind --instr-atstart=no "--callgrind-out-file=${work}/counts"
    "${program}"
  OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "valgrind could not run ${program}:\n${output}")
endif()
# A file of each, with its name, how many calls they were, and what these took together.
file(GLOB files "${work}/counts.*")
foreach(file IN LISTS files)
  file(STRINGS "${file}" lines REGEX "^(desc: Trigger: Client Request|totals): ")
  if(lines MATCHES "Client Request: ([a-z0-9_]+) ([0-9]+);totals: ([0-9]+)")
    math(EXPR known_${CMAKE_MATCH_1} "${CMAKE_MATCH_3} / ${CMAKE_MATCH_2}")
  endif()
endforeach()

# Of one call.
function(instructions_of what result)
  if(NOT DEFINED known_${what})
    message(FATAL_ERROR "callgrind has counted no ${what}:\n${output}")
  endif()
  set(${result} ${known_${what}} PARENT_SCOPE)
endfunction()

# Notes a failure if a call of `what` takes more than so many thousandths of `whole`.
function(check what whole share)
  instructions_of(${what} each)
  math(EXPR most "${whole} * ${share} / 1000")
  message("${what}: ${each} instructions a call, at most ${most}")
  if(each GREATER most)
    set(failures ${failures} ${what} PARENT_SCOPE)
  endif()
endfunction()

while(ceilings)
  list(POP_FRONT ceilings what ceiling)
  check(${what} ${ceiling} 1030)
endwhile()
while(eager_paths)
  list(POP_FRONT eager_paths what share)
  string(REGEX REPLACE "^(asked|segments)_" "eager_" plain ${what})
  instructions_of(${plain} expected)
  check(${what} ${expected} ${share})
endwhile()
if(failures)
  message(FATAL_ERROR "more instructions than allowed: ${failures}")
endif()
