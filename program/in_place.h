// In place: which outputs are stored where something lies that nobody needs any more.
#pragma once

#include "program/draft.h"

namespace nitinol::program {

/// Decides which of the donations are made use of, and notes it in the steps that store there.
void accept_donations(ProgramDraft& draft);

}  // namespace nitinol::program
