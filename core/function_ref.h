// A reference to something callable: what a parameter is that is only called during the call.
#pragma once

#include <memory>
#include <type_traits>
#include <utility>

#pragma GCC visibility push(default)

namespace nitinol {

template <class Signature>
class FunctionRef;

/// Does not own what it refers to, which must outlive it. Two words, no allocation.
template <class Result, class... Args>
class FunctionRef<Result(Args...)> {
 public:
  template <class F,
            class = std::enable_if_t<!std::is_same_v<std::remove_cvref_t<F>, FunctionRef> &&
                                     !std::is_function_v<std::remove_reference_t<F>> &&
                                     std::is_invocable_r_v<Result, F&, Args...>>>
  // NOLINTNEXTLINE(google-explicit-constructor): the point is to pass a lambda
  FunctionRef(F&& function) noexcept
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(function)))),
        call_([](void* object, Args... args) -> Result {
          return (*static_cast<std::remove_reference_t<F>*>(object))(std::forward<Args>(args)...);
        }) {}

  Result operator()(Args... args) const { return call_(object_, std::forward<Args>(args)...); }

 private:
  void* object_;
  Result (*call_)(void*, Args...);
};

}  // namespace nitinol

#pragma GCC visibility pop
