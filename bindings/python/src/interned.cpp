// A dict of Python finds values: by keys in which each part has its class, as 2 == 2.0 == True, and
// floats have their bits. What is told by its object is found by its address, which is an object's
// own while it lives: each use owns it, and who only keeps the number learns when it dies.
#include "bindings/python/src/interned.h"

#include "bindings/python/src/errors.h"
#include "bindings/python/src/pytree.h"

#include <fmt/format.h>

#include <bit>
#include <utility>
#include <vector>

namespace nitinol::python {
namespace {

nb::object key_of(nb::handle value, const Class& type, nb::list& objects);

nb::object typed(nb::handle value, nb::handle what) {
  return nb::make_tuple(nb::handle(type_of(value)), what);
}

/// By its address; `objects` keeps it alive.
nb::object key_of_object(nb::handle value, nb::list& objects) {
  objects.append(value);
  return typed(value, nb::int_(reinterpret_cast<uintptr_t>(value.ptr())));
}

nb::object key_of_parts(nb::handle value, const Class& type, nb::list& objects) {
  const bool is_plain = type.kind == Kind::tuple || type.kind == Kind::list;
  nb::object parts;
  if (is_plain && !type.is_subclass) {
    parts = nb::borrow(value);
  } else if (type.kind == Kind::dict && !type.is_subclass) {
    parts = nb::steal(PyDict_Items(value.ptr()));
  } else {
    try {
      parts = value.attr("__reduce_ex__")(4);
    } catch (nb::python_error& error) {
      if (!error.matches(PyExc_Exception)) throw;
      return key_of_object(value, objects);  // what cannot be taken apart is itself
    }
    if (!PyTuple_Check(parts.ptr())) return key_of_object(value, objects);
  }
  const nb::object all = nb::steal(PySequence_Tuple(parts.ptr()));
  if (!all.is_valid()) throw nb::python_error();
  nb::list keys;
  keys.append(nb::handle(type_of(value)));
  for (const nb::handle part : all) keys.append(key_of(part, class_of_value(part), objects));
  return nb::tuple(keys);
}

/// Equal for two values only if they are the same, by the rules of their classes.
nb::object key_of(nb::handle value, const Class& type, nb::list& objects) {
  const Deeper deeper;
  switch (type.same) {
    case Same::object:
      return key_of_object(value, objects);
    case Same::value:
      return typed(value, value);
    case Same::bits:
      return typed(value, nb::int_(std::bit_cast<uint64_t>(PyFloat_AsDouble(value.ptr()))));
    case Same::parts:
      return key_of_parts(value, type, objects);
  }
  return {};
}

/// What a weak reference's end has to find.
struct Watch {
  std::weak_ptr<Interned> interned;
  PyObject* object;
};

/// Slots, used until its end, which comes with Python's lock.
struct Uses {
  std::shared_ptr<Interned> interned;
  std::vector<Interned::Slot*> slots;
};

template <class T>
nb::object capsule_of(T value) {
  auto owned = std::make_unique<T>(std::move(value));
  nb::object capsule = nb::steal(PyCapsule_New(owned.get(), nullptr, [](PyObject* self) {
    const std::unique_ptr<T> end(static_cast<T*>(PyCapsule_GetPointer(self, nullptr)));
    if constexpr (std::is_same_v<T, Uses>) {
      for (Interned::Slot* slot : end->slots) end->interned->release(*slot);
    }
  }));
  if (!capsule.is_valid()) throw nb::python_error();
  owned.release();
  return capsule;
}

class Kept final : public jit::Meaning {
 public:
  explicit Kept(nb::object uses) : uses_(uses.release().ptr()) {
    slots_ = static_cast<Uses*>(PyCapsule_GetPointer(uses_, nullptr))->slots;
  }
  ~Kept() override { release_later(uses_); }
  Kept(const Kept&) = delete;
  Kept& operator=(const Kept&) = delete;
  [[nodiscard]] bool has_ended() const override {
    for (const Interned::Slot* slot : slots_) {
      if (slot->is_gone) return true;
    }
    return false;
  }

 private:
  PyObject* uses_;
  std::vector<Interned::Slot*> slots_;
};

}  // namespace

Interned::Slot& Interned::add() {
  if (free_.empty()) {
    free_.push_back(slots_.size());
    slots_.emplace_back();
  }
  const std::size_t place = free_.back();
  slots_[place] = std::make_unique<Slot>();
  free_.pop_back();
  slots_[place]->number = ++last_;
  slots_[place]->place = place;
  return *slots_[place];
}

/// Ends the slot; that may run Python.
void Interned::remove(Slot& slot) {
  const std::size_t place = slot.place;
  free_.reserve(slots_.size());
  const std::unique_ptr<Slot> removed = std::move(slots_[place]);
  free_.push_back(place);
}

Interned::Slot& Interned::use_object(nb::handle value) {
  Slot*& slot = objects_[value.ptr()];
  if (slot == nullptr) {
    slot = &add();
    slot->object = value.ptr();
  }
  ++slot->uses;
  return *slot;
}

Interned::Slot* Interned::find(nb::handle key) const {
  PyObject* place = PyDict_GetItemWithError(table_.ptr(), key.ptr());
  if (place == nullptr && PyErr_Occurred() != nullptr) throw nb::python_error();
  return place != nullptr ? slots_[PyLong_AsSize_t(place)].get() : nullptr;
}

/// The slot of a key that was not in the table.
Interned::Slot& Interned::add_key(nb::handle key, nb::object parts) {
  Slot& made = add();
  const nb::int_ place(made.place);
  const nb::object known = table_.attr("setdefault")(key, place);
  if (known.is(place)) {
    made.key = nb::borrow(key);
    made.parts = std::move(parts);
    return made;
  }
  remove(made);  // another thread's came first
  return *slots_[PyLong_AsSize_t(known.ptr())];
}

Interned::Slot& Interned::use_text(nb::handle text) {
  Slot* found = find(text);  // its own key: no other is a str
  Slot& slot = found != nullptr ? *found : add_key(text, {});
  ++slot.uses;
  return slot;
}

Interned::Slot& Interned::use(nb::handle value, const Class& type) {
  if (type.same == Same::object) return use_object(value);
  nb::list objects;
  const nb::object key = key_of(value, type, objects);
  Slot* found = find(key);
  Slot& slot = found != nullptr
                   ? *found
                   : add_key(key, nb::len(objects) > 0 ? nb::object(objects) : nb::object());
  ++slot.uses;
  return slot;
}

void Interned::release(Slot& slot) {
  if (--slot.uses > 0) return;
  const nb::error_scope kept;  // the last use may end while an exception is on its way
  if (slot.key.is_valid() && PyDict_DelItem(table_.ptr(), slot.key.ptr()) != 0) {
    const bool is_there = PyErr_ExceptionMatches(PyExc_KeyError) == 0;
    PyErr_Clear();
    if (is_there) return;  // a key that has no hash any more: the table still knows the slot
  }
  if (slot.object != nullptr && !slot.is_gone) objects_.erase(slot.object);
  remove(slot);
}

std::shared_ptr<const jit::Meaning> Interned::keep(std::span<Slot* const> slots) {
  for (Slot* slot : slots) {
    if (slot->object != nullptr && !slot->held.is_valid()) hold(*slot);
  }
  const nb::object uses =
      capsule_of(Uses{shared_from_this(), std::vector<Slot*>(slots.begin(), slots.end())});
  for (Slot* slot : slots) ++slot->uses;
  return std::make_shared<const Kept>(uses);
}

PyObject* Interned::object_is_gone(PyObject* self, PyObject*) {
  const auto& watch = *static_cast<Watch*>(PyCapsule_GetPointer(self, nullptr));
  if (const std::shared_ptr<Interned> interned = watch.interned.lock()) interned->end(watch.object);
  Py_RETURN_NONE;
}

/// Keeps the object's address its own: by knowing its end or, where that cannot be, by preventing
/// it.
void Interned::hold(Slot& slot) {
  static PyMethodDef callback = {"object_is_gone", object_is_gone, METH_O, nullptr};
  const nb::object watch = capsule_of(Watch{weak_from_this(), slot.object});
  const nb::object callable = nb::steal(PyCFunction_New(&callback, watch.ptr()));
  if (!callable.is_valid()) throw nb::python_error();
  slot.held = nb::steal(PyWeakref_NewRef(slot.object, callable.ptr()));
  if (slot.held.is_valid()) return;
  PyErr_Clear();
  slot.held = nb::borrow(slot.object);
}

void Interned::end(PyObject* object) {
  const auto found = objects_.find(object);
  if (found == objects_.end()) return;
  found->second->is_gone = true;
  objects_.erase(found);  // the address may be used again
  std::shared_ptr<jit::CompiledFunction> function = function_.lock();
  if (!function) return;
  {
    const Unlocked release;
    function->forget_ended();
    function.reset();  // it may be the last: that waits for threads of its own
  }
  release_waiting();
}

int Interned::traverse(visitproc visit, void* arg) const {
  Py_VISIT(table_.ptr());
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (!slot) continue;
    Py_VISIT(slot->held.ptr());
    Py_VISIT(slot->key.ptr());
    Py_VISIT(slot->parts.ptr());
  }
  return 0;
}

void Interned::clear() {
  PyDict_Clear(table_.ptr());
  std::vector<nb::object> ended;  // destroyed when the slots are at rest
  for (const std::unique_ptr<Slot>& slot : slots_) {
    if (!slot) continue;
    for (nb::object* object : {&slot->key, &slot->parts, &slot->held})
      ended.push_back(std::move(*object));
  }
}

// ---- of one call

Numbers::~Numbers() {
  for (Interned::Slot* slot : slots_) interned_.release(*slot);
  for (PyObject* object : objects_) Py_DECREF(object);
}

uint64_t Numbers::of(nb::handle value) {
  if (PyUnicode_CheckExact(value.ptr()) != 0) return used(interned_.use_text(value), value);
  const Class& type = class_of_value(value);
  if (!type.is_hashable)
    throw_python(PyExc_TypeError, fmt::format("unhashable type: '{}'", class_name(value)));
  return used(interned_.use(value, type), value);
}

uint64_t Numbers::of_object(nb::handle value) {
  return used(interned_.use_object(value), value);
}

uint64_t Numbers::used(Interned::Slot& slot, nb::handle value) {
  slots_.push_back(&slot);
  if (slot.object != nullptr) objects_.push_back(Py_NewRef(value.ptr()));
  return slot.number;
}

std::shared_ptr<const jit::Meaning> Numbers::meaning() const {
  if (slots_.size() == 0) return nullptr;
  return interned_.keep({slots_.data(), slots_.size()});
}

}  // namespace nitinol::python
