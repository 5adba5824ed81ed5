// Batches: all rows once, in an order that the seed decides.
#include "nn/data_loader.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

using namespace nitinol;

namespace {

/// The rows of one pass, after checking that both tensors gave the same ones.
std::vector<int64_t> pass(nn::DataLoader& loader) {
  std::vector<int64_t> rows;
  for (const std::vector<Tensor>& batch : loader) {
    CHECK(same_bits(batch[0] * 2, batch[1].at({all_of_axis, 0}).get()));
    for (const int64_t row : batch[0].to_vector<int64_t>()) rows.push_back(row);
  }
  return rows;
}

const std::vector<Tensor> data = {
    arange(10), reshape(arange(30), {10, 3}) * 0 + reshape(arange(10) * 2, {10, 1})};

}  // namespace

TEST_CASE("each pass has all rows once, in another order", "[nn]") {
  nn::DataLoader loader(data, {.batch = 4, .seed = 7});
  CHECK(loader.size() == 3);
  std::vector<int64_t> first = pass(loader);
  const std::vector<int64_t> second = pass(loader);
  CHECK(first != second);
  nn::DataLoader twin(data, {.batch = 3, .seed = 7});
  CHECK(pass(twin) == first);
  std::ranges::sort(first);
  CHECK(first == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("without shuffling, and without a short last batch", "[nn]") {
  nn::DataLoader loader(data, {.batch = 4, .is_shuffled = false, .drops_last = true});
  CHECK(loader.size() == 2);
  CHECK(pass(loader) == std::vector<int64_t>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("a batch of two tensors can be taken apart, and is a list for compiled functions",
          "[nn]") {
  nn::DataLoader loader(data, {.batch = 4, .is_shuffled = false});
  int64_t first = 0;
  for (auto [x, y] : loader) {
    CHECK(x[0].item<int64_t>() == first);
    CHECK(same_bits(x * 2, y.at({all_of_axis, 0}).get()));
    first += 4;
  }
  for (const auto& [x, y] : loader) CHECK(x.size() * 3 == y.size());
  const auto f = compile([](const std::vector<Tensor>& batch) { return batch[0] * 3; });
  for (const auto& batch : loader) CHECK(same_bits(f(batch), batch[0] * 3));
  const auto g = compile([](const nn::Batch& batch) { return batch[1] * 3; });
  for (const auto& batch : loader) CHECK(same_bits(g(batch), batch[1] * 3));
  for (const auto& batch : loader) CHECK(same_bits(g(batch), batch[1] * 3));
  CHECK(g.explain().plan_calls > 0);
  nn::DataLoader alone({arange(3)});
  CHECK_THROWS_WITH(
      [&] {
        for (const auto& [x, y] : alone) CHECK(x.size() == y.size());
      }(),
      Catch::Contains("expected a loader of two tensors, got one of 1"));
}

TEST_CASE("another seed is another order, and each pass is one of its own", "[nn]") {
  const auto orders = [](uint64_t seed) {
    nn::DataLoader loader(data, {.batch = 10, .seed = seed});
    return std::vector{pass(loader), pass(loader), pass(loader)};
  };
  const auto one = orders(1);
  const auto other = orders((uint64_t{1} << 32U) + 1);
  CHECK(one == orders(1));
  CHECK(one != other);
  CHECK(one[0] != one[1]);
  CHECK(one[1] != one[2]);
  CHECK(one[0] != one[2]);
  // Frozen: a seed means the same order in every version.
  CHECK(one[0] == std::vector<int64_t>{2, 1, 8, 9, 6, 7, 3, 5, 0, 4});
}

TEST_CASE("batches go to another device than the data lie on", "[nn]") {
  constexpr Device reference = {.kind = Device::Kind::reference, .index = 0};
  const Tensor x = arange(10).to(Device{});
  nn::DataLoader here({x}, {.batch = 4, .seed = 3}),
      there({x}, {.batch = 4, .seed = 3, .device = reference});
  auto other = there.begin();
  for (const nn::Batch& batch : here) {
    const Tensor moved = (*other)[0];
    ++other;
    CHECK(moved.device() == reference);
    CHECK(moved.to_vector<int64_t>() == batch[0].to_vector<int64_t>());
  }
}

TEST_CASE("loaders refuse what does not fit", "[nn][errors]") {
  CHECK_THROWS_WITH(nn::DataLoader({arange(3), arange(4)}),
                    Catch::Contains("the same number of rows"));
  CHECK_THROWS_WITH(nn::DataLoader({arange(3)}, {.batch = 0}), Catch::Contains("at least 1"));
}

// ---- samples made one by one, streams, workers

namespace {

/// Numbers of the samples of each batch.
std::vector<std::vector<int64_t>> batches_of(nn::DataLoader& loader) {
  std::vector<std::vector<int64_t>> all;
  for (const nn::Batch& batch : loader) all.push_back(batch[0].to_vector<int64_t>());
  return all;
}

std::vector<int64_t> joined(const std::vector<std::vector<int64_t>>& batches) {
  std::vector<int64_t> all;
  for (const auto& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

nn::Dataset numbers_up_to(int64_t count) {
  return nn::dataset(count, [](int64_t i) { return std::pair(tensor(i), tensor({i, 2 * i})); });
}

}  // namespace

TEST_CASE("a Dataset's samples come in the order of tensors' rows", "[nn][data]") {
  for (const int64_t workers : {0, 1, 3}) {
    CAPTURE(workers);
    nn::DataLoader made(numbers_up_to(10), {.batch = 4, .seed = 7, .workers = workers});
    nn::DataLoader rows(data, {.batch = 4, .seed = 7});
    CHECK(made.size() == 3);
    for (int i = 0; i < 3; ++i) CHECK(joined(batches_of(made)) == pass(rows));
    for (const auto& [x, y] : made) {
      CHECK(y.shape() == Shape{x.size(), 2});
      CHECK(same_bits(x * 2, y.at({all_of_axis, 1}).get()));
    }
  }
  nn::DataLoader plain(nn::dataset(3, [](int64_t i) { return tensor(i); }),
                       {.batch = 2, .is_shuffled = false});
  CHECK(batches_of(plain) == std::vector<std::vector<int64_t>>{{0, 1}, {2}});
}

TEST_CASE("what a sample draws depends on its place alone", "[nn][data]") {
  const auto drawn = [](int64_t workers, uint64_t seed) {
    nn::DataLoader loader(
        nn::dataset(8, [](int64_t, const Generator& random) { return rand({2}, f32, random); }),
        {.batch = 2, .seed = seed, .workers = workers});
    std::vector<float> all;
    for (int i = 0; i < 2; ++i) {
      for (const nn::Batch& batch : loader) {
        for (const float x : batch[0].to_vector<float>()) all.push_back(x);
      }
    }
    return all;
  };
  std::vector<float> first = drawn(0, 1);
  CHECK(first == drawn(2, 1));
  CHECK(first != drawn(0, 2));
  std::ranges::sort(first);
  CHECK(std::ranges::adjacent_find(first) == first.end());  // no two alike
}

TEST_CASE("a stream is read in its order, and again for each pass", "[nn][data]") {
  for (const int64_t workers : {0, 2}) {
    CAPTURE(workers);
    int passes = 0;
    const nn::Dataset counted = nn::stream([&passes] {
      ++passes;
      return [i = int64_t{0}]() mutable -> std::optional<nn::Batch> {
        if (i == 5) return std::nullopt;
        return nn::Batch{tensor(i++)};
      };
    });
    nn::DataLoader loader(counted, {.batch = 2, .workers = workers});
    for (int i = 0; i < 2; ++i)
      CHECK(batches_of(loader) == std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}, {4}});
    CHECK(passes == 2);
    CHECK_THROWS_AS(loader.size(), Error);
    nn::DataLoader whole(counted, {.batch = 2, .drops_last = true, .workers = workers});
    CHECK(batches_of(whole) == std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}});
  }
}

TEST_CASE("workers are ahead, by so much and no more", "[nn][data]") {
  std::atomic<int> made = 0;
  nn::DataLoader loader(nn::dataset(100,
                                    [&](int64_t i) {
                                      ++made;
                                      return tensor(i);
                                    }),
                        {.batch = 1, .is_shuffled = false, .workers = 2, .prefetch = 3});
  auto i = loader.begin();
  for (int taken = 0; taken < 4; ++taken, ++i) CHECK((*i)[0].item<int64_t>() == taken);
  for (int wait = 0; made < 10 && wait < 1000; ++wait)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  CHECK(made == 10);
}

TEST_CASE("what a sample throws is thrown where its batch is taken", "[nn][data]") {
  for (const int64_t workers : {0, 2}) {
    CAPTURE(workers);
    nn::DataLoader loader(nn::dataset(6,
                                      [](int64_t i) {
                                        if (i == 3) throw std::runtime_error("sample 3 is damaged");
                                        return tensor(i);
                                      }),
                          {.batch = 2, .is_shuffled = false, .workers = workers});
    auto i = loader.begin();
    CHECK((*i)[0].to_vector<int64_t>() == std::vector<int64_t>{0, 1});
    ++i;
    CHECK_THROWS_WITH(*i, "sample 3 is damaged");
    CHECK_THROWS_WITH(*i, "sample 3 is damaged");
    ++i;  // who goes on gets the next one
    CHECK((*i)[0].to_vector<int64_t>() == std::vector<int64_t>{4, 5});
    ++i;
    CHECK(i == loader.end());

    nn::DataLoader broken(nn::stream([] {
                            return []() -> std::optional<nn::Batch> {
                              throw std::runtime_error("the line is cut");
                            };
                          }),
                          {.batch = 2, .workers = workers});
    auto k = broken.begin();
    CHECK(k != broken.end());
    CHECK_THROWS_WITH(*k, "the line is cut");
    ++k;
    CHECK(k == broken.end());
  }
}

TEST_CASE("samplers and shards", "[nn][data]") {
  // A third class twice as often as each of the others, and a fourth never.
  nn::DataLoader drawn(numbers_up_to(4),
                       {.batch = 100, .sampler = nn::weighted({1, 1, 2, 0}, 40000, 3)});
  std::vector<int64_t> counts(4, 0);
  for (const int64_t number : joined(batches_of(drawn))) ++counts[static_cast<std::size_t>(number)];
  CHECK(counts[3] == 0);
  for (const std::size_t i : {0, 1, 2})
    CHECK(std::abs(counts[i] - (i == 2 ? 20000 : 10000)) < 500);  // five deviations
  CHECK(drawn.size() == 400);

  // Three processes see everything once, and 10 of 3 come out even by seeing the first two twice.
  std::vector<int64_t> seen;
  for (const int64_t number : {0, 1, 2}) {
    nn::DataLoader part(data, {.batch = 2, .seed = 5, .shard = {number, 3}});
    CHECK(part.size() == 2);
    for (const int64_t row : pass(part)) seen.push_back(row);
    nn::DataLoader even(data, {.batch = 1, .drops_last = true, .seed = 5, .shard = {number, 3}});
    CHECK(even.size() == 3);
    CHECK(pass(even).size() == 3);
  }
  CHECK(seen.size() == 12);
  std::ranges::sort(seen);
  seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  CHECK(seen.size() == 10);
}

TEST_CASE("a loader goes on where load() says", "[nn][data]") {
  const auto path = std::filesystem::temp_directory_path() / "nitinol_loader.safetensors";
  for (const int64_t workers : {0, 2}) {
    CAPTURE(workers);
    const nn::DataLoaderOptions options = {.batch = 2, .seed = 9, .workers = workers};
    nn::DataLoader whole(numbers_up_to(10), options);
    std::vector<std::vector<int64_t>> expected;
    for (int i = 0; i < 3; ++i) {
      for (const auto& batch : batches_of(whole)) expected.push_back(batch);
    }
    for (const std::size_t stop : {1, 5, 7, 10}) {
      CAPTURE(stop);
      nn::DataLoader first(numbers_up_to(10), options);
      std::vector<std::vector<int64_t>> got;
      while (got.size() < stop) {
        for (const nn::Batch& batch : first) {
          got.push_back(batch[0].to_vector<int64_t>());
          if (got.size() == stop) break;
        }
      }
      nn::save(path, first);
      nn::DataLoader second(numbers_up_to(10), options);
      static_cast<void>(batches_of(second));  // whatever it did before
      nn::load(path, second);
      while (got.size() < expected.size()) {
        for (const auto& batch : batches_of(second)) got.push_back(batch);
      }
      CHECK(got == expected);
    }
    // One that was left in the middle begins anew.
    nn::DataLoader left(numbers_up_to(10), options);
    for (const nn::Batch& batch : left) {
      static_cast<void>(batch);
      break;
    }
    CHECK(batches_of(left).size() == 5);
  }
  std::filesystem::remove(path);
}

TEST_CASE("loaders: what makes no sense", "[nn][data]") {
  const auto refused = [](const nn::DataLoaderOptions& options) {
    CHECK_THROWS_AS(nn::DataLoader(numbers_up_to(4), options), Error);
  };
  refused({.batch = 0});
  refused({.workers = -1});
  refused({.prefetch = 0});
  refused({.shard = {.number = 2, .of = 2}});
  refused({.shard = {.number = -1, .of = 2}});
  refused({.shard = {.number = 0, .of = 0}});
  refused({.is_shuffled = true, .sampler = nn::weighted({1, 1, 1, 1}, 4)});
  CHECK_THROWS_AS(nn::weighted({}, 3), Error);
  CHECK_THROWS_AS(nn::weighted({0, 0}, 3), Error);
  CHECK_THROWS_AS(nn::weighted({1, -1}, 3), Error);
  CHECK_THROWS_AS(nn::weighted({1, 1}, 0), Error);
  CHECK_THROWS_AS(nn::DataLoader(nn::Dataset{.size = 3}), Error);
  const nn::Dataset none = nn::stream([] { return [] { return std::optional<nn::Batch>(); }; });
  CHECK_THROWS_AS(nn::DataLoader(none, {.is_shuffled = true}), Error);
  CHECK_THROWS_AS(nn::DataLoader(none, {.shard = {0, 2}}), Error);
  nn::DataLoader empty(none);
  CHECK(batches_of(empty).empty());
  nn::DataLoader beyond(numbers_up_to(4), {.sampler = [](uint64_t) {
                          return std::vector<int64_t>{0, 4};
                        }});
  CHECK_THROWS_AS(batches_of(beyond), Error);
  nn::DataLoader growing(numbers_up_to(4), {.sampler = [](uint64_t pass) {
                           return std::vector<int64_t>(pass + 1, 0);
                         }});
  CHECK(batches_of(growing).size() == 1);
  CHECK_THROWS_AS(batches_of(growing), Error);
  nn::DataLoader ragged(nn::dataset(2, [](int64_t i) { return zeros({i + 1}); }), {.batch = 2});
  CHECK_THROWS_AS(batches_of(ragged), Error);
  nn::DataLoader padded(nn::dataset(2, [](int64_t i) { return full({i + 1}, i, i64); }),
                        {.batch = 2, .is_shuffled = false, .collate = [](const auto& samples) {
                           return nn::Batch{concat({samples[0][0], samples[1][0]})};
                         }});
  CHECK(batches_of(padded) == std::vector<std::vector<int64_t>>{{0, 1, 1}});
}
