// Memory of other libraries, however it came, and the types of its elements.
#pragma once

#include "bindings/python/src/from.h"

#include <array>
#include <cstddef>

namespace nitinol::python {

/// How other protocols name a DType.
struct ElementType {
  DType dtype;
  uint8_t code;        ///< of DLPack
  const char* format;  ///< of Python's buffers; null: they have none
};
[[nodiscard]] const ElementType& type_of(DType dtype);
/// By DLPack's code and width, or null.
[[nodiscard]] const ElementType* type_of_code(uint8_t code, int bits);
/// By the format of a buffer and the bytes of its elements, or null. The byte order is another
/// question: see Foreign.
[[nodiscard]] const ElementType* type_of_format(const char* format, Py_ssize_t size);

/// Throws TypeError: there is no DType for the elements of `from`.
[[noreturn]] void refuse_elements(const From& from);

/// Memory that something else holds.
struct Foreign {
  const std::byte* data = nullptr;
  DType dtype = f32;
  bool is_on_host = true;
  bool is_big_endian = false;  ///< elements of more than a byte: packed() turns them
  Dims shape;
  Dims strides;                            ///< in bytes
  const Py_ssize_t* suboffsets = nullptr;  ///< of Python's buffers; null: there are none
  nb::object owner;                        ///< gives it back when it dies, with Python's lock
};

/// Python's buffer of an object that has one. What it raises is raised.
[[nodiscard]] Foreign read_buffer(const From& from);
/// All elements, one after another in row-major order, in the machine's byte order.
[[nodiscard]] std::vector<std::byte> packed(const Foreign& memory);

/// Where a tensor's elements lie, on the host; never null.
[[nodiscard]] const void* address_of(const Tensor& tensor);

}  // namespace nitinol::python
