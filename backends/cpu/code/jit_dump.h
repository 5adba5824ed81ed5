// The file from which `perf inject --jit` gets generated code, with names and lines.
#pragma once

#include "backends/cpu/code/code_symbols.h"

namespace nitinol::cpu {

/// Adds the functions to <folder>/jit-<process>.dump if NITINOL_PERF is 1. The folder is new, for
/// this user alone, in .debug/jit of JITDUMPDIR or else of the home folder. Where no file can be
/// made, or a write fails, a warning is logged, once, and no more is written. Any thread; no fork
/// happens meanwhile (core/fork.h, NoFork). A child begins a file of its own.
void dump_for_perf(const CodeSymbols& symbols);

}  // namespace nitinol::cpu
