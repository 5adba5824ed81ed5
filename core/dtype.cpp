#include "core/dtype.h"

#include "core/error.h"

#include <fmt/format.h>

#include <utility>

namespace nitinol {
namespace {

/// Of the integers the narrowest that holds both, or nothing.
std::optional<DType> joined_integers(DType a, DType b) {
  if (is_unsigned(a) == is_unsigned(b)) return size_of(a) >= size_of(b) ? a : b;
  if (is_unsigned(b)) std::swap(a, b);
  for (const DType dtype : {i8, i16, i32, i64}) {
    if (size_of(dtype) > size_of(a) && size_of(dtype) >= size_of(b)) return dtype;
  }
  return std::nullopt;
}

}  // namespace

std::string_view name_of(DType dtype) {
  return info_of(dtype).name;
}

std::string_view short_name_of(DType dtype) {
  return info_of(dtype).short_name;
}

std::ostream& operator<<(std::ostream& stream, DType dtype) {
  return stream << name_of(dtype);
}

std::optional<DType> dtype_named(std::string_view name) {
  for (std::size_t i = 0; i < dtype_infos.size(); ++i) {
    const DTypeInfo& info = dtype_infos[i];
    if (info.name == name || info.short_name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool is_floating(DType dtype) {
  return floating.contains(dtype);
}

bool is_integer(DType dtype) {
  return integers.contains(dtype);
}

bool is_unsigned(DType dtype) {
  return unsigned_integers.contains(dtype);
}

DType promote_others(DType a, DType b) {
  if (b == boolean) return a;
  if (a == boolean) return b;
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  if (is_floating(a)) return size_of(a) == size_of(b) ? f32 : size_of(a) > size_of(b) ? a : b;
  if (const std::optional<DType> joined = joined_integers(a, b)) return *joined;
  if (is_unsigned(b)) std::swap(a, b);
  throw Error(ErrorKind::dtype,
              {.where = "promote",
               .what = "no integer dtype holds both",
               .expected = "dtypes that meet in one",
               .got = fmt::format("{} and {}", name_of(a), name_of(b)),
               .fix = fmt::format("Cast one of them, for example x.to({}).", short_name_of(b))});
}

}  // namespace nitinol
