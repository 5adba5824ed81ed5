// The scopes that a context is inside of are a tuple of capsules, the value of a ContextVar: what
// is bound to it is never changed, as contexts that were copied share it.
//
// A thread remembers the scope that it has applied of each setting. Where another one counts now,
// since another task runs or a generator was closed, that one's value is set, or, where none is
// left, what the thread had before the first.
#include "bindings/python/src/context.h"

#include "autograd/node.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/lock.h"
#include "core/autocast.h"
#include "core/thread_settings.h"
#include "jit/stance.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace nitinol::python {

struct Entered {
  Entered(Setting set, int to) : setting(set), value(to) { ++existing; }
  ~Entered() { --existing; }
  Entered(const Entered&) = delete;
  Entered& operator=(const Entered&) = delete;

  const Setting setting;
  const int value;
  const uint64_t id = ++last_id;
  uint64_t below = 0;     ///< the scope that counted before it, or 0
  int before = 0;         ///< what was set before it
  bool is_ended = false;  ///< left where it cannot be seen: it counts nowhere any more

  static inline std::atomic<int> existing = 0;
  static inline uint64_t last_id = 0;
};

namespace {

constexpr int no_stance = -1;
constexpr const char* capsule_name = "nitinol scope";
using Scope = std::shared_ptr<Entered>;

/// Sets the thread's; returns what it was.
int exchange(Setting setting, int value) {
  if (setting == Setting::autocast)
    return static_cast<int>(set_autocast_dtype(static_cast<DType>(value)));
  if (setting == Setting::result_check)
    return static_cast<int>(set_result_check(static_cast<ResultCheck>(value)));
  if (setting == Setting::gradients) return autograd::set_enabled(value != 0) ? 1 : 0;
  const auto before = set_thread_stance(
      value == no_stance ? std::nullopt : std::optional(static_cast<Stance>(value)));
  return before ? static_cast<int>(*before) : no_stance;
}

/// What a thread has applied of one setting.
struct Applied {
  uint64_t id = 0;  ///< of the scope, or 0
  int base = 0;     ///< what was set before any scope
};
constinit thread_local std::array<Applied, 4> applied = {};

Applied& applied_of(Setting setting) {
  return applied[static_cast<std::size_t>(setting)];
}

/// Whether no scope is anywhere, as far as this thread is concerned.
bool is_unused() {
  return Entered::existing.load(std::memory_order_relaxed) == 0 &&
         std::ranges::all_of(applied, [](const Applied& of) { return of.id == 0; });
}

PyObject* variable() {
  // Not by an initialiser, for which another thread would wait with Python's lock while the import
  // has given it away.
  static PyObject* made = nullptr;
  if (made == nullptr) {
    nb::object one = nb::module_::import_("contextvars").attr("ContextVar")("nitinol_scopes");
    if (made == nullptr) made = one.release().ptr();
  }
  return made;
}

/// The scopes of this thread's present context, a tuple, the innermost last; null: none.
nb::object scopes() {
#ifdef Py_LIMITED_API
  const nb::object found = nb::handle(variable()).attr("get")(nb::none());
  return found.is_none() ? nb::object() : found;
#else
  PyObject* found = nullptr;
  if (PyContextVar_Get(variable(), nullptr, &found) != 0) throw nb::python_error();
  return nb::steal(found);
#endif
}

Scope& scope_at(nb::handle all, Py_ssize_t i) {
  return *static_cast<Scope*>(PyCapsule_GetPointer(PyTuple_GetItem(all.ptr(), i), capsule_name));
}

/// The scope of a setting that counts, or null.
Entered* innermost(nb::handle all, Setting setting) {
  if (!all.is_valid()) return nullptr;
  for (Py_ssize_t i = PyTuple_Size(all.ptr()); i-- > 0;) {
    Entered* scope = scope_at(all, i).get();
    if (scope->setting == setting && !scope->is_ended) return scope;
  }
  return nullptr;
}

void apply(Setting setting, const Entered* scope) {
  Applied& here = applied_of(setting);
  const uint64_t id = scope == nullptr ? 0 : scope->id;
  if (id == here.id) return;
  const int before = exchange(setting, scope == nullptr ? here.base : scope->value);
  if (here.id == 0) here.base = before;
  here.id = id;
}

/// Sets the context's scopes: those of `all` that count, but `without`, and then `added`.
void set_scopes(nb::handle all, const Entered* without, const Scope* added) {
  nb::list kept;
  for (Py_ssize_t i = 0; all.is_valid() && i < PyTuple_Size(all.ptr()); ++i) {
    const Scope& scope = scope_at(all, i);
    if (!scope->is_ended && scope.get() != without)
      kept.append(nb::handle(PyTuple_GetItem(all.ptr(), i)));
  }
  if (added != nullptr) {
    kept.append(nb::capsule(new Scope(*added), capsule_name,
                            [](void* held) noexcept { delete static_cast<Scope*>(held); }));
  }
  nb::handle(variable()).attr("set")(nb::tuple(kept));
}

/// Called by C++: with Python's lock, without it, and on threads that have no Python.
void refresh_where_locked() noexcept {
  if (is_unused()) return;
  if (has_lock()) refresh_settings();
}

}  // namespace

void throw_not_entered() {
  throw_python(PyExc_RuntimeError,
               "__exit__ of a context that was not entered, or is left already");
}

void refresh_settings() noexcept {
  if (is_unused()) return;
  try {
    const nb::error_scope kept;
    const nb::object all = scopes();
    for (const Setting setting :
         {Setting::gradients, Setting::stance, Setting::autocast, Setting::result_check})
      apply(setting, innermost(all, setting));
  } catch (...) {  // no memory: they stay as they are
    return;
  }
}

SettingContext::~SettingContext() {
  for (const Scope& scope : entered_) scope->is_ended = true;
}

void SettingContext::enter() {
  refresh_thread_settings = refresh_where_locked;
  refresh_settings();
  const auto scope = std::make_shared<Entered>(setting_, value_);
  entered_.push_back(scope);
  set_scopes(scopes(), nullptr, &scope);
  Applied& here = applied_of(setting_);
  scope->below = here.id;
  scope->before = exchange(setting_, value_);
  if (here.id == 0) here.base = scope->before;
  here.id = scope->id;
}

void SettingContext::exit() {
  if (entered_.empty()) throw_not_entered();
  const nb::object all = scopes();
  // The last that this context is inside of; a task may share the object with another.
  auto found = std::find_if(entered_.rbegin(), entered_.rend(), [&](const Scope& scope) {
    for (Py_ssize_t i = 0; all.is_valid() && i < PyTuple_Size(all.ptr()); ++i) {
      if (scope_at(all, i) == scope) return true;
    }
    return false;
  });
  const bool is_here = found != entered_.rend();
  const Scope scope = is_here ? *found : entered_.back();
  entered_.erase(is_here ? std::prev(found.base()) : std::prev(entered_.end()));
  if (!is_here) {
    scope->is_ended = true;
    return;
  }
  set_scopes(all, scope.get(), nullptr);
  const nb::object left = scopes();
  const Entered* next = innermost(left, setting_);
  Applied& here = applied_of(setting_);
  if (here.id != scope->id || scope->below != (next == nullptr ? 0 : next->id))
    return refresh_settings();        // they crossed
  exchange(setting_, scope->before);  // a scope of C++ may be around
  here.id = scope->below;
}

}  // namespace nitinol::python
