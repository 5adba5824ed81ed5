// oneDNN's primitive can be made for b in a layout of its own choice. Whether that product has the
// bits of the one that takes b as it lies, which is what eager runs, a trial tells (trial.h).

#include "backends/cpu/onednn/matmul_packed.h"

#include "backends/cpu/onednn/matmul.h"
#include "backends/cpu/onednn/matmul_rule.h"
#include "backends/cpu/onednn/onednn.h"
#include "backends/cpu/onednn/trial.h"
#include "backends/host/allocator.h"
#include "core/error.h"
#include "core/executables.h"
#include "core/kernel.h"

#include <cstring>
#include <string>
#include <utility>

namespace nitinol::cpu {
namespace {

LibraryCall with_kind(LibraryCall call, LibraryCall::Kind kind) {
  call.kind = kind;
  return call;
}

/// Elements from a matrix's first to its last.
std::size_t extent_of(const MatmulDescription& product, std::size_t operand) {
  const auto &sizes = product.sizes[operand], &strides = product.strides[operand];
  return static_cast<std::size_t>((sizes[0] - 1) * strides[0] + (sizes[1] - 1) * strides[1] + 1);
}

class PackedProduct final : public Executable {
 public:
  explicit PackedProduct(const LibraryCall& call) {
    const std::optional<MatmulDescription> product = as_one_product(call);
    if (product) packed_ = make_onednn_packed_matmul(*product);
    if (!packed_) {
      throw Error(ErrorKind::unsupported,
                  {.where = "matmul", .what = "oneDNN has no layout of its own for it"});
    }
    has_same_bits_ = has_bits_of_eager(call, *product);
  }

  /// Operands a, b as pack() has written it, and c.
  void launch(const Launch& launch) const override {
    packed_->product->run({launch.buffers[0], launch.buffers[1]}, launch.buffers[2]);
  }
  void pack(const void* b, void* packed) const { packed_->packing->run({b}, packed); }
  [[nodiscard]] std::size_t packed_bytes() const { return packed_->packed_bytes; }
  [[nodiscard]] bool has_same_bits() const { return has_same_bits_; }
  [[nodiscard]] std::size_t bytes() const override {
    return packed_->product->bytes() + packed_->packing->bytes();
  }

 private:
  [[nodiscard]] bool has_bits_of_eager(const LibraryCall& call,
                                       const MatmulDescription& product) const {
    const StorageHandle a = trial_numbers(extent_of(product, 0), 1),
                        b = trial_numbers(extent_of(product, 1), 2);
    // Twice the same numbers: what lies between the rows of c stays.
    const std::size_t count = extent_of(product, 2);
    const StorageHandle c = trial_numbers(count, 3), c_of_packed = trial_numbers(count, 3);
    const StorageHandle packed = host::allocate(packed_bytes());
    const auto unpacked =
        executable_for(backend(Device{}), with_kind(call, LibraryCall::Kind::matmul));
    void* const operands[] = {a->data, b->data, c->data};
    Launch launch;
    launch.buffers = operands;
    launch.threads = product.threads;
    unpacked->launch(launch);
    pack(b->data, packed->data);
    packed_->product->run({a->data, packed->data}, c_of_packed->data);
    return std::memcmp(c->data, c_of_packed->data, count * sizeof(float)) == 0;
  }

  std::optional<PackedMatmul> packed_;
  bool has_same_bits_ = false;
};

using ProductHandle = std::shared_ptr<const PackedProduct>;

ProductHandle product_for(const LibraryCall& call) {
  return std::static_pointer_cast<const PackedProduct>(
      executable_for(backend(Device{}), with_kind(call, LibraryCall::Kind::packed_matmul)));
}

/// Operand b, and the memory that it is packed into.
class Packing final : public Executable {
 public:
  explicit Packing(ProductHandle product) : product_(std::move(product)) {}
  void launch(const Launch& launch) const override {
    product_->pack(launch.buffers[0], launch.buffers[1]);
  }

 private:
  const ProductHandle product_;
};

}  // namespace

std::size_t packed_bytes(const LibraryCall& product, std::size_t uses) {
  const std::optional<MatmulDescription> description = as_one_product(product);
  if (!description || !pays_to_pack(*description, uses)) return 0;
  return has_bits_of_unpacked(product) ? product_for(product)->packed_bytes() : 0;
}

bool has_bits_of_unpacked(const LibraryCall& product) {
  return product_for(product)->has_same_bits();
}

std::unique_ptr<Executable> make_packing(const LibraryCall& call) {
  return std::make_unique<Packing>(product_for(call));
}

std::unique_ptr<Executable> make_packed_matmul(const LibraryCall& call) {
  return std::make_unique<PackedProduct>(call);
}

}  // namespace nitinol::cpu
