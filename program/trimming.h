// Trimming: convolutions whose last rows and columns nobody reads.
#pragma once

#include "program/draft.h"

namespace nitinol::program {

/// Lets convolutions, and what is computed of them element by element, make only the rows and
/// columns that the windows reach which read them, where the device gives these the same bits.
/// Their specs are smaller from then on than what their ops infer, and nothing infers again.
void trim_images(ProgramDraft& draft);

}  // namespace nitinol::program
