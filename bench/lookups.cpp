#include "bench/families.h"
#include "bench/functions.h"
#include "bench/time_both.h"

namespace nitinol::bench {

void lookup_rows(Timer& timer) {
  if (!timer.wants("index")) return;
  constexpr int64_t words = 50'000, width = 256, batch = 32, length = 128;
  const Tensor table = normal(0, {words, width}), places = normal(1, {length, width});
  const Tensor chosen = (arange(batch * length) * 7919) % words;
  const Tensor ids = reshape(chosen, {batch, length});
  const Work copied{.bytes = 8.0 * batch * length * width};
  const auto rows = [](const Tensor& x, const Tensor& i) -> Tensor { return take(x, i); };
  const auto embedding = [](const Tensor& x, const Tensor& i, const Tensor& p) -> Tensor {
    return take(x, i) * 16.0 + p;
  };
  const auto normed = [](const Tensor& x, const Tensor& i, const Tensor& p) -> Tensor {
    return layer_norm(take(x, i) * 16.0 + p);
  };
  const auto elements = [](const Tensor& x, const Tensor& i) -> Tensor { return gather(x, 1, i); };
  const auto picked = [](const Tensor& x, const Tensor& i) -> Tensor {
    return logsumexp(x, 1) - squeeze(gather(x, 1, unsqueeze(i, 1)), 1);
  };
  const auto sums = [](const Tensor& x, const Tensor& i) -> Tensor {
    return scatter_add(x, i, words);
  };
  time_both(timer, "index.rows", copied, rows, table, ids);
  time_both(timer, "index.scatter", {.bytes = 4.0 * (batch * length + words) * width}, sums,
            normal(3, {batch, length, width}), ids);
  time_both(timer, "index.embedding", copied, embedding, table, ids, places);
  time_both(timer, "index.embedding-norm", copied, normed, table, ids, places);
  const Tensor x = normal(2, {batch * length, width});
  const Tensor columns = reshape((arange(batch * length * width) * 31) % width, x.shape());
  time_both(timer, "index.elements", {.bytes = 16.0 * batch * length * width}, elements, x,
            columns);
  time_both(timer, "index.label", {.bytes = 4.0 * batch * length * width}, picked, x,
            chosen % width);
}

void bin_rows(Timer& timer) {
  if (!timer.wants("order.bincount")) return;
  constexpr int64_t values = 262'144, bins = 256;
  const auto counts = [](const Tensor& x, const Tensor& i) -> Tensor {
    return scatter_add(x, i, bins);
  };
  const Tensor places = floor(normal(0, {values}) * 1e4).to(i64) % bins;
  time_both(timer, "order.bincount", {.bytes = 12.0 * values}, counts, ones({values}), places);
}

void piece_rows(Timer& timer) {
  if (!timer.wants("pieces")) return;
  constexpr int64_t rows = 1000, columns = 500;
  const Tensor x = normal(0, {rows, columns}), y = normal(1, {rows, columns});
  const Work moved{.bytes = 16.0 * rows * columns};
  const auto below = [](const Tensor& a, const Tensor& b) -> Tensor {
    return concat({a * b + a, a - b});
  };
  const auto beside = [](const Tensor& a, const Tensor& b) -> Tensor {
    return concat({a * b + a, a - b}, 1);
  };
  const auto pairs = [](const Tensor& a, const Tensor& b) -> Tensor {
    return stack({a * b + a, a - b}, -1);
  };
  time_both(timer, "pieces.below", moved, below, x, y);
  time_both(timer, "pieces.beside", moved, beside, x, y);
  time_both(timer, "pieces.pairs", moved, pairs, x, y);
  constexpr int64_t heads = 8, positions = 512, width = 64;
  const Tensor angles = normal(2, {positions, width});
  const auto rotary = [sines = sin(angles), cosines = cos(angles)](const Tensor& q) -> Tensor {
    const Tensor first = slice(q, 2, {0, width / 2}), second = slice(q, 2, {width / 2, width});
    return q * cosines + concat({-second, first}, 2) * sines;
  };
  time_both(timer, "pieces.rotary", {.bytes = 8.0 * (heads + 1) * positions * width}, rotary,
            normal(3, {heads, positions, width}));
  const auto stencil = [](const Tensor& a) -> Tensor {
    return roll(a, {1}, {0}) + roll(a, {-1}, {0}) + roll(a, {1}, {1}) + roll(a, {-1}, {1}) - 4 * a;
  };
  time_both(timer, "pieces.stencil", {.bytes = 8e6}, stencil, normal(4, {1000, 1000}));
}

}  // namespace nitinol::bench
