#include "core/place.h"

#include "core/hash.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

namespace nitinol {
namespace {

constinit thread_local const PlaceScope* innermost = nullptr;

constinit std::atomic<PlaceProvider> default_provider = nullptr;

std::string asked(PlaceProvider provider, void* context) noexcept {
  if (provider == nullptr) return "";
  try {
    return provider(context);
  } catch (...) {  // a place is not worth an error of its own
    return "";
  }
}

}  // namespace

PlaceScope::PlaceScope(PlaceProvider provider, void* context)
    : provider_(provider), context_(context), outer_(innermost) {
  innermost = this;
}

PlaceScope::~PlaceScope() {
  innermost = outer_;
}

std::string given_place() noexcept {
  return innermost != nullptr ? asked(innermost->provider_, innermost->context_) : "";
}

void set_default_place_provider(PlaceProvider provider) noexcept {
  default_provider.store(provider, std::memory_order_release);
}

std::string default_place() noexcept {
  if (innermost != nullptr) return "";
  return asked(default_provider.load(std::memory_order_acquire), nullptr);
}

void CallSite::append_to(std::string& key) const {
  key += given_;
  key.append(reinterpret_cast<const char*>(calls_.data()), calls_.size() * sizeof(calls_[0]));
}

std::size_t CallSite::hash() const {
  Hash hash;
  hash.add(std::hash<std::string>()(given_));
  for (const void* const call : calls_) hash.add(reinterpret_cast<uintptr_t>(call));
  return hash.result();
}

}  // namespace nitinol
