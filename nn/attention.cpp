#include "nn/attention.h"

#include "autograd/custom.h"
#include "core/error.h"
#include "eager/ops/ops.h"
#include "eager/promotion.h"
#include "nn/checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace nitinol::nn {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// Of an axis that is counted from the end, -1 the last.
int64_t size_at(const Tensor& x, int axis) {
  return x.shape()[x.rank() + axis];
}

// ---- attention

void check_operands(const Tensor& q, const Tensor& k, const Tensor& v) {
  const auto fail = [&](const std::string& expected, const Tensor& x, const char* fix) {
    throw Error(ErrorKind::shape, {.where = "attention",
                                   .what = fmt::format("queries {}, keys {} and values {}",
                                                       describe(q), describe(k), describe(v)),
                                   .expected = expected,
                                   .got = to_string(x.shape()),
                                   .fix = fix});
  };
  const int64_t features = q.rank() < 2 ? 0 : size_at(q, -1);
  for (const Tensor* x : {&q, &k, &v}) {
    const bool is_value = x == &v;  // its width is its own
    if (x->rank() < 2 || (!is_value && size_at(*x, -1) != features))
      fail("[..., positions, width], with one width for queries and keys", *x,
           "A single sequence needs no batch axis, but both others.");
  }
  if (size_at(v, -2) != size_at(k, -2)) fail("as many values as keys", v, "");
}

/// How many heads of queries share one of keys and values.
int64_t sharing_heads(const Tensor& q, const Tensor& k, const Tensor& v) {
  const bool have_heads = q.rank() >= 3 && k.rank() == q.rank() && v.rank() == q.rank();
  if (have_heads && size_at(k, -3) == size_at(v, -3) && size_at(k, -3) > 0 &&
      size_at(q, -3) % size_at(k, -3) == 0)
    return size_at(q, -3) / size_at(k, -3);
  throw Error(
      ErrorKind::shape,
      {.where = "attention",
       .what = fmt::format("shared heads of queries {}, keys {} and values {}", describe(q),
                           describe(k), describe(v)),
       .expected = "[..., heads, positions, width] and heads of keys and values that divide "
                   "those of queries",
       .got = to_string(k.shape()),
       .fix = {}});
}

/// `shape` with its last two or three axes replaced.
Shape with_last(const Shape& shape, int count, const Shape& last) {
  Shape all;
  for (int i = 0; i < shape.size() - count; ++i) all.push_back(shape[i]);
  for (const int64_t size : last) all.push_back(size);
  return all;
}

void check_mask(const Tensor& mask, int64_t queries, int64_t keys) {
  if (mask.dtype() != boolean && !is_floating(mask.dtype())) {
    throw Error(ErrorKind::dtype,
                {.where = "attention",
                 .what = "the mask is " + describe(mask),
                 .expected = "booleans, true where a query looks, or numbers to add to scores",
                 .got = std::string(name_of(mask.dtype())),
                 .fix = "Compare the integers: mask != 0."});
  }
  const auto fits = [&](int axis, int64_t size) {
    return mask.rank() < -axis || size_at(mask, axis) == size || size_at(mask, axis) == 1;
  };
  if (fits(-1, keys) && fits(-2, queries)) return;
  throw Error(
      ErrorKind::shape,
      {.where = "attention",
       .what = "the mask is " + describe(mask),
       .expected = fmt::format("what broadcasts to [..., {} queries, {} keys]", queries, keys),
       .got = to_string(mask.shape()),
       .fix = "A mask of keys, [batch, keys], needs axes of size 1 for heads and queries."});
}

/// Settings that are known to make sense.
struct Attending {
  int64_t sharing;  ///< heads of queries of each of keys
  bool is_causal;
  double scale, dropout;
};

/// Attention of all queries at once.
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const std::optional<Tensor>& mask,
              const Attending& how) {
  const int64_t queries = size_at(q, -2);
  const int64_t keys = size_at(k, -2);
  const int64_t sharing = how.sharing;
  const Shape apart = q.shape();
  // Heads that share keys are more queries of one product.
  const auto joined = [&](const Tensor& x) {
    if (sharing == 1) return x;
    const Shape last = {size_at(k, -3), sharing * queries, size_at(x, -1)};
    return reshape(x, with_last(apart, 3, last));
  };
  const auto separated = [&](const Tensor& x) {
    if (sharing == 1) return x;
    return reshape(x, with_last(apart, 2, {queries, size_at(x, -1)}));
  };
  // float16 and bfloat16 scores would be too coarse to exponentiate.
  Tensor scores = separated(matmul(joined(widened(q)), transpose(widened(k), -2, -1))) * how.scale;

  std::optional<Tensor> looks;
  const auto restrict = [&](const Tensor& more) { looks = looks ? *looks && more : more; };
  if (how.is_causal) {
    const Tensor row = unsqueeze(arange(keys - queries, keys, 1, {}, q.device()), 1);
    restrict(arange(keys, {}, q.device()) <= row);
  }
  bool may_be_blind = how.is_causal && keys < queries;
  if (mask) {
    may_be_blind = true;
    if (mask->dtype() == boolean) {
      restrict(*mask);
    } else {
      scores = scores + widened(*mask);
      restrict(*mask != -infinity);
    }
  }
  // A row without keys: a softmax of -infinities would be NaN, and so would gradients through it.
  std::optional<Tensor> sees;
  if (may_be_blind) sees = any(*looks, {-1}, keepdims);
  if (looks && sees)
    scores = where(*looks, scores, where(*sees, -infinity, 0.0));
  else if (looks)
    scores = where(*looks, scores, -infinity);
  Tensor share = softmax(scores);
  if (how.dropout > 0) share = Dropout{.rate = how.dropout}(share);
  Tensor values = separated(matmul(joined(share), widened(v)));
  if (sees) values = where(*sees, values, 0.0);
  return cast(values, promote(q.dtype(), v.dtype()));
}

/// The rows of a mask, or all if one row stands for all, and its columns likewise.
std::optional<Tensor> part_of(const std::optional<Tensor>& mask, const Range& rows,
                              const Range& columns) {
  if (!mask) return mask;
  Tensor part = *mask;
  if (part.rank() >= 2 && size_at(part, -2) != 1) part = slice(part, -2, rows);
  if (part.rank() >= 1 && size_at(part, -1) != 1) part = slice(part, -1, columns);
  return part;
}

}  // namespace

Tensor attention(const Tensor& q, const Tensor& k, const Tensor& v,
                 const AttentionOptions& options) {
  check_operands(q, k, v);
  check_setting("attention", "dropout", options.dropout, Interval::below_one);
  check_at_least("attention", "block", options.block, 0);
  const int64_t queries = size_at(q, -2);
  const int64_t keys = size_at(k, -2);
  if (options.mask) check_mask(*options.mask, queries, keys);
  const double scale = options.scale.value_or(1 / std::sqrt(static_cast<double>(size_at(q, -1))));
  check_setting("attention", "scale", scale, Interval::positive);
  const int64_t sharing = options.shares_heads ? sharing_heads(q, k, v) : 1;
  const Attending how = {sharing, options.is_causal, scale, options.dropout};
  if (options.block == 0 || options.block >= queries) return attend(q, k, v, options.mask, how);

  std::vector<Tensor> parts;
  for (int64_t from = 0; from < queries; from += options.block) {
    const int64_t to = std::min(queries, from + options.block);
    // None of these looks at keys after its last one's own.
    const int64_t seen = options.is_causal ? std::max<int64_t>(0, keys - queries + to) : keys;
    const Range columns = {0, seen};
    const auto some = [&](const Tensor& x) { return seen == keys ? x : slice(x, -2, columns); };
    parts.push_back(checkpoint([how](const Tensor& a, const Tensor& b, const Tensor& c,
                                     const std::optional<Tensor>& mask) {
      return attend(a, b, c, mask, how);
    })(slice(q, -2, {from, to}), some(k), some(v), part_of(options.mask, {from, to}, columns)));
  }
  return concat(parts, -2);
}

// ---- several heads

KeyValueCache key_value_cache(Integer batch, Integer heads, Integer positions, Integer width,
                              DType dtype) {
  check_at_least("key_value_cache", "batch", batch, 1);
  check_at_least("key_value_cache", "heads", heads, 1);
  check_at_least("key_value_cache", "positions", positions, 1);
  check_at_least("key_value_cache", "width", width, 1);
  const Shape shape = {batch, heads, positions, width};
  return {.keys = Variable(zeros(shape, dtype)),
          .values = Variable(zeros(shape, dtype)),
          .length = Variable(zeros({}, i64))};
}

namespace {

void check_heads(const char* where, int64_t width, int64_t heads, int64_t key_heads) {
  const auto fail = [where](const std::string& what, const char* expected, int64_t got) {
    throw Error(ErrorKind::value, {.where = where,
                                   .what = what,
                                   .expected = expected,
                                   .got = fmt::format("{}", got),
                                   .fix = {}});
  };
  if (heads < 1 || width % heads != 0)
    fail(fmt::format("{} heads for a width of {}", heads, width),
         "a number of heads that divides the width", heads);
  if (key_heads < 0 || (key_heads > 0 && heads % key_heads != 0))
    fail(fmt::format("{} heads of keys for {} of queries", key_heads, heads),
         "a number of heads of keys that divides the heads, or 0", key_heads);
}

void check_rotary_base(const char* where, double base) {
  check_setting(where, "rotary_base", base, Interval::not_negative);
}

}  // namespace

MultiHeadAttention multi_head_attention(Integer width, Integer heads,
                                        const MultiHeadAttentionOptions& options) {
  const char* const where = "multi_head_attention";
  check_at_least(where, "width", width, 1);
  check_heads(where, width, heads, options.key_heads);
  check_setting(where, "dropout", options.dropout, Interval::below_one);
  check_at_least(where, "block", options.block, 0);
  check_rotary_base(where, options.rotary_base);
  const int64_t each = width / heads;
  const int64_t key_width = each * (options.key_heads == 0 ? int64_t{heads} : options.key_heads);
  const LinearOptions projection = {.has_bias = options.has_bias, .dtype = options.dtype};
  return {.qkv = linear(width, width + 2 * key_width, projection),
          .proj = linear(width, width, projection),
          .heads = heads,
          .key_heads = options.key_heads,
          .is_causal = options.is_causal,
          .dropout = options.dropout,
          .block = options.block,
          .rotary_base = options.rotary_base};
}

namespace {

/// Some of a layer's outputs, for an input of their own.
Tensor projected(const Linear& layer, const Tensor& x, const Range& outputs) {
  const Tensor product = matmul(x, slice(layer.weight, 1, outputs));
  return layer.bias ? product + slice(*layer.bias, 0, outputs) : product;
}

/// The positions among those that a cache holds.
Tensor checked_positions(const Tensor& positions, int64_t held) {
  try {
    return take(arange(held, {}, positions.device()), positions);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::value) throw;
    throw Error(ErrorKind::value, {.where = "MultiHeadAttention",
                                   .what = "the cache is full",
                                   .expected = fmt::format("at most {} positions", held),
                                   .got = "more, with those of this call",
                                   .fix = "Make the cache longer, or begin again with a `length` "
                                          "of 0."});
  }
}

/// Appends keys and values, and gives all.
void append(const KeyValueCache& cache, Tensor& k, Tensor& v, const Tensor& positions) {
  const Shape held = cache.keys.shape();
  const int64_t sequences = held[0] * held[1];
  const int64_t count = size_at(k, -2);
  // Rows of both: what may fail is before what is stored, so that compiled code stores in place.
  const Tensor firsts = unsqueeze(arange(sequences, {}, k.device()) * held[2], 1);
  const Tensor rows = firsts + checked_positions(positions, held[2]);
  const auto with = [&](const Variable& filled, const Tensor& more) {
    const Tensor former = reshape(filled.get(), {sequences * held[2], held[3]});
    const Tensor added = cast(reshape(more, {sequences, count, held[3]}), former.dtype());
    const Tensor all = reshape(scatter(former, rows, added), held);
    filled.set(stop_gradient(all));
    return all;
  };
  k = with(cache.keys, k);
  v = with(cache.values, v);
  cache.length.set(cache.length.get() + count);
}

void check_cache(const KeyValueCache& cache, const Shape& expected) {
  for (const Variable* part : {&cache.keys, &cache.values}) {
    const Shape& shape = part->shape();
    if (shape.size() == 4 && shape[0] == expected[0] && shape[1] == expected[1] &&
        shape[3] == expected[3])
      continue;
    throw Error(
        ErrorKind::shape,
        {.where = "MultiHeadAttention",
         .what = "the cache holds " + describe(part->spec()),
         .expected = fmt::format("[{}, {}, positions, {}]", expected[0], expected[1], expected[3]),
         .got = to_string(shape),
         .fix = "key_value_cache() takes the batch, the heads of keys, the most positions "
                "and the width of one head."});
  }
}

}  // namespace

Tensor MultiHeadAttention::operator()(const Tensor& x, const AttentionInputs& inputs) const {
  const char* const name = "MultiHeadAttention";
  const int64_t width = qkv.weight.shape()[0];
  const auto check_input = [&](const char* what, const Tensor& given) {
    if (given.rank() == 3 && given.shape()[2] == width && given.shape()[0] == x.shape()[0]) return;
    throw Error(ErrorKind::shape, {.where = name,
                                   .what = fmt::format("the {} is {}", what, describe(given)),
                                   .expected = fmt::format("[batch, positions, {}]", width),
                                   .got = to_string(given.shape()),
                                   .fix = "A single sequence needs unsqueeze(x, 0)."});
  };
  check_input("input", x);
  if (inputs.memory) check_input("memory", *inputs.memory);
  check_heads(name, width, heads, key_heads);
  check_setting(name, "dropout", dropout, Interval::below_one);
  check_rotary_base(name, rotary_base);
  if (inputs.memory && (inputs.cache || rotary_base != 0)) {
    throw Error(ErrorKind::value, {.where = name,
                                   .what = "a memory",
                                   .expected = "a memory without a cache, and without rotary_base",
                                   .got = inputs.cache ? "a cache" : "a rotary_base",
                                   .fix = "Attention to a memory wants a layer of its own."});
  }
  if (inputs.mask && inputs.mask->rank() != 2 && inputs.mask->rank() != 4) {
    throw Error(ErrorKind::shape,
                {.where = name,
                 .what = "the mask is " + describe(*inputs.mask),
                 .expected = "[queries, keys], or four axes of batch, heads, queries and keys",
                 .got = to_string(inputs.mask->shape()),
                 .fix = "Give the axes for which it is the same the size 1: unsqueeze(mask, 1)."});
  }
  const int64_t batch = x.shape()[0];
  const int64_t positions = x.shape()[1];
  const int64_t each = width / heads;
  const int64_t shared = key_heads == 0 ? heads : key_heads;
  // [batch, positions, heads * each] -> [batch, heads, positions, each]
  const auto in_heads = [&](const Tensor& y) {
    return transpose(reshape(y, {batch, y.shape()[1], y.shape()[2] / each, each}), 1, 2);
  };
  std::vector<Tensor> parts;
  if (inputs.memory) {
    const Dims halves = {shared * each, shared * each};
    parts = split(projected(qkv, *inputs.memory, {width, Range::open}), halves, -1);
    parts.insert(parts.begin(), projected(qkv, x, {0, width}));
  } else {
    parts = split(qkv(x), Dims{width, shared * each, shared * each}, -1);
  }
  Tensor q = in_heads(parts[0]);
  Tensor k = in_heads(parts[1]);
  Tensor v = in_heads(parts[2]);
  Tensor own = arange(positions, {}, x.device());
  if (inputs.cache) {
    check_cache(*inputs.cache, {batch, shared, 0, each});
    own = own + inputs.cache->length.get();
  }
  if (rotary_base != 0) {
    q = rotary(q, own, {.base = rotary_base});
    k = rotary(k, own, {.base = rotary_base});
  }
  AttentionOptions options = {.is_causal = is_causal};
  if (inputs.cache) {
    append(*inputs.cache, k, v, own);
    options = {.mask = arange(size_at(k, -2), {}, x.device()) <= unsqueeze(own, 1)};
  }
  if (inputs.mask) {
    const Tensor& mask = *inputs.mask;
    const bool both = options.mask.has_value();
    if (both && mask.dtype() == boolean)
      options.mask = *options.mask && mask;
    else if (both)
      options.mask = where(*options.mask, mask, -infinity);
    else
      options.mask = mask;
  }
  options.dropout = training ? dropout : 0;
  options.block = block;
  options.shares_heads = shared != heads;
  const Tensor joined = attention(q, k, v, options);
  return proj(reshape(transpose(joined, 1, 2), {batch, positions, width}));
}

// ---- positions

namespace {

/// Positions times base^(-2i / width), in float64: [..., width / 2]. A float32 loses what the
/// angles of late positions have after the point.
Tensor angles_of(const char* where, const Tensor& positions, int64_t width, double base) {
  check_setting(where, "base", base, Interval::positive);
  if (width < 2 || width % 2 != 0) {
    throw Error(ErrorKind::value, {.where = where,
                                   .what = "the width",
                                   .expected = "an even one, of pairs",
                                   .got = fmt::format("{}", width),
                                   .fix = {}});
  }
  std::vector<double> frequencies;
  for (int64_t i = 0; i < width; i += 2)
    frequencies.push_back(std::pow(base, -static_cast<double>(i) / static_cast<double>(width)));
  return unsqueeze(cast(positions, f64), -1) * tensor(frequencies).to(positions.device());
}

/// a and b as neighbours along the last axis, or as its halves.
Tensor paired(const Tensor& a, const Tensor& b, bool is_interleaved) {
  if (!is_interleaved) return concat({a, b}, -1);
  return flatten(stack({a, b}, -1), -2, -1);
}

}  // namespace

Tensor rotary(const Tensor& x, const Tensor& positions, const RotaryOptions& options) {
  if (x.rank() < 2 || positions.rank() != 1 || positions.shape()[0] != size_at(x, -2)) {
    throw Error(
        ErrorKind::shape,
        {.where = "rotary",
         .what = fmt::format("x is {} and positions are {}", describe(x), describe(positions)),
         .expected = "[..., positions, width] and a position for each of them",
         .got = fmt::format("{} and {}", to_string(x.shape()), to_string(positions.shape())),
         .fix = {}});
  }
  const int64_t width = size_at(x, -1);
  const Tensor angles = angles_of("rotary", positions, width, options.base);
  const Tensor given = widened(x);
  const Tensor cosines = cast(cos(angles), given.dtype());
  const Tensor sines = cast(sin(angles), given.dtype());
  const auto half = [&](int64_t k) {
    return options.is_interleaved ? slice(given, -1, {k, Range::open, 2})
                                  : slice(given, -1, {k * width / 2, (k + 1) * width / 2});
  };
  const Tensor a = half(0);
  const Tensor b = half(1);
  return cast(paired(a * cosines - b * sines, b * cosines + a * sines, options.is_interleaved),
              x.dtype());
}

Tensor sinusoidal_positions(const Tensor& positions, Integer width,
                            const SinusoidalOptions& options) {
  const Tensor angles = angles_of("sinusoidal_positions", positions, width, options.base);
  const DType dtype = is_floating(positions.dtype()) ? positions.dtype() : f32;
  return cast(paired(sin(angles), cos(angles), options.is_interleaved), dtype);
}

// ---- transformers

namespace {

Tensor activated(Nonlinearity activation, const Tensor& x) {
  if (activation == Nonlinearity::relu) return relu(x);
  return activation == Nonlinearity::gelu ? gelu(x) : tanh(x);
}

/// x + part(x), normalised before or after.
template <class F>
Tensor added(const Tensor& x, const LayerNorm& norm, bool is_norm_first, const Dropout& dropout,
             const F& part) {
  if (is_norm_first) return x + dropout(part(norm(x)));
  return norm(x + dropout(part(x)));
}

/// What a transformer's layer ends with: two Linear layers for each position.
template <class Layer>
Tensor with_positions_fed(const Layer& layer, const Tensor& x) {
  return added(x, layer.out_norm, layer.is_norm_first, layer.dropout, [&](const Tensor& y) {
    return layer.out(layer.dropout(activated(layer.activation, layer.hidden(y))));
  });
}

LayerNorm norm_of(Integer width, const TransformerOptions& o) {
  return layer_norm(width, {.eps = o.eps, .has_bias = o.has_bias, .dtype = o.dtype});
}

MultiHeadAttention attention_of(Integer width, Integer heads, const TransformerOptions& o,
                                bool is_causal) {
  return multi_head_attention(
      width, heads,
      {.is_causal = is_causal, .dropout = o.dropout, .has_bias = o.has_bias, .dtype = o.dtype});
}

}  // namespace

TransformerEncoderLayer transformer_encoder_layer(Integer width, Integer heads, Integer hidden,
                                                  const TransformerOptions& o) {
  check_at_least("transformer_encoder_layer", "hidden", hidden, 1);
  const LinearOptions linear_options = {.has_bias = o.has_bias, .dtype = o.dtype};
  return {.attention = attention_of(width, heads, o, false),
          .attention_norm = norm_of(width, o),
          .hidden = linear(width, hidden, linear_options),
          .out = linear(hidden, width, linear_options),
          .out_norm = norm_of(width, o),
          .dropout = dropout(o.dropout),
          .activation = o.activation,
          .is_norm_first = o.is_norm_first};
}

Tensor TransformerEncoderLayer::operator()(const Tensor& x,
                                           const std::optional<Tensor>& mask) const {
  const Tensor y = added(x, attention_norm, is_norm_first, dropout,
                         [&](const Tensor& z) { return attention(z, {.mask = mask}); });
  return with_positions_fed(*this, y);
}

TransformerDecoderLayer transformer_decoder_layer(Integer width, Integer heads, Integer hidden,
                                                  const TransformerOptions& o) {
  check_at_least("transformer_decoder_layer", "hidden", hidden, 1);
  const LinearOptions linear_options = {.has_bias = o.has_bias, .dtype = o.dtype};
  return {.attention = attention_of(width, heads, o, true),
          .attention_norm = norm_of(width, o),
          .memory_attention = attention_of(width, heads, o, false),
          .memory_norm = norm_of(width, o),
          .hidden = linear(width, hidden, linear_options),
          .out = linear(hidden, width, linear_options),
          .out_norm = norm_of(width, o),
          .dropout = dropout(o.dropout),
          .activation = o.activation,
          .is_norm_first = o.is_norm_first};
}

Tensor TransformerDecoderLayer::operator()(const Tensor& x, const Tensor& memory,
                                           const DecoderInputs& inputs) const {
  const Tensor y = added(x, attention_norm, is_norm_first, dropout, [&](const Tensor& z) {
    return attention(z, {.mask = inputs.mask, .cache = inputs.cache});
  });
  const Tensor z = added(y, memory_norm, is_norm_first, dropout, [&](const Tensor& given) {
    return memory_attention(given, {.memory = memory, .mask = inputs.memory_mask});
  });
  return with_positions_fed(*this, z);
}

}  // namespace nitinol::nn
