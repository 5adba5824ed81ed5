// Batches are made in their order, by the thread that takes them or by workers, which are a few
// batches ahead: each takes the number of the next batch that nobody makes yet. What it has made,
// or what was thrown, waits in the batch's own slot.
#include "nn/data_loader.h"

#include "autograd/gradient.h"
#include "core/error.h"
#include "core/hash.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace nitinol::nn {
namespace {

Batch stacked(const std::vector<Batch>& samples) {
  Batch batch;
  for (std::size_t k = 0; k < samples[0].size(); ++k) {
    std::vector<Tensor> column;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i].size() != samples[0].size()) {
        throw Error(ErrorKind::value,
                    {.where = "DataLoader",
                     .what = "the tensors of a sample",
                     .expected = fmt::format("{}, as of the first of its batch", samples[0].size()),
                     .got = fmt::format("{}", samples[i].size()),
                     .fix = {}});
      }
      column.push_back(samples[i][k]);
      if (column[i].spec() == column[0].spec()) continue;
      throw Error(ErrorKind::shape,
                  {.where = "DataLoader",
                   .what = fmt::format("tensor {} of a sample", k),
                   .expected = describe(column[0].spec()) + ", as of the first of its batch",
                   .got = describe(column[i].spec()),
                   .fix = "Make samples of one shape, or give a `collate` that does, by padding."});
    }
    batch.push_back(stack(column));
  }
  return batch;
}

int64_t rows_of(const std::vector<Tensor>& tensors) {
  if (tensors.empty()) {
    throw Error(ErrorKind::value, {.where = "DataLoader",
                                   .what = "the list of tensors",
                                   .expected = "at least one",
                                   .got = "none",
                                   .fix = "Pass the data: DataLoader({images, labels}, …)."});
  }
  for (const Tensor& tensor : tensors) {
    if (tensor.rank() > 0 && tensors[0].rank() > 0 && tensor.shape()[0] == tensors[0].shape()[0])
      continue;
    throw Error(ErrorKind::shape,
                {.where = "DataLoader",
                 .what = fmt::format("{} beside {}", describe(tensor), describe(tensors[0])),
                 .expected = "tensors with the same number of rows",
                 .got = to_string(tensor.shape()),
                 .fix = "Row i of all tensors makes one sample."});
  }
  return tensors[0].shape()[0];
}

/// The same for a sample wherever and by whomever it is made.
uint64_t seed_of_sample(uint64_t seed, uint64_t pass, int64_t i) {
  Hash hash;
  hash.add(seed);
  hash.add(pass);
  hash.add(i);
  return hash.result();
}

}  // namespace

SamplingOptions sampling_of(const DataLoaderOptions& options, bool is_stream) {
  check_at_least("DataLoader", "workers", options.workers, 0);
  check_at_least("DataLoader", "prefetch", options.prefetch, 1);
  const bool is_shuffled = options.is_shuffled.value_or(false);
  if (is_stream && (is_shuffled || options.sampler || options.shard.of > 1)) {
    throw Error(ErrorKind::value, {.where = "DataLoader",
                                   .what = "an order or a shard of a stream",
                                   .expected = "none: a stream says which samples come",
                                   .got = is_shuffled       ? "shuffling"
                                          : options.sampler ? "a sampler"
                                                            : "a shard",
                                   .fix = "Leave it out, or make samples by number."});
  }
  if (options.sampler && is_shuffled) {
    throw Error(ErrorKind::value, {.where = "DataLoader",
                                   .what = "a sampler and shuffling",
                                   .expected = "one of them",
                                   .got = "both",
                                   .fix = {}});
  }
  return {.batch = options.batch,
          .is_shuffled = options.is_shuffled.value_or(!is_stream && !options.sampler),
          .drops_last = options.drops_last,
          .seed = options.seed,
          .sampler = options.sampler,
          .shard = options.shard};
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

class DataLoader::Pass {
 public:
  Pass(const DataLoader& loader, const Sampling::Place& place)
      : tensors_(loader.tensors_),
        dataset_(loader.dataset_),
        options_(loader.options_),
        sampling_(loader.sampling_),
        place_(place),
        made_(place.batch) {
    if (is_stream()) {
      next_ = dataset_.begin();
      for (int64_t i = 0; i < place.batch && !read_samples().empty(); ++i) {
      }
    } else {
      order_ = sampling_.order(place.pass);
      last_ = sampling_.batches();
    }
    const int64_t most = is_stream() ? 1 : INT64_MAX;
    for (int64_t i = 0; i < std::min<int64_t>(options_.workers, most); ++i)
      workers_.emplace_back([this] { work(); });
  }
  ~Pass() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  [[nodiscard]] bool is_at_end() {
    if (!is_stream()) return place_.batch >= last_;
    if (!is_taken_ && !is_at_end_) fetch();
    return is_at_end_;
  }
  const Batch& batch() {
    if (!is_taken_) fetch();
    if (thrown_) std::rethrow_exception(thrown_);
    return *batch_;
  }
  void advance() {
    if (!is_taken_) fetch();  // it is skipped
    if (is_stream() && thrown_) is_at_end_ = true;
    is_taken_ = false;
    batch_.reset();
    thrown_ = nullptr;
    ++place_.batch;
  }

 private:
  /// What has been made of one batch: nothing at the end of a stream.
  struct Slot {
    bool is_ready = false;
    std::optional<Batch> batch = {};
    std::exception_ptr thrown = {};
  };

  [[nodiscard]] bool is_stream() const { return dataset_.begin != nullptr; }

  /// Takes the batch at place_, or what was thrown, and says that the next one comes then.
  void fetch() {
    try {
      batch_ = workers_.empty() ? make(place_.batch) : made_by_workers();
      if (!batch_) {
        is_at_end_ = true;
        sampling_.reached({place_.pass + 1, 0});
        return;
      }
      for (Tensor& tensor : *batch_) tensor = tensor.to(options_.device.value_or(tensor.device()));
    } catch (...) {
      thrown_ = std::current_exception();
    }
    is_taken_ = true;
    const bool is_last = !is_stream() && place_.batch + 1 >= last_;
    sampling_.reached(is_last ? Sampling::Place{place_.pass + 1, 0}
                              : Sampling::Place{place_.pass, place_.batch + 1});
  }

  std::optional<Batch> made_by_workers() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !slots_.empty() && slots_.front().is_ready; });
    Slot slot = std::move(slots_.front());
    slots_.pop_front();
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    if (slot.thrown) std::rethrow_exception(slot.thrown);
    return std::move(slot.batch);
  }

  void work() {
    const auto ahead = static_cast<std::size_t>(int64_t{options_.prefetch} *
                                                static_cast<int64_t>(options_.workers));
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return is_over_ || slots_.size() < ahead; });
      if (is_over_ || (!is_stream() && made_ >= last_)) return;
      const int64_t number = made_++;
      const int64_t index = taken_ + static_cast<int64_t>(slots_.size());
      slots_.emplace_back();
      lock.unlock();
      Slot slot = {.is_ready = true};
      try {
        slot.batch = make(number);
      } catch (...) {
        slot.thrown = std::current_exception();
      }
      lock.lock();
      const bool was_last = slot.thrown || !slot.batch;
      slots_[static_cast<std::size_t>(index - taken_)] = std::move(slot);
      changed_.notify_all();
      if (was_last && is_stream()) return;
    }
  }

  /// Batch `i`; nothing at the end of a stream.
  [[nodiscard]] std::optional<Batch> make(int64_t i) {
    const NoGradients scope;
    if (is_stream()) {
      const std::vector<Batch> samples = read_samples();
      const bool is_short = static_cast<int64_t>(samples.size()) < options_.batch;
      if (samples.empty() || (is_short && options_.drops_last)) return std::nullopt;
      return collated(samples);
    }
    const auto [first, last] = sampling_.range(i);
    return tensors_.empty() ? batch_of_samples(first, last) : batch_of_rows({first, last});
  }

  [[nodiscard]] Batch batch_of_rows(const Range& range) const {
    Batch batch;
    for (const Tensor& tensor : tensors_) {
      batch.push_back(order_.is_defined()
                          ? take(tensor, slice(order_, 0, range).to(tensor.device()))
                          : slice(tensor, 0, range));
    }
    return batch;
  }

  [[nodiscard]] Batch batch_of_samples(int64_t first, int64_t last) const {
    std::vector<int64_t> numbers;
    if (order_.is_defined()) numbers = slice(order_, 0, {first, last}).to_vector<int64_t>();
    std::vector<Batch> samples;
    for (int64_t i = first; i < last; ++i) {
      const int64_t number = order_.is_defined() ? numbers[static_cast<std::size_t>(i - first)] : i;
      // By its place in the pass: one that is drawn twice differs.
      const Generator random(seed_of_sample(options_.seed, place_.pass, i), Device());
      samples.push_back(dataset_.sample(number, random));
    }
    return collated(samples);
  }

  [[nodiscard]] std::vector<Batch> read_samples() {
    std::vector<Batch> samples;
    while (static_cast<int64_t>(samples.size()) < options_.batch) {
      std::optional<Batch> sample = next_();
      if (!sample) break;
      samples.push_back(std::move(*sample));
    }
    return samples;
  }

  [[nodiscard]] Batch collated(const std::vector<Batch>& samples) const {
    return options_.collate ? options_.collate(samples) : stacked(samples);
  }

  const std::vector<Tensor> tensors_;
  const Dataset dataset_;
  const DataLoaderOptions options_;
  Sampling sampling_;
  std::function<std::optional<Batch>()> next_;  ///< of a stream
  Tensor order_;
  Sampling::Place place_;
  int64_t last_ = 0;       ///< batches of the pass, unless of a stream
  bool is_taken_ = false;  ///< the batch at place_ is batch_, or was thrown
  std::optional<Batch> batch_;
  std::exception_ptr thrown_;
  bool is_at_end_ = false;  ///< of a stream

  std::mutex mutex_;  ///< guards what follows
  std::condition_variable changed_;
  std::deque<Slot> slots_;
  int64_t made_;       ///< the number of the next batch that a worker makes
  int64_t taken_ = 0;  ///< slots that were taken
  bool is_over_ = false;
  std::vector<std::thread> workers_;
};

DataLoader::DataLoader(std::vector<Tensor> tensors, DataLoaderOptions options)
    : tensors_(std::move(tensors)),
      options_(std::move(options)),
      sampling_(rows_of(tensors_), sampling_of(options_, false)) {}

DataLoader::DataLoader(OfDataset, Dataset dataset, DataLoaderOptions options)
    : dataset_(std::move(dataset)),
      options_(std::move(options)),
      sampling_(dataset_.begin ? -1 : dataset_.size,
                sampling_of(options_, dataset_.begin != nullptr)) {
  if (dataset_.begin || (dataset_.sample && dataset_.size >= 0)) return;
  throw Error(ErrorKind::value, {.where = "DataLoader",
                                 .what = "the Dataset",
                                 .expected = "a size and how a sample is made, or a stream",
                                 .got = "neither",
                                 .fix = "nn::dataset(size, f) and nn::stream(begin) make one."});
}

DataLoader::Iterator DataLoader::begin() {
  return Iterator(std::make_shared<Pass>(*this, sampling_.begin()));
}

const Batch& DataLoader::Iterator::operator*() const {
  return pass_->batch();
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  pass_->advance();
  return *this;
}

bool DataLoader::Iterator::is_at_end() const {
  return pass_->is_at_end();
}

}  // namespace nitinol::nn
