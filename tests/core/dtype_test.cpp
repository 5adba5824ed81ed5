#include "core/dtype.h"

#include "core/error.h"

#include <catch2/catch.hpp>

#include <array>

using namespace nitinol;

TEST_CASE("the promotion table is the documented one", "[core][dtype]") {
  // Rows and columns in the order of the enum. The Array API within a kind, PyTorch across kinds.
  // Bool stands for none: it is no other pair's.
  constexpr DType none = boolean;
  constexpr std::array<std::array<DType, dtype_count>, dtype_count> table = {{
      {boolean, u8, i8, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64},
      {u8, u8, i16, u16, i16, u32, i32, u64, i64, f16, bf16, f32, f64},
      {i8, i16, i8, i32, i16, i64, i32, none, i64, f16, bf16, f32, f64},
      {u16, u16, i32, u16, i32, u32, i32, u64, i64, f16, bf16, f32, f64},
      {i16, i16, i16, i32, i16, i64, i32, none, i64, f16, bf16, f32, f64},
      {u32, u32, i64, u32, i64, u32, i64, u64, i64, f16, bf16, f32, f64},
      {i32, i32, i32, i32, i32, i64, i32, none, i64, f16, bf16, f32, f64},
      {u64, u64, none, u64, none, u64, none, u64, none, f16, bf16, f32, f64},
      {i64, i64, i64, i64, i64, i64, i64, none, i64, f16, bf16, f32, f64},
      {f16, f16, f16, f16, f16, f16, f16, f16, f16, f16, f32, f32, f64},
      {bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16, bf16, f32, bf16, f32, f64},
      {f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f32, f64},
      {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
  }};
  for (std::size_t a = 0; a < table.size(); ++a) {
    for (std::size_t b = 0; b < table.size(); ++b) {
      const auto x = static_cast<DType>(a), y = static_cast<DType>(b);
      INFO(name_of(x) << " with " << name_of(y));
      if (table[a][b] == none && (x != boolean || y != boolean))
        CHECK_THROWS_AS(promote(x, y), Error);
      else
        CHECK(promote(x, y) == table[a][b]);
    }
  }
}

TEST_CASE("dtypes are found by both of their names", "[core][dtype]") {
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    CHECK(dtype_named(name_of(dtype)) == dtype);
    CHECK(dtype_named(short_name_of(dtype)) == dtype);
  }
  CHECK(!dtype_named("complex64"));
}
