// What a Program does with memory, and its code as text: for explain() and its page.
#pragma once

#include "program/program.h"
#include "program/report.h"

#include <cstddef>
#include <string>
#include <vector>

namespace nitinol::program {

/// Adds to the report of `program` what lies in memory and which of its steps read and write it.
void describe_values(const Program& program, Report& report);

/// The Kernel of step `step` of the report, as text; empty if it is a library's call.
[[nodiscard]] std::string kernel_text(const Program& program, std::size_t step);
/// The code of that step, see Executable::code_texts().
[[nodiscard]] std::vector<CodeText> code_texts(const Program& program, std::size_t step);

}  // namespace nitinol::program
