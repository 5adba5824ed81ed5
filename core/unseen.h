// Unseen: work of the library's own on a user's tensors, of which nobody is told.
#pragma once

#include "core/interpreter.h"
#include "core/profiling.h"
#include "core/result_check.h"

namespace nitinol {

/// While it lives, what this thread computes is seen by no recording, tape, profile or check.
class Unseen {
 public:
  Unseen() : scope_(base_interpreter()), before_(set_result_check(ResultCheck::none)) {}
  ~Unseen() { set_result_check(before_); }
  Unseen(const Unseen&) = delete;
  Unseen& operator=(const Unseen&) = delete;

 private:
  InterpreterScope scope_;
  profiling::Pause pause_;
  ResultCheck before_;
};

}  // namespace nitinol
