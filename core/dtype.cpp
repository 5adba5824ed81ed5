#include "core/dtype.h"

#include <array>
#include <utility>

namespace nitinol {
namespace {

struct Info {
  std::string_view name, short_name;
  ScalarType compute;
};

constexpr std::array<Info, dtype_count> infos = {{
    {"bool", "bool", ScalarType::pred},
    {"uint8", "u8", ScalarType::u8},
    {"int8", "i8", ScalarType::i8},
    {"int16", "i16", ScalarType::i16},
    {"int32", "i32", ScalarType::i32},
    {"int64", "i64", ScalarType::i64},
    {"float16", "f16", ScalarType::f32},
    {"bfloat16", "bf16", ScalarType::f32},
    {"float32", "f32", ScalarType::f32},
    {"float64", "f64", ScalarType::f64},
}};

const Info& info(DType dtype) {
  return infos[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::string_view name_of(DType dtype) {
  return info(dtype).name;
}

std::string_view short_name_of(DType dtype) {
  return info(dtype).short_name;
}

std::ostream& operator<<(std::ostream& stream, DType dtype) {
  return stream << name_of(dtype);
}

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (infos[i].name == name || infos[i].short_name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return floating.contains(dtype);
}

bool is_integer(DType dtype) {
  return integers.contains(dtype);
}

DType promote(DType a, DType b) {
  if (a == b) return a;
  if (a > b) std::swap(a, b);  // from here on a < b in the order bool, ints, floats
  if (a == u8 && b == i8) return i16;
  if (a == f16 && b == bf16) return f32;
  return b;
}

ScalarType compute_type(DType dtype) {
  return info(dtype).compute;
}

}  // namespace nitinol
