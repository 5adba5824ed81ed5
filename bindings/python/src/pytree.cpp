// One walk over a structure serves arguments, another results: a float is a Scalar in the one and a
// fixed number in the other, and only arguments may hold arrays.
#include "bindings/python/src/pytree.h"

#include "bindings/python/src/array.h"
#include "bindings/python/src/errors.h"

#include <fmt/format.h>

#include <bit>
#include <unordered_map>

namespace nitinol::python {
namespace {

std::string shown(nb::handle value) {
  return nb::cast<std::string>(nb::repr(value));
}

/// A dict's keys in its own order. The dict below an OrderedDict has another one where a key was
/// moved to an end.
nb::object keys_of(nb::handle value, const Class& type) {
  const nb::object keys = type.ordered.is_valid() ? nb::object(type.ordered.attr("keys")(value))
                                                  : nb::steal(PyDict_Keys(value.ptr()));
  if (!keys.is_valid()) throw nb::python_error();
  nb::object tuple = nb::steal(PySequence_Tuple(keys.ptr()));
  if (!tuple.is_valid()) throw nb::python_error();
  return tuple;
}

/// Calls f(key, child) for each item of a dict, in its own order.
template <class F>
void for_each_item(nb::handle value, const Class& type, F&& f) {
  if (!type.ordered.is_valid()) {
    PyObject *key = nullptr, *child = nullptr;
    Py_ssize_t position = 0;
    while (PyDict_Next(value.ptr(), &position, &key, &child) != 0)
      f(nb::handle(key), nb::handle(child));
    return;
  }
  const nb::object keys = keys_of(value, type);
  for (const nb::handle key : keys) {
    const nb::object child = nb::borrow(PyDict_GetItemWithError(value.ptr(), key.ptr()));
    if (!child.is_valid()) {
      if (PyErr_Occurred() == nullptr) PyErr_SetObject(PyExc_KeyError, key.ptr());
      throw nb::python_error();
    }
    f(key, nb::handle(child));
  }
}

/// Calls f(name, attribute) for what an instance of a subclass of dict has beside its items: what a
/// defaultdict makes where there is none, and what is plain of its own attributes.
template <class F>
void for_each_attribute(nb::handle value, F&& f) {
  const nb::str factory("default_factory");
  if (nb::hasattr(value, factory)) f(nb::handle(factory), nb::object(value.attr(factory)));
  if (!nb::hasattr(value, "__dict__")) return;
  const nb::object own = value.attr("__dict__");
  PyObject *name = nullptr, *attribute = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(own.ptr(), &position, &name, &attribute) != 0)
    if (is_plain(attribute)) f(nb::handle(name), nb::handle(attribute));
}

/// Calls f(child) for each child of a container.
template <class F>
void for_each_child(nb::handle value, const Class& type, F&& f) {
  if (type.kind == Kind::tuple || type.kind == Kind::named_tuple) {
    for (Py_ssize_t i = 0, n = PyTuple_Size(value.ptr()); i < n; ++i)
      f(nb::handle(PyTuple_GetItem(value.ptr(), i)));
  } else if (type.kind == Kind::list) {
    for (Py_ssize_t i = 0; i < PyList_Size(value.ptr()); ++i)
      f(nb::handle(PyList_GetItem(value.ptr(), i)));
  } else if (type.kind == Kind::dict) {
    for_each_item(value, type, [&](nb::handle, nb::handle child) { f(child); });
  } else if (type.kind == Kind::dataclass) {
    for (const nb::object& field : type.fields) {
      const nb::object child = value.attr(field);
      f(nb::handle(child));
    }
  }
}

/// {children, aux} of a registered class.
std::pair<nb::object, nb::object> taken_apart(nb::handle value, const Class& type) {
  const nb::object parts = type.flatten(value);
  if (!PyTuple_Check(parts.ptr()) || nb::len(parts) != 2) {
    throw_python(PyExc_TypeError,
                 fmt::format("register_pytree: flatten of a {} must return (children, aux)",
                             class_name(value)));
  }
  const nb::object children = nb::steal(PySequence_Tuple(nb::object(parts[0]).ptr()));
  if (!children.is_valid()) throw nb::python_error();
  return {children, parts[1]};
}

constexpr uint64_t word(Kind kind, Py_ssize_t count = 0) {
  return static_cast<uint64_t>(kind) | static_cast<uint64_t>(count) << 8;
}
/// In a dict's word: the number of its class follows.
constexpr uint64_t with_class = uint64_t{1} << 63;

bool is_container(Kind kind) {
  return kind >= Kind::tuple;
}

/// The same dataclass with other fields; __init__ is not called again.
nb::object dataclass_of(nb::handle type, const std::vector<nb::object>& names,
                        const std::vector<nb::object>& values) {
  const nb::handle base(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  nb::object made = base.attr("__new__")(type);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (PyObject_GenericSetAttr(made.ptr(), names[i].ptr(), values[i].ptr()) != 0)
      throw nb::python_error();
  return made;
}

nb::object tuple_of(const std::vector<nb::object>& values) {
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(values.size())));
  for (std::size_t i = 0; i < values.size(); ++i)
    PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), nb::object(values[i]).release().ptr());
  return tuple;
}

/// The same structure with leaf(value, its class) in the place of each leaf. Containers are new; a
/// dict begins as dict_like(value, its class).
template <class Leaf, class DictLike>
nb::object mapped(nb::handle value, const Leaf& leaf, const DictLike& dict_like) {
  const Deeper deeper;
  const Class& type = class_of_value(value);
  if (!is_container(type.kind)) return leaf(value, type);
  if (type.kind == Kind::dict) {
    nb::object made = dict_like(value, type);
    for_each_item(value, type, [&](nb::handle key, nb::handle child) {
      const nb::object given = mapped(child, leaf, dict_like);
      if (PyObject_SetItem(made.ptr(), key.ptr(), given.ptr()) != 0) throw nb::python_error();
    });
    return made;
  }
  std::vector<nb::object> children;
  const auto add = [&](nb::handle child) { children.push_back(mapped(child, leaf, dict_like)); };
  if (type.kind == Kind::registered) {
    const auto [parts, aux] = taken_apart(value, type);
    for (const nb::handle child : parts) add(child);
    return type.unflatten(aux, tuple_of(children));
  }
  for_each_child(value, type, add);
  if (type.kind == Kind::dataclass) return dataclass_of(type_of(value), type.fields, children);
  const nb::object tuple = tuple_of(children);
  if (type.kind == Kind::named_tuple) return nb::handle(type_of(value)).attr("_make")(tuple);
  return type.kind == Kind::list ? nb::object(nb::list(nb::handle(tuple))) : tuple;
}

// ---- names of leaves

using Visit = std::function<void(const std::string& path, nb::handle value, Kind kind)>;

void visit_leaves(const std::string& path, nb::handle value, const Visit& visit) {
  const Deeper deeper;
  const Class& type = class_of_value(value);
  if (is_container(type.kind)) visit(path, value, type.kind);
  if (type.kind == Kind::dict) {
    if (type.is_subclass) {
      for_each_attribute(value, [&](nb::handle name, nb::handle attribute) {
        visit(fmt::format("{}.{}", path, nb::cast<std::string>(nb::str(name))), attribute,
              Kind::fixed);
      });
    }
    for_each_item(value, type, [&](nb::handle key, nb::handle child) {
      visit_leaves(fmt::format("{}[{}]", path, shown(key)), child, visit);
    });
  } else if (type.kind == Kind::dataclass || type.kind == Kind::named_tuple) {
    const nb::object names = type.kind == Kind::named_tuple
                                 ? nb::object(nb::handle(type_of(value)).attr("_fields"))
                                 : tuple_of(type.fields);
    for (const nb::handle name : names)
      visit_leaves(fmt::format("{}.{}", path, nb::cast<std::string>(nb::str(name))),
                   value.attr(name), visit);
  } else if (type.kind == Kind::registered) {
    const auto [children, aux] = taken_apart(value, type);
    int i = 0;
    for (const nb::handle child : children)
      visit_leaves(fmt::format("{}.<{}>", path, i++), child, visit);
  } else if (is_container(type.kind)) {
    int i = 0;
    for_each_child(value, type, [&](nb::handle child) {
      visit_leaves(fmt::format("{}[{}]", path, i++), child, visit);
    });
  } else {
    visit(path, value, type.kind);
  }
}

void visit_arguments(const CallArguments& arguments, std::span<const std::string> names,
                     const Visit& visit) {
  const auto count = static_cast<std::size_t>(PyTuple_Size(arguments.positional.ptr()));
  for (std::size_t i = 0; i < count; ++i) {
    const std::string name = i < names.size() ? names[i] : fmt::format("args[{}]", i);
    visit_leaves(name, PyTuple_GetItem(arguments.positional.ptr(), static_cast<Py_ssize_t>(i)),
                 visit);
  }
  if (!arguments.named.is_valid()) return;
  PyObject *key = nullptr, *value = nullptr;
  Py_ssize_t position = 0;
  while (PyDict_Next(arguments.named.ptr(), &position, &key, &value) != 0)
    visit_leaves(nb::cast<std::string>(nb::str(key)), value, visit);
}

/// Why a leaf cannot be a fixed part of a signature.
struct Unhashable {
  nb::handle value;
};

}  // namespace

// ---- arguments

ArgumentLeaves::ArgumentLeaves(const CallArguments& arguments, std::span<const std::string> names,
                               Interned& interned)
    : interned_(interned) {
  tensors_.reserve(8);
  try {
    const Py_ssize_t count = PyTuple_Size(arguments.positional.ptr());
    leaves_.fixed.push_back(word(Kind::tuple, count));
    for (Py_ssize_t i = 0; i < count; ++i) add(PyTuple_GetItem(arguments.positional.ptr(), i));
    if (arguments.named.is_valid()) {
      PyObject *key = nullptr, *value = nullptr;
      Py_ssize_t position = 0;
      while (PyDict_Next(arguments.named.ptr(), &position, &key, &value) != 0) {
        leaves_.fixed.push_back(interned_.number_of(key, Kind::text));
        add(value);
      }
    }
  } catch (const Unhashable& found) {
    std::string path = "an argument";
    visit_arguments(arguments, names, [&](const std::string& at, nb::handle value, Kind) {
      if (value.is(found.value)) path = at;
    });
    throw_python(PyExc_TypeError,
                 fmt::format("compile: {} is a {}, which has no hash: it is neither a tensor nor a "
                             "structure of them, and as a fixed part of the call it could not be "
                             "recognised. Make its class a dataclass, or register_pytree() it.",
                             path, class_name(found.value)));
  }
  for (const Tensor& tensor : tensors_) leaves_.tensors.push_back(&tensor);
  for (const Scalar& scalar : scalars_) leaves_.scalars.push_back(&scalar);
}

void ArgumentLeaves::add_fixed(nb::handle value, Kind kind) {
  leaves_.fixed.push_back(word(kind));
  try {
    leaves_.fixed.push_back(interned_.number_of(value, kind));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw Unhashable{value};
  }
}

void ArgumentLeaves::add_attributes(nb::handle value) {
  for_each_attribute(value, [this](nb::handle name, nb::handle attribute) {
    leaves_.fixed.push_back(interned_.number_of(name, Kind::text));
    add_fixed(attribute, class_of_value(attribute).kind);
  });
  leaves_.fixed.push_back(0);  // no number of a name: the end
}

void ArgumentLeaves::add(nb::handle value) {
  const Deeper deeper;
  const Class& type = class_of_value(value);
  const auto mark = [&](Py_ssize_t count = 0) { leaves_.fixed.push_back(word(type.kind, count)); };
  switch (type.kind) {
    case Kind::tensor:
      mark();
      tensors_.push_back(tensor_in(value));
      return;
    case Kind::array:
      leaves_.fixed.push_back(word(Kind::tensor));
      tensors_.push_back(from_array({"compile", "an argument", value}, Copy::always));
      return;
    case Kind::variable:
      mark();
      leaves_.variables.push_back(&variable_in(value));
      leaves_.gradients.push_back(jit::gradient_state(variable_in(value)));
      return;
    case Kind::real:
      mark();
      scalars_.emplace_back(PyFloat_AsDouble(value.ptr()));
      return;
    case Kind::scalar:
      leaves_.fixed.push_back(word(Kind::real));
      scalars_.push_back(scalar_in(value));
      return;
    case Kind::none:
      mark();
      return;
    case Kind::boolean:
      mark(value.is(Py_True) ? 1 : 0);
      return;
    case Kind::integer: {
      int overflow = 0;
      const long long number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflow);
      if (overflow != 0) return add_fixed(value, Kind::fixed);
      mark();
      leaves_.fixed.push_back(static_cast<uint64_t>(number));
      return;
    }
    case Kind::text:
    case Kind::fixed:
    case Kind::module:
      return add_fixed(value, type.kind);
    case Kind::registered: {
      const auto [children, aux] = taken_apart(value, type);
      mark(static_cast<Py_ssize_t>(nb::len(children)));
      leaves_.fixed.push_back(interned_.number_of(type_of(value), Kind::fixed));
      add_fixed(aux, Kind::fixed);
      for (const nb::handle child : children) add(child);
      return;
    }
    case Kind::dict: {
      const uint64_t structure = word(type.kind, PyDict_Size(value.ptr()));
      // The class is part of its structure, too: the function is given one of that class.
      leaves_.fixed.push_back(type.is_subclass ? structure | with_class : structure);
      if (type.is_subclass) {
        leaves_.fixed.push_back(interned_.number_of(type_of(value), Kind::fixed));
        add_attributes(value);
      }
      // The order of a dict is part of its structure: who goes through it sees it.
      for_each_item(value, type, [&](nb::handle key, nb::handle child) {
        leaves_.fixed.push_back(
            interned_.number_of(key, PyUnicode_CheckExact(key.ptr()) ? Kind::text : Kind::fixed));
        add(child);
      });
      return;
    }
    case Kind::tuple:
    case Kind::list:
    case Kind::named_tuple:
    case Kind::dataclass: {
      const Py_ssize_t count = type.kind == Kind::dataclass
                                   ? static_cast<Py_ssize_t>(type.fields.size())
                                   : PyObject_Size(value.ptr());
      mark(count);
      if (type.kind == Kind::named_tuple || type.kind == Kind::dataclass)
        leaves_.fixed.push_back(interned_.number_of(type_of(value), Kind::fixed));
      for_each_child(value, type, [&](nb::handle child) { add(child); });
      return;
    }
  }
}

nb::object replaced(nb::handle given, Replacement& by) {
  const auto leaf = [&by](nb::handle value, const Class& type) -> nb::object {
    if (type.kind == Kind::tensor || type.kind == Kind::array) return to_python(*by.tensors++);
    if (type.kind != Kind::real && type.kind != Kind::scalar) return nb::borrow(value);
    // A Scalar in eager calls too, so that what the function sees is the same in all.
    Scalar scalar =
        type.kind == Kind::real ? Scalar(PyFloat_AsDouble(value.ptr())) : scalar_in(value);
    if (by.scalars != nullptr) scalar.set_traced(*by.scalars++);
    return nb::cast(std::move(scalar));
  };
  const auto dict_like = [](nb::handle value, const Class& type) -> nb::object {
    if (!type.is_subclass) return nb::dict();
    return nb::module_::import_("copy").attr("copy")(value);
  };
  return mapped(given, leaf, dict_like);
}

std::vector<jit::Word> describe_arguments(const CallArguments& arguments,
                                          std::span<const std::string> names) {
  std::vector<jit::Word> words;
  visit_arguments(arguments, names, [&](const std::string& path, nb::handle value, Kind kind) {
    jit::Word described = {
        .where = path, .text = {}, .kind = jit::Word::Kind::fixed, .is_named = true};
    if (kind == Kind::tensor) {
      described.kind = jit::Word::Kind::tensor;
      described.text = jit::describe_leaf(tensor_in(value));
    } else if (kind == Kind::array) {
      described.kind = jit::Word::Kind::tensor;
      described.text = jit::describe_leaf(from_array({"compile", "x", value}, Copy::always));
    } else if (kind == Kind::variable) {
      described.kind = jit::Word::Kind::variable;
      described.text = jit::describe_leaf(variable_in(value));
    } else if (kind == Kind::scalar || kind == Kind::real) {
      described.kind = jit::Word::Kind::scalar;
      described.text = jit::describe_leaf(
          kind == Kind::scalar ? scalar_in(value) : Scalar(PyFloat_AsDouble(value.ptr())));
    } else if (is_container(kind)) {
      described.kind = jit::Word::Kind::length;
      described.text = class_name(value);
      if (kind == Kind::dict)
        described.text += " of " + shown(nb::list(nb::borrow(value)));
      else if (kind != Kind::dataclass && kind != Kind::registered)
        described.text += fmt::format(" of {}", PyObject_Size(value.ptr()));
    } else if (kind == Kind::module) {
      described.text = class_name(value);
    } else {
      described.text = shown(value);
      if (described.text.size() > 60) described.text = described.text.substr(0, 57) + "...";
    }
    words.push_back(std::move(described));
  });
  return words;
}

// ---- results

int Trees::traverse(visitproc visit, void* arg) const {
  const std::lock_guard lock(mutex_);
  for (const Tree* tree : alive_) {
    for (const Tree::Node& node : tree->nodes_) Py_VISIT(node.object);
  }
  return 0;
}

void Trees::add(const Tree& tree) {
  const std::lock_guard lock(mutex_);
  alive_.insert(&tree);
}

void Trees::remove(const Tree& tree) {
  const std::lock_guard lock(mutex_);
  alive_.erase(&tree);
}

std::shared_ptr<const Tree> Tree::of(nb::handle value, Interned& interned,
                                     const std::shared_ptr<Trees>& trees,
                                     std::vector<Tensor>& tensors, std::vector<uint64_t>& words) {
  auto made = std::make_shared<Tree>(trees);
  made->flatten(value, interned, tensors, words);
  trees->add(*made);
  return made;
}

Tree::~Tree() {
  trees_->remove(*this);
  for (const Node& node : nodes_) release_later(node.object);
}

void Tree::keep(Kind kind, Py_ssize_t count, nb::handle object) {
  nodes_.push_back({kind, count, object.inc_ref().ptr()});
}

void Tree::flatten(nb::handle value, Interned& interned, std::vector<Tensor>& tensors,
                   std::vector<uint64_t>& words) {
  const Deeper deeper;
  const Class& type = class_of_value(value);
  const auto descend = [&](nb::handle child) { flatten(child, interned, tensors, words); };
  const auto size = [&] { return PyObject_Size(value.ptr()); };
  const auto structure = [&](Py_ssize_t count, nb::handle object) {
    words.push_back(word(type.kind, count));
    keep(type.kind, count, object);
  };
  if (type.is_subclass && type_of(value) != type.ordered.ptr()) {
    // What it holds beside its elements is not known: it could not be made again.
    keep(Kind::fixed, 0, value);
    return refuse(value);
  }
  switch (type.kind) {
    case Kind::tensor:
      words.push_back(word(Kind::tensor));
      nodes_.push_back({Kind::tensor});
      tensors.push_back(tensor_in(value));
      return;
    case Kind::tuple:
    case Kind::list:
      words.push_back(word(type.kind, size()));
      nodes_.push_back({type.kind, size()});
      return for_each_child(value, type, descend);
    case Kind::named_tuple:
    case Kind::dataclass:
      structure(type.kind == Kind::dataclass ? static_cast<Py_ssize_t>(type.fields.size()) : size(),
                type_of(value));
      words.push_back(interned.number_of(type_of(value), Kind::fixed));
      return for_each_child(value, type, descend);
    case Kind::dict: {
      const nb::object keys = keys_of(value, type);
      structure(size(), nb::make_tuple(nb::handle(type_of(value)), keys));
      if (type.is_subclass) {
        words.back() |= with_class;
        words.push_back(interned.number_of(type_of(value), Kind::fixed));
      }
      for (const nb::handle key : keys)
        words.push_back(
            interned.number_of(key, PyUnicode_CheckExact(key.ptr()) ? Kind::text : Kind::fixed));
      return for_each_child(value, type, descend);
    }
    case Kind::registered: {
      const auto [children, aux] = taken_apart(value, type);
      structure(static_cast<Py_ssize_t>(nb::len(children)),
                nb::make_tuple(nb::handle(type_of(value)), aux));
      words.push_back(interned.number_of(type_of(value), Kind::fixed));
      words.push_back(interned.number_of(aux, Kind::fixed));
      for (const nb::handle child : children) descend(child);
      return;
    }
    case Kind::real:
      structure(0, value);
      words.push_back(std::bit_cast<uint64_t>(PyFloat_AsDouble(value.ptr())));
      return;
    case Kind::none:
    case Kind::boolean:
    case Kind::integer:
    case Kind::text:
      structure(0, value);
      words.push_back(interned.number_of(value, type.kind));
      return;
    default:
      keep(type.kind, 0, value);
      if (!obstacle_.empty()) return;
      if (type.kind == Kind::fixed &&
          nb::isinstance(value, nb::module_::import_("enum").attr("Enum"))) {
        words.push_back(interned.number_of(value, type.kind));
        return;
      }
      refuse(value);
  }
}

void Tree::refuse(nb::handle value) {
  if (!obstacle_.empty()) return;
  obstacle_ =
      fmt::format("the function returns a {}; return Tensors, numbers, and structures of them",
                  class_name(value));
}

nb::object Tree::build(const Node*& node, const Tensor*& tensor) const {
  const Node& here = *node++;
  std::vector<nb::object> children;
  const auto collect = [&] {
    for (Py_ssize_t i = 0; i < here.count; ++i) children.push_back(build(node, tensor));
  };
  switch (here.kind) {
    case Kind::tensor:
      return to_python(*tensor++);
    case Kind::tuple:
      collect();
      return tuple_of(children);
    case Kind::list: {
      nb::list list;
      for (Py_ssize_t i = 0; i < here.count; ++i) list.append(build(node, tensor));
      return list;
    }
    case Kind::dict: {
      const nb::object made = nb::handle(PyTuple_GetItem(here.object, 0))();
      PyObject* keys = PyTuple_GetItem(here.object, 1);
      for (Py_ssize_t i = 0; i < here.count; ++i)
        made[nb::handle(PyTuple_GetItem(keys, i))] = build(node, tensor);
      return made;
    }
    case Kind::named_tuple:
      collect();
      return nb::handle(here.object).attr("_make")(tuple_of(children));
    case Kind::dataclass: {
      collect();
      return dataclass_of(here.object, class_of_type(here.object).fields, children);
    }
    case Kind::registered: {
      collect();
      PyObject* type = PyTuple_GetItem(here.object, 0);
      return class_of_type(type).unflatten(nb::handle(PyTuple_GetItem(here.object, 1)),
                                           tuple_of(children));
    }
    default:
      return nb::borrow(here.object);
  }
}

nb::object Tree::unflatten(std::span<const Tensor> tensors) const {
  const Node* node = nodes_.data();
  const Tensor* tensor = tensors.data();
  return build(node, tensor);
}

// ---- for Python

namespace {

nb::object tree_map(nb::handle f, nb::handle tree) {
  const auto leaf = [f](nb::handle value, const Class& type) -> nb::object {
    return type.kind == Kind::tensor ? f(value) : nb::borrow(value);
  };
  const auto dict_like = [](nb::handle, const Class& type) -> nb::object {
    return type.ordered.is_valid() ? type.ordered() : nb::object(nb::dict());
  };
  return mapped(tree, leaf, dict_like);
}

}  // namespace

void bind_pytrees(nb::module_& m) {
  bind_classes(m);
  m.def("tree_map", tree_map, nb::arg("f"), nb::arg("tree").none(),
        nb::sig("def tree_map(f: collections.abc.Callable[[Tensor], typing.Any], tree: typing.Any) "
                "-> typing.Any"),
        "The same structure with f(tensor) in the place of each Tensor.");
}

}  // namespace nitinol::python
