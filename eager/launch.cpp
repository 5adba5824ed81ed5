// From tensors to a Launch.
//
// Dimensions of size 1 go, and neighbouring dimensions that every operand walks through as if they
// were one become one. What is left decides the stride classes, and with op and dtypes the kernel.
// Looking that kernel up must cost nanoseconds, so each thread keeps a small direct-mapped table in
// front of the process's cache.
//
// Example: x[2, 3] + y[3]: sizes [2, 3], strides x [3, 1], y [0, 1], out [3, 1]; class one for all.
#include "eager/launch.h"

#include "core/backend.h"
#include "core/error.h"
#include "core/executables.h"
#include "core/expr.h"
#include "core/host_access.h"
#include "core/library.h"
#include "core/loop_nest.h"
#include "core/parallel.h"
#include "eager/all_ops.h"
#include "eager/at_hand.h"
#include "eager/infer.h"
#include "eager/row_view.h"
#include "fusion/groups.h"
#include "fusion/one_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace nitinol::eager {
namespace {

/// A position or numbers, the inputs, the output and scratch of an op with one kernel.
constexpr int most_operands = 8;

// ---- prepared kernels

/// All that eager's one-op kernels differ in, 4 bits each: dtypes, classes, order, stores.
class KernelKey {
 public:
  explicit KernelKey(const Op& op) : op_(&op) {}
  template <class T>
  void add(T field) {
    bits_ = bits_ << 4 | static_cast<uint64_t>(field);
  }
  void add(Device device) {
    add(device.kind);
    add(device.index);
  }
  [[nodiscard]] std::size_t hash() const {
    const uint64_t mixed = (reinterpret_cast<uintptr_t>(op_) ^ bits_) * 0x9e3779b97f4a7c15U;
    return mixed >> 32;
  }
  friend bool operator==(const KernelKey&, const KernelKey&) = default;
  KernelKey() = default;

 private:
  const Op* op_ = nullptr;
  uint64_t bits_ = 0;
};

struct TableEntry {
  KernelKey key;
  std::shared_ptr<const Executable> executable;
};

/// An executable that lives as long as this, or as the thread has it at hand.
struct Prepared {
  const Executable* executable;
  std::shared_ptr<const Executable> owner;
  const Executable& operator*() const { return *executable; }
};

/// Apart, so that calls whose kernel is at hand do not pay for what makes one.
template <class Make>
[[gnu::noinline]] std::shared_ptr<const Executable> looked_for(Device device, const Make& make) {
  return executable_for(backend(device), make());
}

/// The executable for `key`, made by `make()` (a Kernel) if this thread does not have it at hand.
template <class Make>
Prepared prepared(const KernelKey& key, Device device, Make make) {
  TableEntry* const entry = AtHand<TableEntry, 1024>::find(key.hash());
  if (entry == nullptr) {
    std::shared_ptr<const Executable> owner = looked_for(device, make);
    return {owner.get(), std::move(owner)};
  }
  if (entry->key != key || entry->executable == nullptr) {
    entry->executable = looked_for(device, make);
    entry->key = key;
  }
  return {entry->executable.get(), nullptr};
}

// ---- loops

/// The strides of a few operands, without an allocation.
class FewStrides {
 public:
  void push_back(const Strides& strides) { list_[count_++] = strides; }
  [[nodiscard]] std::size_t size() const { return count_; }
  Strides& operator[](std::size_t k) { return list_[k]; }
  const Strides& operator[](std::size_t k) const { return list_[k]; }
  [[nodiscard]] Strides* begin() { return list_.data(); }
  [[nodiscard]] Strides* end() { return list_.data() + count_; }
  [[nodiscard]] const Strides* begin() const { return list_.data(); }
  [[nodiscard]] const Strides* end() const { return list_.data() + count_; }

 private:
  std::array<Strides, most_operands> list_;
  std::size_t count_ = 0;
};

using Nest = LoopNest<FewStrides>;

/// The arguments of a launch, flat.
struct Arguments {
  std::array<void*, most_operands> buffers = {};
  std::array<int64_t, static_cast<std::size_t>(most_operands) * max_rank> strides;
  std::array<int64_t, most_operands> offsets = {};
  std::array<uint64_t, most_operands> scalars = {};

  void launch(const Executable& executable, const Nest& nest, Status* status = nullptr) {
    const auto rank = static_cast<std::size_t>(nest.sizes.size());
    const std::size_t count = nest.strides.size();
    for (std::size_t k = 0; k < count; ++k) {
      std::copy(nest.strides[k].begin(), nest.strides[k].end(), strides.begin() + k * rank);
    }
    executable.launch({.buffers = {buffers.data(), count},
                       .sizes = nest.sizes,
                       .strides = {strides.data(), count * rank},
                       .offsets = {offsets.data(), count},
                       .scalars = {scalars.data(), count},
                       .status = status,
                       .threads = num_threads()});
  }
};

bool is_plain(const TensorData& data, const Shape& shape) {
  return data.spec.shape == shape && is_contiguous(shape, data.strides);
}

/// Whether outputs of `count` elements go around the caches. Asks the backend about large ones
/// only.
Stores stores_for(const TensorData& out, int64_t count) {
  constexpr std::size_t least = std::size_t{1} << 20;
  const std::size_t bytes = static_cast<std::size_t>(count) * size_of(out.spec.dtype);
  if (bytes < least || bytes < backend(out.spec.device).limits().streaming_bytes)
    return Stores::cached;
  return Stores::non_temporal;
}

// ---- elementwise: the position of a create op, the inputs, the output

/// The executable for an elementwise launch whose operand k moves by stride(k) along the innermost
/// loop.
template <class Stride>
Prepared elementwise_executable(const Op& op, Inputs inputs, const Tensor& result, int64_t count,
                                Stride stride) {
  const TensorData& out = result.internals();
  constexpr int number_class = 3;  // where StrideClass has none
  const bool has_position = op.kind == OpKind::create;
  const Stores stores = stores_for(out, count);
  KernelKey key(op);
  for (const Tensor* input : inputs) key.add(input->dtype());
  std::size_t k = 0;
  if (has_position) key.add(class_of(stride(k++)));
  for (const Tensor* input : inputs) {
    key.add(input->internals().is_number() ? number_class : static_cast<int>(class_of(stride(k))));
    ++k;
  }
  key.add(class_of(stride(k)));
  key.add(out.spec.dtype);
  key.add(stores);
  key.add(out.spec.device);
  return prepared(key, out.spec.device, [&] {
    Kernel kernel = fusion::lower_op(op, inputs, {}, result);
    kernel.stores = stores;
    return kernel;
  });
}

/// All operands but numbers are of one shape and without gaps: one loop over `count` elements.
void compute_flat(const Op& op, Inputs inputs, const Tensor& out, int64_t count, Status* status) {
  std::array<void*, most_operands> buffers;  // only as many as are used are ever set
  std::array<int64_t, most_operands> strides;
  std::array<uint64_t, most_operands> scalars;
  std::size_t operands = 0;
  const auto add = [&](void* buffer, int64_t stride, uint64_t scalar) {
    buffers[operands] = buffer;
    strides[operands] = stride;
    scalars[operands++] = scalar;
  };
  if (op.kind == OpKind::create) add(nullptr, 1, 0);
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    data.is_number() ? add(nullptr, 0, data.number) : add(data.address(), 1, 0);
  }
  add(out.internals().address(), 1, 0);
  const Prepared executable =
      elementwise_executable(op, inputs, out, count, [&](std::size_t k) { return strides[k]; });
  (*executable)
      .launch({.buffers = {buffers.data(), operands},
               .sizes = {&count, 1},
               .strides = {strides.data(), operands},
               .offsets = {},
               .scalars = {scalars.data(), operands},
               .status = status,
               .threads = num_threads()});
}

Nest elementwise_loops(const Op& op, Inputs inputs, const TensorData& out) {
  const Shape& shape = out.spec.shape;
  Nest nest;
  nest.sizes = shape;
  if (op.kind == OpKind::create) nest.strides.push_back(strides_of(shape));
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    nest.strides.push_back(broadcast_strides(data.spec.shape, data.strides, shape));
  }
  nest.strides.push_back(out.strides);
  nest.simplify(shape.size());
  nest.add_point_if_empty();
  return nest;
}

// ---- reductions

/// True if the innermost loop jumps through memory that another loop would walk element by element
/// (a transposed operand). Copying first is faster then: sum over the first axis of a transposed
/// 1000 by 1000 float32, 365 us without and 230 us with (November 2026, one thread).
bool is_transposed(const RowView& view, Order order) {
  const int inner = order == Order::lanes ? view.shape.size() - 1 : view.rows - 1;
  if (inner < 0 || view.strides[inner] == 1 || view.strides[inner] == 0) return false;
  return std::ranges::find(view.strides, 1) != view.strides.end();
}

/// Loops over what is reduced, merged, in the rows of the view, and over the results.
Nest reduction_loops(const RowView& view) {
  Nest nest;
  nest.sizes = view.shape;
  Strides from = view.strides, to = view.results;
  if (view.rows == view.shape.size()) {  // one element
    nest.sizes.push_back(1);
    from.push_back(0);
    to.push_back(0);
  }
  nest.strides.push_back(from);
  nest.strides.push_back(to);
  nest.merge(view.rows, nest.sizes.size());
  return nest;
}

/// The loop over rows that lie side by side, and may be reduced as they lie (Order::across); or -1.
int rows_across(const Op& op, const Tensor& x, const RowView& view, Order order) {
  const bool lies_along = view.rows == view.shape.size() || view.strides.back() == 1;
  if (order != Order::lanes || lies_along || is_arg(op.combine) || !reduced_dims_merge(view))
    return -1;
  return reduction_loops(view).across(backend(x.device()).limits().rows_of_vectors);
}

/// Whether what lies side by side along the reduced axes is turned where it is reduced, in blocks
/// that the rows of Order::sequential are visited in.
bool turns_rows(const Tensor& x, const RowView& view, Order order) {
  return order == Order::sequential && view.strides.back() == 1 &&
         view.strides[view.rows - 1] != 0 && reduced_dims_merge(view) &&
         backend(x.device()).limits().rows_of_vectors > 0;
}

/// Whether rows whose reduced axes do not merge may be brought together where they are reduced
/// (Kernel::reduced_loops).
bool may_copy_rows(const Tensor& x, const RowView& view, Order order) {
  const auto of_reduced = [&view](const Dims& dims) {
    return Dims({dims.begin() + view.rows, dims.end()});
  };
  return fusion::may_copy_rows(order, of_reduced(view.shape), of_reduced(view.strides),
                               backend(x.device()).limits());
}

/// The spec of `x`, but for the shape.
Spec spec_of(const Tensor& x, const Shape& shape) {
  Spec spec = x.spec();
  spec.shape = shape;
  return spec;
}

/// A copy of the view in which the reduced axes are one loop: last in memory for lanes, first for
/// sequential, whose innermost loop runs over rows.
Tensor copied(const Tensor& x, RowView& view, Order order) {
  const int rank = view.shape.size();
  const int reduced = rank - view.rows;
  const int shift = order == Order::lanes ? 0 : view.rows;
  Spec spec = x.spec();
  spec.shape = {};
  Strides strides;
  for (int i = 0; i < rank; ++i) {
    const int from = (i + shift) % rank;
    spec.shape.push_back(view.shape[from]);
    strides.push_back(view.strides[from]);
  }
  const TensorData& data = x.internals();
  const Tensor moved = contiguous(make_tensor(spec, strides, data.offset, data.storage));
  const Strides& packed = moved.internals().strides;
  const int first = order == Order::lanes ? 0 : reduced;
  for (int i = 0; i < rank; ++i) view.strides[i] = packed[(i + first) % rank];
  return moved;
}

/// From one device's memory to another's without the host; undefined if that is not possible.
Tensor copied_between_devices(const Tensor& x, const Spec& spec) {
  const Storage* const from = x.internals().storage.get();
  Backend& to = backend(spec.device);
  if (from == nullptr || from->backend == nullptr || to.is_host_memory()) return {};
  Tensor out = allocate_tensor(spec);
  if (out.size() == 0) return out;
  const Tensor packed = contiguous(x);
  const auto bytes = static_cast<std::size_t>(out.size()) * size_of(out.dtype());
  const bool is_copied =
      to.copy_from(*from->backend, packed.internals().address(), out.internals().address(), bytes);
  return is_copied ? out : Tensor();
}

}  // namespace

void compute_into(const Op& op, Inputs inputs, const Tensor& out, Status* status) {
  const TensorData& to = out.internals();
  const Shape& shape = to.spec.shape;
  const int64_t count = element_count(shape);
  if (count == 0) return;
  const auto covers = [&](const Tensor* input) {
    return input->internals().is_number() || is_plain(input->internals(), shape);
  };
  if (is_plain(to, shape) && std::ranges::all_of(inputs, covers))
    return compute_flat(op, inputs, out, count, status);
  const Nest nest = elementwise_loops(op, inputs, to);
  const int inner = nest.sizes.size() - 1;
  Arguments arguments;
  std::size_t k = op.kind == OpKind::create ? 1 : 0;
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    if (data.is_number())
      arguments.scalars[k] = data.number;
    else
      arguments.buffers[k] = data.address();
    ++k;
  }
  arguments.buffers[k] = to.address();
  const Prepared executable = elementwise_executable(
      op, inputs, out, count, [&](std::size_t i) { return nest.strides[i][inner]; });
  arguments.launch(*executable, nest, status);
}

namespace {

/// Of an op whose check has failed.
[[noreturn]] void throw_failed(const Op& op, Inputs inputs, const Attrs& attrs) {
  op.fail(op, inputs, attrs);
  throw Error(ErrorKind::value,
              {.where = std::string(op.name),
               .what = "an element that is refused is another one when it is looked at again",
               .expected = "operands that nobody writes meanwhile",
               .got = "memory that has been written, perhaps by another thread",
               .fix = "Copy what is borrowed before its owner goes on to write."});
}

}  // namespace

void compute_checked(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& out) {
  StatusWord status(&backend(out.device()));
  compute_into(op, inputs, out, status.get());
  if (status.has_failed()) throw_failed(op, inputs, attrs);
}

Tensor compute_alike(const Op& op, Inputs inputs) {
  const TensorData* whole = nullptr;
  const DType dtype = inputs.back()->dtype();
  if (op.infer != infer_elementwise || !op.accepts.contains(dtype)) return {};
  for (const Tensor* input : inputs) {
    const TensorData& data = input->internals();
    if (data.gradient || data.spec.dtype != dtype) return {};
    if (data.is_number()) continue;
    if (whole == nullptr) whole = &data;
    const bool is_alike = data.spec == whole->spec && !data.spec.is_weak;
    if (!is_alike || !is_contiguous(data.spec.shape, data.strides)) return {};
  }
  if (whole == nullptr) return {};
  const int64_t count = element_count(whole->spec.shape);
  if (count == 0) return {};
  Spec spec = whole->spec;
  if (op.is_predicate) spec.dtype = boolean;
  Tensor out = allocate_tensor(spec);
  compute_flat(op, inputs, out, count, nullptr);
  return out;
}

void reduce_into(const Op& op, const Tensor& x, const Dims& axes, const Tensor& out) {
  Order order = fusion::reduction_order_for(x.shape(), axes);
  RowView view = rows_first(x, axes);
  if (!is_arg(op.combine) && !depends_on_order({op.combine, compute_type(x.dtype())})) {
    follow_memory(view, op.combine);
    order = lies_along(view) ? Order::lanes : Order::sequential;
  }
  Tensor source = x;
  const int across = rows_across(op, x, view, order);
  const bool is_turned = turns_rows(x, view, order);
  if (across < 0 && !is_turned &&
      (reduced_dims_merge(view) ? is_transposed(view, order) : !may_copy_rows(x, view, order)))
    source = copied(x, view, order);
  Nest nest = reduction_loops(view);
  if (across >= 0) {
    order = Order::across;
    nest.move_before_last(across);
  }
  const int reduced = nest.sizes.size() - view.rows;
  nest.simplify(view.rows);
  const int rows = nest.sizes.size() - reduced;
  const int inner = nest.innermost(order);
  const StrideClass input_class = is_turned ? StrideClass::one : class_of(nest.strides[0][inner]);
  const StrideClass output_class = class_of(nest.strides[1][inner]);
  KernelKey key(op);
  key.add(x.dtype());
  key.add(out.dtype());
  key.add(input_class);
  key.add(output_class);
  key.add(order);
  key.add(reduced);
  key.add(x.device());
  const Prepared executable = prepared(key, x.device(), [&] {
    Nest loops = nest;  // those that are reduced as one
    for (; loops.sizes.size() > rows + 1; loops.remove(rows))
      loops.sizes[rows + 1] *= loops.sizes[rows];
    const Attrs last_axis = {Dims{rows}, false};
    const Tensor from = make_tensor(spec_of(x, loops.sizes), loops.strides[0], 0, {});
    loops.remove(rows);
    const Tensor totals = make_tensor(spec_of(out, loops.sizes), loops.strides[1], 0, {});
    const Tensor* const input = &from;
    Kernel kernel = fusion::lower_op(op, Inputs(&input, 1), last_axis, totals, order);
    kernel.operands[0].inner = input_class;
    kernel.reduced_loops = static_cast<uint8_t>(reduced);
    return kernel;
  });
  Arguments arguments;
  arguments.buffers = {source.internals().address(), out.internals().address()};
  arguments.launch(*executable, nest);
}

void look_up_into(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& out) {
  const Tensor from = in_memory(*inputs[0], out.device());
  const Tensor indices = in_memory(*inputs[1], out.device());
  const TensorData &table = from.internals(), &places = indices.internals(), &to = out.internals();
  const Shape& shape = to.spec.shape;
  const Lookup lookup = op.lookup(table.spec.shape, table.strides, shape, attrs);
  Nest nest;
  nest.sizes = shape;
  nest.strides.push_back(places.strides);
  while (nest.strides[0].size() < shape.size()) nest.strides[0].push_back(0);
  const Strides none = Dims::filled(shape.size(), 0);
  for (const Strides& strides : {none, none, lookup.strides, to.strides})
    nest.strides.push_back(strides);
  nest.simplify(shape.size());
  nest.add_point_if_empty();
  Arguments arguments;
  arguments.buffers = {places.address(), nullptr, nullptr, table.address(), to.address()};
  arguments.scalars = {0, static_cast<uint64_t>(lookup.rows), static_cast<uint64_t>(lookup.step)};
  const auto stride = [&](std::size_t k) { return nest.strides[k][nest.sizes.size() - 1]; };
  KernelKey key(op);
  for (const std::size_t k : {0, 3, 4}) key.add(class_of(stride(k)));
  key.add(out.dtype());
  key.add(out.device());
  const Prepared executable = prepared(key, out.device(), [&] {
    return fusion::lower_op(op, std::array{&from, &indices}, attrs, out);
  });
  StatusWord status(&backend(out.device()));
  arguments.launch(*executable, nest, status.get());
  if (status.has_failed()) throw_failed(op, inputs, attrs);
}

namespace {

/// Launches a call of `op`, whose results are its last operands.
void launch_call(const Op& op, Inputs inputs, const Attrs& attrs, LibraryCall call,
                 std::span<const Tensor> results) {
  const Device place = results[0].device();
  Backend& device = backend(place);
  call.threads = num_threads();
  const std::shared_ptr<const Executable> executable = executable_for(device, call);
  std::array<Tensor, most_operands> numbers;
  std::array<void*, most_operands> buffers = {};
  std::size_t count = 0;
  for (const Tensor* input : inputs) {
    if (input->internals().is_number()) input = &(numbers[count] = in_memory(*input, place));
    buffers[count++] = input->internals().address();
  }
  for (const Tensor& result : results) buffers[count++] = result.internals().address();
  const bool is_checked = op.effect == Effect::may_fail;
  StatusWord status(is_checked ? &device : nullptr);
  executable->launch({.buffers = {buffers.data(), count},
                      .sizes = {},
                      .strides = {},
                      .offsets = {},
                      .scalars = {},
                      .status = status.get(),
                      .threads = call.threads});
  if (is_checked && status.has_failed()) throw_failed(op, inputs, attrs);
}

}  // namespace

void call_into(const Op& op, Inputs inputs, const Attrs& attrs, const Tensor& out) {
  launch_call(op, inputs, attrs, op.call(inputs, attrs, out.spec()), {&out, 1});
}

void call_into(const Op& op, Inputs inputs, const Attrs& attrs, std::span<const Tensor> results) {
  std::vector<Spec> specs;
  for (const Tensor& result : results) specs.push_back(result.spec());
  launch_call(op, inputs, attrs, op.call_all(inputs, attrs, specs), results);
}

Tensor in_memory(const Tensor& x, Device device) {
  const TensorData& data = x.internals();
  if (!data.is_number()) return x;
  Spec spec = data.spec;
  spec.device = device;
  Tensor out = allocate_tensor(spec);
  fill(out, data.number);
  return out;
}

Tensor transferred(const Tensor& x, const Spec& spec) {
  Tensor copied = copied_between_devices(x, spec);
  if (copied.is_defined()) return copied;
  return filled_tensor(
      spec, [&](std::span<std::byte> to) { HostElements(x.internals()).copy_to(to.data()); });
}

uint64_t bits_of_nothing(const Op& op, DType dtype) {
  if (op.kind != OpKind::reduce) return static_cast<uint64_t>(op.of_nothing.value_or(0));
  const bool is_product = op.combine == Combine::multiply || op.combine == Combine::logical_and;
  if (!is_product) return 0;
  if (dtype == f32) return std::bit_cast<uint32_t>(1.0F);
  if (dtype == f64) return std::bit_cast<uint64_t>(1.0);
  if (dtype == f16) return 0x3c00;
  return dtype == bf16 ? 0x3f80 : 1;
}

void fill(const Tensor& out, uint64_t bits) {
  backend(out.device())
      .fill(out.internals().address(), bits, size_of(out.dtype()),
            static_cast<std::size_t>(out.size()));
}

void copy_into(const Tensor& from, const Tensor& out) {
  const Tensor* const input = &from;
  compute_into(ops::copy(), Inputs(&input, 1), out);
}

Tensor contiguous(const Tensor& x) {
  const TensorData& data = x.internals();
  if (is_contiguous(data.spec.shape, data.strides)) return x;
  Tensor out = allocate_tensor(data.spec);
  copy_into(x, out);
  return out;
}

}  // namespace nitinol::eager
