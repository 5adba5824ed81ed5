// Layers and optimizers of nitinol.nn: what the generated layers.cpp is written with.
#pragma once

#include "bindings/python/src/errors.h"
#include "bindings/python/src/from.h"
#include "bindings/python/src/function.h"
#include "bindings/python/src/words.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace nitinol::python {

void bind_layers(nb::module_& m);
void bind_optimizers(nb::module_& m);
void bind_schedules(nb::module_& m);

/// A Schedule of Python.
struct PythonSchedule {
  nn::Schedule schedule;
};
template <>
nn::Schedule convert<nn::Schedule>(const From& from);

// What _make_... gives: attributes of a layer, which Module._take() sets. None for no Variable.

[[nodiscard]] inline nb::object state_of(const Variable& variable) {
  return to_python(variable);
}
[[nodiscard]] inline nb::object state_of(const std::optional<Variable>& variable) {
  return variable ? to_python(*variable) : nb::none();
}
template <class T>
requires std::is_arithmetic_v<T>
[[nodiscard]] nb::object state_of(T number) {
  return nb::cast(number);
}
template <class T>
requires std::is_enum_v<T>
[[nodiscard]] nb::object state_of(T value) {
  const std::string_view word = words_of<T>()[static_cast<std::size_t>(value)];
  return nb::str(word.data(), word.size());
}
template <class Layer, class F>
[[nodiscard]] nb::object states_of(const std::vector<Layer>& layers, F state) {
  nb::list all;
  for (const Layer& layer : layers) all.append(state(layer));
  return all;
}

/// The name of an attribute, which Python looks up by its address.
struct Name {
  const char* text;
  PyObject* interned;
};
template <std::size_t n>
struct Letters {
  // NOLINTNEXTLINE(google-explicit-constructor): of "weight"_name
  consteval Letters(const char (&from)[n]) { std::copy_n(from, n, text); }
  char text[n] = {};
};
template <Letters letters>
[[nodiscard]] Name operator""_name() {
  static PyObject* const interned = PyUnicode_InternFromString(letters.text);
  return {letters.text, interned};
}

[[nodiscard]] inline nb::object attribute(nb::handle self, Name name) {
  PyObject* const found = PyObject_GetAttr(self.ptr(), name.interned);
  if (found == nullptr) nb::raise_python_error();
  return nb::steal(found);
}
/// An attribute of a layer of Python as a T.
template <class T>
[[nodiscard]] T read(const char* where, nb::handle self, Name name) {
  const nb::object value = attribute(self, name);
  return convert<T>({where, name.text, value});
}
/// A list of layers.
template <class F>
[[nodiscard]] auto read_all(const nb::object& layers, F read_one) {
  std::vector<decltype(read_one(nb::handle()))> all;
  for (const nb::handle layer : layers) all.push_back(read_one(layer));
  return all;
}

/// Sets the fields that are given, in the order of the parameters from the second, or `first`, on.
class Given {
 public:
  explicit Given(const Arguments& arguments, std::size_t first = 1)
      : arguments_(arguments), next_(first) {}
  template <class T>
  Given& field(T& into) {
    if (arguments_.is_given(next_)) into = arguments_.get<T>(next_);
    ++next_;
    return *this;
  }

 private:
  const Arguments& arguments_;
  std::size_t next_;
};

/// `names`: of the options, and `parameters` as Python writes them. read_options(Given, Options&)
/// sets them; Errors are said in `words`.
template <class O, class Base, class Options>
void bind_optimizer(nb::module_& m, const char* name, const char* doc, const Options& defaults,
                    std::initializer_list<const char*> names, const std::string& parameters,
                    const Words& words) {
  static Signature constructor(name, names, 0, 1, 1), add("add", names, 0, 1, 1);
  constructor.intern();
  add.intern();
  const auto read = [defaults, words](const Arguments& arguments, auto&& use) {
    Options options = defaults;
    read_options(Given(arguments), options);
    const auto all = arguments.get<std::vector<Variable>>(0);
    in_words(words, [&] { use(all, options); });
  };
  const std::string signature = "(self, parameters: Parameters, *, " + parameters + ") -> None";
  nb::class_<O, Base>(m, name, doc)
      .def("__init__",
           with_arguments<Signature::most, O*>(
               constructor,
               [read](O* self, const Arguments& given) {
                 read(given, [&](const auto& all, const Options& o) { new (self) O(all, o); });
               }),
           nb::sig(("def __init__" + signature).c_str()))
      .def("add",
           with_arguments<Signature::most, O&>(
               add,
               [read](O& self, const Arguments& given) {
                 read(given, [&](const auto& all, const Options& o) { self.add(all, o); });
               }),
           nb::sig(("def add" + signature).c_str()), "Adds a group with options of its own.");
}

}  // namespace nitinol::python
