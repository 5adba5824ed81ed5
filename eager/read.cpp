// Reading a tensor from host code: item, to_vector, data, bool.
//
// Each asks the thread's interpreter first (eager/host_read.h), which is how a compiled function
// learns that its host code depends on a computed value.

#include "core/error.h"
#include "core/native.h"
#include "core/parallel.h"
#include "core/pending.h"
#include "core/tensor.h"
#include "eager/elements.h"
#include "eager/host_read.h"

#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace nitinol {
namespace {

using eager::host_read;
using eager::located;

/// "int64_t": how host code spells the type of an element.
std::string_view host_type_of(DType dtype) {
  constexpr auto names = std::to_array<std::string_view>(
      {"bool", "uint8_t", "int8_t", "uint16_t", "int16_t", "uint32_t", "int32_t", "uint64_t",
       "int64_t", "float", "double"});
  return names[static_cast<std::size_t>(compute_type(dtype))];
}

template <class T>
T number_as(const Scalar& number) {
  switch (number.kind()) {
    case Scalar::Kind::boolean:
    case Scalar::Kind::integer:
      return number.is_beyond_int64() ? native::convert<T>(number.bits())
                                      : native::convert<T>(number.to_integer());
    case Scalar::Kind::real:
      break;
  }
  return native::convert<T>(number.to_double());
}

template <class T>
T only_element(const Tensor& tensor, const ReadSite& site) {
  const TensorData& data = tensor.internals();
  if (element_count(data.spec.shape) != 1) {
    throw Error(ErrorKind::shape,
                {.where = site.what,
                 .what = fmt::format("{} is not a single value", describe(data.spec)),
                 .expected = "1 element",
                 .got = std::to_string(element_count(data.spec.shape)),
                 .fix = "Reduce it first (sum, mean, any, all, ...) or index one element."});
  }
  const HostElements elements = host_read(tensor, site);
  const DefaultFloatMode mode;  // so that denormal numbers arrive
  return number_as<T>(number_at(data.spec.dtype, elements.first()));
}

/// The fix for a wrong T names the call that is right.
[[noreturn]] void throw_wrong_type(const char* where, DType asked, const Spec& spec,
                                   const std::string& fix) {
  throw Error(ErrorKind::value,
              {.where = fmt::format("{}<{}>()", where, host_type_of(asked)),
               .what = fmt::format("the elements of {} are not read as {}", describe(spec),
                                   host_type_of(asked)),
               .expected = fmt::format("{}<{}>()", where, host_type_of(spec.dtype)),
               .got = fmt::format("{}<{}>()", where, host_type_of(asked)),
               .fix = fix});
}

bool is_16_bit_float(DType dtype) {
  return dtype == f16 || dtype == bf16;
}

/// The 16-bit formats widen, which is exact.
std::vector<float> widened(const HostElements& elements) {
  const auto count = static_cast<std::size_t>(element_count(elements.spec().shape));
  std::vector<uint16_t> stored(count);
  elements.copy_to(reinterpret_cast<std::byte*>(stored.data()));
  std::vector<float> result(count);
  const DefaultFloatMode mode;  // so that denormal numbers arrive
  for (std::size_t i = 0; i < count; ++i) {
    result[i] = static_cast<float>(number_at(elements.spec().dtype, &stored[i]).to_double());
  }
  return result;
}

template <class T>
std::vector<T> all_elements(const Tensor& tensor, std::source_location place) {
  const Spec& spec = tensor.spec();
  constexpr DType asked = dtype_of<T>();
  const bool is_widened = asked == f32 && is_16_bit_float(spec.dtype);
  if (spec.dtype != asked && !is_widened) {
    throw_wrong_type(
        "to_vector", asked, spec,
        fmt::format("Ask for its own type, or convert it first: x.to({}).", short_name_of(asked)));
  }
  const HostElements elements = host_read(tensor, {.what = "to_vector()", .place = place});
  if constexpr (std::is_same_v<T, float>) {
    if (is_widened) return widened(elements);
  }
  const auto count = static_cast<std::size_t>(element_count(spec.shape));
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no array to copy to
    const auto bytes = std::make_unique<std::byte[]>(count);
    elements.copy_to(bytes.get());
    std::vector<bool> result(count);
    for (std::size_t i = 0; i < count; ++i) result[i] = bytes[i] != std::byte{0};
    return result;
  } else {
    std::vector<T> result(count);
    elements.copy_to(reinterpret_cast<std::byte*>(result.data()));
    return result;
  }
}

/// The fix names what reads a copy.
void check_on_host(const Tensor& tensor, const ReadSite& site, const std::string& where,
                   const std::string& fix) {
  const TensorData& data = tensor.internals();
  if (is_pending(data)) current().read(tensor, site);
  materialise(data);  // of a call on another thread
  if (!data.storage || data.storage->backend == nullptr) return;
  throw Error(ErrorKind::device,
              {.where = where,
               .what = fmt::format("the memory of {} is not the host's", describe(data.spec)),
               .expected = "a tensor on " + describe(Device{}),
               .got = "one on " + describe(data.spec.device),
               .fix = fix});
}

template <class T>
std::span<const T> elements_in_place(const Tensor& tensor, std::source_location place) {
  const TensorData& data = tensor.internals();
  const Spec& spec = data.spec;
  constexpr DType asked = dtype_of<T>();
  if (is_16_bit_float(spec.dtype)) {
    throw Error(ErrorKind::value,
                {.where = fmt::format("data<{}>()", host_type_of(asked)),
                 .what = fmt::format("C++ has no type for the elements of {}", describe(spec)),
                 .fix = "Read a converted copy: to_vector<float>(), or x.to(f32) and its data."});
  }
  if (spec.dtype != asked) {
    throw_wrong_type(
        "data", asked, spec,
        fmt::format("Ask for its own type, or convert it first: x.to({}).", short_name_of(asked)));
  }
  if (!is_contiguous(spec.shape, data.strides)) {
    throw Error(
        ErrorKind::value,
        {.where = fmt::format("data<{}>()", host_type_of(asked)),
         .what = fmt::format("{} is a view whose elements are not in row-major order in memory",
                             describe(spec)),
         .expected = fmt::format("strides {}", to_string(strides_of(spec.shape))),
         .got = to_string(data.strides),
         .fix = "Read a copy: to_vector() gives the elements in order."});
  }
  const ReadSite site = {.what = "data()", .place = place};
  check_on_host(tensor, site, fmt::format("data<{}>()", host_type_of(asked)),
                "Read a copy: to_vector(), or x.to(Device{}) and its data.");
  const HostElements elements = host_read(tensor, site);
  return {reinterpret_cast<const T*>(elements.first()), static_cast<std::size_t>(tensor.size())};
}

}  // namespace

template <class T>
T Tensor::read_item(std::source_location place) const {
  return located(place, [&] { return only_element<T>(*this, {.what = "item()", .place = place}); });
}

template <class T>
std::vector<T> Tensor::to_vector(std::source_location place) const {
  return located(place, [&] { return all_elements<T>(*this, place); });
}

template <class T>
std::span<const T> Tensor::data(std::source_location place) const {
  return located(place, [&] { return elements_in_place<T>(*this, place); });
}

const void* Tensor::read_bytes(std::source_location place) const {
  return located(place, [&] {
    const ReadSite site = {.what = "read_bytes()", .place = place};
    check_on_host(*this, site, "read_bytes()", "Read a copy: x.to(Device{}) and its bytes.");
    return host_read(*this, site).first();
  });
}

[[gnu::noinline]] Tensor::operator bool() const {
  const void* const caller = __builtin_extract_return_addr(__builtin_return_address(0));
  try {
    return only_element<bool>(*this,
                              {.what = "bool(tensor)", .place = {}, .return_address = caller});
  } catch (const Error& error) {
    throw error.with_return_address(caller);
  }
}

#define NITINOL_READ_AS(T)                                                  \
  template T Tensor::read_item<T>(std::source_location) const;              \
  template std::vector<T> Tensor::to_vector<T>(std::source_location) const; \
  template std::span<const T> Tensor::data<T>(std::source_location) const;
NITINOL_READ_AS(bool)
NITINOL_READ_AS(uint8_t)
NITINOL_READ_AS(int8_t)
NITINOL_READ_AS(uint16_t)
NITINOL_READ_AS(int16_t)
NITINOL_READ_AS(uint32_t)
NITINOL_READ_AS(int32_t)
NITINOL_READ_AS(uint64_t)
NITINOL_READ_AS(int64_t)
NITINOL_READ_AS(float)
NITINOL_READ_AS(double)
#undef NITINOL_READ_AS

}  // namespace nitinol
