#include "bindings/python/src/function.h"

#include <fmt/format.h>

#include <string_view>

namespace nitinol::python {
namespace {

[[noreturn]] void refuse(const std::string& text) {
  PyErr_SetString(PyExc_TypeError, text.c_str());
  throw nb::python_error();
}

std::string text_of(PyObject* keyword) {
  return nb::cast<std::string>(nb::str(nb::handle(keyword)));
}

nb::list list_of_elsewhere() {
  nb::list list;
  for (const Elsewhere& one : elsewhere())
    list.append(nb::make_tuple(one.module, one.name, one.here));
  return list;
}

// [(name, kind, summary)]: for the test that each op can be reached.
nb::list list_of_ops() {
  nb::list list;
  for (const Op* op : all_ops()) {
    const std::string_view kind = name_of(op->kind);
    list.append(nb::make_tuple(nb::str(op->name.data(), op->name.size()),
                               nb::str(kind.data(), kind.size()),
                               nb::str(op->summary.data(), op->summary.size())));
  }
  return list;
}

/// TypeError: more arguments than `most`. `by_name`: a parameter that must be named, or "".
[[noreturn]] void refuse_count(std::string_view function, std::size_t most, std::size_t given,
                               std::string_view by_name) {
  std::string text = fmt::format("{}() takes {} positional argument{}, {} {} given", function,
                                 most == 0 ? "no" : fmt::format("at most {}", most),
                                 most == 1 ? "" : "s", given, given == 1 ? "was" : "were");
  if (!by_name.empty())
    text += fmt::format(".\nGive others by name: {}(..., {}=...)", function, by_name);
  refuse(text);
}

/// Makes the function one of Tensor's, too.
void add_method(const Definition& definition) {
  // For inspect: "sum(x, /, axis=None)" without the object.
  std::string doc = definition.method.ml_doc;
  const std::size_t first = doc.find('(') + 1;
  doc.replace(first, doc.find_first_of(",)", first) - first, "$self");
  auto* method = new PyMethodDef(definition.method);  // as long as the process
  method->ml_meth =
      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(definition.as_method));
  method->ml_doc = (new std::string(std::move(doc)))->c_str();
  const nb::object descriptor =
      nb::steal(PyDescr_NewMethod(reinterpret_cast<PyTypeObject*>(types().tensor.ptr()), method));
  if (!descriptor.is_valid()) throw nb::python_error();
  types().tensor.attr(definition.method.ml_name) = descriptor;
}

}  // namespace

void refuse_keyword(const char* function, PyObject* keyword, std::span<const char* const> names) {
  const std::string given = text_of(keyword);
  std::string text = fmt::format("{}() has no parameter '{}'", function, given);
  for (const Elsewhere& one : elsewhere()) {
    const auto is_here = [&](const char* name) { return std::string_view(name) == one.here; };
    if (*one.module == '\0' && given == one.name &&
        std::any_of(names.begin(), names.end(), is_here))
      text += fmt::format("; here it is '{}'", one.here);
  }
  refuse(text);
}

void Signature::intern() {
  if (interned_[0] != nullptr) return;
  for (int i = 0; i < count_; ++i) {
    const auto k = static_cast<std::size_t>(i);
    interned_[k] = PyUnicode_InternFromString(names_[k]);
    if (interned_[k] == nullptr) throw nb::python_error();
  }
}

// The names in a call's code are interned: comparing addresses finds them.
int Signature::find(PyObject* keyword) const {
  for (int i = 0; i < count_; ++i) {
    if (interned_[static_cast<std::size_t>(i)] == keyword) return i;
  }
  for (int i = 0; i < count_; ++i) {
    if (PyUnicode_Compare(interned_[static_cast<std::size_t>(i)], keyword) == 0) return i;
  }
  return -1;
}

void Signature::check_required(std::span<PyObject* const> arguments) const {
  std::string missing;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if ((required_ >> i & 1U) == 0 || arguments[i] != nullptr) continue;
    missing += fmt::format("{}'{}'", missing.empty() ? "" : ", ", names_[i]);
  }
  if (!missing.empty()) refuse(fmt::format("{}() misses {}", function_, missing));
}

void Signature::check_count(std::span<PyObject* const> given) const {
  // zeros(2, 3), as other libraries have it: here the second is a dtype.
  const auto is_int = [](PyObject* object) { return PyLong_Check(object) != 0; };
  const auto positional = static_cast<std::size_t>(positional_);
  for (std::size_t i = 0; i < positional && i + 1 < given.size(); ++i) {
    const std::string_view name = names_[i];
    const bool is_last = i + 1 == positional || std::string_view(names_[i + 1]) == "dtype";
    if (is_last && (name == "shape" || name == "axes") &&
        std::all_of(given.begin() + static_cast<std::ptrdiff_t>(i), given.end(), is_int))
      refuse(fmt::format("{}() takes its {} as one argument, a tuple", function_, name));
  }
  if (given.size() > positional) {
    const char* by_name = positional_ < count_ ? names_[positional] : "";
    refuse_count(function_, positional, given.size(), by_name);
  }
}

void Signature::arrange(PyObject* const* given, Py_ssize_t count, PyObject* keywords,
                        std::span<PyObject*> to) const {
  if (count > positional_ || (takes_shape_ && count > 1))
    check_count({given, static_cast<std::size_t>(count)});
  for (Py_ssize_t i = 0; i < count; ++i) to[static_cast<std::size_t>(i)] = given[i];
  const Py_ssize_t named = keywords == nullptr ? 0 : PyTuple_Size(keywords);
  for (Py_ssize_t i = 0; i < named; ++i) {
    PyObject* keyword = PyTuple_GetItem(keywords, i);
    const int found = find(keyword);
    if (found < 0) {
      refuse_keyword(function_, keyword, std::span(names_).first(static_cast<std::size_t>(count_)));
    }
    if (found < positional_only_) {
      refuse(fmt::format("{}() takes '{}' by its position, not by its name", function_,
                         text_of(keyword)));
    }
    PyObject*& place = to[static_cast<std::size_t>(found)];
    if (place != nullptr)
      refuse(fmt::format("{}() was given '{}' twice", function_, text_of(keyword)));
    place = given[count + i];
  }
  check_required(to);
}

void Signature::arrange(const nb::args& positional, const nb::kwargs& named,
                        std::span<PyObject*> to) const {
  std::vector<PyObject*> given;
  for (const nb::handle value : positional) given.push_back(value.ptr());
  for (const auto [name, value] : named) given.push_back(value.ptr());
  const nb::object names = nb::steal(PySequence_Tuple(named.ptr()));
  if (!names.is_valid()) throw nb::python_error();
  arrange(given.data(), static_cast<Py_ssize_t>(positional.size()), names.ptr(), to);
}

void Arguments::throw_not_together(std::initializer_list<std::size_t> parameters) const {
  std::string names;
  for (const std::size_t i : parameters)
    names += fmt::format("{}{}", names.empty() ? "" : " and ", signature_.name(i));
  refuse(fmt::format("{}: {} are given together or not at all", signature_.function(), names));
}

namespace {

bool is_nothing(PyObject* keyword, PyObject* value) {
  if (PyUnicode_Check(keyword) == 0) return false;
  if (PyUnicode_CompareWithASCIIString(keyword, "ddof") == 0)  // of var() and std()
    return PyLong_CheckExact(value) != 0 && PyLong_AsLong(value) == 0;
  if (value != Py_None) return false;
  return PyUnicode_CompareWithASCIIString(keyword, "out") == 0 ||
         PyUnicode_CompareWithASCIIString(keyword, "dtype") == 0;
}

}  // namespace

bool asks_for_nothing(PyObject* keywords, PyObject* const* values) {
  for (Py_ssize_t i = 0; i < PyTuple_Size(keywords); ++i) {
    if (is_nothing(PyTuple_GetItem(keywords, i), values[i])) return true;
  }
  return false;
}

PyObject* without_nothing(Method function, std::span<PyObject*> arguments, Py_ssize_t count,
                          PyObject* keywords, PyObject* const* values) {
  std::vector<PyObject*> names;
  Py_ssize_t given = count;
  for (Py_ssize_t i = 0; i < PyTuple_Size(keywords); ++i) {
    PyObject* const keyword = PyTuple_GetItem(keywords, i);
    if (is_nothing(keyword, values[i])) continue;
    names.push_back(keyword);
    arguments[static_cast<std::size_t>(given++)] = values[i];
  }
  const nb::object left = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(names.size())));
  if (!left.is_valid()) return nullptr;
  for (std::size_t i = 0; i < names.size(); ++i)
    PyTuple_SetItem(left.ptr(), static_cast<Py_ssize_t>(i), Py_NewRef(names[i]));
  return function(nullptr, arguments.data(), count, names.empty() ? nullptr : left.ptr());
}

void add_functions(nb::module_& m, std::span<Definition> definitions) {
  if (!nb::hasattr(m, "_all_ops")) {
    m.def("_all_ops", list_of_ops, "(name, kind, summary) of each op that a graph may contain.");
    m.def("_refuse_keyword", [](const std::string& function, nb::handle keyword, nb::list names) {
      std::vector<std::string> texts;
      for (const nb::handle name : names) texts.push_back(nb::cast<std::string>(nb::str(name)));
      std::vector<const char*> all;
      for (const std::string& text : texts) all.push_back(text.c_str());
      refuse_keyword(function.c_str(), keyword.ptr(), all);
    });
    m.def(
        "_refuse_type",
        [](const std::string& where, const std::string& name, nb::handle value,
           const std::string& expected) {
          throw_type({where.c_str(), name.c_str(), value}, expected.c_str());
        },
        nb::arg("where"), nb::arg("name"), nb::arg("value").none(), nb::arg("expected"));
    m.def("_refuse_count",
          [](const std::string& function, std::size_t most, std::size_t given,
             const std::string& by_name) { refuse_count(function, most, given, by_name); });
    m.def("_with_article", [](const std::string& name) { return with_article(name); });
    m.def("_elsewhere", list_of_elsewhere, "(module, name, name here) of what others have.");
  }
  nb::list table = nb::hasattr(m, "_functions") ? nb::list(m.attr("_functions")) : nb::list();
  for (Definition& definition : definitions) {
    definition.signature->intern();
    const std::string_view module = definition.module;
    nb::module_ into = m;
    if (const std::size_t dot = module.find('.'); dot != std::string_view::npos)
      into = m.def_submodule(module.data() + dot + 1);
    // Found in the package, for pickle and for inspect, which looks up names there.
    const nb::str name(module.data(), module.size());
    const nb::object function =
        nb::steal(PyCFunction_NewEx(&definition.method, nullptr, name.ptr()));
    if (!function.is_valid()) throw nb::python_error();
    into.attr(definition.method.ml_name) = function;
    nb::list others;
    if (definition.as_method != nullptr) add_method(definition);
    for (const char* other : definition.other_names) {
      if (other == nullptr) break;
      into.attr(other) = function;
      others.append(other);
    }
    table.append(nb::make_tuple(name, definition.method.ml_name, others, definition.in_cpp));
  }
  m.attr("_functions") = table;
}

}  // namespace nitinol::python
