// Collectives: what they give, in which order they add, and their gradients.
#include "tests/dist/ranks.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace nitinol::collectives_test {
namespace {

using namespace nitinol::test;
using dist::Reduce;

const std::vector<Shape> shapes = {{},        {1},    {5},     {0},      {3, 4},
                                   {7, 1, 2}, {4097}, {20001}, {50, 331}};
const std::vector<DType> dtypes = {f32, f64, f16, bf16, i32, i8, u8, u64, boolean};

/// Rank after rank in C++'s own arithmetic: what sum() does with up to 16 rows.
std::vector<float> added_in_order(int64_t count) {
  std::vector<float> sum(static_cast<std::size_t>(count), 0.F);
  for (int r = 0; r < ranks(); ++r) {
    const std::vector<float> x = of_rank(r, {count}).to_vector<float>();
    for (std::size_t i = 0; i < x.size(); ++i) sum[i] = r == 0 ? x[i] : sum[i] + x[i];
  }
  return sum;
}

}  // namespace

TEST_CASE("all_reduce adds in the order of ranks, whatever the size", "[dist]") {
  for (const int64_t count :
       {1, 2, 3, 17, 1000, 4096, 4097, 20000, 20001, 100003, 700001, 1048577}) {
    CAPTURE(count);
    CHECK(dist::all_reduce(own({count})).to_vector<float>() == added_in_order(count));
  }
}

TEST_CASE("all_reduce joins what all ranks have", "[dist]") {
  for (const DType dtype : dtypes) {
    for (const Shape& shape : shapes) {
      CAPTURE(std::string(name_of(dtype)), to_string(shape));
      const Tensor all = of_all(shape, dtype), x = own(shape, dtype);
      // One element in a row would be added in lanes.
      const bool is_short = element_count(shape) == 1;
      const Tensor rows = is_short ? expand(reshape(all, {ranks(), 1}), {ranks(), 2}) : all;
      const auto expect = [&](const Tensor& joined) {
        return is_short ? reshape(slice(joined, 0, {.start = 0, .stop = 1}), shape) : joined;
      };
      const auto in_dtype = [&](const Tensor& y) { return dtype == boolean ? y : cast(y, dtype); };
      CHECK(same_bits(dist::all_reduce(x), in_dtype(expect(sum(rows, 0)))));
      CHECK(same_bits(dist::all_reduce(x, Reduce::prod), in_dtype(expect(prod(rows, 0)))));
      CHECK(same_bits(dist::all_reduce(x, Reduce::max), expect(max(rows, 0))));
      CHECK(same_bits(dist::all_reduce(x, Reduce::min), expect(min(rows, 0))));
      CHECK(same_bits(dist::all_reduce(x, Reduce::mean), expect(mean(rows, 0))));
    }
  }
}

TEST_CASE("just as much as goes by one way or another", "[dist]") {
  const int n = ranks(), me = rank();
  const int64_t slot = 1 << 18;  // elements of 1 MB
  for (const int64_t count : {slot, slot + 1}) {
    std::vector<Tensor> all;
    for (int r = 0; r < n; ++r) all.push_back(of_rank(r, {count}));
    CHECK(same_bits(dist::all_gather(own({count})), concat(all)));
  }
  const int64_t share = slot / std::max(1, n - 1);
  for (const int64_t part : {share, share + 1, slot}) {
    std::vector<Tensor> parts;
    for (int r = 0; r < n; ++r) {
      parts.push_back(
          slice(of_rank(r, {n * part}), 0, {.start = me * part, .stop = (me + 1) * part}));
    }
    CHECK(same_bits(dist::all_to_all(own({n * part})), concat(parts)));
  }
  const Shape much = {1'000'003};  // several rounds
  CHECK(same_bits(dist::all_reduce(own(much, f64), Reduce::mean), mean(of_all(much, f64), 0)));
}

TEST_CASE("one after another, by ranks that are early and late", "[dist]") {
  const int n = ranks(), me = rank();
  const auto filled = [](int r, int round, int64_t count) {
    return full({count}, static_cast<float>(r * 1000 + round));
  };
  for (int round = 0; round < 60; ++round) {
    if (me == round % n) std::this_thread::sleep_for(std::chrono::microseconds(300));
    const int64_t count = 5000 + round % 7 * 20'000;
    std::vector<Tensor> all;
    Tensor total = filled(0, round, count);
    for (int r = 0; r < n; ++r) {
      all.push_back(filled(r, round, count));
      if (r > 0) total = total + all.back();
    }
    REQUIRE(same_bits(dist::all_reduce(filled(me, round, count)), total));
    if (round % 3 == 0)
      REQUIRE(same_bits(dist::permute(filled(me, round, count)),
                        all[static_cast<std::size_t>((me + n - 1) % n)]));
    REQUIRE(same_bits(dist::all_gather(filled(me, round, count)), concat(all)));
    if (round % 4 == 0)
      REQUIRE(same_bits(dist::broadcast(filled(me, round, count), round % n),
                        all[static_cast<std::size_t>(round % n)]));
  }
}

TEST_CASE("the bits of sums are frozen", "[dist]") {
  // FNV-1a of the bytes of a float32 sum, by the number of ranks.
  uint64_t hash = 0xcbf29ce484222325;
  for (const float value : dist::all_reduce(own({1000})).to_vector<float>()) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof(bits));
    for (int k = 0; k < 4; ++k) hash = (hash ^ (bits >> 8 * k & 255)) * 0x100000001b3;
  }
  const std::vector<uint64_t> golden = {0,
                                        0x6e59c2d2b95005a6,
                                        0xaa5231c0d9920017,
                                        0x05312ebc9f516cdb,
                                        0x0417affc9bbaa3e7,
                                        0xa169d7e368ac7c49};
  if (ranks() < static_cast<int>(golden.size()))
    CHECK(hash == golden[static_cast<std::size_t>(ranks())]);
}

TEST_CASE("all_gather, reduce_scatter, all_to_all, broadcast and permute", "[dist]") {
  const int n = ranks(), me = rank();
  for (const DType dtype : dtypes) {
    CAPTURE(std::string(name_of(dtype)));
    SECTION("all_gather " + std::string(name_of(dtype))) {
      for (const Shape& shape : shapes) {
        CAPTURE(to_string(shape));
        const Tensor all = of_all(shape, dtype), x = own(shape, dtype);
        std::vector<Tensor> parts;
        for (int r = 0; r < n; ++r) parts.push_back(of_rank(r, shape, dtype));
        if (shape.size() == 0) {
          CHECK(same_bits(dist::all_gather(x), all));
          continue;
        }
        for (int axis = 0; axis < shape.size(); ++axis)
          CHECK(same_bits(dist::all_gather(x, axis), concat(parts, axis)));
        CHECK(same_bits(dist::all_gather(x, -1), concat(parts, -1)));
      }
    }
    SECTION("reduce_scatter and all_to_all " + std::string(name_of(dtype))) {
      for (const int64_t k : {1, 3, 5000}) {
        for (int axis = 0; axis < 2; ++axis) {
          CAPTURE(k, axis);
          const Shape shape = axis == 0 ? Shape{n * k, 2} : Shape{2, n * k};
          const Tensor total = dist::all_reduce(own(shape, dtype));
          CHECK(same_bits(dist::reduce_scatter(own(shape, dtype), Reduce::sum, axis),
                          slice(total, axis, {.start = me * k, .stop = (me + 1) * k})));
          std::vector<Tensor> parts;
          for (int r = 0; r < n; ++r) {
            parts.push_back(
                slice(of_rank(r, shape, dtype), axis, {.start = me * k, .stop = (me + 1) * k}));
          }
          CHECK(same_bits(dist::all_to_all(own(shape, dtype), axis), concat(parts, axis)));
        }
      }
    }
    SECTION("broadcast and permute " + std::string(name_of(dtype))) {
      for (const Shape& shape : shapes) {
        CAPTURE(to_string(shape));
        for (int root = 0; root < n; ++root)
          CHECK(same_bits(dist::broadcast(own(shape, dtype), root), of_rank(root, shape, dtype)));
        for (int shift = -n; shift <= n; ++shift) {
          CHECK(same_bits(dist::permute(own(shape, dtype), shift),
                          of_rank(((me - shift) % n + n) % n, shape, dtype)));
        }
      }
    }
  }
}

TEST_CASE("collectives of what is seen through views", "[dist]") {
  const Tensor x = own({6, 8});
  const Tensor all = of_all({6, 8});
  const auto check = [&](auto view) {
    std::vector<Tensor> views;
    for (int r = 0; r < ranks(); ++r) views.push_back(view(of_rank(r, {6, 8})));
    CHECK(same_bits(dist::all_gather(view(x)), concat(views)));
    CHECK(same_bits(dist::all_reduce(view(x)), sum(stack(views, 0), 0)));
    CHECK(same_bits(dist::broadcast(view(x), ranks() - 1), views.back()));
  };
  check([](const Tensor& y) { return transpose(y); });
  check([](const Tensor& y) { return slice(y, 1, {.start = 1, .stop = 7, .step = 2}); });
  check([](const Tensor& y) { return flip(y, 0); });
  check([](const Tensor& y) { return expand(slice(y, 0, {.start = 2, .stop = 3}), {4, 8}); });
}

TEST_CASE("gradients of collectives are those of the sum over ranks", "[dist]") {
  const int n = ranks(), me = rank();
  const auto gradient = [](const auto& f, const Tensor& x) {
    const Variable v = parameter(x);
    sum(f(v.get())).backward();
    return v.grad();
  };
  const Tensor x = own({2 * n, 3}, f64);
  // The weight of each rank's own loss.
  const auto weight = [&](int r, const Shape& shape) { return of_rank(r + 7, shape, f64); };
  SECTION("all_reduce") {
    const Tensor g =
        gradient([&](const Tensor& a) { return dist::all_reduce(a) * weight(me, a.shape()); }, x);
    std::vector<Tensor> all;
    for (int r = 0; r < n; ++r) all.push_back(weight(r, x.shape()));
    CHECK(same_bits(g, sum(stack(all, 0), 0)));
    const Tensor m = gradient(
        [&](const Tensor& a) { return dist::all_reduce(a, Reduce::mean) * weight(me, a.shape()); },
        x);
    CHECK(allclose(m, g / n, 1e-12).item<bool>());
  }
  SECTION("all_reduce of much") {
    const Tensor large = own({5001}, f64);
    const Tensor g = gradient(
        [&](const Tensor& a) { return dist::all_reduce(a) * weight(me, a.shape()); }, large);
    std::vector<Tensor> all;
    for (int r = 0; r < n; ++r) all.push_back(weight(r, large.shape()));
    CHECK(same_bits(g, sum(stack(all, 0), 0)));
    const Tensor m = gradient(
        [&](const Tensor& a) { return dist::all_reduce(a, Reduce::mean) * weight(me, a.shape()); },
        large);
    CHECK(allclose(m, g / n, 1e-12).item<bool>());
  }
  SECTION("all_gather") {
    const Tensor g = gradient(
        [&](const Tensor& a) {
          return dist::all_gather(a) * weight(me, {2 * n * n, 3});
        },
        x);
    std::vector<Tensor> all;
    for (int r = 0; r < n; ++r) {
      all.push_back(
          slice(weight(r, {2 * n * n, 3}), 0, {.start = 2 * n * me, .stop = 2 * n * (me + 1)}));
    }
    CHECK(same_bits(g, sum(stack(all, 0), 0)));
  }
  SECTION("reduce_scatter") {
    const Tensor g = gradient(
        [&](const Tensor& a) {
          return dist::reduce_scatter(a) * weight(me, {2, 3});
        },
        x);
    std::vector<Tensor> all;
    for (int r = 0; r < n; ++r) all.push_back(weight(r, {2, 3}));
    CHECK(same_bits(g, concat(all)));
  }
  SECTION("all_to_all") {
    const Tensor g =
        gradient([&](const Tensor& a) { return dist::all_to_all(a) * weight(me, a.shape()); }, x);
    std::vector<Tensor> all;
    for (int r = 0; r < n; ++r)
      all.push_back(slice(weight(r, x.shape()), 0, {.start = 2 * me, .stop = 2 * me + 2}));
    CHECK(same_bits(g, concat(all)));
  }
  SECTION("broadcast") {
    const int root = n - 1;
    const Tensor g = gradient(
        [&](const Tensor& a) { return dist::broadcast(a, root) * weight(me, a.shape()); }, x);
    std::vector<Tensor> all;
    for (int r = 0; r < n; ++r) all.push_back(weight(r, x.shape()));
    CHECK(same_bits(g, me == root ? sum(stack(all, 0), 0) : zeros_like(x)));
  }
  SECTION("permute") {
    const Tensor g =
        gradient([&](const Tensor& a) { return dist::permute(a) * weight(me, a.shape()); }, x);
    CHECK(same_bits(g, weight((me + 1) % n, x.shape())));
  }
  SECTION("max") {
    const Tensor g = gradient([](const Tensor& a) { return dist::all_reduce(a, Reduce::max); }, x);
    const Tensor is_largest = own(x.shape(), f64) == max(of_all(x.shape(), f64), 0);
    CHECK(same_bits(g, where(is_largest, full(x.shape(), static_cast<double>(n), f64), 0)));
  }
}

TEST_CASE("groups", "[dist]") {
  const int n = ranks(), me = rank();
  SECTION("by colour, and in another order") {
    const dist::Group half = dist::world().split(me % 2);
    CHECK(half.size() == (me % 2 == 0 ? (n + 1) / 2 : n / 2));
    CHECK(half.rank() == me / 2);
    std::vector<int> expected;
    for (int r = me % 2; r < n; r += 2) expected.push_back(r);
    CHECK(std::vector<int>(half.members().begin(), half.members().end()) == expected);
    const dist::Group turned = dist::world().split(0, -me);
    CHECK(turned.rank() == n - 1 - me);
    std::vector<Tensor> all;
    for (int r = n - 1; r >= 0; --r) all.push_back(of_rank(r, {3}));
    CHECK(same_bits(dist::all_gather(own({3}), 0, turned), concat(all)));
    // Both at once, of which the members differ.
    Tensor sum_of_half = of_rank(expected[0], {4});
    for (std::size_t i = 1; i < expected.size(); ++i)
      sum_of_half = sum_of_half + of_rank(expected[i], {4});
    CHECK(same_bits(dist::all_reduce(own({4}), Reduce::sum, half), sum_of_half));
    Tensor much = of_rank(expected[0], {30'000});
    for (std::size_t i = 1; i < expected.size(); ++i) much = much + of_rank(expected[i], {30'000});
    for (int call = 0; call < 3; ++call) {
      CHECK(same_bits(dist::all_reduce(own({30'000}), Reduce::sum, half), much));
      CHECK(same_bits(dist::all_gather(own({30'000}), 0, turned),
                      dist::all_gather(own({30'000}), 0, turned)));
    }
    const dist::Group alone = half.split(half.rank());
    CHECK(alone.size() == 1);
    CHECK(same_bits(dist::all_reduce(own({4}), Reduce::sum, alone), own({4})));
  }
  SECTION("some are no members") {
    const dist::Group first = dist::world().split(me == 0 ? 1 : -1);
    CHECK(first.is_member() == (me == 0));
    if (me != 0) {
      CHECK_THROWS_WITH(dist::all_reduce(own({4}), Reduce::sum, first),
                        Catch::Contains("no member of the group"));
      CHECK_THROWS_WITH(first.size(), Catch::Contains("no member of the group"));
    }
  }
  SECTION("one that is no more") {
    auto group = std::make_unique<dist::Group>(dist::world().split(0));
    const auto f =
        compile([&](const Tensor& x) { return dist::all_reduce(x, Reduce::sum, *group) * 2; },
                {.check = Check::never});
    for (int call = 0; call < 3; ++call) static_cast<void>(f(own({4})));
    *group = {};
    if (n > 1) CHECK_THROWS_WITH(f(own({4})), Catch::Contains("no group number"));
  }
}

TEST_CASE("what does not fit is said before anything is sent", "[dist]") {
  const int n = ranks();
  const std::string expected = "expected a multiple of " + std::to_string(n);
  if (n > 1) {
    CHECK_THROWS_WITH(dist::reduce_scatter(own({n + 1})), Catch::Contains(expected));
    CHECK_THROWS_WITH(dist::all_to_all(own({n + 1})), Catch::Contains(expected));
  }
  CHECK_THROWS_WITH(dist::broadcast(own({2}), n), Catch::Contains("0 <= root"));
  CHECK_THROWS_WITH(dist::all_gather(own({2}), 1), Catch::Contains("axis"));
  dist::barrier();
}

TEST_CASE("more elements than an int counts", "[.large]") {
  const int64_t count = (int64_t{1} << 31) + 12345;
  const int root = ranks() - 1;
  const Tensor marked = full({5}, 77, u8);
  const Tensor x = concat({full({count - 5}, rank() + 1, u8), marked});
  const Tensor y = dist::broadcast(x, root);
  CHECK(y[0].item<uint8_t>() == root + 1);
  CHECK(min(y).item<uint8_t>() == root + 1);
  CHECK(same_bits(slice(y, 0, {.start = count - 5}), marked));
  CHECK(y[count - 6].item<uint8_t>() == root + 1);
}

}  // namespace nitinol::collectives_test
