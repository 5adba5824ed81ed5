# Instructions of warm calls, counted by valgrind: repeatable where times are not. A call may take 3 %
# more than the ceiling; whoever makes calls cheaper lowers it.
#
# cmake -D valgrind=… -D program=… -D work=… -P run.cmake

set(ceilings
  eager_add 1232
  eager_scale 1950
  eager_pow 10000
  compiled_add 2030
  compiled_chain10 1870
  # What a compiled function costs that runs eagerly, beside the same function by itself.
  eager_softmax 6800
  fallback_softmax 7850
  eager_adds31 38700
  fallback_adds31 39750)

file(MAKE_DIRECTORY "${work}")
set(failures "")
set(fewer 1000)
set(more 6000)

function(instructions_of what count result)
  execute_process(
    COMMAND "${valgrind}" --tool=callgrind "--callgrind-out-file=${work}/${what}.out" "${program}"
      ${what} ${count}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT output MATCHES "Collected : ([0-9]+)")
    message(FATAL_ERROR "valgrind could not run ${program} ${what} ${count}:\n${output}")
  endif()
  set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

while(ceilings)
  list(POP_FRONT ceilings what ceiling)
  instructions_of(${what} ${fewer} before)
  instructions_of(${what} ${more} after)
  math(EXPR each "(${after} - ${before}) / (${more} - ${fewer})")
  math(EXPR most "${ceiling} * 103 / 100")
  message("${what}: ${each} instructions a call, at most ${most}")
  if(each GREATER most)
    list(APPEND failures "${what}")
  endif()
endwhile()
if(failures)
  message(FATAL_ERROR "more instructions than allowed: ${failures}")
endif()
