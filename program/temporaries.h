// Temporaries: values that live in the arena of a run.
#pragma once

#include "program/draft.h"

namespace nitinol::program {

/// Puts each value that steps of the program touch, and that has no place yet, into the arena, from
/// the launch that first touches it up to the last that does.
void place_temporaries(ProgramDraft& draft);

}  // namespace nitinol::program
