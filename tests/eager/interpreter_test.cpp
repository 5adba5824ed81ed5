#include "eager/interpreter.h"

#include "core/backend.h"
#include "core/variable.h"
#include "eager/ops/ops.h"

#include <catch2/catch.hpp>

#include <thread>

using namespace nitinol;

TEST_CASE("x = x + y in a loop asks the system for nothing after warm-up", "[eager]") {
  for (const int64_t size : {4, 1 << 20}) {
    Tensor x = zeros({size});
    const Tensor y = ones({size});
    for (int i = 0; i < 4; ++i) x = x + y;
    const uint64_t before = backend(Device{}).memory().system_allocations;
    for (int i = 0; i < 100; ++i) x = x + y;
    CHECK(backend(Device{}).memory().system_allocations == before);
    CHECK(x.at({-1}).get().item<float>() == 104);
  }
}

TEST_CASE("assignment rebinds a name and changes no other tensor", "[eager]") {
  Tensor x = tensor({1, 2});
  const Tensor y = x;
  x += 1;
  CHECK(x.to_vector<int>() == std::vector<int>{2, 3});
  CHECK(y.to_vector<int>() == std::vector<int>{1, 2});
}

TEST_CASE("views share memory, copies do not", "[eager]") {
  const Tensor x = reshape(arange(6), {2, 3});
  const auto storage = [](const Tensor& t) { return t.internals().storage.get(); };
  CHECK(storage(transpose(x)) == storage(x));
  CHECK(storage(x[1]) == storage(x));
  CHECK(storage(flip(x)) == storage(x));
  CHECK(storage(reshape(x, {6})) == storage(x));
  CHECK(storage(reshape(transpose(x), {6})) != storage(x));
  CHECK(storage(copy(x)) != storage(x));
  CHECK(reshape(transpose(x), {6}).to_vector<int64_t>() == std::vector<int64_t>{0, 3, 1, 4, 2, 5});
}

TEST_CASE("nothing is computed for results without elements", "[eager]") {
  CHECK((zeros({0, 3}) + zeros({3})).shape() == Shape{0, 3});
  CHECK(exp(zeros({2, 0})).shape() == Shape{2, 0});
  CHECK(sum(zeros({0, 3}), 1).shape() == Shape{0});
  CHECK(sum(zeros({0, 3}), 0).to_vector<float>() == std::vector<float>{0, 0, 0});
  CHECK(prod(zeros({0, 2}, i64), 0).to_vector<int64_t>() == std::vector<int64_t>{1, 1});
  CHECK(all(zeros({0})).item<bool>());
  CHECK_FALSE(any(zeros({0})).item<bool>());
  CHECK(matmul(zeros({2, 0}), zeros({0, 2})).to_vector<float>() == std::vector<float>(4));
  CHECK(concat({zeros({0}), ones({1})}).shape() == Shape{1});
  CHECK(softmax(zeros({0, 3})).shape() == Shape{0, 3});
  CHECK(take(ones({2, 0}), tensor({0, 1, 1})).shape() == Shape{3, 0});
}

TEST_CASE("size-1 axes are dropped from loops, not from results", "[eager]") {
  const Tensor x = ones({1, 3, 1, 2, 1});
  CHECK(sum(x, {0, 2}).shape() == Shape{3, 2, 1});
  CHECK(sum(x, {0}, keepdims).to_vector<float>() == std::vector<float>(6, 1));
  CHECK(sum(tensor({{-0.0f}}), 0).to_vector<float>() == std::vector<float>{0});
}

TEST_CASE("Variables hold what was set last", "[eager]") {
  const Variable v(zeros({2}));
  const Variable shared = v;
  const Variable other = v.clone();
  v = ones({2});
  CHECK(shared.get().to_vector<float>() == std::vector<float>{1, 1});
  CHECK(other.get().to_vector<float>() == std::vector<float>{0, 0});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int k = 0; k < 200; ++k) v = v.get() * 1;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(v.get().to_vector<float>() == std::vector<float>{1, 1});
}
