// Numbers that stand for values of Python where C++ compares words: fixed arguments, what results
// hold beside tensors, values of HostValues.
#pragma once

#include "bindings/python/src/from.h"
#include "core/small_list.h"
#include "jit/compiled_function.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace nitinol::python {

struct Class;

/// When two values of a class are one fixed value. What is equal need not be the same:
/// frozenset({2}) and frozenset({2.0}), two Decimals of other digits, objects of a class that
/// compares by name.
enum class Same : uint8_t {
  object,  ///< if they are the same object
  value,   ///< if they are equal
  bits,    ///< floats: of the same bits
  parts,   ///< if what their class takes them apart in (__reduce_ex__) is
};

/// Values and their numbers: the same for two values only where a function cannot tell them apart.
/// A number lives while somebody uses or keeps it, and is never used again for another value.
///
/// What is told by its object is not kept alive, where it can be referred to weakly: when it is
/// gone, so is what its number means, and signatures that have it. With Python's lock, all of it.
class Interned : public std::enable_shared_from_this<Interned> {
 public:
  struct Slot {
    uint64_t number = 0;
    std::size_t place = 0;  ///< in slots_
    int64_t uses = 0;
    std::atomic<bool> is_gone = false;
    PyObject* object = nullptr;  ///< by its object: which, borrowed
    nb::object held = {};        ///< if it is kept: a weak reference to it, or itself
    nb::object key = {};         ///< by value: in table_
    nb::object parts = {};       ///< objects whose addresses are in the key
  };

  explicit Interned(std::weak_ptr<jit::CompiledFunction> function = {})
      : function_(std::move(function)) {}
  Interned(const Interned&) = delete;
  Interned& operator=(const Interned&) = delete;

  /// The slot of a value of a class, with one more use, which is to be given back by release().
  [[nodiscard]] Slot& use(nb::handle value, const Class& type);
  [[nodiscard]] Slot& use_text(nb::handle text);
  /// Of the object, whatever its class says.
  [[nodiscard]] Slot& use_object(nb::handle value);
  void release(Slot& slot);
  /// Uses them until it dies, on whatever thread.
  [[nodiscard]] std::shared_ptr<const jit::Meaning> keep(std::span<Slot* const> slots);

  /// As tp_traverse and tp_clear of the one object that it belongs to.
  int traverse(visitproc visit, void* arg) const;
  void clear();

 private:
  [[nodiscard]] Slot* find(nb::handle key) const;
  Slot& add();
  void remove(Slot& slot);
  Slot& add_key(nb::handle key, nb::object parts);
  void hold(Slot& slot);
  void end(PyObject* object);
  static PyObject* object_is_gone(PyObject* watch, PyObject*);

  std::weak_ptr<jit::CompiledFunction> function_;  ///< told when an object is gone
  uint64_t last_ = 0;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::vector<std::size_t> free_;  ///< places of slots_ in which there is none
  std::unordered_map<PyObject*, Slot*> objects_;
  nb::dict table_;  ///< from keys to places of slots
};

/// Numbers that are used while this lives, with Python's lock: by one call.
class Numbers {
 public:
  explicit Numbers(Interned& interned) : interned_(interned) {}
  ~Numbers();
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;

  /// Throws TypeError for an unhashable value.
  [[nodiscard]] uint64_t of(nb::handle value);
  [[nodiscard]] uint64_t of_object(nb::handle value);
  /// What they stand for; null if there are none.
  [[nodiscard]] std::shared_ptr<const jit::Meaning> meaning() const;

 private:
  uint64_t used(Interned::Slot& slot, nb::handle value);

  Interned& interned_;
  SmallList<Interned::Slot*, 32> slots_;
  SmallList<PyObject*, 8> objects_;  ///< owned, so that no address is used for another object
};

}  // namespace nitinol::python
