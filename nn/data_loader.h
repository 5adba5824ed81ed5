// DataLoader: batches of tensors in memory, of samples that are made one by one, or of a stream.
//
//     nn::DataLoader loader({images, labels}, {.batch = 64, .seed = 1});
//     for (int epoch = 0; epoch < 10; ++epoch) {
//       for (const auto& [x, y] : loader) step(x, y);
//     }
//
//     nn::DataLoader files(nn::dataset(paths.size(), [&](int64_t i) {
//       return nn::Batch{read_image(paths[i]), labels[i]};
//     }), {.batch = 64, .workers = 4});
#pragma once

#include "core/generator.h"
#include "core/integer.h"
#include "core/reflect.h"
#include "core/tensor.h"
#include "nn/sampling.h"

#include <concepts>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// One tensor of rows for each of the loader's, in their order; or one sample, without the axis of
/// rows. Two can be taken apart, `auto [x, y] = batch`, which throws Error(value) if there are not
/// two.
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

/// Samples that are made one by one: of files, by a simulation.
struct Dataset {
  /// How many; -1: a stream.
  int64_t size = 0;
  /// Sample `i` of a pass; what it draws, it draws from `random`, which depends on the loader's
  /// seed, the pass and i alone. Called from several threads at once.
  std::function<Batch(int64_t i, const Generator& random)> sample = {};
  /// Of a stream: begins a pass, and gives what makes the samples one after the other, and nothing
  /// at the end.
  std::function<std::function<std::optional<Batch>()>()> begin = {};
};

namespace data {

template <class T>
Batch as_batch(T&& sample) {
  if constexpr (std::convertible_to<T, Tensor>)
    return {Tensor(std::forward<T>(sample))};
  else if constexpr (std::convertible_to<T, Batch>)
    return std::forward<T>(sample);
  else
    return std::apply([](auto&&... part) { return Batch{Tensor(part)...}; }, sample);
}

}  // namespace data

/// f(i) or f(i, random) makes sample i: a Tensor, a Batch, or a pair or tuple of Tensors.
template <class F>
[[nodiscard]] Dataset dataset(Integer size, F f) {
  return {.size = size, .sample = [f = std::move(f)](int64_t i, const Generator& random) {
            if constexpr (std::is_invocable_v<const F&, int64_t, const Generator&>)
              return data::as_batch(f(i, random));
            else
              return data::as_batch(f(i));
          }};
}
/// begin() begins a pass: it returns a function that gives one sample after the other, a
/// std::optional<Batch>, and nothing at the end.
template <class F>
[[nodiscard]] Dataset stream(F begin) {
  return {.size = -1, .begin = std::move(begin)};
}

/// Makes a batch of samples. The usual one stacks what they have in common along a new first axis.
using Collate = std::function<Batch(const std::vector<Batch>& samples)>;

struct DataLoaderOptions {
  Integer batch = 32;
  std::optional<bool> is_shuffled = {};  ///< else: unless there is a sampler, or of a stream
  bool drops_last = false;  ///< leaves out a last batch of fewer rows, so that all have one shape
  uint64_t seed = 0;        ///< of the orders; the same seed gives the same ones
  /// Where batches go, if not where the data are: larger data stay in the host's memory. A batch is
  /// copied while the device computes with the ones before.
  std::optional<Device> device = {};
  Sampler sampler = {};  ///< which samples a pass has; always equally many
  Shard shard = {};      ///< of several processes
  /// Threads that make batches before they are asked for; 0: the one that asks makes them. Batches
  /// come in the same order and with the same elements whatever there are. Of a stream, at most
  /// one.
  Integer workers = 0;
  Integer prefetch = 2;  ///< batches that each of them is ahead
  Collate collate = {};
};

/// How samples are chosen by a loader's options. Throws Error(value) for those that make no sense.
[[nodiscard]] SamplingOptions sampling_of(const DataLoaderOptions& options, bool is_stream);

/// Rows that belong together, batch by batch. Each pass over it takes a fresh order, a function of
/// the seed and the number of passes before.
///
/// How far it has come is a Variable: save() keeps it, and after load() the next pass goes on
/// there. What a sample or a worker throws is thrown where its batch is taken. One thread takes
/// batches.
class DataLoader {
 public:
  /// `tensors` have the same first size. Throws Error(shape) if not, Error(value) for none and for
  /// options that make no sense.
  explicit DataLoader(std::vector<Tensor> tensors, DataLoaderOptions options = {});
  /// A template, so that a list in braces is one of tensors.
  template <std::same_as<Dataset> D>
  explicit DataLoader(D dataset, DataLoaderOptions options = {})
      : DataLoader(OfDataset{}, std::move(dataset), std::move(options)) {}

  /// Batches of one pass. Throws Error(value) of a stream.
  [[nodiscard]] int64_t size() const { return sampling_.batches(); }
  /// Whether it is known how many there are: not of a stream.
  [[nodiscard]] bool has_size() const { return !dataset_.begin; }
  /// Samples of a batch; the last one of a pass may have fewer.
  [[nodiscard]] int64_t batch_size() const { return options_.batch; }
  /// Whether the next batch is the first of a pass.
  [[nodiscard]] bool is_between_passes() const { return sampling_.place().batch == 0; }

  /// Leaves out what is left of a pass: the next batch is the first of a new one.
  void end_pass() { sampling_.end_pass(); }

  class Pass;
  class Iterator {
   public:
    // NOLINTBEGIN(readability-identifier-naming): names of the standard
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = int64_t;
    using pointer = const value_type*;
    using reference = const value_type&;
    // NOLINTEND(readability-identifier-naming)
    [[nodiscard]] const Batch& operator*() const;
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& a, std::default_sentinel_t) { return a.is_at_end(); }

   private:
    friend class DataLoader;
    explicit Iterator(std::shared_ptr<Pass> pass) : pass_(std::move(pass)) {}
    [[nodiscard]] bool is_at_end() const;
    std::shared_ptr<Pass> pass_;
  };
  /// Begins a pass: draws a new order.
  [[nodiscard]] Iterator begin();
  [[nodiscard]] static std::default_sentinel_t end() { return {}; }

  /// For named_variables(), save() and load(): how far it has come.
  template <class V>
  void fields(V&& visit) {
    visit("sampling", sampling_);
  }
  template <class V>
  void fields(V&& visit) const {
    visit("sampling", sampling_);
  }

 private:
  struct OfDataset {};
  DataLoader(OfDataset, Dataset dataset, DataLoaderOptions options);

  std::vector<Tensor> tensors_;
  Dataset dataset_;
  DataLoaderOptions options_;
  Sampling sampling_;
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
