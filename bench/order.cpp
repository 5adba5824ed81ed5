#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

namespace nitinol::bench {
namespace {

constexpr int64_t million = 1'000'000;

/// Integers below `most`, in no order.
Tensor integers(uint64_t seed, int64_t most, const Shape& shape) {
  return randint(0, most, shape, i64, Generator(seed));
}

void sorted_rows(Timer& timer) {
  const Tensor line = normal(0, {million});
  const auto sorted = [](const Tensor& x) -> Tensor { return sort(x); };
  const auto order = [](const Tensor& x) -> Tensor { return argsort(x); };
  time_both(timer, "order.sort.n1e6", {.bytes = 8.0 * million}, sorted, line);
  if (timer.wants("order.sort.i64.n1e6")) {
    time_both(timer, "order.sort.i64.n1e6", {.bytes = 16.0 * million}, sorted,
              integers(1, int64_t{1} << 40, {million}));
  }
  time_both(timer, "order.argsort.n1e6", {.bytes = 12.0 * million}, order, line);
  time_both(timer, "order.sort.rows", {.bytes = 8.0 * 4096 * 1024}, sorted,
            normal(1, {4096, 1024}));
  const auto largest = [](const Tensor& x) -> Tensor { return topk(x, 50).values; };
  time_both(timer, "order.topk", {.bytes = 4.0 * 64 * 50257}, largest, normal(2, {64, 50257}));
  const auto middle = [](const Tensor& x) -> Tensor { return median(x, -1); };
  if (timer.wants("order.median"))
    time_both(timer, "order.median", {.bytes = 4e7}, middle, normal(3, {1000, 10'000}));
}

void found_rows(Timer& timer) {
  const auto unique = [](const Tensor& x) -> Tensor { return unique_values(x); };
  for (const auto& [name, most] : {std::pair<const char*, int64_t>{"order.unique.few", 1000},
                                   {"order.unique.many", int64_t{1} << 40}}) {
    if (timer.wants(name))
      time_both(timer, name, {.bytes = 8.0 * million}, unique, integers(4, most, {million}));
  }
  const auto found = [](const Tensor& line, const Tensor& x) -> Tensor {
    return searchsorted(line, x);
  };
  time_both(timer, "order.searchsorted", {.bytes = 16.0 * million}, found,
            sort(normal(5, {million})), normal(6, {million}));
  const auto chosen = [](const Tensor& x) -> Tensor { return masked_select(x, x > 0); };
  const auto places = [](const Tensor& x) -> Tensor { return nonzero(x > 0)[0]; };
  if (timer.wants("order.mask") || timer.wants("order.nonzero")) {
    const Tensor x = normal(7, {10 * million});
    time_both(timer, "order.mask", {.bytes = 6e7}, chosen, x);
    time_both(timer, "order.nonzero", {.bytes = 8e7}, places, x);
  }
}

void written_rows(Timer& timer) {
  const auto set = [](const Tensor& x, const Tensor& i, const Tensor& v) -> Tensor {
    return x.at({i}).set(v);
  };
  if (timer.wants("index.set")) {
    const Tensor half = slice(permutation(million, Generator(8)), 0, {0, million / 2});
    time_both(timer, "index.set", {.bytes = 14.0 * million}, set, normal(9, {million}), half,
              normal(10, {million / 2}));
  }
  const auto moved = [](const Tensor& x) -> Tensor {
    const Tensor y = tile(roll(x, {7}, {1}), {2, 3});
    return cumsum(where(y > 0, y, y * 0.1F), 1);
  };
  if (timer.wants("index.moved"))
    time_both(timer, "index.moved", {.bytes = 28.0 * million}, moved, normal(13, {1000, 1000}));
  const auto along = [](const Tensor& x, const Tensor& i) -> Tensor { return gather(x, 1, i); };
  if (timer.wants("index.along")) {
    time_both(timer, "index.along", {.bytes = 16.0 * 4096 * 256}, along, normal(11, {4096, 1024}),
              integers(12, 1024, {4096, 256}));
  }
}

void contracted_rows(Timer& timer) {
  const auto attention = [](const Tensor& q, const Tensor& k) -> Tensor {
    return einsum("bhqd,bhkd->bhqk", {q, k});
  };
  const auto chain = [](const Tensor& x, const Tensor& y, const Tensor& z) -> Tensor {
    return einsum("ij,jk,kl->il", {x, y, z});
  };
  const auto outer_products = [](const Tensor& x, const Tensor& y) -> Tensor {
    return einsum("bi,bj->bij", {x, y});
  };
  const Shape heads = {8, 12, 128, 64}, square = {256, 256}, vectors = {1000, 200};
  time_both(timer, "einsum.attention", {.flops = 2.0 * 96 * 128 * 128 * 64}, attention,
            normal(0, heads), normal(1, heads));
  time_both(timer, "einsum.chain", {.flops = 4.0 * 256 * 256 * 256}, chain, normal(0, square),
            normal(1, square), normal(2, square));
  time_both(timer, "einsum.outer", {.bytes = 4.0 * 1000 * 200 * 200}, outer_products,
            normal(0, vectors), normal(1, vectors));
}

void drawn_rows(Timer& timer) {
  const Generator generator(13);
  const auto numbers = [generator](const Tensor& like) -> Tensor {
    return randn_like(like, generator);
  };
  const auto order = [generator](const Tensor&) -> Tensor {
    return permutation(million, generator);
  };
  const auto classes = [generator](const Tensor& weights) -> Tensor {
    return categorical(weights, 1, true, generator);
  };
  if (timer.wants("random.normal"))
    time_both(timer, "random.normal", {.bytes = 4e7}, numbers, zeros({10 * million}));
  time_both(timer, "random.permutation", {.bytes = 8.0 * million}, order, zeros({1}));
  if (timer.wants("random.categorical")) {
    time_both(timer, "random.categorical", {.bytes = 4e7}, classes,
              rand({100'000, 100}, f32, generator));
  }
}

}  // namespace

void order_rows(Timer& timer) {
  sorted_rows(timer);
  found_rows(timer);
  written_rows(timer);
  contracted_rows(timer);
  drawn_rows(timer);
}

}  // namespace nitinol::bench
