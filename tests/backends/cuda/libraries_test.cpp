#include "backends/cuda/libraries.h"

#include "core/error.h"
#include "tests/run_self.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>

using namespace nitinol;
using namespace nitinol::cuda;

namespace {

/// Says so, too.
bool lacks_nvrtc() {
  if (!has_nvrtc()) WARN("not run: there is no NVRTC");
  return !has_nvrtc();
}

}  // namespace

TEST_CASE("a folder that is named comes first, and folders of stubs never", "[cuda]") {
  const test::TemporaryFolder folder;
  std::filesystem::create_directories(folder / "named");
  std::ofstream(folder / "named" / "libcuda.so.1") << "no library";
  std::filesystem::create_directories(folder / "stubs");
  std::ofstream(folder / "stubs" / "libcuda.so.1") << "no library";
  const std::string path = (folder / "stubs").string() + ":" + (folder / "named").string();
  const Run run = run_self("NITINOL_CUDA_PATH='" + path + "'", "[.cuda_places]");
  const std::size_t stubs = run.output.find("stubs are for the linker");
  const std::size_t named = run.output.find((folder / "named" / "libcuda.so.1").string());
  const std::size_t loader = run.output.find("by the loader");
  REQUIRE(stubs != std::string::npos);
  REQUIRE(named != std::string::npos);
  REQUIRE(loader != std::string::npos);
  CHECK(stubs < named);
  CHECK(named < loader);
  CHECK(run.output.find("file too short") != std::string::npos);
}

TEST_CASE("prints where the driver was looked for", "[.cuda_places]") {
  for (const PlaceTried& tried : places_of_driver())
    std::printf("%s: %s\n", tried.place.c_str(), tried.why.c_str());
}

TEST_CASE("a driver that is missing is an error with all places", "[cuda]") {
  if (has_driver()) {
    int count = 0;
    CHECK(driver().cuDeviceGetCount(&count) == 0);
    return;
  }
  try {
    static_cast<void>(driver());
    FAIL("no error");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::device);
    const std::string message = error.what();
    CHECK(message.find("libcuda.so.1 by the loader") != std::string::npos);
    CHECK(message.find("Install NVIDIA's driver") != std::string::npos);
  }
}

TEST_CASE("NVRTC is of version 12 or 13", "[cuda][nvrtc]") {
  if (lacks_nvrtc()) return;
  CHECK(nvrtc_version() / 1000 >= 12);
  CHECK(nvrtc_version() / 1000 <= 13);
  CHECK(places_of_nvrtc().back().why.empty());
}
