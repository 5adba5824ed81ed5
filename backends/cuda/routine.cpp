#include "backends/cuda/executables.h"
#include "core/error.h"
#include "core/library.h"

#include <string>

namespace nitinol::cuda {

std::unique_ptr<Executable> make_routine(Gpu& /*gpu*/, const LibraryCall& call) {
  throw Error(ErrorKind::unsupported, {.where = std::string(name_of(call.kind)),
                                       .what = "a GPU of NVIDIA's does not run it",
                                       .fix = "Move its operands by .to(nitinol::Device{})."});
}

}  // namespace nitinol::cuda
