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

/// Sets the fields that are given; refuses names that are none.
class Given {
 public:
  Given(const char* where, nb::kwargs given) : where_(where), given_(std::move(given)) {}
  template <class T>
  Given& field(const char* name, T& into) {
    names_.push_back(name);
    if (given_.contains(name)) into = convert<T>({where_, name, given_[name]});
    return *this;
  }
  void check() const {
    for (const auto [name, value] : given_) {
      const bool is_known = std::any_of(names_.begin(), names_.end(), [&](const char* known) {
        return PyUnicode_CompareWithASCIIString(name.ptr(), known) == 0;
      });
      if (!is_known) refuse_keyword(where_, name.ptr(), names_);
    }
  }

 private:
  const char* where_;
  nb::kwargs given_;
  std::vector<const char*> names_;
};

/// `parameters`: as Python writes those of the options. read_options(Given, Options&) sets them;
/// Errors are said in `words`.
template <class O, class Base, class Options>
void bind_optimizer(nb::module_& m, const char* name, const char* doc, const Options& defaults,
                    const std::string& parameters, const Words& words) {
  const auto with_options = [name, defaults, words](nb::handle variables, nb::kwargs named,
                                                    auto&& use) {
    Options options = defaults;
    read_options(Given(name, std::move(named)), options);
    const auto all = convert<std::vector<Variable>>({name, "parameters", variables});
    in_words(words, [&] { use(all, options); });
  };
  const std::string signature = "(self, parameters: Parameters, *, " + parameters + ") -> None";
  nb::class_<O, Base>(m, name, doc)
      .def(
          "__init__",
          [with_options](O* self, nb::handle variables, nb::kwargs named) {
            with_options(
                variables, std::move(named),
                [self](const auto& all, const Options& options) { new (self) O(all, options); });
          },
          nb::arg("parameters"), nb::arg("options"), nb::sig(("def __init__" + signature).c_str()))
      .def(
          "add",
          [with_options](O& self, nb::handle variables, nb::kwargs named) {
            with_options(
                variables, std::move(named),
                [&self](const auto& all, const Options& options) { self.add(all, options); });
          },
          nb::arg("parameters"), nb::arg("options"), nb::sig(("def add" + signature).c_str()),
          "Adds a group with options of its own.");
}

}  // namespace nitinol::python
