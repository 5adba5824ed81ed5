// Products of batches that are parts of something larger: matrices with gaps between them, and
// rows with gaps.
#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// Small whole numbers: products of them are exact in any order.
Tensor whole(const Shape& shape, DType dtype) {
  return reshape(cast(arange(element_count(shape)) % 7 - 3, dtype), shape);
}

/// One product at a time, of contiguous matrices.
Tensor one_by_one(const Tensor& a, const Tensor& b) {
  std::vector<Tensor> products;
  for (int64_t i = 0; i < a.shape()[0]; ++i)
    products.push_back(matmul(copy(a[i]), copy(b.rank() == 2 ? b : b[b.shape()[0] == 1 ? 0 : i])));
  return stack(products);
}

}  // namespace

TEST_CASE("a batch that is a part of another is multiplied as its copy", "[matmul]") {
  for (const DType dtype : {f32, f64, f16, bf16, i32}) {
    const Tensor all = whole({4, 6, 8}, dtype);
    const std::vector<Tensor> parts = {slice(all, 1, {0, 5}),        // gaps between the matrices
                                       slice(all, 2, {1, 8}),        // between the rows
                                       slice(all, 0, {.step = 2}),   // every second matrix
                                       slice(all, 1, {.step = -2}),  // rows backwards
                                       slice(all, 2, {.step = 2}),   // every second column
                                       slice(all, 0, {.step = -1}),  // matrices backwards
                                       permute(all, {1, 0, 2}),      // rows of all matrices
                                       permute(all, {0, 2, 1})};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const Tensor& a = parts[i];
      INFO(name_of(dtype) << " part " << i);
      const Tensor shared = whole({a.shape()[2], 5}, dtype);
      const Tensor each = whole({a.shape()[0], a.shape()[2], 3}, dtype);
      for (const Tensor& b : {shared, unsqueeze(shared, 0), each, slice(each, 2, {0, 2})}) {
        CHECK(same_bits(matmul(a, b), one_by_one(a, b)));
        const auto g = compile([](const Tensor& x, const Tensor& y) { return matmul(x, y); });
        CHECK(same_bits(settle(g, a, b), one_by_one(a, b)));
      }
    }
  }
}
