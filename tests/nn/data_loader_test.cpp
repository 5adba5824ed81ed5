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

TEST_CASE("loaders refuse what does not fit", "[nn][errors]") {
  CHECK_THROWS_WITH(nn::DataLoader({arange(3), arange(4)}),
                    Catch::Contains("the same number of rows"));
  CHECK_THROWS_WITH(nn::DataLoader({arange(3)}, {.batch = 0}), Catch::Contains("at least 1"));
}
