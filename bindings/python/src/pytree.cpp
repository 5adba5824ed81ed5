// One walk over a structure serves arguments, another results: a float is a Scalar in the one and a
// fixed number in the other, and only arguments may hold arrays.
#include "bindings/python/src/pytree.h"

#include "bindings/python/src/errors.h"
#include "bindings/python/src/walk.h"

#include <fmt/format.h>

#include <bit>
#include <unordered_map>

namespace nitinol::python {

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
  Numbers numbers(interned);
  made->flatten(value, numbers, tensors, words);
  made->meaning_ = numbers.meaning();
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

void Tree::flatten(nb::handle value, Numbers& numbers, std::vector<Tensor>& tensors,
                   std::vector<uint64_t>& words) {
  const Deeper deeper;
  const Class type = class_of_value(value);  // own: a hash of what it holds may have it forgotten
  const auto descend = [&](nb::handle child) { flatten(child, numbers, tensors, words); };
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
    case Kind::list: {
      const Children children = children_of(value, type);
      words.push_back(word(type.kind, children.count));
      nodes_.push_back({type.kind, children.count});
      return for_each_child(value, type, children, descend);
    }
    case Kind::named_tuple:
    case Kind::dataclass: {
      const Children children = children_of(value, type);
      const bool is_named = children.names.is_valid();
      structure(children.count,
                nb::make_tuple(nb::handle(type_of(value)), is_named ? children.names : nb::none()));
      words.push_back(numbers.of_object(type_of(value)));
      children.for_each_other([&](nb::handle name) { words.push_back(numbers.of(name)); });
      return for_each_child(value, type, children, descend);
    }
    case Kind::dict: {
      const nb::object keys = keys_of(value, type);
      const Py_ssize_t count = PyTuple_Size(keys.ptr());
      structure(count, nb::make_tuple(nb::handle(type_of(value)), keys));
      if (type.is_subclass) {
        words.back() |= with_class;
        words.push_back(numbers.of_object(type_of(value)));
      }
      for (const nb::handle key : keys) words.push_back(numbers.of(key));
      return for_each_item(value, type, count,
                           [&](nb::handle, nb::handle child) { descend(child); });
    }
    case Kind::registered: {
      const auto [children, aux] = taken_apart(value);
      structure(PyTuple_Size(children.ptr()), nb::make_tuple(nb::handle(type_of(value)), aux));
      words.push_back(numbers.of_object(type_of(value)));
      words.push_back(numbers.of(aux));
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
      words.push_back(numbers.of(value));
      return;
    default:
      keep(type.kind, 0, value);
      if (!obstacle_.empty()) return;
      if (type.kind == Kind::fixed &&
          nb::isinstance(value, nb::module_::import_("enum").attr("Enum"))) {
        words.push_back(numbers.of(value));
        return;
      }
      refuse(value);
  }
}

void Tree::refuse(nb::handle value) {
  if (!obstacle_.empty()) return;
  obstacle_ =
      fmt::format("the function returns {}; return Tensors, numbers, and structures of them",
                  with_article(class_name(value)));
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
      return nb::handle(PyTuple_GetItem(here.object, 0)).attr("_make")(tuple_of(children));
    case Kind::dataclass:
      collect();
      return dataclass_of(PyTuple_GetItem(here.object, 0), PyTuple_GetItem(here.object, 1),
                          children);
    case Kind::registered: {
      collect();
      return put_together(PyTuple_GetItem(here.object, 0), PyTuple_GetItem(here.object, 1),
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

/// The same structure with f(tensor) in the place of each Tensor. Containers are new.
nb::object tree_map(nb::handle f, nb::handle value) {
  const Deeper deeper;
  const Class type = class_of_value(value);  // own: f may have it forgotten
  if (type.kind == Kind::tensor) return f(value);
  if (!is_container(type.kind)) return nb::borrow(value);
  std::vector<nb::object> children;
  const auto add = [&](nb::handle child) { children.push_back(tree_map(f, child)); };
  if (type.kind == Kind::registered) {
    const auto [parts, aux] = taken_apart(value);
    for (const nb::handle child : parts) add(child);
    return put_together(type_of(value), aux, tuple_of(children));
  }
  const Children given = children_of(value, type);
  if (type.kind == Kind::dict) {
    nb::object made = type.ordered.is_valid() ? type.ordered() : nb::object(nb::dict());
    for_each_item(value, type, given.count, [&](nb::handle key, nb::handle child) {
      const nb::object mapped = tree_map(f, child);
      if (PyObject_SetItem(made.ptr(), key.ptr(), mapped.ptr()) != 0) throw nb::python_error();
    });
    return made;
  }
  for_each_child(value, type, given, add);
  if (type.kind == Kind::dataclass) return dataclass_of(type_of(value), given.names, children);
  const nb::object tuple = tuple_of(children);
  if (type.kind == Kind::named_tuple) return nb::handle(type_of(value)).attr("_make")(tuple);
  return type.kind == Kind::list ? nb::object(nb::list(nb::handle(tuple))) : tuple;
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
