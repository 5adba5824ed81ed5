// In place: which values are stored where something lies that nobody needs any more.
#pragma once

#include "program/draft.h"

namespace nitinol::program {

/// Decides which of the donations are made use of, and notes it in the steps that store there.
void accept_donations(ProgramDraft& draft);

/// Finds temporaries that kernels store where another one lies, which they are the last to read:
/// its lines are in the cache, and need not be fetched for the result. Called when steps have their
/// order.
void share_places(ProgramDraft& draft);

}  // namespace nitinol::program
