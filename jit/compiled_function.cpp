#include "jit/compiled_function.h"

#include "core/autocast.h"
#include "jit/dispatcher.h"

namespace nitinol::jit {
namespace {

/// f() in the scope that CompileOptions::autocast asks for, if any.
template <class F>
void scoped(const std::optional<DType>& dtype, const F& f) {
  if (!dtype) [[likely]]
    return f();
  const AutocastScope scope(*dtype);
  f();
}

}  // namespace

CompiledFunction::CompiledFunction(CompileOptions options, bool is_const)
    : autocast_(options.autocast),
      dispatcher_(std::make_unique<Dispatcher>(std::move(options), is_const)) {}

CompiledFunction::~CompiledFunction() = default;

void CompiledFunction::call(const Leaves& leaves, Caller& caller) {
  scoped(autocast_, [&] { dispatcher_->call(leaves, caller); });
}

void CompiledFunction::call_eagerly(const Leaves& leaves, Caller& caller) {
  scoped(autocast_, [&] { dispatcher_->call_eagerly(leaves, caller); });
}

void CompiledFunction::call_inlined(Caller& caller) {
  scoped(autocast_, [&] { dispatcher_->call_inlined(caller); });
}

void CompiledFunction::forget_ended() {
  dispatcher_->forget_ended();
}

Explanation CompiledFunction::explain() const {
  return dispatcher_->explain();
}

void CompiledFunction::set_stance(int stance) {
  dispatcher_->set_stance(stance);
}

}  // namespace nitinol::jit
