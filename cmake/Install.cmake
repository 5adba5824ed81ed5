# `cmake --install` and the package that find_package(nitinol) reads.

include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/nitinol")
install(TARGETS nitinol EXPORT nitinolTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}"
  RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
if(TARGET nitinol_llvm)
  install(TARGETS nitinol_llvm LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
install(DIRECTORY "${PROJECT_BINARY_DIR}/include/nitinol" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT nitinolTargets NAMESPACE nitinol:: DESTINATION "${package_dir}")

configure_package_config_file(cmake/nitinolConfig.cmake.in
  "${PROJECT_BINARY_DIR}/nitinolConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/nitinolConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/nitinolConfig.cmake"
  "${PROJECT_BINARY_DIR}/nitinolConfigVersion.cmake" DESTINATION "${package_dir}")
