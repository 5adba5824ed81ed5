// Many small products at once against one after another.
#include "backends/host/matmul_small.h"

#include "backends/host/convert.h"
#include "core/word.h"

#include <catch2/catch.hpp>

#include <array>
#include <cstring>
#include <random>
#include <vector>

using namespace nitinol;

namespace {

double real(std::mt19937_64& numbers) {
  return std::uniform_real_distribution(-2.0, 2.0)(numbers);
}

/// `count` matrices with gaps, by columns or not, or one for all of them.
struct Matrices {
  std::vector<std::byte> memory;
  host::MatrixView view;
  int64_t step;

  Matrices(DType dtype, int64_t rows, int64_t columns, int64_t count, int64_t way,
           std::mt19937_64& numbers)
      : view({.row = way == 1 ? 1 : columns + way, .column = way == 1 ? rows : 1}),
        step(way == 3 ? 0 : rows * (columns + way)) {
    const int64_t elements = rows * (columns + way) * count + 1;
    memory.resize(static_cast<std::size_t>(elements) * size_of(dtype));
    std::vector<float> values(static_cast<std::size_t>(elements));
    for (float& value : values) value = static_cast<float>(real(numbers));
    if (dtype == f32 || dtype == f16 || dtype == bf16)
      host::scatter_of(dtype)(values.data(), reinterpret_cast<char*>(memory.data()),
                              static_cast<int64_t>(size_of(dtype)), elements);
    else
      for (int64_t i = 0; i < elements; ++i) {
        const double value = real(numbers);
        const uint64_t number = numbers();
        std::memcpy(memory.data() + static_cast<std::size_t>(i) * size_of(dtype),
                    dtype == f64 ? static_cast<const void*>(&value) : &number, size_of(dtype));
      }
    view.data = memory.data();
  }
  /// Matrix number `i`.
  [[nodiscard]] host::MatrixView at(DType dtype, int64_t i) const {
    host::MatrixView result = view;
    result.data = static_cast<char*>(view.data) + i * step * static_cast<int64_t>(size_of(dtype));
    return result;
  }
};

}  // namespace

TEST_CASE("many small products have the bits of one after another", "[matmul]") {
  std::mt19937_64 numbers(3);
  for (const DType dtype : {f32, f64, i8, u16, i32, i64}) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{3, 3, 3}, {1, 5, 2}, {4, 1, 4}, {8, 8, 8}}) {
      for (const int64_t count : {16, 31, 32, 33, 100, 3000}) {
        for (int64_t way = 0; way < 4; ++way) {
          CAPTURE(name_of(dtype), m, n, k, count, way);
          REQUIRE(host::are_many_small(m, n, k, count));
          const Matrices a(dtype, m, k, count, way, numbers);
          const Matrices b(dtype, k, n, count, (way + 1) % 4, numbers);
          const Matrices c(dtype, m, n, count, way % 3, numbers);
          Matrices expected = c;
          expected.view.data = expected.memory.data();
          for (int64_t i = 0; i < count; ++i)
            host::multiply(dtype,
                           {.m = m,
                            .n = n,
                            .k = k,
                            .a = a.at(dtype, i),
                            .b = b.at(dtype, i),
                            .c = expected.at(dtype, i)},
                           1);
          host::multiply_many(dtype,
                              {.m = m, .n = n, .k = k, .a = a.view, .b = b.view, .c = c.view},
                              {a.step, b.step, c.step}, count, 2);
          CHECK(c.memory == expected.memory);
        }
      }
    }
  }
  CHECK_FALSE(host::are_many_small(3, 3, 3, 15));
  CHECK_FALSE(host::are_many_small(8, 8, 9, 100));
}

TEST_CASE("many small products of 16 bits are rounded once", "[matmul]") {
  std::mt19937_64 numbers(4);
  constexpr int64_t size = 4, count = 40;
  for (const DType dtype : {f16, bf16}) {
    const Matrices a(dtype, size, size, count, 0, numbers), b(dtype, size, size, count, 1, numbers);
    const Matrices c(dtype, size, size, count, 0, numbers);
    host::multiply_many(dtype,
                        {.m = size, .n = size, .k = size, .a = a.view, .b = b.view, .c = c.view},
                        {a.step, b.step, c.step}, count, 1);
    const auto value = [&](const Matrices& of, int64_t item, int64_t row, int64_t column) {
      float result = 0;
      const int64_t at = item * of.step + row * of.view.row + column * of.view.column;
      host::gather_of(dtype)(static_cast<const char*>(of.view.data) + 2 * at, 2, &result, 1);
      return result;
    };
    for (int64_t item = 0; item < count; ++item) {
      for (int64_t i = 0; i < size; ++i) {
        for (int64_t j = 0; j < size; ++j) {
          float sum = 0;
          for (int64_t k = 0; k < size; ++k) sum += value(a, item, i, k) * value(b, item, k, j);
          uint16_t rounded = 0, found = 0;
          host::scatter_of(dtype)(&sum, reinterpret_cast<char*>(&rounded), 2, 1);
          const int64_t at = item * c.step + i * c.view.row + j * c.view.column;
          std::memcpy(&found, static_cast<const char*>(c.view.data) + 2 * at, 2);
          CHECK(found == rounded);
        }
      }
    }
  }
}
