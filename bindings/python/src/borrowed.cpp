#include "bindings/python/src/borrowed.h"

#include "bindings/python/src/errors.h"

#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace nitinol::python {
namespace {

/// Of blocks of memory that live. A block ends on any thread, without Python's lock.
struct Owners {
  std::mutex mutex;
  std::unordered_map<const Storage*, PyObject*> all;
};
Owners& owners() {
  static auto* owners = new Owners;
  return *owners;
}

}  // namespace

Tensor borrow_from(nb::object owner, const void* data, const Spec& spec, const Strides& strides) {
  PyObject* const kept = owner.release().ptr();
  const auto storage = std::make_shared<const Storage*>(nullptr);
  Tensor tensor = borrow_bytes(data, spec, strides, [kept, storage] {
    {
      const std::lock_guard lock(owners().mutex);
      owners().all.erase(*storage);
    }
    release_later(kept);
  });
  const std::lock_guard lock(owners().mutex);
  *storage = tensor.internals().storage.get();
  owners().all.emplace(*storage, kept);
  return tensor;
}

int traverse_owner(const Tensor& tensor, visitproc visit, void* arg) {
  if (!is_unique(tensor.handle())) return 0;
  const StorageHandle& storage = tensor.internals().storage;
  if (!storage || !storage->is_borrowed || !is_unique(storage)) return 0;
  PyObject* owner = nullptr;
  {
    const std::lock_guard lock(owners().mutex);
    const auto found = owners().all.find(storage.get());
    if (found != owners().all.end()) owner = found->second;
  }
  Py_VISIT(owner);
  return 0;
}

}  // namespace nitinol::python
