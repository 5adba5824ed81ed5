# Finds what Nitinol is built from, and says which Debian package to install for what is missing.

# nitinol_require(<name> <version> <Debian package> <target> [more find_package arguments])
# A macro: find_package sets variables that the caller needs.
macro(nitinol_require name version package target)
  find_package(${name} ${version} QUIET ${ARGN})
  if(NOT ${name}_FOUND OR (NOT "${target}" STREQUAL "" AND NOT TARGET ${target}))
    set(seen "${${name}_CONSIDERED_VERSIONS}")
    if(NOT seen)
      set(seen "none")
    endif()
    message(FATAL_ERROR "Nitinol needs ${name} ${version} or a compatible version; found: ${seen}.\n"
      "On Debian 12: apt-get install ${package}\n"
      "(./dev test and ./dev demo install all that they need.)")
  endif()
endmacro()

# nitinol_require_library(<source> <header> <library> <Debian package> <option>)
# For libraries of which not every distribution has a package for CMake, which this source is written with and this option asks for. What to
# link is added to NITINOL_FILE_LIBRARIES: the file that was found, or in an installed package, which goes
# elsewhere, the name alone.
set(NITINOL_FILE_LIBRARIES "")
function(nitinol_require_library source header library package option)
  find_path(NITINOL_${library}_HEADERS ${header})
  find_library(NITINOL_${library}_FILE ${library})
  mark_as_advanced(NITINOL_${library}_HEADERS NITINOL_${library}_FILE)
  if(NOT NITINOL_${library}_HEADERS OR NOT NITINOL_${library}_FILE)
    message(FATAL_ERROR "Nitinol needs lib${library} and <${header}>, or -D${option}=OFF.\n"
      "On Debian 12: apt-get install ${package}\n"
      "(./dev test installs all that it needs.)")
  endif()
  if(NOT NITINOL_${library}_HEADERS IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
    set_source_files_properties(${source} PROPERTIES INCLUDE_DIRECTORIES "${NITINOL_${library}_HEADERS}")
  endif()
  set(NITINOL_FILE_LIBRARIES ${NITINOL_FILE_LIBRARIES} "$<BUILD_INTERFACE:${NITINOL_${library}_FILE}>"
      "$<INSTALL_INTERFACE:${library}>" PARENT_SCOPE)
endfunction()

set(THREADS_PREFER_PTHREAD_FLAG ON)
nitinol_require(Threads "" libc6-dev Threads::Threads)
nitinol_require(OpenMP "" g++ OpenMP::OpenMP_CXX COMPONENTS CXX)
nitinol_require(fmt 9 libfmt-dev fmt::fmt CONFIG)
nitinol_require(Boost 1.81 libboost1.81-dev Boost::headers CONFIG)
# Its config asks for OpenCL, hence the second package.
nitinol_require(dnnl "" "libdnnl-dev ocl-icd-opencl-dev" DNNL::dnnl CONFIG)
if(dnnl_VERSION VERSION_LESS 2.6 OR dnnl_VERSION VERSION_GREATER_EQUAL 4)
  message(FATAL_ERROR "Nitinol needs oneDNN 2.6 up to 3.x; found ${dnnl_VERSION} (${dnnl_DIR}).")
endif()
nitinol_require(hwy 1.0 libhwy-dev hwy::hwy_contrib CONFIG)

if(NITINOL_ZIP)
  nitinol_require_library(io/zip.cpp zip.h zip libzip-dev NITINOL_ZIP)
endif()
if(NITINOL_IMAGES)
  nitinol_require_library(io/png.cpp png.h png16 libpng-dev NITINOL_IMAGES)
  nitinol_require_library(io/jpeg.cpp turbojpeg.h turbojpeg libturbojpeg0-dev NITINOL_IMAGES)
endif()

# Comes with g++; elsewhere errors name functions in place of lines.
include(CheckCXXSourceCompiles)
set(CMAKE_REQUIRED_LIBRARIES backtrace)
set(CMAKE_REQUIRED_FLAGS "-fPIC -shared")
check_cxx_source_compiles("#include <backtrace.h>
  int main() { return backtrace_create_state(nullptr, 1, nullptr, nullptr) == nullptr; }"
  NITINOL_HAS_BACKTRACE)
unset(CMAKE_REQUIRED_LIBRARIES)
unset(CMAKE_REQUIRED_FLAGS)

if(NITINOL_LLVM)
  # "19" alone is refused by LLVM's version file, which compares major.minor.
  nitinol_require(LLVM 19.1 llvm-19-dev "LLVM" CONFIG)
  separate_arguments(LLVM_DEFINITIONS_LIST NATIVE_COMMAND "${LLVM_DEFINITIONS}")
  list(TRANSFORM LLVM_DEFINITIONS_LIST REPLACE "^-D" "")
  # LLVM's own static libraries where they are installed, else the shared one.
  llvm_map_components_to_libnames(LLVM_PARTS core codegen native)
  foreach(part IN LISTS LLVM_PARTS)
    if(NOT TARGET ${part})
      set(LLVM_PARTS LLVM)
      break()
    endif()
  endforeach()
endif()

# Each MPI library that is installed gets a module; which one runs is seen when a program starts.
set(NITINOL_MPI_FOUND "")
if(NITINOL_MPI AND BUILD_SHARED_LIBS)
  find_package(PkgConfig QUIET)
  foreach(mpi IN ITEMS openmpi:ompi-c mpich:mpich)
    string(REPLACE ":" ";" mpi "${mpi}")
    list(GET mpi 0 name)
    list(GET mpi 1 package)
    if(PkgConfig_FOUND)
      pkg_check_modules(NITINOL_${name} QUIET IMPORTED_TARGET "${package}")
    endif()
    if(TARGET PkgConfig::NITINOL_${name})
      list(APPEND NITINOL_MPI_FOUND ${name})
    endif()
  endforeach()
  message(STATUS "MPI libraries: ${NITINOL_MPI_FOUND}")
endif()

if(NITINOL_TESTS)
  nitinol_require(Catch2 2.13 catch2 Catch2::Catch2 CONFIG)
endif()
if(NITINOL_BENCH)
  nitinol_require(benchmark 1.7 libbenchmark-dev benchmark::benchmark CONFIG)
endif()
if(NITINOL_TESTS OR NITINOL_BENCH OR NITINOL_EXAMPLES OR NITINOL_SHIPPED_CODE)
  nitinol_require(CLI11 2 libcli11-dev CLI11::CLI11 CONFIG)
endif()
nitinol_require(nlohmann_json 3.11 nlohmann-json3-dev nlohmann_json::nlohmann_json CONFIG)
