# Instructions of warm calls, counted by valgrind: repeatable where times are not. A call may take 3 %
# more than the ceiling; whoever makes calls cheaper lowers it.
#
# cmake -D valgrind=… -D program=… -D work=… -P run.cmake

set(ceilings
  eager_add 1232
  eager_scale 1950
  eager_pow 10000
  compiled_add 2025
  compiled_chain10 1856
  eager_softmax 6800
  eager_adds31 38700)

# What a compiled function may take that runs eagerly, in thousandths of the same function by itself:
# asked to by eager(), and because it cannot be compiled. The latter also looks up its signature.
set(eager_paths
  asked_softmax 1030
  fallback_softmax 1125
  asked_layer_norm 1030
  fallback_layer_norm 1030
  asked_adds31 1030
  fallback_adds31 1030
  asked_mlp 1030
  fallback_mlp 1030)

file(MAKE_DIRECTORY "${work}")
set(failures "")

function(collected_by what count result)
  execute_process(
    COMMAND "${valgrind}" --tool=callgrind "--callgrind-out-file=${work}/${what}.out" "${program}"
      ${what} ${count}
    OUTPUT_VARIABLE output ERROR_VARIABLE output RESULT_VARIABLE status)
  if(NOT status EQUAL 0 OR NOT output MATCHES "Collected : ([0-9]+)")
    message(FATAL_ERROR "valgrind could not run ${program} ${what} ${count}:\n${output}")
  endif()
  set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

# Of one call.
function(instructions_of what result)
  if(DEFINED known_${what})
    set(${result} ${known_${what}} PARENT_SCOPE)
    return()
  endif()
  set(fewer 1000)
  set(more 6000)
  if(what MATCHES "layer_norm|adds31|mlp")  # which take long
    set(fewer 100)
    set(more 300)
  endif()
  collected_by(${what} ${fewer} before)
  collected_by(${what} ${more} after)
  math(EXPR each "(${after} - ${before}) / (${more} - ${fewer})")
  set(known_${what} ${each} PARENT_SCOPE)
  set(${result} ${each} PARENT_SCOPE)
endfunction()

# Notes a failure if a call of `what` takes more than so many thousandths of `whole`.
function(check what whole share)
  instructions_of(${what} each)
  math(EXPR most "${whole} * ${share} / 1000")
  set(known_${what} ${each} PARENT_SCOPE)
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
  string(REGEX REPLACE "^(asked|fallback)_" "eager_" plain ${what})
  instructions_of(${plain} expected)
  check(${what} ${expected} ${share})
endwhile()
if(failures)
  message(FATAL_ERROR "more instructions than allowed: ${failures}")
endif()
