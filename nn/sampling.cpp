#include "nn/sampling.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace nitinol::nn {
namespace {

constexpr const char* loader_name = "DataLoader";

/// The stream of a pass.
std::mt19937_64 random_of_pass(uint64_t seed, uint64_t pass) {
  std::seed_seq seeds = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32U),
                         static_cast<uint32_t>(pass), static_cast<uint32_t>(pass >> 32U)};
  return std::mt19937_64(seeds);
}

Tensor tensor_of(const Sampling::Place& place) {
  return from_span<int64_t>(std::vector<int64_t>{static_cast<int64_t>(place.pass), place.batch},
                            {2});
}

void check_samples(const std::vector<int64_t>& numbers, int64_t samples, int64_t count) {
  if (static_cast<int64_t>(numbers.size()) != count) {
    throw Error(ErrorKind::value, {.where = loader_name,
                                   .what = "how many samples the sampler gave",
                                   .expected = fmt::format("{}, as of the first pass", count),
                                   .got = fmt::format("{}", numbers.size()),
                                   .fix = {}});
  }
  for (const int64_t number : numbers) {
    if (number >= 0 && number < samples) continue;
    throw Error(ErrorKind::value, {.where = loader_name,
                                   .what = "a number that the sampler gave",
                                   .expected = fmt::format("0 <= number < {}", samples),
                                   .got = fmt::format("{}", number),
                                   .fix = "A sampler gives the numbers of samples."});
  }
}

}  // namespace

Sampler weighted(std::vector<double> weights, Integer count, uint64_t seed) {
  check_at_least("weighted", "count", count, 1);
  std::vector<double> sums;
  double sum = 0;
  for (const double weight : weights) {
    check_setting("weighted", "weights", weight, Interval::not_negative);
    sums.push_back(sum += weight);
  }
  check_setting("weighted", "sum of weights", sum, Interval::positive);
  return [sums = std::move(sums), sum, count = int64_t{count}, seed](uint64_t pass) {
    std::mt19937_64 random = random_of_pass(seed, pass);
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i) {
      // 53 bits: below the sum, and alike in every standard library.
      const double at = static_cast<double>(random() >> 11U) * 0x1p-53 * sum;
      numbers.push_back(std::ranges::upper_bound(sums, at) - sums.begin());
    }
    return numbers;
  };
}

Sampling::Sampling(int64_t samples, SamplingOptions options)
    : samples_(samples),
      options_(std::move(options)),
      place_(tensor_of({})),
      written_(std::make_shared<Tensor>(place_.get())) {
  check_at_least(loader_name, "batch", options_.batch, 1);
  check_at_least(loader_name, "shard.of", options_.shard.of, 1);
  check_at_least(loader_name, "shard.number", options_.shard.number, 0);
  if (options_.shard.number >= options_.shard.of) {
    throw Error(ErrorKind::value,
                {.where = loader_name,
                 .what = "the shard's number",
                 .expected = fmt::format("less than {}", int64_t{options_.shard.of}),
                 .got = fmt::format("{}", int64_t{options_.shard.number}),
                 .fix = "The processes are numbered from 0."});
  }
  drawn_ = options_.sampler ? static_cast<int64_t>(options_.sampler(0).size()) : samples_;
}

int64_t Sampling::samples_of_pass() const {
  if (samples_ < 0) {
    throw Error(ErrorKind::value, {.where = loader_name,
                                   .what = "the number of batches of a stream",
                                   .expected = "data that know their size",
                                   .got = "a stream",
                                   .fix = "Count the batches of a pass, or give a Dataset."});
  }
  const int64_t of = options_.shard.of;
  return options_.drops_last ? drawn_ / of : (drawn_ + of - 1) / of;
}

int64_t Sampling::batches() const {
  const int64_t rows = samples_of_pass();
  return options_.drops_last ? rows / options_.batch : (rows + options_.batch - 1) / options_.batch;
}

std::pair<int64_t, int64_t> Sampling::range(int64_t i) const {
  const int64_t first = i * options_.batch;
  return {first, std::min(samples_of_pass(), first + options_.batch)};
}

Sampling::Place Sampling::place() const {
  const std::vector<int64_t> numbers = place_.get().to_vector<int64_t>();
  return {static_cast<uint64_t>(numbers.at(0)), std::max<int64_t>(numbers.at(1), 0)};
}

Sampling::Place Sampling::begin() {
  const bool is_own = place_.get().handle() == written_->handle();
  Place place = this->place();
  if (is_own && place.batch > 0) place = {place.pass + 1, 0};
  reached(place);
  return place;
}

void Sampling::end_pass() {
  if (const Place now = place(); now.batch > 0) reached({now.pass + 1, 0});
}

void Sampling::reached(const Place& place) {
  *written_ = tensor_of(place);
  place_.set(*written_);
}

Tensor Sampling::order(uint64_t pass) const {
  std::vector<int64_t> rows;
  if (options_.sampler) {
    rows = options_.sampler(pass);
    check_samples(rows, samples_, drawn_);
  } else if (options_.is_shuffled || options_.shard.of > 1) {
    rows.resize(static_cast<std::size_t>(samples_));
    std::iota(rows.begin(), rows.end(), 0);
    std::mt19937_64 random = random_of_pass(options_.seed, pass);
    // Written out: std::shuffle may differ from one standard library to the next.
    for (std::size_t i = rows.size(); options_.is_shuffled && i > 1; --i)
      std::swap(rows[i - 1], rows[random() % i]);
  } else {
    return {};
  }
  if (options_.shard.of > 1) {
    const auto all = static_cast<int64_t>(rows.size());
    const int64_t of = options_.shard.of;
    std::vector<int64_t> mine;
    for (int64_t i = 0; i < samples_of_pass(); ++i)
      mine.push_back(rows[static_cast<std::size_t>((i * of + options_.shard.number) % all)]);
    rows = std::move(mine);
  }
  const auto count = static_cast<int64_t>(rows.size());
  return from_span<int64_t>(rows, {count});
}

}  // namespace nitinol::nn
