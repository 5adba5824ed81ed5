# Each examples/<name>/<name>.cpp is a program <name>, which finds its data in NITINOL_EXAMPLE_DIR.

# What ctest gives to those that would take too long otherwise.
# On one thread: others of ctest have the rest, and threads that wait for each other take ten times as long.
set(chargpt_arguments --steps 30 --compared 10 --length 40 --threads 1)
set(ode_arguments --size 64 --until 20)
set(models_arguments --small --threads 1)
set(keras_vs_torch_arguments --threads 1)

file(GLOB example_sources CONFIGURE_DEPENDS examples/*/*.cpp)
foreach(source IN LISTS example_sources)
  cmake_path(GET source STEM stem)
  cmake_path(GET source PARENT_PATH folder)
  cmake_path(GET folder FILENAME name)
  if(NOT stem STREQUAL name)
    message(FATAL_ERROR "${source}: an example is one program, named after its folder")
  endif()
  nitinol_program(${name} nitinol::nitinol ${source})
  if(NOT name STREQUAL blackscholes)  # which times loops of its own
    nitinol_driver(${name})
  endif()
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")  # "examples/..."
  target_compile_definitions(${name} PRIVATE NITINOL_EXAMPLE_DIR="${folder}")
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/examples")
  if(NITINOL_TESTS)
    add_test(NAME example.${name} COMMAND ${name} ${${name}_arguments})
    set_tests_properties(example.${name} PROPERTIES LABELS example TIMEOUT 600
      ENVIRONMENT "${sanitizer_environment}")
  endif()
endforeach()
