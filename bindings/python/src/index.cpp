#include "bindings/python/src/index.h"

#include "bindings/python/src/errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace nitinol::python {
namespace {

/// A key, taken apart: what x.at() takes, and the tensors that it speaks of.
struct Key {
  Device device;  ///< of x
  std::vector<Index> indices = {};
  std::vector<Tensor> tensors = {};     ///< with room for one a part: indices point to them
  std::vector<std::size_t> bools = {};  ///< which indices stand for True or False
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
    key.tensors.reserve(parts);
    key.bools.push_back(key.indices.size());
    const int64_t count = object == Py_True ? 1 : 0;
    key.indices.emplace_back(key.tensors.emplace_back(arange(count, i64, key.device)));
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

/// As many indices as most keys have, in place. (Index has no default.)
class FewIndices {
 public:
  static constexpr std::size_t most = 4;
  void push_back(const Index& index) { std::construct_at(data() + count_++, index); }
  [[nodiscard]] std::span<const Index> all() const { return {data(), count_}; }

 private:
  static_assert(std::is_trivially_destructible_v<Index>);
  [[nodiscard]] Index* data() { return reinterpret_cast<Index*>(room_.data()); }
  [[nodiscard]] const Index* data() const { return reinterpret_cast<const Index*>(room_.data()); }

  alignas(Index) std::array<std::byte, most * sizeof(Index)> room_;
  std::size_t count_ = 0;
};

/// Adds a part that is none of an array's; false of others.
bool add_plain(nb::handle part, FewIndices& indices) {
  PyObject* const object = part.ptr();
  if (PyLong_CheckExact(object)) {
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(object, &overflow);
    if (overflow != 0) return false;
    indices.push_back(int64_t{number});
  } else if (PySlice_Check(object)) {
    indices.push_back(convert<Range>({"x[...]", "the slice", part}));
  } else if (object == Py_None) {
    indices.push_back(new_axis);
  } else if (object == Py_Ellipsis) {
    indices.push_back(ellipsis);
  } else {
    return false;
  }
  return true;
}

bool read_plain(nb::handle given, FewIndices& indices) {
  if (!PyTuple_Check(given.ptr())) return add_plain(given, indices);
  const Py_ssize_t parts = PyTuple_Size(given.ptr());
  if (parts > static_cast<Py_ssize_t>(FewIndices::most)) return false;
  for (Py_ssize_t i = 0; i < parts; ++i)
    if (!add_plain(PyTuple_GetItem(given.ptr(), i), indices)) return false;
  return true;
}

Key read_key(nb::handle given, const Tensor& x) {
  Key key = {.device = x.device()};
  if (PyTuple_Check(given.ptr())) {
    const auto parts = static_cast<std::size_t>(PyTuple_Size(given.ptr()));
    key.indices.reserve(parts);
    for (const nb::handle part : nb::borrow<nb::tuple>(given)) add_part(part, parts, key);
  } else {
    add_part(given, 1, key);
  }
  return key;
}

/// How many axes an index stands for, but for an ellipsis.
int axes_of(const Index& index) {
  switch (index.kind) {
    case Index::Kind::integer:
    case Index::Kind::range:
      return 1;
    case Index::Kind::rest:
    case Index::Kind::insertion:
      return 0;
    case Index::Kind::tensor:
      break;
  }
  return index.tensor->dtype() == boolean ? index.tensor->rank() : 1;
}

/// The axes of size 1 at which True and False choose all or nothing, as they are in x with them.
/// Unlike masks they say how many elements there are before the data is there.
Dims axes_of_bools(const Key& key, const Tensor& x) {
  Dims axes;
  if (key.bools.empty()) return axes;
  const auto is_bool = [&](std::size_t i) {
    return std::ranges::find(key.bools, i) != key.bools.end();
  };
  int left = x.rank(), axis = 0;
  for (std::size_t i = 0; i < key.indices.size(); ++i)
    left -= is_bool(i) ? 0 : axes_of(key.indices[i]);
  for (std::size_t i = 0; i < key.indices.size(); ++i) {
    if (is_bool(i))
      axes.push_back(axis++);
    else
      axis += key.indices[i].kind == Index::Kind::rest ? left : axes_of(key.indices[i]);
  }
  return axes;
}

Tensor with_axes(Tensor x, const Dims& axes) {
  for (const int64_t axis : axes) x = unsqueeze(x, axis);
  return x;
}

/// What it says; C++'s at() is x[...].
std::string words_of(const Error& error) {
  return message_of(error, error.report().where == "at" ? "x[...]" : nullptr);
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
    throw_python(bounds_error(), words_of(error));
  }
}

}  // namespace

Tensor get_plain_item(const Tensor& x, nb::handle key) {
  FewIndices indices;
  if (!read_plain(key, indices)) return {};
  return with_index_errors([&] { return At::part_of(x, indices.all()); });
}

Tensor get_item(const Tensor& x, nb::handle given) {
  const Key key = read_key(given, x);
  const std::span<const Index> indices(key.indices);
  if (key.tensors.empty()) return with_index_errors([&] { return At::part_of(x, indices); });
  int64_t elements = x.size();
  for (const Tensor& tensor : key.tensors) elements += tensor.size();
  return with_index_errors([&] {
    return computed(elements,
                    [&] { return with_axes(x, axes_of_bools(key, x)).at(indices).get(); });
  });
}

Tensor set_item(const Tensor& x, nb::handle given, nb::handle value,
                Tensor (At::*join)(const Argument&) const) {
  const Operand operand = convert<Operand>({"x[...] = value", "value", value});
  const Key key = read_key(given, x);
  const Dims axes = axes_of_bools(key, x);
  const At part =
      with_index_errors([&] { return with_axes(x, axes).at(std::span<const Index>(key.indices)); });
  try {
    return computed(x.size(), [&] {
      Tensor changed = (part.*join)(operand);
      return axes.empty() ? changed : squeeze(changed, axes);
    });
  } catch (const Error& error) {
    const std::string& where = error.report().where;
    const bool is_of_index = where == "take" || where == "scatter";
    const bool is_bound = is_of_index && error.kind() == ErrorKind::value;
    throw_python(is_bound ? bounds_error() : class_of(error.kind()), words_of(error));
  }
}

namespace {

struct Parts {
  Tensor x;
};

struct Part {
  Tensor x;
  nb::object key;
};

}  // namespace

nb::object parts_of(Tensor x) {
  return nb::cast(Parts{std::move(x)});
}

void bind_parts(nb::module_& m) {
  nb::class_<Parts>(m, "_Parts")
      .def(
          "__getitem__",
          [](const Parts& parts, nb::object key) {
            return Part{parts.x, std::move(key)};
          },
          nb::sig("def __getitem__(self, key: typing.Any, /) -> _Part"));
  nb::class_<Part> part(m, "_Part");
  part.def(
      "get", [](const Part& self) { return to_python(get_item(self.x, self.key)); },
      nb::sig("def get(self) -> Tensor"), "The part, as x[key].");
  const auto add = [&](const char* name, Tensor (At::*join)(const Argument&) const,
                       const char* signature, const char* doc) {
    part.def(
        name,
        [join](const Part& self, nb::handle value) {
          return to_python(set_item(self.x, self.key, value, join));
        },
        nb::arg("value"), nb::sig(signature), doc);
  };
  add("set", &At::set, "def set(self, value: TensorLike) -> Tensor",
      "The whole tensor with the part replaced by the value, which broadcasts.");
  add("add", &At::add, "def add(self, value: TensorLike) -> Tensor",
      "The whole tensor with the value added to the part. Where the key names a place more than "
      "once, all values arrive, in their order.");
  add("multiply", &At::multiply, "def multiply(self, value: TensorLike) -> Tensor",
      "The whole tensor with the part multiplied by the value; see add().");
  add("min", &At::minimum, "def min(self, value: TensorLike) -> Tensor",
      "The whole tensor with the smaller of each two in the part; see add().");
  add("max", &At::maximum, "def max(self, value: TensorLike) -> Tensor",
      "The whole tensor with the larger of each two in the part; see add().");
}

}  // namespace nitinol::python
