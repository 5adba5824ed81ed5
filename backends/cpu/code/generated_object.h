// GeneratedObject: what a code generator hands over, and what is kept on disk.
#pragma once

#include "core/build_report.h"

#include <cstddef>
#include <string>
#include <vector>

namespace nitinol::cpu {

/// The object file of a kernel (stage_codes.h loads it), whose functions stage_name(s) are
/// host::StageFunctions, and what making it cost.
struct GeneratedObject {
  std::vector<std::byte> bytes;
  BuildReport report;
};

/// The function of kernel.stages[stage].
inline std::string stage_name(std::size_t stage) {
  return "stage" + std::to_string(stage);
}

}  // namespace nitinol::cpu
