#include "backends/host/take.h"

#include "core/error.h"
#include "tests/backends/kernels.h"

#include <catch2/catch.hpp>

#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

LibraryCall take(const OperandLayout& table, const OperandLayout& indices,
                 const OperandLayout& out) {
  return {.kind = LibraryCall::Kind::take, .operands = {table, indices, out}, .threads = 1};
}

}  // namespace

TEST_CASE("take copies rows; negative indices count from the end", "[take]") {
  std::vector<int32_t> table = {0, 1, 2, 10, 11, 12, 20, 21, 22};
  std::vector<int64_t> indices = {2, -3, -1, 1};
  for (const auto kind : {Device::Kind::cpu, Device::Kind::reference}) {
    std::vector<int32_t> out(12);
    Call call = {.buffers = {table.data(), indices.data(), out.data()}, .sizes = {}, .strides = {}};
    call.run(take({i32, {3, 3}, {3, 1}}, {i64, {4}, {1}}, {i32, {4, 3}, {3, 1}}), kind);
    CHECK(out == std::vector<int32_t>{20, 21, 22, 0, 1, 2, 20, 21, 22, 10, 11, 12});
    // columns of the transposed table, by a strided list of indices, into a transposed result
    call.run(take({i32, {3, 3}, {1, 3}}, {i64, {2}, {2}}, {i32, {2, 3}, {1, 2}}), kind);
    CHECK(std::vector<int32_t>(out.begin(), out.begin() + 6) ==
          std::vector<int32_t>{2, 2, 12, 12, 22, 22});
  }
}

TEST_CASE("take of nothing, and of single elements", "[take]") {
  std::vector<double> table = {1.5, 2.5}, out(3);
  std::vector<int64_t> indices = {1, 0, 1};
  Call call = {.buffers = {table.data(), indices.data(), out.data()}, .sizes = {}, .strides = {}};
  call.run(take({f64, {2}, {1}}, {i64, {3}, {1}}, {f64, {3}, {1}}));
  CHECK(out == std::vector<double>{2.5, 1.5, 2.5});
  CHECK_NOTHROW(call.run(take({f64, {2}, {1}}, {i64, {0}, {1}}, {f64, {0}, {1}})));
}

TEST_CASE("take reports an index that is out of range", "[take]") {
  std::vector<float> table(6), out(6);
  std::vector<int64_t> indices = {0, 2};
  const Call call = {
      .buffers = {table.data(), indices.data(), out.data()}, .sizes = {}, .strides = {}};
  const LibraryCall step = take({f32, {2, 3}, {3, 1}}, {i64, {2}, {1}}, {f32, {2, 3}, {3, 1}});
  Status status;
  for (const int64_t wrong : {2, -3}) {
    indices[1] = wrong;
    status.code = Status::ok;
    call.run(step, Device::Kind::cpu, &status);
    CHECK(status.code == Status::index_out_of_range);
    CHECK_THROWS_AS(call.run(step), Error);
  }
  indices[1] = -2;
  status.code = Status::ok;
  call.run(step, Device::Kind::cpu, &status);
  CHECK(status.code == Status::ok);
}
