// Batches: all rows once, in an order that the seed decides.
#include "nn/data_loader.h"

#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
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
