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
foreach(folder IN LISTS NITINOL_FOLDERS)
  if(IS_DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}")
    install(DIRECTORY "${folder}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/nitinol"
      FILES_MATCHING PATTERN "*.h")
  endif()
endforeach()
install(FILES nitinol.h DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/nitinol")
install(EXPORT nitinolTargets NAMESPACE nitinol:: DESTINATION "${package_dir}")

configure_package_config_file(cmake/nitinolConfig.cmake.in
  "${PROJECT_BINARY_DIR}/nitinolConfig.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/nitinolConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/nitinolConfig.cmake"
  "${PROJECT_BINARY_DIR}/nitinolConfigVersion.cmake" DESTINATION "${package_dir}")
