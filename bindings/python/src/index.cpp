#include "bindings/python/src/index.h"

#include "bindings/python/src/errors.h"

#include <fmt/format.h>

#include <numeric>

namespace nitinol::python {
namespace {

/// A key, taken apart: what x.at() takes, and at most one array of integers.
struct Key {
  std::vector<Index> indices;  ///< all_of_axis where the array stands
  Tensor array;                ///< undefined: there is none
  int array_axis = 0;          ///< of the result of `indices`, with the axes that Ellipsis left out
  bool goes_first = false;     ///< the array's axes come first in the result, as in NumPy
};

bool is_integer_array(nb::handle part) {
  return is_tensor(part) || is_variable(part) || PyList_Check(part.ptr()) || is_array(part);
}

[[noreturn]] void refuse_mask() {
  throw Error(ErrorKind::unsupported,
              {.where = "x[mask]",
               .what = "a boolean mask chooses a number of elements that depends on data",
               .expected = "integers, slices, None, Ellipsis, or an array of integers",
               .got = "booleans",
               .fix = "where(mask, x, other) keeps the shape."});
}

Tensor integers_of(nb::handle part) {
  const From from = {"x[...]", "the index", part};
  Tensor array;
  if (PyList_Check(part.ptr())) {
    nb::module_ package = nb::module_::import_("nitinol._ext");
    array = tensor_in(package.attr("asarray")(part));
  } else {
    array = convert<Tensor>(from);
  }
  if (array.dtype() == boolean) refuse_mask();
  if (!is_integer(array.dtype())) {
    throw_python(bounds_error(),
                 fmt::format("x[...]: an index is {}; expected integers", describe(array)));
  }
  return array;
}

/// Adds one part of a key; returns how many axes of x it takes.
int add_part(nb::handle part, Key& key) {
  PyObject* object = part.ptr();
  if (part.is_none()) {
    key.indices.emplace_back(new_axis);
    return 0;
  }
  if (object == Py_Ellipsis) {
    key.indices.emplace_back(ellipsis);
    return 0;
  }
  if (PyBool_Check(object)) refuse_mask();
  if (PySlice_Check(object)) {
    key.indices.emplace_back(convert<Range>({"x[...]", "the slice", part}));
    return 1;
  }
  if (is_integer_array(part)) {
    if (key.array.is_defined()) {
      throw Error(ErrorKind::unsupported, {.where = "x[...]",
                                           .what = "two arrays of integers in one index",
                                           .expected = "one",
                                           .got = {},
                                           .fix = "Index in two steps, or use gather()."});
    }
    key.array = integers_of(part);
    key.indices.emplace_back(all_of_axis);
    return 1;
  }
  if (!PyIndex_Check(object)) {
    throw_python(bounds_error(),
                 "x[...]: only integers, slices, None, Ellipsis and arrays of "
                 "integers are indices");
  }
  key.indices.emplace_back(convert<int64_t>({"x[...]", "the index", part}));
  return 1;
}

/// Where the array's axis is in the result of the other indices, and whether NumPy moves it.
void place_array(const Tensor& x, int taken, std::size_t position, Key& key) {
  int axis = 0;
  bool is_separated = false, has_integer = false;
  for (std::size_t i = 0; i < key.indices.size(); ++i) {
    const Index& index = key.indices[i];
    const bool is_before = i < position;
    if (is_before && index.kind == Index::Kind::rest) axis += x.rank() - taken;
    if (is_before && (index.kind == Index::Kind::range || index.kind == Index::Kind::insertion))
      ++axis;
    if (index.kind != Index::Kind::integer || i == position) continue;
    has_integer = true;
    const auto [first, last] = std::minmax(i, position);
    for (std::size_t between = first + 1; between < last; ++between)
      is_separated |= key.indices[between].kind != Index::Kind::integer;
  }
  key.array_axis = axis;
  key.goes_first = has_integer && is_separated;
}

Key read_key(const Tensor& x, nb::handle given) {
  Key key;
  int taken = 0;
  std::size_t position = 0;
  bool has_rest = false;
  const auto add = [&](nb::handle part) {
    const bool had_array = key.array.is_defined();
    taken += add_part(part, key);
    if (!had_array && key.array.is_defined()) position = key.indices.size() - 1;
    has_rest |= part.ptr() == Py_Ellipsis;
  };
  if (PyTuple_Check(given.ptr())) {
    key.indices.reserve(static_cast<std::size_t>(PyTuple_Size(given.ptr())));
    for (const nb::handle part : nb::borrow<nb::tuple>(given)) add(part);
  } else {
    add(given);
  }
  if (key.array.is_defined()) place_array(x, taken, position, key);
  return key;
}

/// x.at(indices), whose Errors are Python's IndexError.
At part_of(const Tensor& x, const std::vector<Index>& indices) {
  try {
    return x.at(std::span<const Index>(indices));
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::internal) throw;
    throw_python(bounds_error(), message_of(error));
  }
}

}  // namespace

Tensor get_item(const Tensor& x, nb::handle given) {
  const Key key = read_key(x, given);
  Tensor part = part_of(x, key.indices).get();
  if (!key.array.is_defined()) return part;
  const int64_t elements = part.size() + key.array.size();
  Tensor found;
  try {
    found = computed(elements, [&] { return take(part, key.array, key.array_axis); });
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::value) throw_python(bounds_error(), message_of(error));
    throw;
  }
  if (!key.goes_first || key.array_axis == 0) return found;
  // [before, array's axes, after] -> [array's axes, before, after]
  Dims order;
  for (int i = 0; i < key.array.rank(); ++i) order.push_back(key.array_axis + i);
  for (int i = 0; i < key.array_axis; ++i) order.push_back(i);
  for (int i = key.array_axis + key.array.rank(); i < found.rank(); ++i) order.push_back(i);
  return permute(found, order);
}

Tensor set_item(const Tensor& x, nb::handle given, nb::handle value) {
  const Operand operand = convert<Operand>({"x[...] = value", "value", value});
  const bool is_mask = (is_tensor(given) && tensor_in(given).dtype() == boolean) ||
                       (is_variable(given) && variable_in(given).dtype() == boolean);
  if (is_mask) {  // every element is decided by itself, so nothing depends on how many there are
    const Tensor mask = convert<Tensor>({"x[mask] = value", "mask", given});
    if (mask.shape() != x.shape() || operand.size() != 1) refuse_mask();
    return computed(
        x.size(), [&] { return where(mask, Tensor(full({}, operand, x.dtype(), x.device())), x); });
  }
  const Key key = read_key(x, given);
  if (key.array.is_defined()) {
    throw Error(ErrorKind::unsupported,
                {.where = "x[array] = value",
                 .what = "elements chosen by an array of integers cannot be assigned yet",
                 .expected = "integers, slices, None, Ellipsis, or a mask of x's shape",
                 .got = describe(key.array),
                 .fix = "scatter_add() adds at such places."});
  }
  const At part = part_of(x, key.indices);
  return computed(x.size(), [&] { return part.set(operand); });
}

}  // namespace nitinol::python
