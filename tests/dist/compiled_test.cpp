// Collectives in compiled functions: the same messages in the same order in every tier.
#include "tests/dist/ranks.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace nitinol::compiled_collectives_test {
namespace {

using namespace nitinol::test;
using dist::Reduce;

const CompileOptions by_calls = {.name = "f", .check = Check::never};

/// Collectives that must not change places, with computation around them that might.
std::vector<Tensor> mixture(const Tensor& x) {
  const Tensor e = exp(x * 0.01);
  const Tensor first = dist::all_reduce(x);
  const Tensor second = dist::all_gather(e * 2, 0);
  const Tensor third = dist::permute(second + 1);
  static_cast<void>(dist::broadcast(x * 3, 0));  // nobody reads it
  const Tensor fourth = dist::all_reduce(tanh(first) + e, Reduce::max);
  return {first + fourth, third, dist::all_reduce(sum(x), Reduce::mean)};
}

void check_same(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(same_bits(a[i], b[i]));
}

}  // namespace

TEST_CASE("compiled, they give what they give eagerly", "[dist]") {
  for (const Shape& shape : {Shape{6}, Shape{50, 400}}) {
    const auto f = compile(mixture, by_calls);
    const std::vector<Tensor> expected = mixture(own(shape));
    for (int call = 0; call < 5; ++call) check_same(f(own(shape)), expected);
    const Explanation explanation = f.explain();
    CHECK(explanation.plan_calls == 3);
    const std::string text = to_string(explanation);
    if (ranks() > 1) CHECK(text.find("rank_gather, in order") != std::string::npos);
    if (default_device() != Device{})
      CHECK(text.find("but for its steps in order, a call copies nothing") != std::string::npos);
  }
}

TEST_CASE("what is much goes by memory that ranks of one machine share", "[dist][host]") {
  const auto f = compile([](const Tensor& x) { return dist::all_reduce(x * 2) + 1; }, by_calls);
  for (const int64_t count : {5000, 1'000'003}) {
    const Tensor expected = dist::all_reduce(own({count}) * 2) + 1;
    for (int call = 0; call < 4; ++call) CHECK(same_bits(f(own({count})), expected));
  }
  const bool shares = std::getenv("NITINOL_TEST_MESSAGES") == nullptr && ranks() > 1 &&
                      dist::local_size() == ranks();
  const std::string text = to_string(f.explain());
  CHECK((text.find("rank_reduce, in order") != std::string::npos) == shares);
  CHECK((text.find("rank_exchange, in order") != std::string::npos) == (ranks() > 1 && !shares));
}

TEST_CASE("each rank in a tier of its own", "[dist]") {
  const Tensor x = own({40, 300});
  const std::vector<Tensor> expected = mixture(x);
  const auto f = compile(mixture, by_calls);
  // Segments: a look at data in between.
  const auto looking = compile(
      [](const Tensor& y) {
        std::vector<Tensor> results = mixture(y);
        if (results[2].item<float>() > 1e30F) results[0] = results[0] * 2;
        results[0] = results[0] + dist::all_reduce(y * 0);
        return results;
      },
      by_calls);
  for (int call = 0; call < 6; ++call) {
    switch ((rank() + call) % 3) {
      case 0:
        check_same(mixture(x), expected);
        static_cast<void>(dist::all_reduce(x * 0));
        break;
      case 1:
        check_same(f(x), expected);
        static_cast<void>(dist::all_reduce(x * 0));
        break;
      default:
        check_same(looking(x), expected);
    }
  }
}

TEST_CASE("gradients pass through compiled collectives", "[dist]") {
  const Variable w = parameter(of_rank(3, {20, 10}));
  const auto step = [&](const Tensor& x) {
    w.clear_grad();
    const Tensor loss = dist::all_reduce(mean(square(matmul(x, w.get()))), Reduce::mean);
    loss.backward();
    const Tensor g = dist::all_reduce(w.grad(), Reduce::mean);
    w -= g * 0.01;
    return loss;
  };
  const Tensor x = own({8, 20});
  const Tensor start = w.get();
  std::vector<Tensor> losses, weights;
  for (int k = 0; k < 5; ++k) losses.push_back(step(x)), weights.push_back(w.get());
  w = start;
  const auto f = compile(step, by_calls);
  for (std::size_t k = 0; k < 5; ++k) {
    CHECK(same_bits(f(x), losses[k]));
    CHECK(same_bits(w.get(), weights[k]));
  }
  CHECK(f.explain().plan_calls == 3);
  CHECK(same_bits(dist::broadcast(w.get(), 0), w.get()));  // equal on all ranks
}

TEST_CASE("a check that fails on one rank comes before its collectives", "[dist]") {
  const auto f = [](const Tensor& x, const Tensor& table, const Tensor& indices) {
    const Tensor total = dist::all_reduce(x);
    return total + take(table, indices, 0);
  };
  const auto g = compile(f, by_calls);
  const Tensor x = own({3}), table = own({5});
  const Tensor good = tensor({0, 4, 2});
  const Tensor expected = f(x, table, good);
  for (int call = 0; call < 4; ++call) CHECK(same_bits(g(x, table, good), expected));
  // Eager and compiled alike: the collective comes first as written, then the error.
  const bool is_bad = rank() == 0;
  const Tensor indices = is_bad ? tensor({0, 5, 2}) : good;
  if (is_bad)
    CHECK_THROWS_WITH(g(x, table, indices), Catch::Contains("index"));
  else
    CHECK(same_bits(g(x, table, indices), expected));
  CHECK(same_bits(g(x, table, good), expected));
}

// On GPUs, exchanges are done in the order in which they are asked for, which threads do not agree
// on.
TEST_CASE("threads with groups of their own", "[dist][host]") {
  const dist::Group a = dist::world().split(0), b = dist::world().split(0);
  const Tensor x = own({5000});
  const Tensor expected = dist::all_reduce(x);
  const auto many = [&](const dist::Group& group) {
    bool is_same = true;
    for (int i = 0; i < 50; ++i)
      is_same = is_same && same_bits(dist::all_reduce(x, Reduce::sum, group), expected);
    return is_same;
  };
  bool other = false;
  std::thread thread([&] { other = many(a); });
  CHECK(many(b));
  thread.join();
  CHECK(other);
}

TEST_CASE("a second init() does nothing", "[dist]") {
  dist::init({.timeout = 1});
  CHECK(dist::world().size() == ranks());
  CHECK(dist::local_size() >= 1);
  CHECK(dist::local_rank() < dist::local_size());
  CHECK_FALSE(dist::description().empty());
}

}  // namespace nitinol::compiled_collectives_test
