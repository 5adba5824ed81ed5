// DataLoader: tensors in memory, batch by batch.
//
//     nn::DataLoader loader({images, labels}, {.batch = 64, .seed = 1});
//     for (int epoch = 0; epoch < 10; ++epoch) {
//       for (const auto& batch : loader) step(batch[0], batch[1]);
//     }
#pragma once

#include "core/tensor.h"

#include <cstdint>
#include <iterator>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

struct DataLoaderOptions {
  int64_t batch = 32;
  bool is_shuffled = true;
  bool drops_last = false;  ///< leaves out a last batch of fewer rows, so that all have one shape
  uint64_t seed = 0;        ///< of the orders; the same seed gives the same ones
};

/// Rows of several tensors that belong together. Each pass over it takes a fresh order, a function
/// of the seed and the number of passes before.
class DataLoader {
 public:
  /// `tensors` have the same first size. Throws Error(shape) if not, Error(value) for a batch
  /// below 1.
  explicit DataLoader(std::vector<Tensor> tensors, const DataLoaderOptions& options = {});

  /// Batches of one pass.
  [[nodiscard]] int64_t size() const;

  class Iterator {
   public:
    // NOLINTBEGIN(readability-identifier-naming): names of the standard
    using iterator_category = std::input_iterator_tag;
    using value_type = std::vector<Tensor>;
    using difference_type = int64_t;
    using pointer = const value_type*;
    using reference = value_type;
    // NOLINTEND(readability-identifier-naming)
    /// One tensor of rows for each of the loader's.
    [[nodiscard]] std::vector<Tensor> operator*() const { return loader_->batch(position_); }
    Iterator& operator++() {
      ++position_;
      return *this;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) {
      return a.position_ == b.position_;
    }

   private:
    friend class DataLoader;
    Iterator(const DataLoader* loader, int64_t position) : loader_(loader), position_(position) {}
    const DataLoader* loader_;
    int64_t position_;
  };
  /// Begins a pass: draws a new order.
  [[nodiscard]] Iterator begin();
  [[nodiscard]] Iterator end() const { return {this, size()}; }

 private:
  [[nodiscard]] std::vector<Tensor> batch(int64_t i) const;

  std::vector<Tensor> tensors_;
  DataLoaderOptions options_;
  uint64_t passes_ = 0;
  Tensor order_;  ///< i64, the rows of this pass; undefined: as they are
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
