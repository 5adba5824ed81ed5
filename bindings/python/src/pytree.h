// Structures of Python values (pytrees): tuples, lists, dicts, named tuples, dataclasses and
// registered classes, whose leaves are tensors, numbers and values that stay as they are.
#pragma once

#include "bindings/python/src/from.h"
#include "bindings/python/src/interned.h"
#include "jit/compiled_function.h"
#include "jit/leaves.h"

#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace nitinol::python {

/// What a value of some class is in a structure.
enum class Kind : uint8_t {
  tensor,
  variable,
  scalar,  ///< a Scalar
  real,    ///< a float: a Scalar as an argument, a fixed number in a result
  array,   ///< of another library: a tensor as an argument
  none,
  boolean,
  integer,
  text,    ///< a str
  fixed,   ///< any other hashable value
  module,  ///< an nn.Module: itself, whatever it holds
  tuple,
  list,
  dict,
  named_tuple,
  dataclass,
  registered,  ///< by register_pytree
};

/// How values of a class are taken apart.
struct Class {
  Kind kind = Kind::fixed;
  nb::object fields = {};     ///< dataclass: a tuple of their names
  nb::object functions = {};  ///< registered: (flatten, unflatten), if the class cannot hold them
  bool is_subclass = false;   ///< of tuple, list or dict, and not that itself
  nb::object ordered = {};    ///< a class of OrderedDicts: collections.OrderedDict
  Same same = Same::object;   ///< when two of them are one fixed value
  bool is_hashable = true;
  bool has_attributes = false;  ///< its instances may have some of their own
};
/// The class of a value; of values of one type always the same object.
[[nodiscard]] const Class& class_of_value(nb::handle value);
/// The same for values of a type.
[[nodiscard]] const Class& class_of_type(nb::handle type);

/// A bool, int, float, str or None.
[[nodiscard]] bool is_plain(nb::handle value);

class Tree;

/// The Trees of one compiled function: what they hold the function holds, which Python's garbage
/// collector has to be told, or a cycle through a class in a result would never be collected.
class Trees {
 public:
  /// As tp_traverse; with Python's lock.
  int traverse(visitproc visit, void* arg) const;

 private:
  friend class Tree;
  void add(const Tree& tree);
  void remove(const Tree& tree);

  mutable std::mutex mutex_;
  std::unordered_set<const Tree*> alive_;
};

/// What a function returned, without its tensors. Immutable; may die on any thread.
class Tree : public std::enable_shared_from_this<Tree> {
 public:
  explicit Tree(std::shared_ptr<Trees> trees) : trees_(std::move(trees)) {}
  ~Tree();
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  /// Takes `value` apart. `words` get all that is not a tensor, comparable between calls.
  [[nodiscard]] static std::shared_ptr<const Tree> of(nb::handle value, Interned& interned,
                                                      const std::shared_ptr<Trees>& trees,
                                                      std::vector<Tensor>& tensors,
                                                      std::vector<uint64_t>& words);
  /// Why this cannot be a compiled function's result; empty if it can.
  [[nodiscard]] const std::string& obstacle() const { return obstacle_; }
  /// The structure with these tensors, in order.
  [[nodiscard]] nb::object unflatten(std::span<const Tensor> tensors) const;

 private:
  friend class Trees;
  struct Node {
    Kind kind;
    Py_ssize_t count = 0;
    PyObject* object = nullptr;  ///< owned: a fixed value, a class, keys
  };
  void flatten(nb::handle value, Numbers& numbers, std::vector<Tensor>& tensors,
               std::vector<uint64_t>& words);
  nb::object build(const Node*& node, const Tensor*& tensor) const;
  void keep(Kind kind, Py_ssize_t count, nb::handle object);
  void refuse(nb::handle value);

  std::shared_ptr<Trees> trees_;
  std::vector<Node> nodes_;
  std::shared_ptr<const jit::Meaning> meaning_;  ///< of the words
  std::string obstacle_;
};

void bind_classes(nb::module_& m);  ///< register_pytree
void bind_pytrees(nb::module_& m);

}  // namespace nitinol::python
