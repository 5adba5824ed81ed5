// Objects as the code generator makes them now, with one bit wrong or an end missing.

#include "backends/cpu/code/code_arena.h"
#include "core/error.h"
#include "core/math.h"
#include "tests/backends/cpu/jit/kernel_case.h"
#include "tests/backends/kernels.h"
#include "tests/hostile_files.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

using namespace nitinol;
using namespace nitinol::testing;

namespace {

std::vector<uint8_t> object_of(const Kernel& kernel, Isa isa) {
  const cpu::GeneratedObject object = plugin().generate(kernel, isa, cpu::Effort::full);
  const auto* const first = reinterpret_cast<const uint8_t*>(object.bytes.data());
  return {first, first + object.bytes.size()};
}

/// Several sections, relocations between them, and calls of fma at the lowest level.
Kernel with_constants() {
  return elementwise({f64, f64}, f64,
                     [](const std::vector<Expr>& in) { return fma(in[0], in[1], abs(in[0])) * 3; });
}

}  // namespace

TEST_CASE("an object with one bit wrong is loaded or refused, and nothing else happens",
          "[no-isa]") {
  const std::size_t in_use = cpu::code_arena().in_use();
  for (const Kernel& kernel :
       {with_constants(), test::reduction(Combine::maximum, f32, f32, Order::lanes)}) {
    for (const Isa isa : isa_levels()) {
      std::vector<uint8_t> object = object_of(kernel, isa);
      REQUIRE(test::loads(object));
      int loaded = 0;
      for (std::size_t bit = 0; bit < 8 * object.size(); ++bit) {
        const auto mask = static_cast<uint8_t>(1U << bit % 8);
        object[bit / 8] ^= mask;
        loaded += test::loads(object) ? 1 : 0;
        object[bit / 8] ^= mask;
      }
      CHECK(loaded > 100);                                        // changes of code alone
      CHECK(loaded < 8 * static_cast<int>(object.size()) - 100);  // and of what is checked
    }
  }
  CHECK(cpu::code_arena().in_use() == in_use);
}

TEST_CASE("an object that was cut short is refused", "[no-isa]") {
  const std::vector<uint8_t> object = object_of(with_constants(), isa_levels().front());
  const std::size_t in_use = cpu::code_arena().in_use();
  for (std::size_t size = 0; size < object.size(); ++size) {
    INFO(size << " of " << object.size());
    CHECK_FALSE(test::loads(std::span(object).first(size)));
  }
  CHECK(cpu::code_arena().in_use() == in_use);
}

TEST_CASE("code that lacks a stage is refused", "[no-isa]") {
  const cpu::GeneratedObject object =
      plugin().generate(with_constants(), isa_levels().front(), cpu::Effort::full);
  Kernel kernel = with_constants();
  CHECK(cpu::load_stages(object, kernel).stages.size() == 1);
  kernel.stages.emplace_back();
  CHECK_THROWS_WITH(cpu::load_stages(object, kernel),
                    Catch::Contains("it lacks the function stage1"));
}
