#include "backends/cpu/library_calls.h"

#include "backends/reference/routines.h"

namespace nitinol::cpu {

std::unique_ptr<Executable> prepare_call(const LibraryCall& call) {
  return reference::make_routine(call);
}

}  // namespace nitinol::cpu
