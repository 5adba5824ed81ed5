# Installs the build into a fresh folder, then configures, builds and runs the consumer against it.
# Arguments: build, config, generator, compiler, llvm ("llvm" if kernels must come from it).

set(root "${build}/package")
file(REMOVE_RECURSE "${root}")

function(step)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  if(status)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

step("${CMAKE_COMMAND}" --install "${build}" --config "${config}" --prefix "${root}/first")
# Moved, so that nothing is found by where it was built or installed.
file(RENAME "${root}/first" "${root}/installed")
step("${CMAKE_COMMAND}" -S "${CMAKE_CURRENT_LIST_DIR}" -B "${root}/consumer" -G "${generator}"
     "-DCMAKE_CXX_COMPILER=${compiler}" "-DCMAKE_BUILD_TYPE=${config}"
     "-DCMAKE_PREFIX_PATH=${root}/installed")
step("${CMAKE_COMMAND}" --build "${root}/consumer")
step("${root}/consumer/consumer" ${llvm})
message(STATUS "${output}")
