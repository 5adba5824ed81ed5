# Runs the same random programs under each instruction set: their results must have the same bits.
foreach(isa IN ITEMS avx512 avx2 baseline)
  set(ENV{NITINOL_ISA} ${isa})
  execute_process(COMMAND "${fuzzer}" --digest --seed 3 --count ${count}
    OUTPUT_VARIABLE digests COMMAND_ERROR_IS_FATAL ANY)
  if(DEFINED expected AND NOT digests STREQUAL expected)
    string(REPLACE "\n" ";" wanted "${expected}")
    string(REPLACE "\n" ";" got "${digests}")
    foreach(a b IN ZIP_LISTS wanted got)
      if(NOT a STREQUAL b)
        message(FATAL_ERROR "NITINOL_ISA=${isa}: '${b}' instead of '${a}'. The number before the "
          "hash is the program's: see it with --seed 3 --program N --print.")
      endif()
    endforeach()
  endif()
  set(expected "${digests}")
endforeach()
