#include "bindings/python/src/arguments.h"

#include "bindings/python/src/array.h"
#include "bindings/python/src/errors.h"
#include "bindings/python/src/walk.h"

#include <fmt/format.h>

namespace nitinol::python {
namespace {

std::string shown(nb::handle value) {
  return nb::cast<std::string>(nb::repr(value));
}

std::string text_of(nb::handle value) {
  return nb::cast<std::string>(nb::str(value));
}

/// Of a fixed argument: which object it is, and what to do if it keeps changing.
void note_object(nb::handle value, jit::Word& word) {
  if (PyIndex_Check(value.ptr())) {
    word.advice =
        "a number to compute with can be given as a float or as nitinol.Scalar(n), which may "
        "change from call to call";
  } else if (class_of_value(value).same == Same::object && !value.is_none()) {
    word.advice = "objects of its class are told apart by identity: give the same one in each call";
    word.identity = reinterpret_cast<uintptr_t>(value.ptr());
  }
}

/// Thrown at a leaf that cannot be a fixed part of a signature.
struct Unhashable {};

}  // namespace

constinit std::vector<ArgumentLeaves::Node> ArgumentLeaves::spare;

// ---- taking apart

ArgumentLeaves::ArgumentLeaves(const CallArguments& arguments, std::span<const std::string> names,
                               Interned& interned)
    : numbers_(interned), nodes_(std::move(spare)) {
  tensors_.reserve(8);
  try {
    positional_ = PyTuple_Size(arguments.positional.ptr());
    leaves_.fixed.push_back(word(Kind::tuple, positional_));
    for (Py_ssize_t i = 0; i < positional_; ++i)
      add(PyTuple_GetItem(arguments.positional.ptr(), i));
    if (arguments.named.is_valid()) {
      const Class& type = class_of_value(arguments.named);
      for_each_item(arguments.named, type, PyDict_Size(arguments.named.ptr()),
                    [this](nb::handle name, nb::handle value) {
                      add_number(numbers_.of(name));
                      note(Kind::text, name);
                      add(value);
                    });
    }
  } catch (const Unhashable&) {  // the last node
    std::string path = "an argument";
    visit_all(names, [&](const std::string& at, const Node& node, const Cursor&) {
      if (&node == &nodes_.back()) path = at;
      if (node.has_extra && &node + 1 == &nodes_.back()) path = at + ".<aux>";
    });
    throw_python(PyExc_TypeError,
                 fmt::format("compile: {} is {}, which has no hash: it is neither a tensor nor a "
                             "structure of them, and as a fixed part of the call it could not be "
                             "recognised. Make its class a dataclass, or register_pytree() it.",
                             path, with_article(class_name(nodes_.back().value))));
  }
  for (const Tensor& tensor : tensors_) leaves_.tensors.push_back(&tensor);
  for (const Scalar& scalar : scalars_) leaves_.scalars.push_back(&scalar);
}

void ArgumentLeaves::add_fixed(nb::handle value, Kind kind) {
  leaves_.fixed.push_back(word(kind));
  try {
    add_number(numbers_.of(value));
  } catch (nb::python_error& error) {
    if (!error.matches(PyExc_TypeError)) throw;
    throw Unhashable{};
  }
}

void ArgumentLeaves::note(Kind kind, nb::handle value, Py_ssize_t count, nb::handle extra) {
  nodes_.push_back({.value = nb::borrow(value),
                    .kind = kind,
                    .count = static_cast<int>(count),
                    .has_extra = extra.is_valid()});
  if (extra.is_valid()) note(Kind::fixed, extra);
}

void ArgumentLeaves::add_dict(nb::handle value, const Class& given) {
  const Class type = given;  // own: a hash of what it holds may have the class forgotten
  const Py_ssize_t count = PyDict_Size(value.ptr());
  nb::object attributes;
  // The class is part of its structure, too: the function is given one of that class.
  leaves_.fixed.push_back(word(Kind::dict, count) | (type.is_subclass ? with_class : 0));
  if (type.is_subclass) {
    attributes = nb::dict();
    add_number(numbers_.of_object(type_of(value)));
    for_each_attribute(value, [&](nb::handle name, nb::handle attribute) {
      attributes[name] = attribute;
      add_number(numbers_.of(name));
      add_number(numbers_.of(attribute));
    });
    leaves_.fixed.push_back(0);  // no number of a name: the end
  }
  note(Kind::dict, value, count, attributes);
  // The order of a dict is part of its structure: who goes through it sees it.
  for_each_item(value, type, count, [&](nb::handle key, nb::handle child) {
    add_number(numbers_.of(key));
    note(Kind::fixed, key);
    add(child);
  });
}

void ArgumentLeaves::add_registered(nb::handle value) {
  const auto [children, aux] = taken_apart(value);
  const Py_ssize_t count = PyTuple_Size(children.ptr());
  note(Kind::registered, value, count, aux);
  leaves_.fixed.push_back(word(Kind::registered, count));
  add_number(numbers_.of_object(type_of(value)));
  add_fixed(aux, Kind::fixed);
  for (const nb::handle child : children) add(child);
}

void ArgumentLeaves::add_container(nb::handle value, const Class& type) {
  const Kind kind = type.kind;
  if (kind == Kind::dict) return add_dict(value, type);
  if (kind == Kind::registered) return add_registered(value);
  const Children children = children_of(value, type);
  note(kind, value, children.count, children.names);
  leaves_.fixed.push_back(word(kind, children.count));
  if (kind == Kind::named_tuple || kind == Kind::dataclass)
    add_number(numbers_.of_object(type_of(value)));
  children.for_each_other([this](nb::handle name) { add_number(numbers_.of(name)); });
  for_each_child(value, type, children, [this](nb::handle child) { add(child); });
}

void ArgumentLeaves::add(nb::handle value) {
  const Deeper deeper;
  const Class& type = class_of_value(value);
  Kind kind = type.kind;
  if (is_container(kind)) return add_container(value, type);
  // A float with a unit is no number: what it has beside its value a Scalar has not.
  if (kind == Kind::real && type.has_attributes && nb::len(attributes_of(value, type)) > 0)
    kind = Kind::fixed;
  note(kind, value);
  const auto mark = [&](int number = 0) { leaves_.fixed.push_back(word(kind, number)); };
  switch (kind) {
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
    default:
      return add_fixed(value, kind);
  }
}

ArgumentLeaves::~ArgumentLeaves() {
  nodes_.clear();
  if (spare.capacity() < nodes_.capacity()) spare = std::move(nodes_);
}

// ---- giving to the function

nb::object ArgumentLeaves::build_dict(const Node& here, Cursor& at, Replacement& by) const {
  nb::object made = nb::dict();
  if (here.has_extra) {
    const nb::dict attributes = nb::borrow<nb::dict>((at.node++)->value);
    made = nb::module_::import_("copy").attr("copy")(here.value);
    const nb::object ordered = class_of_value(made).ordered;
    ordered.is_valid() ? static_cast<void>(ordered.attr("clear")(made)) : PyDict_Clear(made.ptr());
    for (const auto [name, attribute] : attributes) nb::setattr(made, name, attribute);
  }
  for (int i = 0; i < here.count; ++i) {
    const nb::object key = (at.node++)->value;
    const nb::object child = build(at, by);
    if (PyObject_SetItem(made.ptr(), key.ptr(), child.ptr()) != 0) throw nb::python_error();
  }
  return made;
}

nb::object ArgumentLeaves::build(Cursor& at, Replacement& by) const {
  const Node& here = *at.node++;
  switch (here.kind) {
    case Kind::tensor:
    case Kind::array:
      return to_python(*by.tensors++);
    case Kind::real:
    case Kind::scalar: {
      // A Scalar in eager calls too, so that what the function sees is the same in all.
      Scalar scalar = *at.scalar++;
      if (by.scalars != nullptr) scalar.set_traced(*by.scalars++);
      return nb::cast(std::move(scalar));
    }
    case Kind::dict:
      return build_dict(here, at, by);
    default:
      if (!is_container(here.kind)) return here.value;
  }
  const nb::object extra = here.has_extra ? (at.node++)->value : nb::object();
  std::vector<nb::object> children;
  for (int i = 0; i < here.count; ++i) children.push_back(build(at, by));
  if (here.kind == Kind::dataclass) return dataclass_of(type_of(here.value), extra, children);
  const nb::object tuple = tuple_of(children);
  if (here.kind == Kind::registered) return put_together(type_of(here.value), extra, tuple);
  if (here.kind == Kind::named_tuple) return nb::handle(type_of(here.value)).attr("_make")(tuple);
  return here.kind == Kind::list ? nb::object(nb::list(nb::handle(tuple))) : tuple;
}

Given ArgumentLeaves::replaced(Replacement by) const {
  Cursor at = begin();
  std::vector<nb::object> positional;
  for (Py_ssize_t i = 0; i < positional_; ++i) positional.push_back(build(at, by));
  Given given = {.positional = tuple_of(positional), .named = {}};
  if (is_end(at)) return given;
  nb::dict named;
  while (!is_end(at)) {
    const nb::object name = (at.node++)->value;
    named[name] = build(at, by);
  }
  given.named = named;
  return given;
}

// ---- names of leaves

/// Calls f(path, node, cursor) for a value and those in it, as far as the nodes go. The cursor
/// points to what is the leaf's own.
template <class Visit>
void ArgumentLeaves::visit(const std::string& path, Cursor& at, const Visit& f) const {
  if (is_end(at)) return;
  const Node& here = *at.node++;
  f(path, here, at);
  if (here.kind == Kind::tensor || here.kind == Kind::array) ++at.tensor;
  if (here.kind == Kind::real || here.kind == Kind::scalar) ++at.scalar;
  if (!is_container(here.kind)) return;
  const nb::object names = here.kind == Kind::named_tuple
                               ? nb::object(nb::handle(type_of(here.value)).attr("_fields"))
                           : here.has_extra ? (at.node++)->value
                                            : nb::object();
  for (int i = 0; i < here.count && !is_end(at); ++i) {
    if (here.kind == Kind::dict) {
      const nb::object key = (at.node++)->value;
      visit(fmt::format("{}[{}]", path, shown(key)), at, f);
    } else if (here.kind == Kind::dataclass || here.kind == Kind::named_tuple) {
      visit(fmt::format("{}.{}", path, text_of(nb::object(names[i]))), at, f);
    } else {
      visit(here.kind == Kind::registered ? fmt::format("{}.<{}>", path, i)
                                          : fmt::format("{}[{}]", path, i),
            at, f);
    }
  }
}

template <class Visit>
void ArgumentLeaves::visit_all(std::span<const std::string> names, const Visit& f) const {
  Cursor at = begin();
  for (Py_ssize_t i = 0; i < positional_; ++i) {
    const auto k = static_cast<std::size_t>(i);
    visit(k < names.size() ? names[k] : fmt::format("args[{}]", k), at, f);
  }
  while (!is_end(at)) {
    const std::string name = text_of((at.node++)->value);
    visit(name, at, f);
  }
}

std::vector<jit::Word> ArgumentLeaves::describe(std::span<const std::string> names) const {
  std::vector<jit::Word> words;
  const auto add_word = [&](const std::string& path, jit::Word::Kind kind, std::string text) {
    words.push_back({.where = path, .text = std::move(text), .kind = kind, .is_named = true});
  };
  const auto add_value = [&](const std::string& path, nb::handle value) {
    std::string text = shown(value);
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    add_word(path, jit::Word::Kind::fixed, std::move(text));
    note_object(value, words.back());
  };
  visit_all(names, [&](const std::string& path, const Node& node, const Cursor& at) {
    switch (node.kind) {
      case Kind::tensor:
      case Kind::array:
        return add_word(path, jit::Word::Kind::tensor, jit::describe_leaf(*at.tensor));
      case Kind::variable:
        return add_word(path, jit::Word::Kind::variable,
                        jit::describe_leaf(variable_in(node.value)));
      case Kind::scalar:
      case Kind::real:
        return add_word(path, jit::Word::Kind::scalar, jit::describe_leaf(*at.scalar));
      case Kind::module:
        add_word(path, jit::Word::Kind::fixed, class_name(node.value));
        return note_object(node.value, words.back());
      default:
        if (!is_container(node.kind)) return add_value(path, node.value);
    }
    std::string text = class_name(node.value);
    if (node.kind == Kind::dict)
      text += " of " + shown(nb::list(node.value));
    else if (node.kind != Kind::dataclass && node.kind != Kind::registered)
      text += fmt::format(" of {}", node.count);
    add_word(path, jit::Word::Kind::length, std::move(text));
    if (node.kind != Kind::dict || !node.has_extra) return;
    for (const auto [name, attribute] : nb::borrow<nb::dict>((&node + 1)->value))
      add_value(fmt::format("{}.{}", path, text_of(name)), attribute);
  });
  return words;
}

}  // namespace nitinol::python
