#include "nitinol.h"
#include "tests/ints.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <limits>
#include <map>
#include <string>

using namespace nitinol;
using nitinol::test::ints;
using namespace nitinol::test;
using Ints = std::vector<int64_t>;

namespace {

/// einsum as its definition reads: a loop over all letters.
Ints summed(const std::string& equation, const std::vector<Tensor>& operands) {
  const std::size_t arrow = equation.find("->");
  std::vector<std::string> terms;
  std::string term;
  for (const char c : equation.substr(0, arrow) + ",") {
    if (c == ',')
      terms.push_back(std::exchange(term, ""));
    else
      term += c;
  }
  const std::string result = equation.substr(arrow + 2);
  std::map<char, int64_t> sizes, at;
  for (std::size_t k = 0; k < terms.size(); ++k) {
    for (std::size_t i = 0; i < terms[k].size(); ++i)
      sizes[terms[k][i]] = std::max(sizes[terms[k][i]], operands[k].shape()[static_cast<int>(i)]);
  }
  const auto place = [&](const std::string& labels, const Shape* shape) {
    int64_t flat = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const int64_t size = shape != nullptr ? (*shape)[static_cast<int>(i)] : sizes[labels[i]];
      flat = flat * size + (size == 1 ? 0 : at[labels[i]]);
    }
    return static_cast<std::size_t>(flat);
  };
  std::vector<Ints> values;
  for (const Tensor& operand : operands) values.push_back(ints(operand));
  int64_t count = 1, all = 1;
  for (const char c : result) count *= sizes[c];
  for (const auto& [label, size] : sizes) all *= size;
  Ints out(static_cast<std::size_t>(count));
  for (int64_t n = 0; n < all; ++n) {
    int64_t rest = n, value = 1;
    for (const auto& [label, size] : sizes) {
      at[label] = rest % size;
      rest /= size;
    }
    for (std::size_t k = 0; k < terms.size(); ++k)
      value *= values[k][place(terms[k], &operands[k].shape())];
    out[place(result, nullptr)] += value;
  }
  return out;
}

}  // namespace

TEST_CASE("einsum is the sum that its letters say", "[eager][einsum]") {
  const std::map<char, int64_t> sizes = {{'a', 2}, {'b', 3}, {'c', 4}, {'d', 1},
                                         {'i', 3}, {'j', 5}, {'k', 2}, {'l', 4}};
  for (const std::string equation : {"ij->ji",          "ij->",
                                     "ij->j",           "ii->",
                                     "ii->i",           "iji->j",
                                     "iii->i",          "i,i->",
                                     "i,j->ij",         "i,j->ji",
                                     "ij,jk->ik",       "ij,jk->ki",
                                     "ij,kj->ik",       "ji,jk->ik",
                                     "bij,bjk->bik",    "bij,jk->bik",
                                     "abij,abkj->abik", "ij,ij->",
                                     "ij,ij->i",        "bi,bj->bij",
                                     "ijk,jl,kb->ilb",  "ij,jk,kl,lb->ib",
                                     "a,b,c,i,j,k->",   "ab,bc,ca->",
                                     "ij,j->i",         "j,ij->i",
                                     "i,ij,j->",        "ii,ij->j",
                                     "aij,akj->ika",    "ijk,k->ij",
                                     "d,ij->ijd",       "ab,ab,ab->b",
                                     "i,i,i,i,i,i->i"}) {
    std::vector<Tensor> operands;
    std::string term;
    for (const char c : equation.substr(0, equation.find("->")) + ",") {
      if (c != ',') {
        term += c;
        continue;
      }
      Shape shape;
      for (const char label : term) shape.push_back(sizes.at(label));
      operands.push_back(random_values(i64, shape, 40 + operands.size()));
      term.clear();
    }
    CAPTURE(equation);
    const Tensor made = einsum(equation, operands);
    CHECK(ints(made) == summed(equation, operands));
    // Views of other strides.
    for (Tensor& operand : operands) {
      if (const std::vector<Tensor> variants = strided_variants(operand); !variants.empty())
        operand = variants[0];
    }
    CHECK(ints(einsum(equation, operands)) == ints(made));
  }
}

TEST_CASE("einsum broadcasts axes without letters and of size 1", "[eager][einsum]") {
  const Tensor a = random_values(i64, {2, 1, 3, 4}, 1), b = random_values(i64, {5, 4, 2}, 2);
  CHECK(ints(einsum("...ij,...jk->...ik", {a, b})) == ints(matmul(a, b)));
  CHECK(einsum("...ij,...jk", {a, b}).shape() == Shape{2, 5, 3, 2});
  CHECK(ints(einsum("...i->...", {a})) == ints(sum(a, -1)));
  CHECK(ints(einsum("i...->...i", {b})) == ints(permute(b, {1, 2, 0})));
  CHECK(ints(einsum(" i j , jk ", {b[0], transpose(b[1])})) == ints(matmul(b[0], transpose(b[1]))));
  const Tensor row = random_values(i64, {1, 4}, 3), full = random_values(i64, {3, 4}, 4);
  CHECK(ints(einsum("ij,ij->", {row, full})) == ints(sum(row * full)));
  CHECK(ints(einsum("ij->j", {row})) == ints(row[0]));
  CHECK(ints(einsum("ij,ij->i", {row, full})) == ints(sum(row * full, 1)));
  CHECK(ints(einsum("ba", {full})) == ints(transpose(full)));
  CHECK(einsum("ij,jk", {zeros({2, 0}), zeros({0, 3})}).shape() == Shape{2, 3});
  CHECK(einsum("ij,jk->ik", {zeros({2, 2}, i32), zeros({2, 3}, f32)}).dtype() == f32);
}

TEST_CASE("einsum is compiled and differentiated", "[jit][einsum]") {
  const auto attend = [](const Tensor& q, const Tensor& k) {
    return sum(square(einsum("bhqd,bhkd->bhqk", {q, k})));
  };
  const Tensor q = random_values(f32, {2, 2, 3, 4}, 5), k = random_values(f32, {2, 2, 5, 4}, 6);
  const auto gradient = [&](const Tensor& a, const Tensor& b) {
    return grad([&](const Tensor& t) { return attend(t, b); })(a);
  };
  const auto compiled = compile(gradient);
  for (int i = 0; i < 3; ++i) CHECK(same_library_bits(compiled(q, k), gradient(q, k)));
  const Tensor want = matmul(matmul(q, transpose(k)) * 2.0, k);
  CHECK(max(abs(gradient(q, k) - want)).item<float>() < 1e-4F);
}

TEST_CASE("einsum says what is wrong with an equation", "[eager][einsum]") {
  const Tensor x = zeros({2, 3});
  CHECK_THROWS_WITH(einsum("ij,jk->ik", {x}), Catch::Contains("terms before the arrow"));
  CHECK_THROWS_WITH(einsum("ijk->i", {x}), Catch::Contains("operand 0, float32[2, 3], of term"));
  CHECK_THROWS_WITH(einsum("ij->ik", {x}), Catch::Contains("labels of the operands"));
  CHECK_THROWS_WITH(einsum("ij->ii", {x}), Catch::Contains("i twice"));
  CHECK_THROWS_WITH(einsum("i1->i", {x}), Catch::Contains("`1` is no label"));
  CHECK_THROWS_WITH(einsum("i..->i", {x}), Catch::Contains("dots"));
  CHECK_THROWS_WITH(einsum("ij,ij->", {x, zeros({3, 3})}), Catch::Contains("sizes of `i`"));
  CHECK_THROWS_WITH(einsum("", std::span<const Tensor>()), Catch::Contains("at least one"));
  CHECK_THROWS_WITH(einsum("i->->i", {zeros({2})}), Catch::Contains("no label"));
}

TEST_CASE("products of vectors and matrices", "[eager][products]") {
  const Tensor a = random_values(i64, {2, 3, 4}, 1), b = random_values(i64, {3, 4, 5}, 2);
  CHECK(ints(tensordot(a, b)) == summed("ijk,jkl->il", {a, b}));
  CHECK(ints(tensordot(a, b, {2, 1}, {1, 0})) == summed("ijk,jkl->il", {a, b}));
  CHECK(tensordot(a, b, 0).shape() == Shape{2, 3, 4, 3, 4, 5});
  CHECK(tensordot(tensor(2), tensor(3), 0).item<int32_t>() == 6);
  CHECK(ints(vecdot(a, a)) == ints(sum(a * a, -1)));
  CHECK(ints(vecdot(a, a[0], -2)) == ints(sum(a * a[0], -2)));
  CHECK(ints(outer(tensor({1, 2}), tensor({3, 4}))) == Ints{3, 4, 6, 8});
  CHECK(ints(inner(a, a[0])) == summed("ijk,lk->ijl", {a, a[0]}));
  CHECK(ints(kron(tensor({1, 2}), tensor({{1, 10}}))) == Ints{1, 10, 2, 20});
  CHECK(ints(cross(tensor({1, 2, 3}), tensor({4, 5, 6}))) == Ints{-3, 6, -3});
  CHECK(ints(cross(tensor({{1}, {2}, {3}}), tensor({{4}, {5}, {6}}), 0)) == Ints{-3, 6, -3});
  CHECK_THROWS_WITH(cross(tensor({1, 2}), tensor({1, 2})), Catch::Contains("3 elements"));
  CHECK_THROWS_WITH(tensordot(a, b, 3), Catch::Contains("equal sizes"));
  CHECK_THROWS_WITH(tensordot(a, b, 4), Catch::Contains("0 to 3"));
  CHECK_THROWS_WITH(vecdot(a, b), Catch::Contains("equal sizes of axis -1"));
}

TEST_CASE("norms and powers", "[eager][products]") {
  const Tensor x = tensor({{3.0, -4.0}, {0.0, 1.0}});
  CHECK(vector_norm(x[0]).item<double>() == 5);
  CHECK(vector_norm(x, 1, 1).to_vector<double>() == std::vector<double>{7, 1});
  CHECK(vector_norm(x, {}, std::numeric_limits<double>::infinity()).item<double>() == 4);
  CHECK(vector_norm(x, {}, -std::numeric_limits<double>::infinity()).item<double>() == 0);
  CHECK(vector_norm(x, {}, 0).item<double>() == 3);
  CHECK(vector_norm(x, 0, 3, keepdims).shape() == Shape{1, 2});
  CHECK(grad([](const Tensor& t) { return vector_norm(t); })(zeros({2}, f64)).to_vector<double>() ==
        std::vector<double>{0, 0});
  CHECK(matrix_norm(x, MatrixNorm::one).item<double>() == 5);
  CHECK(matrix_norm(x, MatrixNorm::infinity).item<double>() == 7);
  CHECK(matrix_norm(x, MatrixNorm::minus_one).item<double>() == 3);
  CHECK(matrix_norm(x, MatrixNorm::minus_infinity).item<double>() == 1);
  CHECK(matrix_norm(tensor({{3, 4}})).item<float>() == 5);
  CHECK(ints(matrix_power(tensor({{1, 1}, {0, 1}}), 5)) == Ints{1, 5, 0, 1});
  CHECK(ints(matrix_power(tensor({{1, 1}, {0, 1}}), 0)) == Ints{1, 0, 0, 1});
  CHECK_THROWS_WITH(matrix_power(x, -1), Catch::Contains("inverse"));
  CHECK_THROWS_WITH(matrix_power(x[0], 1), Catch::Contains("square matrices"));
}
