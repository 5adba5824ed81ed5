// Functions of the module, as Python has them: with a signature that inspect reads, and without
// what a call through nanobind's overloads costs.
#pragma once

#include "bindings/python/src/errors.h"
#include "bindings/python/src/from.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string_view>

namespace nitinol::python {

/// What other libraries call something, and what it is called here.
struct Elsewhere {
  const char* module;  ///< where it is looked for; "": a parameter of a function
  const char* name;
  const char* here;
};
/// Of names.py, for errors to say.
[[nodiscard]] std::span<const Elsewhere> elsewhere();

/// TypeError: `function` has no parameter `keyword`, with the one of `names` that it may stand for.
[[noreturn]] void refuse_keyword(const char* function, PyObject* keyword,
                                 std::span<const char* const> names);

/// The parameters of a function, in the order of its signature.
class Signature {
 public:
  static constexpr int most = 16;
  /// The first `positional_only` of them cannot be named, those from `positional` on must be; bit k
  /// of `required`: the k-th has no default.
  constexpr Signature(const char* function, std::initializer_list<const char*> names,
                      int positional_only, int positional, uint32_t required)
      : function_(function),
        count_(static_cast<int>(names.size())),
        positional_only_(positional_only),
        positional_(positional),
        required_(required) {
    int i = 0;
    for (const char* name : names) {
      names_[static_cast<std::size_t>(i++)] = name;
      takes_shape_ |= std::string_view(name) == "shape";
    }
  }

  /// Makes Python's strings of the names; before the first call.
  void intern();
  /// Each argument at its parameter's place, null where none was given. Throws TypeError, in
  /// Python's words.
  void arrange(PyObject* const* given, Py_ssize_t count, PyObject* keywords,
               std::span<PyObject*> to) const;
  /// The same of what nanobind has taken together.
  void arrange(const nb::args& positional, const nb::kwargs& named, std::span<PyObject*> to) const;
  [[nodiscard]] const char* function() const { return function_; }
  [[nodiscard]] const char* name(std::size_t i) const { return names_[i]; }

 private:
  [[nodiscard]] int find(PyObject* keyword) const;
  void check_count(std::span<PyObject* const> given) const;
  void check_required(std::span<PyObject* const> arguments) const;

  const char* function_;
  int count_, positional_only_, positional_;
  uint32_t required_;
  bool takes_shape_ = false;
  std::array<const char*, most> names_ = {};
  std::array<PyObject*, most> interned_ = {};
};

/// What one call was given. Indices are those of the signature's parameters.
class Arguments {
 public:
  Arguments(const Signature& signature, std::span<PyObject* const> values)
      : signature_(signature), values_(values) {}
  [[nodiscard]] bool is_given(std::size_t i) const { return values_[i] != nullptr; }
  [[nodiscard]] nb::handle value(std::size_t i) const { return values_[i]; }
  /// For parameters whose default is None.
  [[nodiscard]] bool is_some(std::size_t i) const { return is_given(i) && values_[i] != Py_None; }
  /// Whether axes were given, and none of them: axis=().
  [[nodiscard]] bool is_empty(std::size_t i) const {
    return is_some(i) && (PyTuple_Check(values_[i]) || PyList_Check(values_[i])) &&
           PySequence_Size(values_[i]) == 0;
  }
  template <class T>
  [[nodiscard]] T get(std::size_t i) const {
    return convert<T>({signature_.function(), signature_.name(i), values_[i]});
  }
  /// The same, or what is there if nothing was given.
  template <class T>
  [[nodiscard]] T get_or(std::size_t i, T otherwise) const {
    return is_given(i) ? get<T>(i) : std::move(otherwise);
  }
  /// TypeError: these are given together or not at all.
  [[noreturn]] void throw_not_together(std::initializer_list<std::size_t> parameters) const;

 private:
  const Signature& signature_;
  std::span<PyObject* const> values_;
};

/// f(Arguments) as the body of a method: what it throws becomes Python's exception.
template <std::size_t parameters, class F>
PyObject* called(const Signature& signature, PyObject* const* given, Py_ssize_t count,
                 PyObject* keywords, F&& f) noexcept {
  try {
    std::array<PyObject*, parameters> values = {};
    signature.arrange(given, count, keywords, values);
    return f(Arguments(signature, values)).release().ptr();
  } catch (const Error& error) {
    PyErr_SetString(class_of(error.kind()).ptr(), message_of(error, signature.function()).c_str());
    return nullptr;
  } catch (...) {
    return raised();
  }
}

/// f(self, Arguments) as a method that nanobind binds, with `nb::sig`: for constructors, of whose
/// arguments nanobind alone would speak.
template <std::size_t parameters, class T, class F>
auto with_arguments(const Signature& signature, F f) {
  return [&signature, f = std::move(f)](T self, nb::args positional, nb::kwargs named) {
    std::array<PyObject*, parameters> values = {};
    signature.arrange(positional, named, values);
    f(self, Arguments(signature, values));
  };
}

using Method = PyObject* (*)(PyObject*, PyObject* const*, Py_ssize_t, PyObject*);

/// Whether NumPy's `out`, or its `dtype`, is given as None, or its `ddof` as 0.
[[nodiscard]] bool asks_for_nothing(PyObject* keywords, PyObject* const* values);
/// Calls without these: `arguments` has the first `count`, and room for the others.
[[nodiscard]] PyObject* without_nothing(Method function, std::span<PyObject*> arguments,
                                        Py_ssize_t count, PyObject* keywords,
                                        PyObject* const* values);

/// The function with the object as its first argument.
template <Method function>
PyObject* on_object(PyObject* self, PyObject* const* given, Py_ssize_t count, PyObject* keywords) {
  const Py_ssize_t all = count + (keywords == nullptr ? 0 : PyTuple_Size(keywords));
  std::array<PyObject*, Signature::most + 1> with_object = {self};
  if (keywords != nullptr && all <= Signature::most && asks_for_nothing(keywords, given + count)) {
    // numpy.sum(x) calls x.sum(axis=None, dtype=None, out=None).
    std::copy(given, given + count, with_object.begin() + 1);
    return without_nothing(function, with_object, count + 1, keywords, given + count);
  }
  if (all > Signature::most) return function(nullptr, given, all, nullptr);  // refuses them
  std::copy(given, given + all, with_object.begin() + 1);
  return function(nullptr, with_object.data(), count + 1, keywords);
}

/// A function, where it is found (a dotted name such as "nitinol.random") and by what other names.
/// Lives as long as the process.
struct Definition {
  Signature* signature;
  PyMethodDef method;
  const char* module;
  std::array<const char*, 2> other_names;  // null where there are fewer
  const char* in_cpp;
  Method as_method;  ///< of Tensor, too; null: it is none
};
/// Also lists them in `_functions`, for tests: (module, name, other names, C++'s name).
void add_functions(nb::module_& m, std::span<Definition> definitions);

/// Several results as the class of that name, a named tuple.
[[nodiscard]] inline nb::object named(const char* name, const nb::tuple& results) {
  return nb::module_::import_("nitinol._results").attr(name)(*results);
}

/// Elements that a function makes of numbers alone.
[[nodiscard]] inline int64_t work_of_shape(const Shape& shape) {
  return element_count(shape);
}

}  // namespace nitinol::python
