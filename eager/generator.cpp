#include "core/generator.h"

#include "core/interpreter.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/create.h"

namespace nitinol {
namespace {

Tensor start_of(uint64_t seed) {
  return tensor({static_cast<int64_t>(seed), int64_t{0}});
}

}  // namespace

Generator::Generator(uint64_t seed) : state_(start_of(seed)) {}

void Generator::manual_seed(uint64_t seed) const {
  state_.set(start_of(seed));
}

Tensor Generator::draw(int64_t count) const {
  const UpdateScope update(state_);
  const Tensor state = state_.get();
  state_.set(state + tensor({int64_t{0}, count}));
  return state;
}

const Generator& default_generator() {
  // Its first use may be inside a recorded call, of which it is no part.
  static const Generator& generator = *[] {
    const InterpreterScope scope(base_interpreter());
    return new Generator(0);  // never destroyed: others may draw while the process ends
  }();
  return generator;
}

}  // namespace nitinol
