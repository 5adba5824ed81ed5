// Which of a formula's native loops runs. By itself, so that those who only hold loops need not
// read about instruction sets.
#pragma once

#include "core/isa.h"
#include "core/loops.h"

namespace nitinol {

inline Loop Loops::at(Isa isa) const {
  switch (isa) {
    case Isa::baseline:
      return baseline;
    case Isa::avx2:
      return avx2;
    case Isa::avx512:
      return avx512;
  }
  return baseline;
}

inline Loop Loops::pick() const {
  return at(current_isa());
}

}  // namespace nitinol
