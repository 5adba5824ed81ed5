// Layers and optimizers of nitinol.nn: what the generated layers.cpp is written with.
#pragma once

#include "bindings/python/src/errors.h"
#include "bindings/python/src/from.h"
#include "bindings/python/src/function.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::python {

void bind_layers(nb::module_& m);
void bind_optimizers(nb::module_& m);

/// None for no Variable.
[[nodiscard]] inline nb::object to_python(const std::optional<Variable>& variable) {
  return variable ? to_python(*variable) : nb::none();
}

/// Sets the fields that are given, in the order of the parameters from the second on.
class Given {
 public:
  explicit Given(const Arguments& arguments) : arguments_(arguments) {}
  template <class T>
  Given& field(T& into) {
    if (arguments_.is_given(next_)) into = arguments_.get<T>(next_);
    ++next_;
    return *this;
  }

 private:
  const Arguments& arguments_;
  std::size_t next_ = 1;
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
