#include "tests/fuzz/programs/chance.h"

#include <algorithm>
#include <cmath>

namespace nitinol::fuzz {

DType Chance::random_dtype() {
  static const std::vector<DType> dtypes = {f32, f32, f32, f32, f64, f64, f16, bf16,   i32,
                                            i64, u8,  u16, u32, u64, i8,  i16, boolean};
  return one_of(dtypes);
}

int64_t Chance::random_size() {
  static const std::vector<int64_t> sizes = {1, 1, 2, 3, 4, 5, 7, 8, 16, 17, 33, 64, 65, 130};
  return below(60) == 0 ? 0 : one_of(sizes);
}

Shape Chance::random_shape() {
  if (is_large_) {
    static const std::vector<Shape> shapes = {{70001},      {300, 257}, {5, 9000}, {9000, 5},
                                              {3, 64, 300}, {1025},     {4099},    {40, 31}};
    return one_of(shapes);
  }
  static const std::vector<int> ranks = {0, 1, 1, 2, 2, 2, 3, 3, 4, 5};
  Shape shape;
  const int rank = below(50) == 0 ? max_rank : one_of(ranks);
  for (int i = 0; i < rank; ++i) {
    const int64_t size = random_size();
    shape.push_back(element_count(shape) * size > 20000 ? 1 : size);
  }
  return shape;
}

Shape Chance::tiny_shape(int rank) {
  Shape shape;
  for (int i = 0; i < rank; ++i) shape.push_back(below(2) == 0 ? 2 : 1 + below(3));
  return shape;
}

Shape Chance::related_shape(const Shape& shape) {
  Shape related = shape;
  switch (below(7)) {
    case 0:
    case 1:
      return shape;
    case 5:  // small windows on it, if it is a batch of images
      if (related.size() == 4) return {1 + below(5), shape.back(), 1 + below(3), 1 + below(2)};
      return shape;
    case 2:
      for (int64_t& size : related) size = below(2) == 0 ? 1 : size;
      return related;
    case 3:
      while (!related.empty() && below(2) == 0) related.erase(0);
      return related;
    case 4:
      if (related.size() >= 2) std::swap(related[related.size() - 1], related[related.size() - 2]);
      return related;
    default:
      if (related.size() >= 2) {
        related[related.size() - 2] = related.back();
        related[related.size() - 1] = is_large_ ? 3 : std::max<int64_t>(random_size(), 1);
      }
      return related;
  }
}

Strides Chance::random_strides(const Shape& shape) {
  Strides strides = strides_of(shape);
  switch (below(7)) {
    case 0: {  // as if permuted
      Dims order = permutation(shape.size());
      int64_t step = 1;
      for (const int64_t axis : order) {
        strides[static_cast<int>(axis)] = step;
        step *= std::max<int64_t>(shape[static_cast<int>(axis)], 1);
      }
      break;
    }
    case 1:  // every second, or every third
      for (int64_t& stride : strides) stride *= 2 + below(2);
      break;
    case 2:  // repeated or reversed along an axis
      if (shape.size() > 0) {
        int64_t& stride = strides[below(shape.size())];
        stride = below(2) == 0 ? 0 : -stride;
      }
      break;
    default:
      break;
  }
  return strides;
}

Dims Chance::permutation(int rank) {
  Dims order;
  for (int i = 0; i < rank; ++i) order.push_back(i);
  std::shuffle(order.begin(), order.end(), random_);
  return order;
}

Dims Chance::random_dims(const Shape& shape) {
  const int rank = shape.size();
  Dims dims;
  switch (below(8)) {
    case 0:
      return permutation(rank);
    case 1:
    case 2: {  // some axes
      const Dims order = permutation(rank);
      for (int i = 0; i < rank && (i == 0 || below(2) == 0); ++i) {
        dims.push_back(below(3) == 0 ? order[i] - rank : order[i]);
      }
      return dims;
    }
    case 3: {  // a shape of as many elements
      int64_t left = element_count(shape);
      while (dims.size() < 4 && left > 1) {
        int64_t factor = 1 + below(static_cast<int>(std::min<int64_t>(left, 64)));
        while (left % factor != 0) --factor;
        dims.push_back(factor);
        left /= factor;
      }
      if (dims.size() < max_rank) dims.push_back(left);
      std::shuffle(dims.begin(), dims.end(), random_);
      return dims;
    }
    case 4: {  // sizes that are at most these
      for (const int64_t size : shape)
        dims.push_back(size == 0 ? 0 : 1 + below(static_cast<int>(size)));
      return dims;
    }
    case 5: {  // something to broadcast to
      dims = shape;
      for (int64_t& size : dims) size = size == 1 ? 1 + below(5) : size;
      if (rank < max_rank && below(2) == 0) dims.insert(0, 1 + below(3));
      return dims;
    }
    case 6:  // small numbers for each axis
      for (int i = 0; i < rank; ++i) dims.push_back(below(3));
      return dims;
    default:  // steps
      for (int i = 0; i < rank; ++i) dims.push_back(below(3) == 0 ? 2 : 1);
      return dims;
  }
}

std::optional<Attr> Chance::attr_of_any(std::string_view name) {
  if (name == "keepdims" || name == "weak" || name.starts_with("is_")) return below(2) == 0;
  if (name == "ranks") return int64_t{1};  // a world of one
  if (name == "group" || name == "partner" || name == "call") return int64_t{0};
  if (name == "ddof" || name == "checker" || name == "count") return static_cast<int64_t>(below(3));
  if (name == "arrival") return static_cast<int64_t>(below(5));
  if (name == "dtype") return random_dtype();
  if (name == "axis") return static_cast<int64_t>(below(6) - 2);
  if (name == "smoothing") return below(2) == 0 ? 0.0 : 0.1;
  if (name == "nan" || name == "posinf" || name == "neginf") return below(5) - 2.0;
  if (name == "delta" || name == "bend" || name == "slope") return below(4) * 0.5;
  if (name == "p") return below(4) == 0 ? HUGE_VAL : static_cast<double>(below(4));
  if (name == "number") return static_cast<int64_t>(below(100));
  if (name == "rows") return static_cast<int64_t>(1 + below(5));
  if (name == "groups") return static_cast<int64_t>(1 + below(2));
  if (name == "stride" || name == "dilation" || name == "kernel") {
    return Dims{1 + below(3), 1 + below(2)};
  }
  if (name == "padding") return Dims{below(2), below(2)};
  if (name == "image") return Dims{1 + below(9), 1 + below(9)};
  return std::nullopt;
}

}  // namespace nitinol::fuzz
