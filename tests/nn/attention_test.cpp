// Attention against its definition in double precision, its caches, its memory, its refusals.
#include "nn/attention.h"

#include "nitinol.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

using namespace nitinol;

namespace {

Tensor drawn(const Shape& shape, uint64_t seed) {
  const Generator generator(seed);
  return randn(shape, f64, generator);
}

/// What is added to the score of a query and a key of a head; -infinity hides the key.
using Score = std::function<double(int64_t head, int64_t query, int64_t key)>;

/// softmax(q k^T scale + score) v of [heads, positions, width], number by number. Heads of keys
/// each serve as many of queries.
Tensor by_definition(const Tensor& q, const Tensor& k, const Tensor& v, double scale,
                     const Score& score) {
  const int64_t heads = q.shape()[0];
  const int64_t queries = q.shape()[1];
  const int64_t width = q.shape()[2];
  const int64_t keys = k.shape()[1];
  const int64_t out = v.shape()[2];
  const auto at = [](const Tensor& x) {
    return [numbers = x.to_vector<double>(), rows = x.shape()[1], columns = x.shape()[2]](
               int64_t h, int64_t i, int64_t j) {
      return numbers[static_cast<std::size_t>((h * rows + i) * columns + j)];
    };
  };
  const auto qs = at(q);
  const auto ks = at(k);
  const auto vs = at(v);
  std::vector<double> result;
  for (int64_t h = 0; h < heads; ++h) {
    const int64_t g = h * k.shape()[0] / heads;
    for (int64_t i = 0; i < queries; ++i) {
      std::vector<double> shares;
      double total = 0;
      for (int64_t j = 0; j < keys; ++j) {
        double product = 0;
        for (int64_t f = 0; f < width; ++f) product += qs(h, i, f) * ks(g, j, f);
        shares.push_back(std::exp(product * scale + score(h, i, j)));
        total += shares.back();
      }
      for (int64_t f = 0; f < out; ++f) {
        double sum = 0;
        for (int64_t j = 0; j < keys; ++j) sum += shares[static_cast<std::size_t>(j)] * vs(g, j, f);
        result.push_back(total == 0 ? 0 : sum / total);
      }
    }
  }
  return reshape(tensor(result), {heads, queries, out});
}

double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  return max(abs(a - b)).item<double>();
}

constexpr double infinity = std::numeric_limits<double>::infinity();

Score hiding(const std::function<bool(int64_t head, int64_t query, int64_t key)>& looks) {
  return [looks](int64_t h, int64_t i, int64_t j) { return looks(h, i, j) ? 0.0 : -infinity; };
}

struct Operands {
  Tensor q, k, v;
};

/// Values of attention and gradients of a sum over it, by eager and by a Plan.
void check_attention(const Tensor& q, const Tensor& k, const Tensor& v,
                     const nn::AttentionOptions& options, double scale, const Score& score) {
  const Operands all = {q, k, v};
  const auto f = [options](const Operands& of) { return nn::attention(of.q, of.k, of.v, options); };
  CHECK(distance(f(all), by_definition(q, k, v, scale, score)) < 1e-13);
  CHECK_NOTHROW(check_gradients(f, all));
  const auto both = [f](const Operands& of) {
    const Operands slopes = grad(
        [f](const Operands& x) { return sum(f(x) * arange(x.v.shape()[x.v.rank() - 1])); })(of);
    return std::vector<Tensor>{f(of), slopes.q, slopes.k, slopes.v};
  };
  const auto eager = both(all);
  const auto compiled = compile(both, {.check = Check::never});
  test::settle(compiled, all);
  const auto by_plan = compiled(all);
  CHECK(compiled.explain().signatures.at(0).tier == Tier::traced);
  for (std::size_t i = 0; i < eager.size(); ++i) CHECK(same_bits(eager[i], by_plan[i]));
}

}  // namespace

TEST_CASE("attention by its definition: masks, scale, other keys, fewer heads of keys", "[nn]") {
  const Tensor q = drawn({4, 3, 2}, 1);
  const Tensor k = drawn({4, 5, 2}, 2);
  const Tensor v = drawn({4, 5, 3}, 3);
  const double usual = 1 / std::sqrt(2.0);
  check_attention(q, k, v, {}, usual, hiding([](auto...) { return true; }));
  check_attention(q, k, v, {.scale = 0.3}, 0.3, hiding([](auto...) { return true; }));
  // Three queries that go on after two positions.
  check_attention(q, k, v, {.is_causal = true}, usual,
                  hiding([](auto, int64_t i, int64_t j) { return j <= i + 2; }));
  // Query 1 of head 2 looks at nothing.
  const Tensor odd = arange(60).to(i64) % 3 != 1;
  const Tensor looks = reshape(odd, {4, 3, 5}).at({2, 1}).set(false);
  const auto looked = looks.to(i32).to_vector<int32_t>();
  const auto does = [&](int64_t h, int64_t i, int64_t j) {
    return looked[static_cast<std::size_t>((h * 3 + i) * 5 + j)] != 0;
  };
  check_attention(q, k, v, {.mask = looks}, usual, hiding(does));
  check_attention(
      q, k, v, {.mask = looks, .is_causal = true}, usual,
      hiding([&](int64_t h, int64_t i, int64_t j) { return does(h, i, j) && j <= i + 2; }));
  // One row of keys for all, as padding is.
  const Tensor padding = tensor({true, true, false, true, false});
  check_attention(q, k, v, {.mask = padding}, usual,
                  hiding([](auto, auto, int64_t j) { return j != 2 && j != 4; }));
  // Numbers that are added, some of them -infinity: a whole row, too.
  const Tensor numbers = where(looks, reshape(arange(60).to(f64), {4, 3, 5}) * 0.05, -infinity);
  check_attention(q, k, v, {.mask = numbers}, usual, [&](int64_t h, int64_t i, int64_t j) {
    return does(h, i, j) ? static_cast<double>((h * 3 + i) * 5 + j) * 0.05 : -infinity;
  });
  // Heads 0 and 1 share keys, and so do 2 and 3.
  const Tensor k2 = slice(k, 0, {0, 2});
  const Tensor v2 = slice(v, 0, {0, 2});
  check_attention(q, k2, v2, {.mask = looks, .shares_heads = true}, usual, hiding(does));
  check_attention(q, slice(k, 0, {0, 1}), slice(v, 0, {0, 1}),
                  {.is_causal = true, .shares_heads = true}, usual,
                  hiding([](auto, int64_t i, int64_t j) { return j <= i + 2; }));
  // More queries than keys: the first two are before all of them.
  check_attention(k, q, slice(v, 1, {0, 3}), {.is_causal = true}, usual,
                  hiding([](auto, int64_t i, int64_t j) { return j <= i - 2; }));
}

TEST_CASE("the gradient of a mask that is added, and of what looks at nothing", "[nn]") {
  const Tensor q = drawn({3, 2}, 1);
  const Tensor k = drawn({4, 2}, 2);
  const Tensor mask = drawn({3, 4}, 3);
  const auto f = [&](const Tensor& m) { return nn::attention(q, k, k, {.mask = m}); };
  CHECK_NOTHROW(check_gradients(f, mask));
  const Tensor hidden = mask.at({1}).set(-infinity);
  const auto loss = [](const Operands& of) {
    return sum(square(nn::attention(of.q, of.k, of.k, {.mask = of.v})));
  };
  const Operands slopes = grad(loss)(Operands{q, k, hidden});
  CHECK(all(isfinite(slopes.q)).item<bool>());
  CHECK(all(isfinite(slopes.k)).item<bool>());
  CHECK(all(slopes.q[1] == 0).item<bool>());
  CHECK(all(slopes.v[1] == 0).item<bool>());
  CHECK(!all(slopes.v[0] == 0).item<bool>());
}

TEST_CASE("attention in blocks is the same up to rounding, compiled to the bit", "[nn]") {
  const Tensor q = drawn({4, 7, 2}, 1);
  const Tensor k = drawn({2, 9, 2}, 2);
  const Tensor v = drawn({2, 9, 3}, 3);
  const double usual = 1 / std::sqrt(2.0);
  const Tensor looks = reshape(arange(63).to(i64) % 4 != 1, {7, 9});
  const auto does = [](auto, int64_t i, int64_t j) { return (i * 9 + j) % 4 != 1; };
  for (const int64_t block : {1, 3, 7}) {
    check_attention(q, k, v, {.mask = looks, .block = block, .shares_heads = true}, usual,
                    hiding(does));
    check_attention(
        q, k, v, {.mask = looks, .is_causal = true, .block = block, .shares_heads = true}, usual,
        hiding([&](int64_t h, int64_t i, int64_t j) { return does(h, i, j) && j <= i + 2; }));
  }
  // Blocks before all keys.
  check_attention(drawn({2, 9, 2}, 4), drawn({2, 4, 2}, 5), drawn({2, 4, 3}, 6),
                  {.is_causal = true, .block = 2}, usual,
                  hiding([](auto, int64_t i, int64_t j) { return j <= i - 5; }));
}

TEST_CASE("in blocks, a step's memory does not hold all scores", "[nn][memory][host][no-isa]") {
  const int64_t positions = 1024;
  const Tensor x = randn({4, positions, 16});
  const Operands all = {x, x, x};
  const std::size_t scores = 4 * positions * positions * sizeof(float);
  for (const bool is_causal : {false, true}) {
    const auto step = [is_causal](const Operands& of, int64_t block) {
      return grad([=](const Operands& at) {
        return sum(nn::attention(at.q, at.k, at.v, {.is_causal = is_causal, .block = block}));
      })(of);
    };
    const auto peak = [&](const auto& f, int64_t block) {
      f(all, block);
      const std::size_t before = memory_statistics().in_use;
      reset_peak_memory();
      f(all, block);
      return memory_statistics().peak - before;
    };
    const auto compiled = compile(step, {.check = Check::never});
    for (const int64_t block : {0, 64}) test::settle(compiled, all, block);
    CHECK(peak(step, 0) >= 2 * scores);
    CHECK(peak(step, 64) < scores / 2);
    CHECK(peak(compiled, 64) < scores / 2);
    CHECK(compiled.explain().signatures.at(1).tier == Tier::traced);
  }
}

TEST_CASE("attention drops what it looks at", "[nn]") {
  const Tensor q = zeros({1, 64, 8});
  const Tensor v = ones({1, 256, 4});
  const nn::AttentionOptions options = {.dropout = 0.25};
  manual_seed(1);
  const Tensor y = nn::attention(q, zeros({1, 256, 8}), v, options);
  CHECK(std::abs(mean(y).item<float>() - 1) < 0.02F);
  CHECK(max(abs(y - 1)).item<float>() > 0.01F);
  nn::MultiHeadAttention layer = nn::multi_head_attention(8, 2, {.dropout = 0.5});
  const Tensor x = randn({2, 4, 8});
  CHECK(!same_bits(layer(x), layer(x)));
  nn::eval(layer);
  CHECK(same_bits(layer(x), layer(x)));
}

TEST_CASE("a layer that looks at a memory is the same as one that looks at itself", "[nn]") {
  const Tensor x = drawn({2, 5, 8}, 1);
  for (const int64_t key_heads : {0, 1, 2}) {
    const auto layer = nn::to(nn::multi_head_attention(8, 4, {.key_heads = key_heads}), f64);
    CHECK(layer.qkv.weight.shape()[1] == 8 + 4 * (key_heads == 0 ? 4 : key_heads));
    CHECK(distance(layer(x), layer(x, {.memory = x})) < 1e-13);
    CHECK_NOTHROW(check_gradients([&](const Tensor& m) { return layer(x, {.memory = m}); },
                                  drawn({2, 3, 8}, 2)));
    const Tensor mask = reshape(
        tensor({true, true, false, true, true, true, true, false, false, true}), {2, 1, 1, 5});
    const Tensor hidden = x.at({0, 2}).set(7.0).at({1, Range{2, 4}}).set(-3.0);
    const Tensor a = layer(x, {.mask = mask});
    const Tensor b = layer(hidden, {.mask = mask});
    CHECK(distance(a[0].at({tensor({0, 1, 3, 4})}), b[0].at({tensor({0, 1, 3, 4})})) < 1e-13);
    CHECK(distance(a[1].at({tensor({0, 1, 4})}), b[1].at({tensor({0, 1, 4})})) < 1e-13);
  }
}

TEST_CASE("with a cache positions come one after another, by one Plan and in place", "[nn][host]") {
  const NoGradients scope;  // else the caches are kept for backward()
  for (const double base : {0.0, 10000.0}) {
    const auto layer = nn::to(
        nn::multi_head_attention(8, 4, {.key_heads = 2, .is_causal = true, .rotary_base = base}),
        f64);
    const Tensor x = drawn({2, 12, 8}, 1);
    const Tensor whole = layer(x);
    const auto step = [layer](const nn::KeyValueCache& cache, const Tensor& part) {
      return layer(part, {.cache = cache});
    };
    const auto compiled = compile(step, {.check = Check::never});
    const auto run = [&](const auto& f) {
      const nn::KeyValueCache cache = nn::key_value_cache(2, 2, 16, 2, f64);
      std::vector<Tensor> parts = {f(cache, slice(x, 1, {0, 4}))};
      for (int64_t i = 4; i < 12; ++i) parts.push_back(f(cache, slice(x, 1, {i, i + 1})));
      CHECK(cache.length.get().item<int64_t>() == 12);
      return concat(parts, 1);
    };
    const Tensor eager = run(step);
    CHECK(distance(eager, whole) < 1e-13);
    const Tensor by_plan = run(compiled);
    CHECK(same_bits(eager, by_plan));
    const Explanation explained = compiled.explain();
    INFO(explained);
    REQUIRE(explained.signatures.size() == 2);  // of the first four positions, and of one
    CHECK(explained.plan_calls == 6);
    CHECK(explained.signatures.at(1).plan.in_place_bytes >= 2 * 2 * 2 * 16 * 2 * 8);
  }
}

TEST_CASE("a cache that is full, of another shape, or beside a memory is refused", "[nn]") {
  const auto layer = nn::multi_head_attention(8, 2);
  const Tensor x = randn({1, 3, 8});
  const nn::KeyValueCache cache = nn::key_value_cache(1, 2, 5, 4);
  const Tensor first = layer(x, {.cache = cache});
  const Tensor before = cache.keys.get();
  CHECK_THROWS_AS(layer(x, {.cache = cache}), Error);
  CHECK(cache.length.get().item<int64_t>() == 3);
  cache.length.set(zeros({}, i64));
  CHECK(same_bits(layer(x, {.cache = cache}), first));
  CHECK_THROWS_WITH(layer(x, {.cache = nn::key_value_cache(1, 2, 5, 8)}),
                    Catch::Contains("the cache holds") && Catch::Contains("[1, 2, positions, 4]"));
  CHECK_THROWS_WITH(layer(x, {.memory = x, .cache = cache}), Catch::Contains("a layer of its own"));
}

TEST_CASE("rotary turns pairs by their positions", "[nn]") {
  const Tensor x = drawn({2, 3, 4}, 1);
  const Tensor places = tensor({0, 5, 1000000});
  for (const bool is_interleaved : {false, true}) {
    const Tensor y = nn::rotary(x, places, {.is_interleaved = is_interleaved});
    const auto in = x.to_vector<double>();
    std::vector<double> expected(in.size());
    const double positions[] = {0, 5, 1000000};
    for (std::size_t row = 0; row < 6; ++row) {
      for (std::size_t i = 0; i < 2; ++i) {
        const double angle = positions[row % 3] * std::pow(10000.0, -static_cast<double>(i) / 2);
        const std::size_t a = row * 4 + (is_interleaved ? 2 * i : i);
        const std::size_t b = row * 4 + (is_interleaved ? 2 * i + 1 : i + 2);
        expected[a] = in[a] * std::cos(angle) - in[b] * std::sin(angle);
        expected[b] = in[b] * std::cos(angle) + in[a] * std::sin(angle);
      }
    }
    CHECK(distance(y, reshape(tensor(expected), {2, 3, 4})) < 1e-9);
    // In float32 the angle is no worse.
    CHECK(distance(nn::rotary(x.to(f32), places, {.is_interleaved = is_interleaved}).to(f64), y) <
          1e-6);
    CHECK_NOTHROW(check_gradients(
        [&](const Tensor& t) { return nn::rotary(t, places, {.is_interleaved = is_interleaved}); },
        x));
  }
}

TEST_CASE("sinusoidal positions by their formula", "[nn]") {
  const Tensor y = nn::sinusoidal_positions(arange(50), 6);
  CHECK(y.shape() == Shape{50, 6});
  CHECK(y.dtype() == f32);
  const Tensor halves = nn::sinusoidal_positions(tensor({0.5, 49.0}), 6, {.is_interleaved = false});
  const auto numbers = y.to_vector<float>();
  const auto sines_first = halves.to_vector<double>();
  for (std::size_t p = 0; p < 50; ++p) {
    for (std::size_t i = 0; i < 3; ++i) {
      const double angle = static_cast<double>(p) * std::pow(10000.0, -static_cast<double>(i) / 3);
      CHECK(std::abs(numbers[p * 6 + 2 * i] - std::sin(angle)) < 1e-7);
      CHECK(std::abs(numbers[p * 6 + 2 * i + 1] - std::cos(angle)) < 1e-7);
      if (p != 49) continue;
      CHECK(std::abs(sines_first[6 + i] - std::sin(angle)) < 1e-12);
      CHECK(std::abs(sines_first[9 + i] - std::cos(angle)) < 1e-12);
    }
  }
}

TEST_CASE("transformer layers by their parts", "[nn]") {
  const Tensor x = drawn({2, 3, 8}, 1);
  const Tensor memory = drawn({2, 5, 8}, 2);
  for (const bool is_norm_first : {false, true}) {
    const nn::TransformerOptions options = {.dropout = 0,
                                            .activation = nn::Nonlinearity::gelu,
                                            .is_norm_first = is_norm_first,
                                            .dtype = f64};
    const auto encoder = nn::transformer_encoder_layer(8, 2, 16, options);
    const auto decoder = nn::transformer_decoder_layer(8, 2, 16, options);
    const auto feed = [](const auto& layer, const Tensor& y) {
      return layer.out(gelu(layer.hidden(y)));
    };
    if (is_norm_first) {
      const Tensor y = x + encoder.attention(encoder.attention_norm(x));
      CHECK(distance(encoder(x), y + feed(encoder, encoder.out_norm(y))) < 1e-13);
      const Tensor a = x + decoder.attention(decoder.attention_norm(x));
      const Tensor b = a + decoder.memory_attention(decoder.memory_norm(a), {.memory = memory});
      CHECK(distance(decoder(x, memory), b + feed(decoder, decoder.out_norm(b))) < 1e-13);
    } else {
      const Tensor y = encoder.attention_norm(x + encoder.attention(x));
      CHECK(distance(encoder(x), encoder.out_norm(y + feed(encoder, y))) < 1e-13);
      const Tensor a = decoder.attention_norm(x + decoder.attention(x));
      const Tensor b = decoder.memory_norm(a + decoder.memory_attention(a, {.memory = memory}));
      CHECK(distance(decoder(x, memory), decoder.out_norm(b + feed(decoder, b))) < 1e-13);
    }
    // The decoder does not look ahead.
    const Tensor changed = x.at({all_of_axis, 2}).set(0.0);
    CHECK(same_bits(slice(decoder(x, memory), 1, {0, 2}),
                    slice(decoder(changed, memory), 1, {0, 2})));
    const nn::KeyValueCache cache = nn::key_value_cache(2, 2, 4, 4, f64);
    std::vector<Tensor> parts;
    for (int64_t i = 0; i < 3; ++i)
      parts.push_back(decoder(slice(x, 1, {i, i + 1}), memory, {.cache = cache}));
    CHECK(distance(concat(parts, 1), decoder(x, memory)) < 1e-13);
  }
}

TEST_CASE("attention refuses what does not fit", "[nn]") {
  const Tensor x = ones({2, 3, 4});
  const auto masked = [&](const Tensor& mask) { return nn::attention(x, x, x, {.mask = mask}); };
  CHECK_THROWS_WITH(masked(ones({3, 4}, boolean)), Catch::Contains("the mask is bool[3, 4]") &&
                                                       Catch::Contains("3 queries, 3 keys"));
  CHECK_THROWS_WITH(masked(ones({3, 3}, i64)),
                    Catch::Contains("got int64") && Catch::Contains("mask != 0"));
  CHECK_THROWS_WITH(nn::attention(x, x, ones({2, 4, 4})),
                    Catch::Contains("as many values as keys"));
  const Tensor many = ones({6, 3, 4});
  CHECK_THROWS_AS(nn::attention(many, x, x), Error);  // batches that differ: not heads, unless said
  CHECK_THROWS_WITH(nn::attention(many, ones({4, 3, 4}), ones({4, 3, 4}), {.shares_heads = true}),
                    Catch::Contains("divide those of queries"));
  CHECK_THROWS_WITH(nn::attention(x, x, x, {.scale = -1.0}), Catch::Contains("`scale`"));
  CHECK_THROWS_WITH(nn::attention(x, x, x, {.dropout = 1}), Catch::Contains("`dropout`"));
  CHECK_THROWS_WITH(nn::attention(x, x, x, {.block = -1}), Catch::Contains("`block`"));
  CHECK_THROWS_WITH(nn::multi_head_attention(8, 4, {.key_heads = 3}),
                    Catch::Contains("3 heads of keys for 4 of queries"));
  CHECK_THROWS_WITH(nn::multi_head_attention(8, 4, {.dropout = -0.1}), Catch::Contains("dropout"));
  CHECK_THROWS_WITH(nn::multi_head_attention(8, 4, {.rotary_base = -1}), Catch::Contains("base"));
  CHECK_THROWS_WITH(nn::multi_head_attention(4, 2)(x, {.mask = ones({2, 3, 3}, boolean)}),
                    Catch::Contains("four axes"));
  CHECK_THROWS_WITH(nn::multi_head_attention(4, 2)(x, {.memory = ones({1, 3, 4})}),
                    Catch::Contains("the memory is float32[1, 3, 4]"));
  CHECK_THROWS_WITH(nn::rotary(ones({2, 3}), arange(2)), Catch::Contains("an even one"));
  CHECK_THROWS_WITH(nn::rotary(x, arange(2)), Catch::Contains("a position for each"));
  CHECK_THROWS_WITH(nn::sinusoidal_positions(arange(2), 3), Catch::Contains("an even one"));
  CHECK_THROWS_WITH(nn::transformer_encoder_layer(8, 2, 0), Catch::Contains("`hidden`"));
  CHECK_THROWS_WITH(nn::transformer_decoder_layer(8, 3, 4), Catch::Contains("3 heads"));
}
