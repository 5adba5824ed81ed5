// DataLoader: tensors in memory, batch by batch.
//
//     nn::DataLoader loader({images, labels}, {.batch = 64, .seed = 1});
//     for (int epoch = 0; epoch < 10; ++epoch) {
//       for (const auto& [x, y] : loader) step(x, y);
//     }
#pragma once

#include "core/integer.h"
#include "core/reflect.h"
#include "core/tensor.h"

#include <cstdint>
#include <iterator>
#include <optional>
#include <tuple>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

struct DataLoaderOptions {
  Integer batch = 32;
  bool is_shuffled = true;
  bool drops_last = false;  ///< leaves out a last batch of fewer rows, so that all have one shape
  uint64_t seed = 0;        ///< of the orders; the same seed gives the same ones
  /// Where batches go, if not where the data are: larger data stay in the host's memory. A batch is
  /// copied while the device computes with the ones before.
  std::optional<Device> device = {};
};

/// One tensor of rows for each of the loader's, in their order. Two can be taken apart,
/// `auto [x, y] = batch`, which throws Error(value) if there are not two.
class Batch : public std::vector<Tensor> {
 public:
  using std::vector<Tensor>::vector;
  template <std::size_t i>
  [[nodiscard]] Tensor get() const {
    return half(i);
  }

 private:
  [[nodiscard]] Tensor half(std::size_t i) const;
};

/// Rows of several tensors that belong together. Each pass over it takes a fresh order, a function
/// of the seed and the number of passes before.
class DataLoader {
 public:
  /// `tensors` have the same first size. Throws Error(shape) if not, Error(value) for none and for
  /// a batch below 1.
  explicit DataLoader(std::vector<Tensor> tensors, const DataLoaderOptions& options = {});

  /// Batches of one pass.
  [[nodiscard]] int64_t size() const;

  class Iterator {
   public:
    // NOLINTBEGIN(readability-identifier-naming): names of the standard
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = int64_t;
    using pointer = const value_type*;
    using reference = value_type;
    // NOLINTEND(readability-identifier-naming)
    [[nodiscard]] Batch operator*() const { return loader_->batch(position_); }
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
  [[nodiscard]] Batch batch(int64_t i) const;

  std::vector<Tensor> tensors_;
  DataLoaderOptions options_;
  uint64_t passes_ = 0;
  Tensor order_;  ///< i64, the rows of this pass; undefined: as they are
};

}  // namespace nitinol::nn

template <>
struct std::tuple_size<nitinol::nn::Batch> : std::integral_constant<std::size_t, 2> {};
template <std::size_t i>
struct std::tuple_element<i, nitinol::nn::Batch> {
  using type = nitinol::Tensor;
};
template <>
inline constexpr bool nitinol::reflection::is_sequence<nitinol::nn::Batch> = true;

#pragma GCC visibility pop
