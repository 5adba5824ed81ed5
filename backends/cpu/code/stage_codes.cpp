#include "backends/cpu/code/stage_codes.h"

#include "backends/cpu/code/elf_object.h"
#include "backends/cpu/code/jit_dump.h"
#include "backends/cpu/code/perf_map.h"
#include "core/clock.h"
#include "core/kernel.h"

#include <cstdint>
#include <string>

namespace nitinol::cpu {

StageCodes load_stages(const GeneratedObject& generated, const Kernel& kernel) {
  const double start = precise_now();
  StageCodes codes = {.object = load_object(generated.bytes), .report = generated.report};
  CodeSymbols symbols = {
      .functions = {}, .unwind = codes.object.unwind, .line = source_line(kernel.making.place)};
  const std::size_t stage_count = kernel.stages.size();
  for (std::size_t s = 0; s < stage_count; ++s) {
    const std::string name = stage_name(s);
    const auto found = codes.object.functions.find(name);
    if (found == codes.object.functions.end()) reject_object("it lacks the function " + name);
    // Functions cannot be converted to from data pointers otherwise.
    codes.stages.push_back({.function = reinterpret_cast<host::StageFunction>(
                                reinterpret_cast<std::uintptr_t>(found->second.data()))});
    symbols.functions.push_back({symbol_name(kernel.making.name, s, stage_count), found->second});
  }
  map_for_perf(symbols);
  dump_for_perf(symbols);
  codes.debugger = DebuggerEntry(symbols);
  codes.report.link_s = precise_now() - start;
  codes.report.code_bytes = codes.object.code_bytes;
  return codes;
}

}  // namespace nitinol::cpu
