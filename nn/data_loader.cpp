#include "nn/data_loader.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <utility>

namespace nitinol::nn {

DataLoader::DataLoader(std::vector<Tensor> tensors, const DataLoaderOptions& options)
    : tensors_(std::move(tensors)), options_(options) {
  check_at_least("DataLoader", "batch", options_.batch, 1);
  if (tensors_.empty()) {
    throw Error(ErrorKind::value, {.where = "DataLoader",
                                   .what = "the list of tensors",
                                   .expected = "at least one",
                                   .got = "none",
                                   .fix = "Pass the data: DataLoader({images, labels}, …)."});
  }
  for (const Tensor& tensor : tensors_) {
    if (tensor.rank() > 0 && tensor.shape()[0] == tensors_[0].shape()[0]) continue;
    throw Error(ErrorKind::shape,
                {.where = "DataLoader",
                 .what = fmt::format("{} beside {}", describe(tensor), describe(tensors_[0])),
                 .expected = "tensors with the same number of rows",
                 .got = to_string(tensor.shape()),
                 .fix = "Row i of all tensors makes one sample."});
  }
}

int64_t DataLoader::size() const {
  const int64_t rows = tensors_[0].shape()[0];
  return options_.drops_last ? rows / options_.batch : (rows + options_.batch - 1) / options_.batch;
}

DataLoader::Iterator DataLoader::begin() {
  if (options_.is_shuffled) {
    std::vector<int64_t> rows(static_cast<std::size_t>(tensors_[0].shape()[0]));
    std::iota(rows.begin(), rows.end(), 0);
    std::seed_seq seeds = {static_cast<uint32_t>(options_.seed),
                           static_cast<uint32_t>(options_.seed >> 32U),
                           static_cast<uint32_t>(passes_), static_cast<uint32_t>(passes_ >> 32U)};
    std::mt19937_64 random(seeds);
    // Written out: std::shuffle may differ from one standard library to the next.
    for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random() % i]);
    order_ = from_span<int64_t>(rows, {static_cast<int64_t>(rows.size())});
  }
  ++passes_;
  return {this, 0};
}

Tensor Batch::half(std::size_t i) const {
  if (size() == 2) return (*this)[i];
  throw Error(ErrorKind::value,
              {.where = "DataLoader",
               .what = "a batch is taken apart into two tensors",
               .expected = "a loader of two tensors",
               .got = fmt::format("one of {}", size()),
               .fix = "Take it as a list: for (const auto& batch : loader) … batch[0]."});
}

Batch DataLoader::batch(int64_t i) const {
  const int64_t rows = tensors_[0].shape()[0];
  const int64_t first = i * options_.batch;
  const Range range = {first, std::min(rows, first + options_.batch)};
  Batch result;
  for (const Tensor& tensor : tensors_) {
    const Tensor rows_of = order_.is_defined()
                               ? take(tensor, slice(order_, 0, range).to(tensor.device()))
                               : slice(tensor, 0, range);
    result.push_back(rows_of.to(options_.device.value_or(tensor.device())));
  }
  return result;
}

}  // namespace nitinol::nn
