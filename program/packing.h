// Packing: operands b of matrix products that are packed once for all products that read them.
#pragma once

#include "program/draft.h"

namespace nitinol::program {

/// Lets products that read one operand b read it packed, where the device gains by that: packed by
/// a step of each call before the first of them, or kept from call to call, if calls use it too
/// seldom for that and it may still be the same at the next one.
void pack_operands(ProgramDraft& draft);

}  // namespace nitinol::program
