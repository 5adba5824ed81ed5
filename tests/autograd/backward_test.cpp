// Tensor::backward(): gradients gather in Variables; the tape and its end.
#include "nitinol.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

using namespace nitinol;

TEST_CASE("backward() gathers gradients in parameters", "[autograd]") {
  const Variable w = parameter(tensor({1.0F, 2.0F, 3.0F}));
  const Tensor loss = sum(square(w.get()) * 2.0);
  loss.backward();
  CHECK(same_bits(w.grad(), tensor({4.0F, 8.0F, 12.0F})));
  sum(w.get()).backward();
  CHECK(same_bits(w.grad(), tensor({5.0F, 9.0F, 13.0F})));
  w.clear_grad();
  CHECK(!w.grad().is_defined());
}

TEST_CASE("a Variable read many times has one gradient", "[autograd]") {
  const Variable w = parameter(tensor({2.0F}));
  Tensor product = ones({1});
  for (int i = 0; i < 5; ++i) product = product * w;
  sum(product).backward();
  CHECK(w.grad().item<float>() == 80.0F);
}

TEST_CASE("the tape follows loops and branches", "[autograd]") {
  const Variable w = parameter(tensor({3.0F}));
  Tensor x = w;
  int steps = 0;
  while (x.item<float>() < 100.0F) {
    x = steps % 2 == 0 ? x * w : x + w;
    ++steps;
  }
  sum(x).backward();
  CHECK(w.grad().item<float>() > 0.0F);
}

TEST_CASE("gradients flow through an op of many inputs", "[autograd]") {
  std::vector<Variable> parts;
  std::vector<Tensor> values;
  for (int i = 0; i < 70; ++i) {
    parts.push_back(parameter(full({2}, static_cast<float>(i))));
    values.push_back(parts.back().get());
  }
  const Tensor weight = arange(140, f32);
  sum(concat(values, 0) * weight).backward();
  CHECK(same_bits(parts[0].grad(), tensor({0.0F, 1.0F})));
  CHECK(same_bits(parts[69].grad(), tensor({138.0F, 139.0F})));
}

TEST_CASE("a chain of 250,000 ops neither overflows the stack nor is slow", "[autograd]") {
  const Variable w = parameter(tensor({1.0F}));
  Tensor x = w;
  for (int i = 0; i < 250'000; ++i) x = x + 1.0;
  sum(x).backward();
  CHECK(w.grad().item<float>() == 1.0F);
  Tensor y = w;  // dropped without having been swept
  for (int i = 0; i < 250'000; ++i) y = y * y;
}

TEST_CASE("misuse of backward() is an Error that says what to do", "[autograd][errors]") {
  const Variable w = parameter(tensor({1.0F, 2.0F}));
  const auto message = [](auto f) {
    try {
      f();
    } catch (const Error& error) {
      return error.message();
    }
    return std::string("no error");
  };
  const Tensor loss = sum(square(w.get()));
  loss.backward();
  CHECK(message([&] { loss.backward(); }).find("freed by an earlier backward()") !=
        std::string::npos);
  CHECK(message([&] { (w * 2.0).backward(); }).find("one element") != std::string::npos);
  CHECK(message([&] { sum(tensor({1, 2})).backward(); }).find("floating") != std::string::npos);
  CHECK(message([&] { (w * 2.0).backward(ones({3})); }).find("seed") != std::string::npos);
  CHECK(message([&] { static_cast<void>(parameter(arange(3))); }).find("floating") !=
        std::string::npos);
  CHECK(message([&] { static_cast<void>(Variable(ones({2})).grad()); }).find("parameter(") !=
        std::string::npos);
}

TEST_CASE("backward() where nothing flows", "[.nothing-flows]") {
  const Variable w = parameter(tensor({1.0F, 2.0F}));
  for (int i = 0; i < 2; ++i) sum(stop_gradient(w.get())).backward();
  CHECK(!w.grad().is_defined());
}

TEST_CASE("backward() where nothing flows adds nothing, and says so once", "[autograd][errors]") {
  const Run run = run_self("", "[.nothing-flows]");
  INFO(run.output);
  CHECK(run.status == 0);
  const std::size_t first = run.output.find("parameter(");
  REQUIRE(first != std::string::npos);
  CHECK(run.output.find("parameter(", first + 1) == std::string::npos);
}

TEST_CASE("nothing is noted under NoGradients or after stop_gradient", "[autograd]") {
  const Variable w = parameter(tensor({1.0F, 2.0F}));
  {
    const NoGradients scope;
    CHECK(!(w * 2.0).tracks_gradient());
  }
  CHECK(!no_grad([&] { return w * 2.0; }).tracks_gradient());
  CHECK(!stop_gradient(w * 2.0).tracks_gradient());
  sum(w * stop_gradient(w.get())).backward();
  CHECK(same_bits(w.grad(), tensor({1.0F, 2.0F})));
}

TEST_CASE("assigning to a Variable cuts the tape", "[autograd]") {
  const Variable w = parameter(tensor({1.0F}));
  const Variable state(zeros({1}));
  state.set(w * 3.0);
  CHECK(!state.get().tracks_gradient());
}
