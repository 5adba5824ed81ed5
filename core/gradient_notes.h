// Whether autograd listens, for who would make short what it has to see.
#pragma once

namespace nitinol {

/// Whether note_gradient() (core/interpreter.h) does anything on this thread: not without
/// gradients, nor while a backward pass runs that will not be differentiated itself.
/// (autograd/tape.cpp)
[[nodiscard]] bool notes_gradients();

}  // namespace nitinol
