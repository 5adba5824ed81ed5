// Tensor: an immutable value with shape, dtype and device; a counted handle to a view of shared
// storage.
#pragma once

#include "core/device.h"
#include "core/dtype.h"
#include "core/handle.h"
#include "core/shape.h"
#include "core/storage.h"

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <source_location>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol {

class Argument;
class At;
struct Index;

template <class T, class... Types>
concept OneOf = (std::same_as<T, Types> || ...);

/// The type that item<T>() reads: T, or where no dtype has it, a wide one (int64_t for char and
/// long long, uint64_t for unsigned long long, double for long double).
template <class T>
using ReadAs = std::conditional_t<
    OneOf<T, bool, uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, float,
          double>,
    T,
    std::conditional_t<!std::is_integral_v<T>, double,
                       std::conditional_t<std::is_unsigned_v<T>, uint64_t, int64_t>>>;

/// What every op knows of its result before computing it.
struct Spec {
  DType dtype = f32;
  Shape shape;
  bool is_weak = false;  ///< a host number: takes the other operand's dtype within its kind
  Device device;         ///< of a number: where what is made of numbers alone will lie
  friend bool operator==(const Spec&, const Spec&) = default;
};

/// Whether a tensor of this spec is a number, which is at home beside tensors of any device.
[[nodiscard]] inline bool is_anywhere(const Spec& spec) {
  return spec.is_weak && spec.shape.empty();
}

/// State another layer hangs on a tensor (the gradient node, a pending computation).
struct TensorSlot : Counted {
  TensorSlot() = default;
  TensorSlot(const TensorSlot&) = delete;
  TensorSlot& operator=(const TensorSlot&) = delete;
  virtual ~TensorSlot() = default;
  virtual void end() noexcept { delete this; }  ///< nobody holds it any more
};
void destroy(TensorSlot* slot);

/// What a Tensor points to. Users never see it; ops, interpreters and backends do.
struct TensorData : Counted {
  /// Where a tensor's elements are.
  enum class Memory : uint8_t {
    here,        ///< in its storage
    number,      ///< a 0-d host number: no memory, at home beside tensors of any device
    shape_only,  ///< nowhere: what a gradient rule was given while compile() noted what it does
    pending,     ///< nowhere yet: materialise() makes them (core/pending.h)
  };
  TensorData(const Spec& of, const Strides& steps, int64_t first, StorageHandle where)
      : spec(of),
        strides(steps),
        offset(first),
        storage(std::move(where)),
        memory(storage ? Memory::here : Memory::shape_only) {}

  Spec spec;
  Strides strides;        ///< in elements
  int64_t offset = 0;     ///< in elements, from the start of the storage
  StorageHandle storage;  ///< Memory::here
  uint64_t number = 0;    ///< Memory::number: its bits, in the dtype, zero-extended
  /// From pending to here it may go at any time, on whatever thread materialises it first.
  std::atomic<Memory> memory;
  uint64_t birth = 0;             ///< the epoch it was made in (core/interpreter.h)
  uint64_t trace = 0;             ///< the epoch of the trace or deferred call that made it, or 0
  uint32_t value = 0;             ///< its number in that, or in that segment of it
  uint32_t segment = 0;           ///< of a deferred call
  Handle<TensorSlot> gradient;    ///< set by autograd: how it was computed
  Handle<TensorSlot> shape_only;  ///< set by who needs nothing but its shape, and counts them

  [[nodiscard]] bool is_number() const {
    return memory.load(std::memory_order_relaxed) == Memory::number;
  }

  /// Address of the first element, on its device. Only for device code and for who launches it;
  /// host code reads by HostElements (core/host_access.h). Throws if there are none for good, and
  /// what the call has failed with that fills it: see settle().
  [[nodiscard]] void* address() const {
    if (memory.load(std::memory_order_acquire) == Memory::here &&
        storage->check.load(std::memory_order_acquire) == nullptr) [[likely]]
      return memory_address();
    return settled_address();
  }
  /// The same without waiting, for a launch that does nothing if that call has failed.
  [[nodiscard]] void* unsettled_address() const {
    if (memory.load(std::memory_order_acquire) == Memory::here) [[likely]]
      return memory_address();
    return other_address();
  }

 private:
  [[nodiscard]] void* settled_address() const;  // (host_access.cpp)
  [[nodiscard]] void* other_address() const;
  [[nodiscard]] void* memory_address() const {
    return static_cast<std::byte*>(storage->data) +
           offset * static_cast<int64_t>(size_of(spec.dtype));
  }
};

void destroy(TensorData* data);
[[nodiscard]] inline bool has_elements(const TensorData& data) {  // not a shape only, for good
  return data.memory.load(std::memory_order_relaxed) != TensorData::Memory::shape_only;
}

/// An n-dimensional array value. Copying copies a handle; no operation changes a Tensor that
/// exists.
class Tensor {
 public:
  /// An undefined tensor: only is_defined() may be asked of it.
  Tensor() = default;
  explicit Tensor(Handle<TensorData> data) : data_(std::move(data)) {}

  [[nodiscard]] bool is_defined() const { return static_cast<bool>(data_); }
  [[nodiscard]] const Spec& spec() const { return internals().spec; }
  [[nodiscard]] const Shape& shape() const { return spec().shape; }
  [[nodiscard]] DType dtype() const { return spec().dtype; }
  [[nodiscard]] Device device() const { return spec().device; }
  [[nodiscard]] int rank() const { return shape().size(); }
  /// Number of elements.
  [[nodiscard]] int64_t size() const { return element_count(shape()); }
  /// How far apart in memory neighbours along each axis lie, in elements: 0 where elements repeat,
  /// negative where they lie backwards.
  [[nodiscard]] const Strides& strides() const { return internals().strides; }

  /// The one element, converted to T (bool, any integer or floating type) as C++ converts it.
  /// Throws Error(shape) if there is not exactly one. Inside a compiled function this ends the
  /// trace.
  template <class T>
  [[nodiscard]] T item(std::source_location place = std::source_location::current()) const {
    static_assert(std::is_arithmetic_v<T>,
                  "item<T>() reads a number: T is bool, int64_t, float, "
                  "double, std::size_t and the like");
    return static_cast<T>(read_item<ReadAs<T>>(place));
  }
  /// All elements in row-major order. T must be the dtype's C++ type; f16 and bf16 read as float.
  template <class T>
  [[nodiscard]] std::vector<T> to_vector(
      std::source_location place = std::source_location::current()) const;
  /// The elements in place. Throws Error(value) unless contiguous and T is the dtype's C++ type.
  template <class T>
  [[nodiscard]] std::span<const T> data(
      std::source_location place = std::source_location::current()) const;
  /// Where the element of index 0 lies in the host's memory, when all that makes it has been done;
  /// the others lie at strides() from it. For what hands memory on, of any dtype and layout: it
  /// must not be written, and keep the tensor as long as it is read. Null if there are no elements.
  /// Throws Error(device) for a tensor whose memory is not the host's. Ends a trace, like item().
  [[nodiscard]] const void* read_bytes(
      std::source_location place = std::source_location::current()) const;
  /// Whether the one element is nonzero; `if (loss < best)` works. Ends a trace, like item().
  explicit operator bool() const;

  /// The same values as another dtype (see cast), or on another device (see nitinol::to).
  [[nodiscard]] Tensor to(DType dtype) const;
  [[nodiscard]] Tensor to(Device device) const;
  /// Sub-tensor `i` along axis 0; negative counts from the end.
  Tensor operator[](Integer i) const;
  /// Basic indexing: integers, ranges, `ellipsis`, `new_axis`. Convert to Tensor to read, or call
  /// set(v).
  [[nodiscard]] At at(std::initializer_list<Index> indices) const;
  [[nodiscard]] At at(std::span<const Index> indices) const;

  /// Adds the gradient of this tensor (of its one element, or weighted by `seed` of its shape) to
  /// the gradient() of every Variable it was computed from, and frees the tape as it goes.
  /// Where nothing tracks gradients it adds none, and warns. Throws Error(value) if the tape was
  /// freed by an earlier backward(), Error(dtype) unless the tensor is floating, Error(shape)
  /// without a seed unless there is one element. (autograd/backward.cpp)
  void backward() const;
  void backward(const Tensor& seed) const;
  /// Whether gradients flow through this tensor.
  [[nodiscard]] bool tracks_gradient() const { return static_cast<bool>(internals().gradient); }

  Tensor& operator+=(const Argument& other);
  Tensor& operator-=(const Argument& other);
  Tensor& operator*=(const Argument& other);
  Tensor& operator/=(const Argument& other);

  /// For the library's own layers. Throws Error(value) if the tensor is undefined.
  [[nodiscard]] TensorData& internals() const {
    if (!data_) [[unlikely]]
      throw_undefined();
    return *data_;
  }
  [[nodiscard]] const Handle<TensorData>& handle() const { return data_; }

 private:
  template <class T>
  [[nodiscard]] T read_item(std::source_location place) const;
  [[noreturn]] static void throw_undefined();

  Handle<TensorData> data_;
};

/// "float32[4, 3]".
[[nodiscard]] std::string describe(const Spec& spec);
[[nodiscard]] std::string describe(const Tensor& tensor);
/// What errors about undefined tensors advise.
[[nodiscard]] std::string undefined_tensor_fix();

/// See settle() of its storage; of any tensor, or an undefined one.
inline void settle(const Tensor& tensor) {
  const Storage* const storage = tensor.is_defined() ? tensor.internals().storage.get() : nullptr;
  if (storage != nullptr && storage->check.load(std::memory_order_acquire) != nullptr) [[unlikely]]
    settle(*tensor.internals().storage);
}

/// A tensor that views `storage`; for ops and interpreters.
[[nodiscard]] Tensor make_tensor(const Spec& spec, const Strides& strides, int64_t offset,
                                 StorageHandle storage);
/// A 0-d number: the low bytes of `bits` are the element.
[[nodiscard]] Tensor make_number(const Spec& spec, uint64_t bits);
/// Another tensor that is the same value in the same memory, for traces too, but without the state
/// that other layers hang on it.
[[nodiscard]] Tensor bare_copy(const Tensor& tensor);
/// A tensor of this spec in fresh, uninitialised, contiguous memory of spec.device. Throws
/// Error(value) if there is not enough. (backends/memory.cpp)
[[nodiscard]] Tensor allocate_tensor(const Spec& spec);
/// True if no other handle or view can see this tensor's memory, and the memory is ours: it may be
/// overwritten.
[[nodiscard]] bool is_donatable(const Tensor& tensor);

}  // namespace nitinol

#pragma GCC visibility pop
