// tests/dist/main.cpp -- Tests of what several processes do together: each rank runs all cases.
//
//     mpirun -n 3 nitinol_dist_tests
#define CATCH_CONFIG_RUNNER  // NOLINT(readability-identifier-naming): Catch's
#include "nitinol.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  setenv("NITINOL_CACHE", "0", 0);
  // A rank that waits for one whose case has failed is to say so before the whole test is given up.
  setenv("NITINOL_DIST_TIMEOUT", "60", 0);
  if (std::getenv("NITINOL_TEST_MESSAGES") != nullptr) {  // all know of one that shares no memory
    for (const char* const number : {"OMPI_COMM_WORLD_RANK", "PMI_RANK"}) {
      const char* const rank = std::getenv(number);
      if (rank != nullptr && std::strcmp(rank, "1") == 0) setenv("NITINOL_DIST_MEMORY", "0", 1);
    }
  }
  nitinol::dist::init();
  // Each rank on one of so many GPUs.
  if (const char* const gpus = std::getenv("NITINOL_TEST_GPUS")) {
    const int number = nitinol::dist::local_rank() % std::atoi(gpus);
    nitinol::set_default_device({nitinol::Device::Kind::cuda, static_cast<int8_t>(number)});
  }
  Catch::Session session;
  if (const int code = session.applyCommandLine(argc, argv); code != 0) return code;
  if (nitinol::dist::world().rank() != 0) session.configData().reporterName = "compact";
  return session.run() == 0 ? 0 : 1;
}
