// A factor is a tensor whose axes have labels. Two are contracted as in "bik,bkj->bij": letters of
// both that stay are the batch, those of both that do not are summed by a matrix product, and those
// of one are its rows or columns. What order of pairs takes the fewest multiplications is found by
// trying all for few operands, else the cheapest pair is next (as in opt_einsum: Smith and Gray,
// JOSS 3 (2018), 753).
#include "eager/ops/einsum.h"

#include "core/autocast.h"
#include "core/error.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/cast.h"
#include "eager/ops/matmul.h"
#include "eager/ops/rearrange.h"
#include "eager/ops/reduce.h"
#include "eager/ops/view.h"
#include "eager/promotion.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

/// A letter, or below 0 an axis of the ellipsis, counted from its end.
using Label = int;
using Labels = std::vector<Label>;
using Sizes = std::map<Label, int64_t>;

[[noreturn]] void throw_equation(std::string_view equation, const std::string& what,
                                 const std::string& expected, const std::string& got,
                                 const std::string& fix = {}) {
  throw Error(ErrorKind::value, {.where = fmt::format("einsum(\"{}\")", equation),
                                 .what = what,
                                 .expected = expected,
                                 .got = got,
                                 .fix = fix});
}

bool has(const Labels& labels, Label label) {
  return std::ranges::find(labels, label) != labels.end();
}
int place_of(const Labels& labels, Label label) {
  return static_cast<int>(std::ranges::find(labels, label) - labels.begin());
}
std::string text_of(Label label) {
  return label < 0 ? "..." : std::string(1, static_cast<char>(label));
}

// ---- the equation

/// The labels of one operand or of the result, of which `ellipsis` axes have no letter.
Labels parsed(std::string_view equation, std::string_view text, int ellipsis) {
  Labels labels;
  bool has_ellipsis = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ' ') continue;
    if (c == '.') {
      if (has_ellipsis || text.substr(i, 3) != "...")
        throw_equation(equation, "dots", "one ... in a term", std::string(text));
      has_ellipsis = true;
      i += 2;
      for (int k = ellipsis; k > 0; --k) labels.push_back(-k);
      continue;
    }
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
      throw_equation(equation, fmt::format("`{}` is no label", c), "letters, commas, ... and ->",
                     std::string(text));
    }
    labels.push_back(c);
  }
  return labels;
}

int letters_in(std::string_view text) {
  return static_cast<int>(std::ranges::count_if(text, [](char c) { return c != ' ' && c != '.'; }));
}

struct Equation {
  std::vector<Labels> terms;
  Labels result;
};

std::vector<std::string_view> terms_in(std::string_view text) {
  std::vector<std::string_view> terms;
  for (;;) {
    const std::size_t comma = text.find(',');
    terms.push_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return terms;
    text.remove_prefix(comma + 1);
  }
}

/// The axes of a result that is not written: letters that occur once, after those of the ellipsis.
Labels implied_result(const std::vector<Labels>& terms) {
  std::map<Label, int> counts;
  for (const Labels& term : terms) {
    for (const Label label : term) ++counts[label];
  }
  Labels result;
  for (const auto& [label, count] : counts) {
    if (label < 0 || count == 1) result.push_back(label);
  }
  return result;
}

Equation parse(std::string_view equation, std::span<const Tensor> operands) {
  const std::size_t arrow = equation.find("->");
  const std::vector<std::string_view> terms = terms_in(equation.substr(0, arrow));
  if (terms.size() != operands.size()) {
    throw_equation(equation, "terms before the arrow", fmt::format("{}", operands.size()),
                   fmt::format("{}", terms.size()), "There is a term for each operand.");
  }
  Equation made;
  int widest = 0;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    const bool has_ellipsis = terms[k].find('.') != std::string_view::npos;
    const int rest = operands[k].rank() - letters_in(terms[k]);
    const Labels labels = parsed(equation, terms[k], has_ellipsis ? std::max(rest, 0) : 0);
    if (static_cast<int>(labels.size()) != operands[k].rank()) {
      throw Error(
          ErrorKind::shape,
          {.where = fmt::format("einsum(\"{}\")", equation),
           .what = fmt::format("operand {}, {}, of term `{}`", k, describe(operands[k]), terms[k]),
           .expected = fmt::format("{} axes", letters_in(terms[k])),
           .got = fmt::format("{}", operands[k].rank()),
           .fix = "Give a letter to each axis; ... stands for axes without."});
    }
    if (has_ellipsis) widest = std::max(widest, rest);
    made.terms.push_back(labels);
  }
  if (arrow == std::string_view::npos) {
    made.result = implied_result(made.terms);
    return made;
  }
  made.result = parsed(equation, equation.substr(arrow + 2), widest);
  for (std::size_t i = 0; i < made.result.size(); ++i) {
    const Label label = made.result[i];
    if (std::count(made.result.begin(), made.result.end(), label) > 1)
      throw_equation(equation, "the result", "each label once", text_of(label) + " twice");
    if (std::ranges::none_of(made.terms, [&](const Labels& term) { return has(term, label); }))
      throw_equation(equation, "the result", "labels of the operands", text_of(label));
  }
  return made;
}

// ---- factors

struct Factor {
  Tensor tensor;
  Labels labels;
};

Factor permuted(const Factor& factor, const Labels& order) {
  if (factor.labels == order) return factor;
  Dims axes;
  for (const Label label : order) axes.push_back(place_of(factor.labels, label));
  return {permute(factor.tensor, axes), order};
}

/// The diagonal of labels that occur twice.
Factor with_diagonals(Factor factor) {
  for (std::size_t i = 0; i < factor.labels.size(); ++i) {
    const Label label = factor.labels[i];
    const auto again = std::find(factor.labels.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                 factor.labels.end(), label);
    if (again == factor.labels.end()) continue;
    const int first = static_cast<int>(i), second = static_cast<int>(again - factor.labels.begin());
    factor.tensor = diagonal(moveaxis(factor.tensor, {first, second}, {-2, -1}));
    factor.labels.erase(again);
    factor.labels.erase(factor.labels.begin() + first);
    factor.labels.push_back(label);
    return with_diagonals(std::move(factor));
  }
  return factor;
}

/// Summed over what is not in `kept`.
Factor summed(const Factor& factor, const Labels& kept) {
  Dims axes;
  Factor made = {factor.tensor, {}};
  for (std::size_t i = 0; i < factor.labels.size(); ++i) {
    if (has(kept, factor.labels[i]))
      made.labels.push_back(factor.labels[i]);
    else
      axes.push_back(static_cast<int64_t>(i));
  }
  if (!axes.empty()) made.tensor = cast(sum(factor.tensor, axes), factor.tensor.dtype());
  return made;
}

int64_t size_of_all(const Labels& labels, const Sizes& sizes) {
  int64_t count = 1;
  for (const Label label : labels) count *= sizes.at(label);
  return count;
}

/// The labels of a and b and those of each.
struct Shared {
  Labels batch, inner, left, right;
};
Shared shared_by(const Labels& a, const Labels& b, const Labels& kept) {
  Shared made;
  for (const Label label : a) {
    if (!has(b, label))
      made.left.push_back(label);
    else
      (has(kept, label) ? made.batch : made.inner).push_back(label);
  }
  for (const Label label : b) {
    if (!has(a, label)) made.right.push_back(label);
  }
  return made;
}

Labels joined(std::initializer_list<const Labels*> parts) {
  Labels all;
  for (const Labels* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

/// A factor as a tensor of these axes, of size 1 where it has none.
Tensor spread(const Factor& factor, const Labels& axes) {
  Labels own;
  for (const Label label : axes) {
    if (has(factor.labels, label)) own.push_back(label);
  }
  const Factor ordered = permuted(factor, own);
  Shape shape;
  int next = 0;
  for (const Label label : axes)
    shape.push_back(has(own, label) ? ordered.tensor.shape()[next++] : 1);
  return reshape(ordered.tensor, shape);
}

/// The axes [batch, rows, columns] of a matrix product, each of `rows` and `columns` as one.
Tensor as_matrices(const Factor& factor, const Labels& batch, const Labels& rows,
                   const Labels& columns, const Sizes& sizes) {
  const Tensor ordered = permuted(factor, joined({&batch, &rows, &columns})).tensor;
  Shape shape;
  for (const Label label : batch) shape.push_back(sizes.at(label));
  shape.push_back(size_of_all(rows, sizes));
  shape.push_back(size_of_all(columns, sizes));
  return reshape(ordered, shape);
}

Factor product(const Factor& a, const Factor& b, const Labels& kept, const Sizes& sizes) {
  const Shared shared = shared_by(a.labels, b.labels, kept);
  const Labels all = joined({&shared.batch, &shared.left, &shared.right});
  if (shared.inner.empty() || (shared.left.empty() && shared.right.empty())) {
    const Labels every = joined({&all, &shared.inner});
    return summed({spread(a, every) * spread(b, every), every}, all);
  }
  // The operand whose own axes come first in the result is the left one.
  const auto first_in_result = [&](const Labels& own) {
    std::size_t first = kept.size();
    for (const Label label : own)
      first = std::min(first, static_cast<std::size_t>(place_of(kept, label)));
    return first;
  };
  const bool is_turned = first_in_result(shared.right) < first_in_result(shared.left);
  if (is_turned) return product(b, a, kept, sizes);
  const Tensor rows = as_matrices(a, shared.batch, shared.left, shared.inner, sizes);
  const Tensor columns = as_matrices(b, shared.batch, shared.inner, shared.right, sizes);
  Shape shape;
  for (const Label label : all) shape.push_back(sizes.at(label));
  return {reshape(matmul(rows, columns), shape), all};
}

// ---- the order of pairs

/// What is needed of the product of two factors: labels of the result and of the others.
Labels kept_after(const std::vector<Labels>& factors, std::size_t a, std::size_t b,
                  const Labels& result) {
  Labels kept = result;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (i != a && i != b) kept.insert(kept.end(), factors[i].begin(), factors[i].end());
  }
  return kept;
}

/// The labels without the second of each pair, and with their product behind.
std::vector<Labels> after(const std::vector<Labels>& factors, std::size_t a, std::size_t b,
                          const Labels& result) {
  const Labels kept = kept_after(factors, a, b, result);
  Labels made;
  for (const Labels* part : {&factors[a], &factors[b]}) {
    for (const Label label : *part) {
      if (has(kept, label) && !has(made, label)) made.push_back(label);
    }
  }
  std::vector<Labels> left;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    if (i != a && i != b) left.push_back(factors[i]);
  }
  left.push_back(made);
  return left;
}

/// The multiplications of a pair.
double work_of(const Labels& a, const Labels& b, const Sizes& sizes) {
  double work = 1;
  for (const Label label : a) work *= static_cast<double>(sizes.at(label));
  for (const Label label : b) {
    if (!has(a, label)) work *= static_cast<double>(sizes.at(label));
  }
  return work;
}

struct Choice {
  double work = std::numeric_limits<double>::infinity();
  std::size_t a = 0, b = 1;
};

/// The pair to begin with: of the least work in all, or by itself if there are many factors.
Choice best_pair(const std::vector<Labels>& factors, const Labels& result, const Sizes& sizes) {
  constexpr std::size_t few = 5;
  Choice best;
  for (std::size_t a = 0; a < factors.size(); ++a) {
    for (std::size_t b = a + 1; b < factors.size(); ++b) {
      double work = work_of(factors[a], factors[b], sizes);
      if (factors.size() > 2 && factors.size() <= few)
        work += best_pair(after(factors, a, b, result), result, sizes).work;
      if (work < best.work) best = {work, a, b};
    }
  }
  return best;
}

Sizes sizes_of(std::string_view equation, const std::vector<Factor>& factors) {
  Sizes sizes;
  for (const Factor& factor : factors) {
    for (std::size_t i = 0; i < factor.labels.size(); ++i) {
      const int64_t size = factor.tensor.shape()[static_cast<int>(i)];
      const auto [found, is_new] = sizes.emplace(factor.labels[i], size);
      if (is_new || found->second == size || size == 1) continue;
      if (found->second != 1) {
        throw Error(ErrorKind::shape,
                    {.where = fmt::format("einsum(\"{}\")", equation),
                     .what = fmt::format("sizes of `{}`", text_of(factor.labels[i])),
                     .expected = fmt::format("{}, or 1", found->second),
                     .got = fmt::format("{}", size),
                     .fix = "Axes of one letter have one size."});
      }
      found->second = size;
    }
  }
  return sizes;
}

/// A label that sums in one operand and has size 1 there is of full size.
Factor of_full_size(const Factor& factor, const Sizes& sizes) {
  Shape shape;
  for (const Label label : factor.labels) shape.push_back(sizes.at(label));
  if (shape == factor.tensor.shape()) return factor;
  return {expand(factor.tensor, shape), factor.labels};
}

}  // namespace

Tensor einsum(std::string_view equation, std::span<const Tensor> operands) {
  if (operands.empty())
    throw_equation(equation, "operands", "at least one", "none", "Pass a tensor for each term.");
  const Equation parts = parse(equation, operands);
  DType dtype = operands[0].dtype();
  for (const Tensor& operand : operands) dtype = promote("einsum", dtype, operand.dtype());
  if (operands.size() > 1) dtype = product_dtype("einsum", dtype, dtype);
  const AutocastScope as_usual(f32);  // sums on the way, too, have that dtype
  std::vector<Factor> factors;
  for (std::size_t k = 0; k < operands.size(); ++k)
    factors.push_back(with_diagonals({cast(operands[k], dtype), parts.terms[k]}));
  const Sizes sizes = sizes_of(equation, factors);
  std::vector<Labels> labels;
  for (Factor& factor : factors) {
    factor = of_full_size(factor, sizes);
    labels.push_back(factor.labels);
  }
  for (std::size_t k = 0; k < factors.size(); ++k) {  // what only one operand has is summed at once
    factors[k] = summed(factors[k], kept_after(labels, k, k, parts.result));
    labels[k] = factors[k].labels;
  }
  while (factors.size() > 1) {
    const Choice next = best_pair(labels, parts.result, sizes);
    const Labels kept = kept_after(labels, next.a, next.b, parts.result);
    Factor made = product(factors[next.a], factors[next.b], kept, sizes);
    for (const std::size_t k : {next.b, next.a}) {
      factors.erase(factors.begin() + static_cast<std::ptrdiff_t>(k));
      labels.erase(labels.begin() + static_cast<std::ptrdiff_t>(k));
    }
    labels.push_back(made.labels);
    factors.push_back(std::move(made));
  }
  return permuted(factors[0], parts.result).tensor;
}

Tensor einsum(std::string_view equation, std::initializer_list<Tensor> operands) {
  return einsum(equation, std::span(operands.begin(), operands.size()));
}

}  // namespace nitinol
