#include "bindings/python/src/memory.h"

#include "bindings/python/src/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string_view>

namespace nitinol::python {
namespace {

enum Code : uint8_t {
  signed_code = 0,
  unsigned_code = 1,
  float_code = 2,
  bfloat_code = 4,
  bool_code = 6
};

constexpr ElementType element_types[] = {
    {f32, float_code, "f"},       {f64, float_code, "d"},    {i64, signed_code, "l"},
    {i32, signed_code, "i"},      {i16, signed_code, "h"},   {i8, signed_code, "b"},
    {u8, unsigned_code, "B"},     {u16, unsigned_code, "H"}, {u32, unsigned_code, "I"},
    {u64, unsigned_code, "L"},    {boolean, bool_code, "?"}, {f16, float_code, "e"},
    {bf16, bfloat_code, nullptr},
};
static_assert(sizeof(long) == 8, "the format of int64");

/// NumPy's scalars of dates and text give their bytes as numbers.
bool is_of_larger_elements(nb::handle value) {
  const nb::object dtype = nb::getattr(value, "dtype", nb::none());
  const nb::object size = nb::getattr(dtype, "itemsize", nb::none());
  return !size.is_none() && nb::cast<int64_t>(size) > 1;
}

/// DLPack's code of a letter of Python's formats.
std::optional<uint8_t> code_of(char letter) {
  if (letter == '?') return bool_code;
  if (std::string_view("bhilqn").find(letter) != std::string_view::npos) return signed_code;
  if (std::string_view("BHILQN").find(letter) != std::string_view::npos) return unsigned_code;
  if (std::string_view("efd").find(letter) != std::string_view::npos) return float_code;
  return {};
}

}  // namespace

const ElementType& type_of(DType dtype) {
  for (const ElementType& type : element_types) {
    if (type.dtype == dtype) return type;
  }
  return element_types[0];
}

const ElementType* type_of_code(uint8_t code, int bits) {
  for (const ElementType& type : element_types) {
    if (type.code == code && static_cast<int>(size_of(type.dtype)) * 8 == bits) return &type;
  }
  return nullptr;
}

const ElementType* type_of_format(const char* format, Py_ssize_t size) {
  std::string_view text = format == nullptr ? "B" : format;
  if (!text.empty() && std::string_view("@=<>!").find(text[0]) != std::string_view::npos)
    text.remove_prefix(1);
  if (text.size() != 1) return nullptr;
  const std::optional<uint8_t> code = code_of(text[0]);
  return code ? type_of_code(*code, static_cast<int>(size) * 8) : nullptr;
}

void refuse_elements(const From& from) {
  const nb::object dtype = nb::getattr(from.value, "dtype", nb::str("another type"));
  throw_python(
      class_of(ErrorKind::dtype),
      fmt::format("{}: {} is an array of {}; expected bool, integers of 8 to 64 bits, or a "
                  "floating type. Convert it first, as with .astype('int64').",
                  from.where, from.name, nb::cast<std::string>(nb::str(dtype))));
}

Foreign read_buffer(const From& from) {
  // A memoryview, which Python's garbage collector sees through.
  Foreign memory;
  memory.owner = nb::steal(PyMemoryView_FromObject(from.value.ptr()));
  Py_buffer given;
  if (!memory.owner.is_valid() ||
      PyObject_GetBuffer(memory.owner.ptr(), &given, PyBUF_FULL_RO) != 0)
    throw nb::python_error();
  // What it points to is the memoryview's.
  const std::unique_ptr<Py_buffer, void (*)(Py_buffer*)> release(&given, PyBuffer_Release);
  const ElementType* type = type_of_format(given.format, given.itemsize);
  if (type == nullptr || (type->dtype == u8 && is_of_larger_elements(from.value)))
    refuse_elements(from);
  memory.dtype = type->dtype;
  const char order = given.format == nullptr ? '@' : given.format[0];
  memory.is_big_endian = (order == '>' || order == '!') && given.itemsize > 1;
  memory.data = static_cast<const std::byte*>(given.buf);
  memory.suboffsets = given.suboffsets;
  // Without a shape it is a line of elements; without strides they lie in row-major order.
  const int rank = given.ndim;
  for (int i = 0; i < rank; ++i)
    memory.shape.push_back(given.shape != nullptr ? given.shape[i] : given.len / given.itemsize);
  memory.strides = Dims::filled(rank, given.itemsize);
  for (int i = rank - 2; i >= 0; --i)
    memory.strides[i] = memory.strides[i + 1] * memory.shape[i + 1];
  for (int i = 0; i < rank && given.strides != nullptr; ++i) memory.strides[i] = given.strides[i];
  return memory;
}

std::vector<std::byte> packed(const Foreign& memory) {
  const auto width = static_cast<int64_t>(size_of(memory.dtype));
  std::vector<std::byte> bytes(static_cast<std::size_t>(element_count(memory.shape) * width));
  std::array<Py_ssize_t, max_rank> shape = {}, strides = {};
  for (int i = 0; i < memory.shape.size(); ++i) {
    shape[static_cast<std::size_t>(i)] = memory.shape[i];
    strides[static_cast<std::size_t>(i)] = memory.strides[i];
  }
  Py_buffer view = {};
  view.buf = const_cast<std::byte*>(memory.data);  // NOLINT: is read
  view.len = static_cast<Py_ssize_t>(bytes.size());
  view.itemsize = width;
  view.readonly = 1;
  view.ndim = memory.shape.size();
  view.shape = shape.data();
  view.strides = strides.data();
  view.suboffsets = const_cast<Py_ssize_t*>(memory.suboffsets);  // NOLINT: is read
  if (PyBuffer_ToContiguous(bytes.data(), &view, view.len, 'C') != 0) throw nb::python_error();
  for (auto at = bytes.begin(); memory.is_big_endian && at != bytes.end(); at += width)
    std::reverse(at, at + width);
  return bytes;
}

const void* address_of(const Tensor& tensor) {
  static const uint64_t nothing = 0;
  const void* bytes = computed(tensor.size(), [&] { return tensor.read_bytes(); });
  return bytes == nullptr ? &nothing : bytes;
}

}  // namespace nitinol::python
