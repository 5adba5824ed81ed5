#include "jit/build_info.h"

#include "core/backend.h"
#include "core/isa.h"
#include "core/parallel.h"

#include <fmt/format.h>

namespace nitinol {

std::string build_info() {
  const bool generates = backend(Device{}).can_generate_code();
  return fmt::format(
      "nitinol {}\n"
      "compiler: {}\n"
      "instruction set: {} (host: {}; NITINOL_ISA lowers it)\n"
      "threads: {}\n"
      "code generation: {}\n",
      NITINOL_VERSION, __VERSION__, name_of(current_isa()), name_of(host_isa()), num_threads(),
      generates ? "LLVM" : "none: compile() interprets its kernels (reference backend)");
}

}  // namespace nitinol
