#include "tracer/transaction.h"

#include <algorithm>

namespace nitinol::tracer {

Tensor Transaction::run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) {
  return below_.run(op, inputs, attrs, spec);
}

void Transaction::read(const Tensor& tensor, const ReadSite& site) {
  below_.read(tensor, site);
}

const Tensor* Transaction::assigned(const Variable& variable) const {
  for (const Assignment& assignment : assignments_) {
    if (assignment.variable == variable) return &assignment.value;
  }
  return nullptr;
}

Tensor Transaction::get(const Variable& variable) {
  if (const Tensor* value = assigned(variable)) return *value;
  return below_.get(variable);
}

void Transaction::set(const Variable& variable, const Tensor& value) {
  for (Assignment& assignment : assignments_) {
    if (assignment.variable == variable) {
      assignment.value = value;
      return;
    }
  }
  assignments_.push_back({variable, value});
}

void Transaction::created(const Tensor& tensor) {
  below_.created(tensor);
}

void Transaction::guard(const HostValueGuard& guard) {
  below_.guard(guard);
}

void Transaction::commit() {
  for (const Assignment& assignment : assignments_)
    below_.set(assignment.variable, assignment.value);
  assignments_.clear();
}

}  // namespace nitinol::tracer
