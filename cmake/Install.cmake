# `cmake --install` and the package that find_package(nitinol) reads.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/nitinol")
install(TARGETS nitinol EXPORT nitinolTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
foreach(name IN ITEMS llvm ${NITINOL_MPI_FOUND})  # what the library opens beside itself
  if(TARGET nitinol_${name})
    install(TARGETS nitinol_${name} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  endif()
endforeach()
if(TARGET nitinol_warm)
  set_target_properties(nitinol_warm PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
  install(TARGETS nitinol_warm RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()
if(NITINOL_SHIPPED_CODE)  # where backends/disk/code_store.cpp looks
  install(DIRECTORY "${PROJECT_BINARY_DIR}/shipped_code/"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/nitinol/code" FILES_MATCHING PATTERN "*.code")
endif()
install(DIRECTORY "${PROJECT_BINARY_DIR}/include/nitinol" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT nitinolTargets NAMESPACE nitinol:: DESTINATION "${package_dir}")

configure_package_config_file(cmake/nitinolConfig.cmake.in
  "${PROJECT_BINARY_DIR}/nitinolConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/nitinolConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/nitinolConfig.cmake"
  "${PROJECT_BINARY_DIR}/nitinolConfigVersion.cmake" DESTINATION "${package_dir}")

# What gdb shows for tensors: beside the library, under its name; of system libraries gdb looks for
# scripts, and trusts them, in a tree of their own.
if(NOT BUILD_SHARED_LIBS)
  install(FILES core/gdb_printers.py DESTINATION "${CMAKE_INSTALL_DATADIR}/nitinol")
else()
  set(gdb_dir "${CMAKE_INSTALL_LIBDIR}")
  if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(gdb_dir "${CMAKE_INSTALL_DATADIR}/gdb/auto-load${CMAKE_INSTALL_FULL_LIBDIR}")
  endif()
  install(FILES core/gdb_printers.py DESTINATION "${gdb_dir}"
    RENAME "$<TARGET_FILE_NAME:nitinol>-gdb.py")
endif()

# For other build systems. A static library passes on what it links in ways that only CMake's package
# knows (the LLVM part above all), so it has none.
if(BUILD_SHARED_LIBS)
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX
    BASE_DIRECTORY "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" OUTPUT_VARIABLE pc_prefix)
  configure_file(cmake/nitinol.pc.in "${PROJECT_BINARY_DIR}/nitinol.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/nitinol.pc"
    DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
