// What a capsule holds is a structure of C, of which there are two: the older has no place to say
// that the memory is not to be written. Who reads a capsule renames it, and gives the memory back
// by the function that came with it, once, on any thread.
#include "bindings/python/src/dlpack.h"

#include "bindings/python/src/errors.h"

#include <fmt/format.h>

#include <memory>

namespace nitinol::python {
namespace {

// ---- DLPack's own

struct Array {
  void* data;
  int32_t device_type, device_index;
  int32_t rank;
  uint8_t code, bits;
  uint16_t lanes;
  int64_t *shape, *strides;  ///< in elements; no strides: row-major
  uint64_t byte_offset;
};
struct Managed {
  Array array;
  void* context;
  void (*release)(Managed*);

  static constexpr const char* name = "dltensor";
  static constexpr const char* used = "used_dltensor";
};
struct ManagedVersioned {
  uint32_t major, minor;
  void* context;
  void (*release)(ManagedVersioned*);
  uint64_t flags;
  Array array;

  static constexpr const char* name = "dltensor_versioned";
  static constexpr const char* used = "used_dltensor_versioned";
};
constexpr uint64_t read_only_flag = 1, copied_flag = 2;
constexpr int32_t host = 1, pinned_by_cuda = 3, pinned_by_rocm = 11;

// ---- reading

[[noreturn]] void refuse(const From& from, const char* what) {
  throw_python(class_of(ErrorKind::value),
               fmt::format("{}: {} gave {}", from.where, from.name, what));
}

/// Takes the structure out of a capsule.
template <class M>
Foreign taken(const From& from, nb::handle capsule) {
  auto* managed = static_cast<M*>(PyCapsule_GetPointer(capsule.ptr(), M::name));
  if (managed == nullptr) throw nb::python_error();
  Foreign memory;
  memory.owner = nb::capsule(managed, [](void* held) noexcept {
    auto* of = static_cast<M*>(held);
    if (of->release != nullptr) of->release(of);
  });
  if (PyCapsule_SetName(capsule.ptr(), M::used) != 0) throw nb::python_error();
  if constexpr (requires { managed->major; }) {
    if (managed->major != 1) refuse(from, "a capsule of a version of DLPack that is not known");
  }
  const Array& array = managed->array;
  if (array.rank < 0) refuse(from, "a capsule with a negative number of axes");
  memory.is_on_host = array.device_type == host || array.device_type == pinned_by_cuda ||
                      array.device_type == pinned_by_rocm;
  const ElementType* type = array.lanes == 1 ? type_of_code(array.code, array.bits) : nullptr;
  if (type == nullptr) refuse_elements(from);
  memory.dtype = type->dtype;
  memory.data = static_cast<const std::byte*>(array.data) + array.byte_offset;
  const auto width = static_cast<int64_t>(size_of(type->dtype));
  int64_t step = width;
  memory.strides = Dims::filled(array.rank, 0);
  memory.shape = memory.strides;
  for (int i = array.rank - 1; i >= 0; --i) {
    if (array.shape[i] < 0) refuse(from, "a capsule with a negative size");
    memory.shape[i] = array.shape[i];
    memory.strides[i] = array.strides != nullptr ? array.strides[i] * width : step;
    step *= array.shape[i];
  }
  return memory;
}

// ---- writing

template <class M>
struct Exported {
  Tensor tensor;
  std::array<int64_t, max_rank> shape = {}, strides = {};
  M managed = {};
};

template <class M>
nb::object capsule_with(const Tensor& tensor, bool is_copied) {
  auto exported = std::make_unique<Exported<M>>();
  exported->tensor = tensor;
  for (int i = 0; i < tensor.rank(); ++i) {
    exported->shape[static_cast<std::size_t>(i)] = tensor.shape()[i];
    exported->strides[static_cast<std::size_t>(i)] = tensor.strides()[i];
  }
  M& managed = exported->managed;
  if constexpr (requires { managed.major; }) {
    managed.major = 1;
    managed.minor = 1;
    managed.flags = is_copied ? copied_flag : read_only_flag;
  }
  managed.array = {.data = const_cast<void*>(address_of(tensor)),  // NOLINT: as the flag says
                   .device_type = host,
                   .device_index = 0,
                   .rank = tensor.rank(),
                   .code = type_of(tensor.dtype()).code,
                   .bits = static_cast<uint8_t>(size_of(tensor.dtype()) * 8),
                   .lanes = 1,
                   .shape = exported->shape.data(),
                   .strides = exported->strides.data(),
                   .byte_offset = 0};
  managed.context = exported.get();
  managed.release = [](M* of) { delete static_cast<Exported<M>*>(of->context); };
  nb::object capsule = nb::steal(PyCapsule_New(&managed, M::name, [](PyObject* made) {
    if (PyCapsule_IsValid(made, M::name) == 0) return;  // somebody has taken it
    auto* of = static_cast<M*>(PyCapsule_GetPointer(made, M::name));
    of->release(of);
  }));
  if (!capsule.is_valid()) throw nb::python_error();
  exported.release();
  return capsule;
}

}  // namespace

Foreign read_capsule(const From& from, nb::handle capsule) {
  if (PyCapsule_IsValid(capsule.ptr(), ManagedVersioned::name) != 0)
    return taken<ManagedVersioned>(from, capsule);
  if (PyCapsule_IsValid(capsule.ptr(), Managed::name) != 0) return taken<Managed>(from, capsule);
  if (PyCapsule_IsValid(capsule.ptr(), ManagedVersioned::used) != 0 ||
      PyCapsule_IsValid(capsule.ptr(), Managed::used) != 0)
    refuse(from, "a capsule that was read before");
  refuse(from, "no capsule of DLPack");
}

Foreign read_dlpack(const From& from) {
  const nb::object give = from.value.attr("__dlpack__");
  nb::object capsule;
  try {
    capsule = give(nb::arg("max_version") = nb::make_tuple(1, 1));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    capsule = give();  // older than versions
  }
  return read_capsule(from, capsule);
}

nb::object capsule_of(const Tensor& tensor, Versioned versioned, bool is_copied) {
  return versioned == Versioned::yes ? capsule_with<ManagedVersioned>(tensor, is_copied)
                                     : capsule_with<Managed>(tensor, is_copied);
}

}  // namespace nitinol::python
