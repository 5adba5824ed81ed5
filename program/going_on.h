// Steps that wait for other processes go on beside those that do not need them.
#pragma once

#include "program/draft.h"

namespace nitinol::program {

/// Says of collectives of much, which other steps may come between, before which step they are
/// waited for: the first that touches what they write or writes what they read, or that stores over
/// donated memory. To be called when the steps have their order.
void let_go_on(ProgramDraft& draft);

}  // namespace nitinol::program
