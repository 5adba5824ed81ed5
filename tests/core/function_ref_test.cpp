#include "core/function_ref.h"

#include <catch2/catch.hpp>

#include <memory>
#include <type_traits>

using namespace nitinol;

namespace {

int twice(FunctionRef<int(int)> f, int x) {
  return f(f(x));
}

}  // namespace

TEST_CASE("FunctionRef calls what it refers to, without copying it", "[core]") {
  int calls = 0;
  const auto counting = [&calls, unique = std::make_unique<int>(3)](int x) {
    ++calls;
    return x + *unique;
  };
  CHECK(twice(counting, 1) == 7);
  CHECK(calls == 2);
  auto with_state = [n = 0](int x) mutable { return x + ++n; };
  CHECK(twice(with_state, 0) == 3);
}

TEST_CASE("FunctionRef takes what fits its signature only", "[core]") {
  STATIC_REQUIRE(std::is_constructible_v<FunctionRef<void()>, void (*&)()>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<FunctionRef<void(int)>, void (*&)()>);
}
