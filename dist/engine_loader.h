// Which MPI the processes were started with, and the module for it.
#pragma once

#include "dist/engine.h"

#include <string>

namespace nitinol::dist {

/// What the environment says of how this process was started.
struct Start {
  std::string library;  ///< "openmpi" or "mpich"; empty: alone
  std::string sign;     ///< by what that was seen: "OMPI_COMM_WORLD_SIZE=4"
  int processes = 0;    ///< as many were started together; 0: it does not say
};
[[nodiscard]] Start found_start();

/// The engine for that. Throws Error(io) if there is none.
[[nodiscard]] Engine& open_engine(const Start& start);

}  // namespace nitinol::dist
