// Steps: what of a graph becomes which launch or call.
#pragma once

#include "fusion/units.h"
#include "program/draft.h"

#include <memory>
#include <optional>

namespace nitinol::program {

/// The call that backends know by name, with operands laid out exactly as eager's. Nothing if the
/// node is none, or if views are in the way.
[[nodiscard]] std::optional<LibraryCall> library_call_of(const ProgramDraft& draft, Value v);

/// Appends the steps of a group or node; none for what has no elements. False if neither a kernel
/// nor a library computes it.
[[nodiscard]] bool add_steps(ProgramDraft& draft, const fusion::Unit& unit);

/// Adds a Node::origin to those of a step, once.
void note_origin(StepReport& report, uint32_t origin);

/// The executable for a step; what it cost is noted in `report`. Any thread.
[[nodiscard]] std::shared_ptr<const Executable> prepare(Backend& device, const Step& step,
                                                        StepReport& report);

}  // namespace nitinol::program
