#include "core/place.h"

namespace nitinol {
namespace {

constinit thread_local const PlaceScope* innermost = nullptr;

}  // namespace

PlaceScope::PlaceScope(PlaceProvider provider, void* context)
    : provider_(provider), context_(context), outer_(innermost) {
  innermost = this;
}

PlaceScope::~PlaceScope() {
  innermost = outer_;
}

std::string given_place() noexcept {
  if (innermost == nullptr || innermost->provider_ == nullptr) return "";
  try {
    return innermost->provider_(innermost->context_);
  } catch (...) {  // a place is not worth an error of its own
    return "";
  }
}

}  // namespace nitinol
