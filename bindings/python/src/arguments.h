// The arguments of a compiled function's call: taken apart once, and given to the function again.
#pragma once

#include "bindings/python/src/pytree.h"

#include <span>
#include <string>
#include <vector>

namespace nitinol::python {

/// The parameters of one call.
struct CallArguments {
  nb::handle positional;  ///< a tuple
  nb::handle named;       ///< a dict, or null
};

/// The same, for the function.
struct Given {
  nb::object positional;
  nb::object named;  ///< null if there are none
};

/// Replaces the leaves of arguments, from left to right.
struct Replacement {
  const Tensor* tensors;            ///< one for each tensor and array
  const Tensor* scalars = nullptr;  ///< one for each float and Scalar; null: they stay
};

/// The leaves of a call's arguments, and the structure around them. Owns both: the caller's
/// containers may change while the call runs.
class ArgumentLeaves {
 public:
  ArgumentLeaves(const CallArguments& arguments, std::span<const std::string> names,
                 Interned& interned);
  ~ArgumentLeaves();
  ArgumentLeaves(const ArgumentLeaves&) = delete;
  ArgumentLeaves& operator=(const ArgumentLeaves&) = delete;
  [[nodiscard]] const jit::Leaves& leaves() const { return leaves_; }
  /// The tensors, in the order of the leaves; arrays are what was made of them.
  [[nodiscard]] std::span<const Tensor> tensors() const { return tensors_; }
  /// The arguments with other leaves: containers are new, so what a function does to them and to
  /// the tensors in them is not seen by its caller.
  [[nodiscard]] Given replaced(Replacement by) const;
  /// What the numbers among the leaves stand for.
  [[nodiscard]] std::shared_ptr<const jit::Meaning> meaning() const { return numbers_.meaning(); }
  /// One word per leaf: "params['w']", "float32[3]".
  [[nodiscard]] std::vector<jit::Word> describe(std::span<const std::string> names) const;

 private:
  /// A value as the walk found it. What is in it follows: of a dict each child after its key, and
  /// before them all what `has_extra` says.
  struct Node {
    nb::object value;
    Kind kind;
    int count = 0;           ///< of children
    bool has_extra = false;  ///< a node follows: a dataclass's names, what a registered class's
                             ///< flatten returned as aux, the attributes of a subclass of dict
  };
  /// Where the nodes are gone through again.
  struct Cursor {
    const Node* node;
    const Tensor* tensor;
    const Scalar* scalar;
  };
  template <class Visit>
  void visit(const std::string& path, Cursor& at, const Visit& f) const;
  template <class Visit>
  void visit_all(std::span<const std::string> names, const Visit& f) const;
  [[nodiscard]] Cursor begin() const { return {nodes_.data(), tensors_.data(), scalars_.data()}; }
  [[nodiscard]] bool is_end(const Cursor& at) const {
    return at.node == nodes_.data() + nodes_.size();
  }

  void add(nb::handle value);
  void add_number(uint64_t number) { leaves_.fixed.push_back(number); }
  void add_fixed(nb::handle value, Kind kind);
  void add_container(nb::handle value, const Class& type);
  void add_dict(nb::handle value, const Class& type);
  void add_registered(nb::handle value);
  void note(Kind kind, nb::handle value) {
    nodes_.push_back({.value = nb::borrow(value), .kind = kind});
  }
  void note(Kind kind, nb::handle value, Py_ssize_t count, nb::handle extra = {});
  nb::object build(Cursor& at, Replacement& by) const;
  nb::object build_dict(const Node& here, Cursor& at, Replacement& by) const;

  Numbers numbers_;
  jit::Leaves leaves_;
  std::vector<Tensor> tensors_;
  std::vector<Scalar> scalars_;
  std::vector<Node> nodes_;        ///< of each argument; named ones after their names
  static std::vector<Node> spare;  ///< empty memory for the next call; under Python's lock
  Py_ssize_t positional_ = 0;
};

}  // namespace nitinol::python
