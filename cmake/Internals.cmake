# The library with its hidden names visible, from the same object files: nitinol_internals. It has
# the library's name and version, so that the plugin, which asks for the library, gets this one.
if(BUILD_SHARED_LIBS)
  set(internals_dir "${PROJECT_BINARY_DIR}/tests/internals")
  set(internals_object "${internals_dir}/nitinol.o")
  add_executable(nitinol_reveal "${PROJECT_SOURCE_DIR}/tests/internals/reveal.cpp")
  nitinol_flags(nitinol_reveal)
  set_target_properties(nitinol_reveal PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${internals_dir}")
  set(objects "$<FILTER:$<TARGET_OBJECTS:nitinol>,EXCLUDE,[.]gch$>")  # precompiled headers are none
  add_custom_command(OUTPUT "${internals_object}"
    COMMAND "${CMAKE_LINKER}" -r -o "${internals_object}" "${objects}"
    COMMAND nitinol_reveal "${internals_object}"
    DEPENDS "${objects}" nitinol_reveal
    COMMENT "Revealing what the library hides" COMMAND_EXPAND_LISTS VERBATIM)
  add_library(nitinol_internals SHARED "${internals_object}")
  nitinol_flags(nitinol_internals)
  set_target_properties(nitinol_internals PROPERTIES
    OUTPUT_NAME nitinol LIBRARY_OUTPUT_DIRECTORY "${internals_dir}" LINKER_LANGUAGE CXX
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR})
  get_target_property(parts nitinol LINK_LIBRARIES)
  target_link_libraries(nitinol_internals PRIVATE ${parts} PUBLIC fmt::fmt Boost::headers)
  if(NITINOL_HAS_BACKTRACE)  # as nitinol is linked
    target_link_options(nitinol_internals PRIVATE LINKER:--wrap=dl_iterate_phdr)
  endif()
  target_include_directories(nitinol_internals INTERFACE "${PROJECT_SOURCE_DIR}" "${root_view}")
  target_compile_definitions(nitinol_internals INTERFACE
    "$<TARGET_PROPERTY:nitinol,INTERFACE_COMPILE_DEFINITIONS>")
  # Variables that are bound inside a library cannot be copied into a program.
  target_compile_options(nitinol_internals INTERFACE -fPIC)
  if(TARGET nitinol_llvm)  # looked for beside the library
    set(plugin "${CMAKE_SHARED_MODULE_PREFIX}nitinol_llvm${CMAKE_SHARED_MODULE_SUFFIX}")
    file(MAKE_DIRECTORY "${internals_dir}")
    file(CREATE_LINK "${PROJECT_BINARY_DIR}/${plugin}" "${internals_dir}/${plugin}" SYMBOLIC)
  endif()
else()  # a static library hides nothing
  add_library(nitinol_internals ALIAS nitinol_root)
endif()
