#include "bindings/python/src/index.h"

#include "bindings/python/src/errors.h"

#include <fmt/format.h>

#include <span>
#include <vector>

namespace nitinol::python {
namespace {

/// A key, taken apart: what x.at() takes, and the tensors that it speaks of.
struct Key {
  std::vector<Index> indices;
  std::vector<Tensor> tensors;  ///< with room for one a part: indices point to them
};

bool is_index_array(nb::handle part) {
  return is_tensor(part) || is_variable(part) || PyList_Check(part.ptr()) || is_array(part);
}

Tensor tensor_of(nb::handle part) {
  Tensor array;
  if (PyList_Check(part.ptr())) {
    array = tensor_in(nb::module_::import_("nitinol._ext").attr("asarray")(part));
    if (array.size() == 0) array = array.to(i64);  // x[[]]
  } else {
    array = convert<Tensor>({"x[...]", "the index", part});
  }
  if (array.dtype() == boolean || is_integer(array.dtype())) return array;
  throw_python(bounds_error(), fmt::format("x[...]: an index is {}; expected integers or booleans",
                                           describe(array)));
}

/// Adds one part of a key.
void add_part(nb::handle part, std::size_t parts, Key& key) {
  PyObject* object = part.ptr();
  if (part.is_none()) {
    key.indices.emplace_back(new_axis);
  } else if (object == Py_Ellipsis) {
    key.indices.emplace_back(ellipsis);
  } else if (PyBool_Check(object)) {
    throw Error(ErrorKind::unsupported,
                {.where = "x[...]",
                 .what = "True and False are no indices",
                 .expected = "integers, slices, None, Ellipsis, or arrays of integers or booleans",
                 .got = object == Py_True ? "True" : "False",
                 .fix = "None inserts an axis; where(condition, x, other) keeps the shape."});
  } else if (PySlice_Check(object)) {
    key.indices.emplace_back(convert<Range>({"x[...]", "the slice", part}));
  } else if (is_index_array(part)) {
    key.tensors.reserve(parts);
    key.indices.emplace_back(key.tensors.emplace_back(tensor_of(part)));
  } else if (PyIndex_Check(object)) {
    key.indices.emplace_back(convert<int64_t>({"x[...]", "the index", part}));
  } else {
    throw_python(bounds_error(),
                 "x[...]: only integers, slices, None, Ellipsis and arrays of integers or booleans "
                 "are indices");
  }
}

Key read_key(nb::handle given) {
  Key key;
  if (PyTuple_Check(given.ptr())) {
    const auto parts = static_cast<std::size_t>(PyTuple_Size(given.ptr()));
    key.indices.reserve(parts);
    for (const nb::handle part : nb::borrow<nb::tuple>(given)) add_part(part, parts, key);
  } else {
    add_part(given, 1, key);
  }
  return key;
}

/// f(), whose Errors about indices are Python's IndexError.
template <class F>
auto with_index_errors(const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    const bool is_of_index = error.kind() == ErrorKind::shape || error.kind() == ErrorKind::value ||
                             error.kind() == ErrorKind::dtype;
    if (!is_of_index) throw;
    throw_python(bounds_error(), message_of(error));
  }
}

}  // namespace

Tensor get_item(const Tensor& x, nb::handle given) {
  const Key key = read_key(given);
  const std::span<const Index> indices(key.indices);
  if (key.tensors.empty()) return with_index_errors([&] { return x.at(indices).get(); });
  int64_t elements = x.size();
  for (const Tensor& tensor : key.tensors) elements += tensor.size();
  return with_index_errors([&] { return computed(elements, [&] { return x.at(indices).get(); }); });
}

Tensor set_item(const Tensor& x, nb::handle given, nb::handle value) {
  const Operand operand = convert<Operand>({"x[...] = value", "value", value});
  const Key key = read_key(given);
  const At part = with_index_errors([&] { return x.at(std::span<const Index>(key.indices)); });
  try {
    return computed(x.size(), [&] { return part.set(operand); });
  } catch (const Error& error) {
    const std::string& where = error.report().where;
    const bool is_of_index = where == "take" || where == "scatter";
    if (!is_of_index || error.kind() != ErrorKind::value) throw;
    throw_python(bounds_error(), message_of(error));
  }
}

}  // namespace nitinol::python
