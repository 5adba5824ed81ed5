#include "core/dtype.h"

#include <catch2/catch.hpp>

#include <array>

using namespace nitinol;

TEST_CASE("the promotion table is the documented one", "[core][dtype]") {
  // Rows and columns: bool u8 i8 i16 i32 i64 f16 bf16 f32 f64. The Array API within a kind, PyTorch
  // across kinds.
  constexpr std::array<std::array<DType, dtype_count>, dtype_count> table = {{
      {boolean, u8, i8, i16, i32, i64, f16, bf16, f32, f64},
      {u8, u8, i16, i16, i32, i64, f16, bf16, f32, f64},
      {i8, i16, i8, i16, i32, i64, f16, bf16, f32, f64},
      {i16, i16, i16, i16, i32, i64, f16, bf16, f32, f64},
      {i32, i32, i32, i32, i32, i64, f16, bf16, f32, f64},
      {i64, i64, i64, i64, i64, i64, f16, bf16, f32, f64},
      {f16, f16, f16, f16, f16, f16, f16, f32, f32, f64},
      {bf16, bf16, bf16, bf16, bf16, bf16, f32, bf16, f32, f64},
      {f32, f32, f32, f32, f32, f32, f32, f32, f32, f64},
      {f64, f64, f64, f64, f64, f64, f64, f64, f64, f64},
  }};
  for (std::size_t a = 0; a < table.size(); ++a) {
    for (std::size_t b = 0; b < table.size(); ++b) {
      INFO(name_of(static_cast<DType>(a)) << " with " << name_of(static_cast<DType>(b)));
      CHECK(promote(static_cast<DType>(a), static_cast<DType>(b)) == table[a][b]);
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
