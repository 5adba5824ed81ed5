// Where NVIDIA's libraries are looked for, with small libraries in their place.
#include "backends/cuda/runtime/libraries.h"

#include "core/error.h"
#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <string>

using namespace nitinol;
using test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

/// A library with functions of these names that return `result`, behind `text` in C.
void make_library(const fs::path& file, const std::string& functions, int result = 0,
                  std::string text = {}) {
  fs::create_directories(file.parent_path());
  for (std::size_t at = 0; at < functions.size();) {
    const std::size_t end = std::min(functions.find(' ', at), functions.size());
    text += "int " + functions.substr(at, end - at) + "(){return " + std::to_string(result) + ";}";
    at = end + 1;
  }
  const fs::path source = file.string() + ".c";
  std::ofstream(source) << text;
  const std::string command =
      "g++ -x c -w -shared -fPIC -nostdlib -o '" + file.string() + "' '" + source.string() + "'";
  REQUIRE(std::system(command.c_str()) == 0);  // NOLINT: a test
}

const std::string all_of_nvrtc =
    "nvrtcVersion nvrtcCreateProgram nvrtcCompileProgram nvrtcGetCUBINSize nvrtcGetCUBIN "
    "nvrtcGetPTXSize nvrtcGetPTX nvrtcGetProgramLogSize nvrtcGetProgramLog nvrtcDestroyProgram "
    "nvrtcGetErrorString nvrtcGetNumSupportedArchs nvrtcGetSupportedArchs";

/// What a process with this environment says of its search for NVRTC.
std::string search(const std::string& environment) {
  return run_self(environment, "[.places-of-nvrtc]").output;
}
std::string taken(const fs::path& file) {
  return "taken: " + file.string() + "\n";
}
bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}
std::string path_is(const fs::path& folders) {
  return "NITINOL_CUDA_PATH=" + folders.string();
}

}  // namespace

// Run by the others, in processes of their own.
TEST_CASE("says where NVRTC was looked for", "[.places-of-nvrtc]") {
  const bool found = cuda::has_nvrtc();
  for (const cuda::PlaceTried& tried : cuda::places_of_nvrtc()) {
    if (tried.why.empty()) std::printf("taken: %s\n", tried.place.c_str());
    if (!tried.why.empty()) std::printf("not: %s: %s\n", tried.place.c_str(), tried.why.c_str());
  }
  try {
    (void)cuda::nvrtc();
    CHECK(found);
  } catch (const Error& error) {
    CHECK(!found);
    CHECK(error.kind() == ErrorKind::device);
    std::printf("error: %s\n", error.what());
  }
}
TEST_CASE("says which NVRTC there is", "[.nvrtc-identity]") {
  std::printf("identity: %s\n", cuda::nvrtc_identity().c_str());
}
TEST_CASE("says where the driver was looked for", "[.places-of-driver]") {
  try {
    (void)cuda::driver();
    CHECK(cuda::has_driver());
  } catch (const Error& error) {
    CHECK(!cuda::has_driver());
    CHECK(error.kind() == ErrorKind::device);
    std::printf("error: %s\n", error.what());
  }
}

TEST_CASE("a library is taken from the folder that the user names", "[cuda][no-isa]") {
  const TemporaryFolder temporary;
  for (const char* const folder : {"a", "b/lib64", "c/nvidia/cu13/lib"})
    make_library(temporary / folder / "libnvrtc.so.13", all_of_nvrtc);
  make_library(temporary / "d/nvidia/cuda_nvrtc/lib/libnvrtc.so.12", all_of_nvrtc);
  make_library(temporary / "a/libnvrtc.so.12", all_of_nvrtc);
  CHECK(has(search(path_is(temporary / "a")), taken(temporary / "a/libnvrtc.so.13")));
  CHECK(has(search(path_is(temporary / "b")), taken(temporary / "b/lib64/libnvrtc.so.13")));
  CHECK(
      has(search(path_is(temporary / "c")), taken(temporary / "c/nvidia/cu13/lib/libnvrtc.so.13")));
  CHECK(has(search(path_is(temporary / "d")),
            taken(temporary / "d/nvidia/cuda_nvrtc/lib/libnvrtc.so.12")));
  // The first of a list that has one, and those before it with a reason.
  fs::create_directory(temporary / "broken");
  std::ofstream(temporary / "broken/libnvrtc.so.13") << "no library";
  const std::string list =
      search(path_is(temporary / "none") + ":" + (temporary / "broken").string() +
             "::" + (temporary / "b").string() + ":" + (temporary / "a").string());
  CHECK(has(list, "not: " + (temporary / "none").string() + ": not there\n"));
  CHECK(has(list, "not: " + (temporary / "broken/libnvrtc.so.13").string() + ": "));
  CHECK(has(list, taken(temporary / "b/lib64/libnvrtc.so.13")));
}

TEST_CASE("folders of stubs are not searched", "[cuda][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path stubs = temporary / "lib64/stubs";
  make_library(stubs / "libnvrtc.so.13", all_of_nvrtc);
  fs::create_directory_symlink(stubs, temporary / "link");
  for (const std::string& name : {stubs.string(), stubs.string() + "/", stubs.string() + "/.",
                                  (temporary / "link").string()}) {
    const std::string said = search(path_is(name));
    INFO(name << "\n" << said);
    CHECK(has(said, "stubs are for the linker"));
    CHECK(!has(said, "taken: " + (temporary / "").string()));
  }
}

TEST_CASE("the builtins beside NVRTC are opened before it", "[cuda][no-isa]") {
  const TemporaryFolder temporary;
  const fs::path folder = temporary / "nvrtc";
  make_library(folder / "libnvrtc-builtins.so.13.0", "a_builtin");
  // Needs its builtins at once, and no path in it leads to them.
  make_library(folder / "libnvrtc.so.13", all_of_nvrtc, 0,
               "int a_builtin(); int (*needed)() = a_builtin;");
  CHECK(has(search(path_is(folder)), taken(folder / "libnvrtc.so.13")));
  fs::remove(folder / "libnvrtc-builtins.so.13.0");
  CHECK(!has(search(path_is(folder)), taken(folder / "libnvrtc.so.13")));
}

TEST_CASE("keys of compiled code hold NVRTC's version, wherever it lies", "[cuda][no-isa]") {
  const TemporaryFolder temporary;
  for (const char* const folder : {"a", "b"}) {
    make_library(temporary / folder / "libnvrtc.so.13", all_of_nvrtc);  // which tells no version
    std::ofstream(temporary / folder / "libnvrtc-builtins.so.13.7") << "no library";
    std::ofstream(temporary / folder / "libnvrtc-builtins.so.13.7.55") << "the same";
    std::ofstream(temporary / folder / "libnvrtc-builtins.so.12.1") << "another's";
  }
  for (const char* const folder : {"a", "b"})
    CHECK(
        has(run_self(path_is(temporary / folder), "[.nvrtc-identity]").output, "identity: 13.7\n"));
}

TEST_CASE("NVRTC is not newer than what the driver loads code of", "[cuda][no-isa]") {
  const TemporaryFolder temporary;
  for (const char* const name : {"libnvrtc.so.13", "libnvrtc.so.12"})
    make_library(temporary / name, all_of_nvrtc);
  std::string functions;
  for (const std::string name : cuda::driver_functions()) {
    if (name != "cuDriverGetVersion") functions += name + " ";
  }
  for (const auto& [version, taken_name] :
       {std::pair("12080", "libnvrtc.so.12"), std::pair("13000", "libnvrtc.so.13"),
        std::pair("14010", "libnvrtc.so.13"), std::pair("11080", "libnvrtc.so.12")}) {
    make_library(temporary / "libcuda.so.1", functions, 0,
                 "int cuDriverGetVersion(int* v){*v=" + std::string(version) + ";return 0;}");
    CHECK(has(search(path_is(temporary / "")), taken(temporary / taken_name)));
  }
}

TEST_CASE("NVRTC is found among the packages of the Python that runs", "[cuda][no-isa]") {
  const TemporaryFolder temporary;
  if (has(search("NITINOL_CUDA_PATH="), "by the loader\n")) {
    std::puts("NOT RUN: the loader finds NVRTC");
    return;
  }
  const fs::path library =
      temporary / "lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13";
  make_library(library, all_of_nvrtc);
  fs::create_directories(temporary / "bin");
  const fs::path python = temporary / "bin/python3.11";  // of an environment: a link
  fs::create_symlink(fs::canonical("/proc/self/exe"), python);
  CHECK(has(run_command("NITINOL_CUDA_PATH= '" + python.string() + "' '[.places-of-nvrtc]'").output,
            taken(library)));
  CHECK(
      has(search("NITINOL_CUDA_PATH= CONDA_PREFIX=" + (temporary / "").string()), taken(library)));
}

TEST_CASE("a library without a function is named with it", "[cuda][no-isa]") {
  const TemporaryFolder temporary;
  make_library(temporary / "libnvrtc.so.13", "nvrtcVersion nvrtcCreateProgram");
  const std::string said = search(path_is(temporary / ""));
  CHECK(has(said, "libnvrtc.so.13 has no function nvrtcCompileProgram"));
  CHECK(has(said, "NITINOL_CUDA_PATH"));
}

TEST_CASE("a driver that does not start says its error", "[cuda][no-isa]") {
  const TemporaryFolder temporary;
  std::string functions;
  for (const char* const name : cuda::driver_functions()) functions += std::string(name) + " ";
  for (const auto& [result, text] : {std::pair(34, "it is a stub, not a driver (error 34)"),
                                     std::pair(100, "the driver sees no device (error 100)"),
                                     std::pair(999, "cuInit failed with error 999")}) {
    make_library(temporary / "libcuda.so.1", functions, result);
    const std::string said = run_self(path_is(temporary / ""), "[.places-of-driver]").output;
    INFO(said);
    CHECK(has(said, text));
    CHECK(has(said, "Install NVIDIA's driver"));
  }
}

TEST_CASE("the functions of the driver's table are in the toolkit's stub", "[cuda][no-isa]") {
  const char* const stub = "/usr/local/cuda/lib64/stubs/libcuda.so";
  void* const library = ::dlopen(stub, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    std::printf("NOT RUN: there is no %s\n", stub);
    return;
  }
  for (const char* const name : cuda::driver_functions()) {
    INFO(name);
    CHECK(::dlsym(library, name) != nullptr);
  }
}
