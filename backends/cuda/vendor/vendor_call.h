// VendorCall: what a vendor's library runs, on operands laid out as it takes them.
#pragma once

#include "core/executable.h"
#include "core/fork.h"
#include "core/library.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::cuda {

class Gpu;
class LayoutCopy;

/// By which numbers a library calls the floating dtypes.
struct TypeNumbers {
  int f32, f64, f16, bf16;
};
/// That of `dtype`; nothing for others.
[[nodiscard]] std::optional<int> number_of(DType dtype, const TypeNumbers& numbers);

/// A LibraryCall of two operands and a result. What is laid out otherwise than the library gets
/// it, or begins where it would take another algorithm, is copied before and after: so where
/// tensors happen to lie decides nothing about the result's bits, but for matrices by rows or by
/// columns, which a library has kernels for.
class VendorCall : public Executable {
 public:
  /// Every operand begins at a multiple of so many bytes: vectors of loads have no more.
  static constexpr std::size_t alignment = 16;

  ~VendorCall() override;
  void launch(const Launch& launch) const final;
  [[nodiscard]] std::string describe(std::span<const Launch> examples) const final;

 protected:
  using Buffers = std::array<void*, 3>;

  /// `library` and `where`: what errors are told by.
  VendorCall(Gpu& gpu, const LibraryCall& call, std::string_view library, std::string_view where);

  /// The call as the library gets it.
  [[nodiscard]] const LibraryCall& given() const { return given_; }
  /// Says how the library gets operand `k`. What has stride 0 there has it in the call.
  void give(std::size_t k, const Strides& strides) { given_.operands[k].strides = strides; }

  /// Puts the call on the device's stream; false if the library refuses it after all.
  [[nodiscard]] virtual bool run(const Buffers& at) const = 0;
  /// What the library does: "algorithm 21".
  [[nodiscard]] virtual std::string algorithm() const = 0;

  /// Throws Error(device) for a status that is not 0.
  void expect(int status, const char* what, std::string_view words = {}) const;

  /// The factors of what the library computes and of what was there: in the type of sums.
  [[nodiscard]] const void* one() const;
  [[nodiscard]] const void* zero() const;

  Gpu& gpu_;

 private:
  [[nodiscard]] bool is_copied(std::size_t k) const;
  [[nodiscard]] const LayoutCopy& copy(std::size_t k) const;
  /// For what the library does not take.
  [[nodiscard]] const Executable& own() const;

  const LibraryCall call_;
  LibraryCall given_;
  const std::string_view library_, where_;
  mutable std::atomic<bool> is_refused_ = false;
  mutable ForkSafeMutex mutex_;  ///< of what follows
  mutable std::array<std::unique_ptr<const LayoutCopy>, 3> copies_;
  mutable std::unique_ptr<Executable> own_;
};

}  // namespace nitinol::cuda
