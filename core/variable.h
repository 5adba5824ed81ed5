// Variable: the one mutable thing, a handle to a cell that holds a Tensor.
#pragma once

#include "core/call_order.h"
#include "core/function_ref.h"
#include "core/tensor.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <source_location>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

class Variable;
void destroy(DeferredCheck* check);

/// What a Variable points to. The value may be replaced, its spec never changes.
struct VariableCell : Counted {
  uint64_t id = 0;  ///< order of creation; locks are taken in this order
  Spec spec;        ///< of the value; read without the lock
  std::mutex
      mutex;  ///< held while `value` is read or replaced, and while its buffer is overwritten
  Tensor value;
  std::atomic<uint64_t> version = 0;   ///< how often `value` has been replaced
  std::atomic<bool> has_value = true;  ///< `value` is defined; read without the lock
  CallOrder order;                     ///< owned by the call that will assign the Variable
  bool may_be_empty = false;           ///< of a gradient: its value may be undefined
  /// The call that assigned `value`, if that may yet be found to have failed: then it gets its old
  /// value back. (core/deferred_check.h)
  Handle<DeferredCheck> check;
  /// If gradients flow to this Variable: the cell they gather in, which is empty (its value is
  /// undefined) until the first backward() and after clear_grad().
  std::unique_ptr<const Variable> gradient;

  /// Gives the cell, whose lock is held, another value, and `with` the old one: it may be the last
  /// to hold borrowed memory, which is given back when no cell is locked.
  void swap_value(Tensor& with);
  /// The value, when it is known that the call which assigned it has not failed. Throws that call's
  /// error if it has. Takes the lock.
  [[nodiscard]] Tensor settled_value();
};

void destroy(VariableCell* cell);

/// A parameter, running mean or step count. Copying a Variable shares the cell; clone() does not.
/// Inside a compiled function a read sees the last assignment of the same call; all assignments are
/// committed together when the call succeeds, and none if it throws.
class Variable {
 public:
  Variable() = default;
  /// A new cell. What `initial` was computed from does not matter: a Variable holds a value, and
  /// gradients that flow to it do not flow further.
  explicit Variable(const Tensor& initial);

  [[nodiscard]] bool is_defined() const { return static_cast<bool>(cell_); }
  /// The present value.
  [[nodiscard]] Tensor get() const;
  /// Replaces the value. Throws Error(shape), Error(dtype) or Error(device) unless it has the
  /// cell's spec.
  void set(const Tensor& value) const;
  /// Replaces the value by next(value), as one update: no assignment of another thread comes
  /// between. Should one come all the same, as where a call that owns the Variable takes long, then
  /// `next` is called again.
  void update(FunctionRef<Tensor(const Tensor& value)> next) const;
  // NOLINTNEXTLINE(google-explicit-constructor): reads like a tensor in formulas
  operator Tensor() const { return get(); }
  const Variable& operator=(const Tensor& value) const {
    set(value);
    return *this;
  }
  const Variable& operator+=(const Argument& other) const;
  const Variable& operator-=(const Argument& other) const;
  const Variable& operator*=(const Argument& other) const;

  /// Whether Tensor::backward() computes a gradient for this Variable: made by parameter().
  [[nodiscard]] bool tracks_gradient() const { return cell().gradient != nullptr; }
  /// What backward() has gathered since the last clear_grad(): the value's shape and dtype, or an
  /// undefined tensor if nothing was. Throws Error(value) unless tracks_gradient().
  [[nodiscard]] Tensor grad() const;
  /// Replaces it. Throws Error(shape) or Error(dtype) unless it has the Variable's spec.
  void set_grad(const Tensor& gradient) const;
  /// Adds to it, as one update.
  void add_grad(const Tensor& gradient) const;
  /// Forgets it.
  void clear_grad() const;

  /// Shape, dtype and device, which never change.
  [[nodiscard]] const Spec& spec() const;
  [[nodiscard]] const Shape& shape() const { return spec().shape; }
  [[nodiscard]] DType dtype() const { return spec().dtype; }
  [[nodiscard]] Device device() const { return spec().device; }
  [[nodiscard]] int rank() const { return shape().size(); }
  /// Number of elements.
  [[nodiscard]] int64_t size() const { return element_count(shape()); }

  /// Of the present value, as Tensor's functions of these names.
  template <class T>
  [[nodiscard]] T item(std::source_location place = std::source_location::current()) const {
    return get().item<T>(place);
  }
  template <class T>
  [[nodiscard]] std::vector<T> to_vector(
      std::source_location place = std::source_location::current()) const {
    return get().to_vector<T>(place);
  }
  [[nodiscard]] Tensor to(DType dtype) const { return get().to(dtype); }
  [[nodiscard]] Tensor to(Device device) const { return get().to(device); }
  Tensor operator[](Integer i) const { return get()[i]; }
  [[nodiscard]] At at(std::initializer_list<Index> indices) const;

  /// A new cell with the present value, which tracks gradients if this one does.
  [[nodiscard]] Variable clone() const;

  /// For interpreters and the compiler.
  [[nodiscard]] VariableCell& cell() const;
  friend bool operator==(const Variable& a, const Variable& b) { return a.cell_ == b.cell_; }

 private:
  friend Variable parameter(const Tensor& initial);
  Handle<VariableCell> cell_;
};

/// While it lives, no other call assigns the Variable: what is read and assigned meanwhile is one
/// update. Does nothing inside a compiled function, whose calls are updates as a whole.
class UpdateScope {
 public:
  explicit UpdateScope(const Variable& variable);
  ~UpdateScope();
  UpdateScope(const UpdateScope&) = delete;
  UpdateScope& operator=(const UpdateScope&) = delete;

 private:
  CallOrder* order_ = nullptr;  ///< taken by this scope, or null
};

/// Smaller ids are the library's own: no cell that is made has one.
inline constexpr uint64_t first_variable_id = 4096;
/// The id of the next cell that is made: cells with ids from here on are younger than this call.
[[nodiscard]] uint64_t next_variable_id();

/// A Variable that tracks gradients: what is to be learned. `initial` must be floating.
[[nodiscard]] Variable parameter(const Tensor& initial);

}  // namespace nitinol

#pragma GCC visibility pop
