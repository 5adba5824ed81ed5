// A place in code that is not C++: what a binding gives, so that errors, fallbacks and explain()
// name its user's line ("model.py:42") and not one of its own, or an address.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

/// Tells where the calling thread is in the other language's code; empty if it is not in any.
using PlaceProvider = std::string (*)(void* context);

/// While it lives, places on this thread are those that `provider` gives; where it gives none, they
/// are found as without it. The innermost scope counts.
///
/// A provider costs nothing until a place is needed: when a recording meets what it cannot follow
/// or looks at a Scalar, and when an Error's location() or what() is first asked for, by the thread
/// that made it. So a binding looks at an Error in a scope, before it leaves the call. No lock of
/// the library is held then but those that user code runs under. What a provider throws is ignored.
class PlaceScope {
 public:
  explicit PlaceScope(PlaceProvider provider, void* context = nullptr);
  ~PlaceScope();
  PlaceScope(const PlaceScope&) = delete;
  PlaceScope& operator=(const PlaceScope&) = delete;

 private:
  friend std::string given_place() noexcept;
  PlaceProvider provider_;
  void* context_;
  const PlaceScope* outer_;
};

/// Replaces the provider, none at first, that profiles ask on threads which have no PlaceScope. Any
/// thread may call it, so it must know whether it is in the other language's code.
void set_default_place_provider(PlaceProvider provider) noexcept;
/// What that says; empty without one.
[[nodiscard]] std::string default_place() noexcept;

/// Where the user's code is while the library works for it, to be told later.
class CallSite {
 public:
  [[nodiscard]] static CallSite here();
  /// The same, with default_place() where no PlaceScope says more. Where a OnePlaceScope is open
  /// that is what it has found, while it lives; else `own`, which is set.
  static const CallSite& here_or_default(std::optional<CallSite>& own);
  /// As Error::location(). Looks addresses up at each use.
  [[nodiscard]] std::string text() const;
  /// Appends what tells it from others.
  void append_to(std::string& key) const;
  [[nodiscard]] std::size_t hash() const;
  friend bool operator==(const CallSite&, const CallSite&) = default;

 private:
  std::string given_;               ///< by a PlaceProvider, which can be asked at once only
  std::vector<const void*> calls_;  ///< else: return addresses, the innermost first
};

/// While it lives, CallSite::here() and here_or_default() on this thread are what they were when
/// one was first asked: one walk over the stack for library code of many operations. User code that
/// runs in it would be given a wrong place.
class OnePlaceScope {
 public:
  OnePlaceScope() : OnePlaceScope(own_) {}
  /// The place is `place`, which is filled at the first question if it is empty.
  explicit OnePlaceScope(std::optional<CallSite>& place);
  ~OnePlaceScope();
  OnePlaceScope(const OnePlaceScope&) = delete;
  OnePlaceScope& operator=(const OnePlaceScope&) = delete;

 private:
  std::optional<CallSite> own_;
  std::optional<CallSite>* outer_;
};

/// What this thread's provider says; empty without one.
[[nodiscard]] std::string given_place() noexcept;

}  // namespace nitinol

#pragma GCC visibility pop
