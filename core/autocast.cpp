#include "core/autocast.h"

#include "core/thread_settings.h"

#include <utility>

namespace nitinol {
namespace {

constinit thread_local DType thread_dtype = f32;

}  // namespace

DType autocast_dtype() {
  bring_settings_up_to_date();
  return thread_dtype;
}

DType set_autocast_dtype(DType dtype) {
  return std::exchange(thread_dtype, dtype);
}

AutocastScope::AutocastScope(DType dtype) : before_(autocast_dtype()) {
  set_autocast_dtype(dtype);
}

}  // namespace nitinol
