// What stays packed from call to call, and that it is never stale.
#include "program/kept_packing.h"

#include "core/backend.h"
#include "core/isa.h"
#include "tests/jit/calls.h"
#include "tests/same_bits.h"
#include "tracer/transaction.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <thread>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace {

constexpr int64_t width = 256;
constexpr int64_t weight_bytes = width * width * 4;

bool packs() {
  return current_isa() == Isa::avx512 && default_device() == Device{};
}

Tensor numbers(uint64_t seed, const Shape& shape) {
  Generator generator(seed);
  return randn(shape, f32, generator);
}

Tensor weight(uint64_t seed) {
  return numbers(seed, {width, width});
}

const CompileOptions unchecked = {.check = Check::never};

int64_t in_use() {
  return static_cast<int64_t>(backend(default_device()).memory().in_use);
}

/// How many weights are kept beyond what was in use `before`; blocks are a little larger.
int64_t kept_since(int64_t before) {
  return (in_use() - before) / weight_bytes;
}

}  // namespace

TEST_CASE("a Variable stays packed until it is assigned", "[jit][packing]") {
  const Tensor x = numbers(1, {16, width});
  const Variable w(weight(2));
  const auto layer = [&](const Tensor& input) { return matmul(input, transpose(w)); };
  const auto f = compile(layer, unchecked);
  CHECK(same_bits(settle(f, x), layer(x)));
  const int64_t before = in_use();  // one call of the Plan packs nothing
  for (int i = 0; i < 3; ++i) f(x);
  CHECK(kept_since(before) == (packs() ? 1 : 0));
  CHECK(same_bits(f(x), layer(x)));
  for (uint64_t seed = 3; seed < 6; ++seed) {
    w.set(weight(seed));
    for (int call = 0; call < 3; ++call) CHECK(same_bits(f(x), layer(x)));
  }
  w.set(weight(9));
  CHECK(same_bits(f(x), layer(x)));
  CHECK(kept_since(before) == 0);  // the second call would pack
  const Explanation explanation = f.explain();
  CHECK(explanation.signatures.at(0).plan.kept_bytes == (packs() ? weight_bytes : 0));
  if (packs())
    CHECK_THAT(to_string(explanation),
               Catch::Contains("262 kB of operands of matmul and conv2d stay packed"));
}

TEST_CASE("a convolution's weight stays packed until it is assigned", "[jit][packing][conv]") {
  const Tensor x = numbers(1, {2, 8, 9, 9});
  const Variable w(numbers(2, {16, 8, 3, 3}));
  const auto layer = [&](const Tensor& input) {
    return relu(conv2d(input, w, {.padding = 1})) + 1.0F;
  };
  const auto f = compile(layer, unchecked);
  CHECK(same_bits(settle(f, x), layer(x)));
  const int64_t before = in_use();
  for (int i = 0; i < 3; ++i) CHECK(same_bits(f(x), layer(x)));
  const bool is_packed = default_device() == Device{};
  CHECK((in_use() - before >= w.size() * 4) == is_packed);
  for (uint64_t seed = 3; seed < 6; ++seed) {
    w.set(numbers(seed, {16, 8, 3, 3}));
    for (int call = 0; call < 3; ++call) CHECK(same_bits(f(x), layer(x)));
  }
  const Explanation explanation = f.explain();
  CHECK((explanation.signatures.at(0).plan.kept_bytes >= static_cast<std::size_t>(w.size()) * 4) ==
        is_packed);
  CHECK(explanation.signatures.at(0).tier == Tier::traced);
}

TEST_CASE("a Variable that another Plan overwrites in place is packed anew", "[jit][packing]") {
  const Tensor x = numbers(1, {16, width});
  const Variable w(weight(2));
  const auto layer = [&](const Tensor& input) { return matmul(input, transpose(w)); };
  const auto f = compile(layer, unchecked);
  const auto update = compile([&](const Tensor& rate) { w -= w * rate; }, unchecked);
  const Tensor rate = full({}, 0.125, f32) + 0.0;
  settle(update, rate);
  settle(f, x);
  const void* const address = w.get().internals().address();
  for (int step = 0; step < 4; ++step) {
    for (int call = 0; call < 3; ++call) CHECK(same_bits(f(x), layer(x)));
    update(rate);
  }
  CHECK(w.get().internals().address() == address);
}

TEST_CASE("parts of a Variable are kept each for itself", "[jit][packing]") {
  const Tensor x = numbers(1, {16, width});
  const Variable w(numbers(2, {2, width, width}));
  const auto layers = [&](const Tensor& input) {
    const Tensor both = w;
    return matmul(matmul(input, transpose(both[1])), transpose(both[0]));
  };
  const auto f = compile(layers, unchecked);
  settle(f, x);
  for (int i = 0; i < 3; ++i) CHECK(same_bits(f(x), layers(x)));
  CHECK(f.explain().signatures.at(0).plan.kept_bytes == (packs() ? 2 * weight_bytes : 0));
}

TEST_CASE("a Plan for two models keeps the one in use", "[jit][packing]") {
  const Tensor x = numbers(1, {16, width});
  const auto layer = [](const Variable& w, const Tensor& input) {
    return matmul(input, transpose(w));
  };
  const auto f = compile(layer, unchecked);
  const Variable a(weight(2)), b(weight(3));
  settle(f, a, x);
  const int64_t before = in_use();
  for (int i = 0; i < 4; ++i) {
    CHECK(same_bits(f(a, x), layer(a, x)));
    CHECK(same_bits(f(b, x), layer(b, x)));
  }
  CHECK(kept_since(before) == 0);
  for (int i = 0; i < 4; ++i) CHECK(same_bits(f(b, x), layer(b, x)));
  CHECK(kept_since(before) == (packs() ? 1 : 0));
}

TEST_CASE("a constant stays packed as long as the Plan", "[jit][packing]") {
  const Tensor x = numbers(1, {16, width}), w = weight(2);
  const auto layer = [&](const Tensor& input) { return matmul(input, transpose(w)); };
  const int64_t before = in_use();
  {
    const auto f = compile(layer, unchecked);
    settle(f, x);
    for (int i = 0; i < 3; ++i) f(x);
    CHECK(kept_since(before) == (packs() ? 1 : 0));
    CHECK(same_bits(f(x), layer(x)));
  }
  CHECK(kept_since(before) == 0);
}

TEST_CASE("a Variable that the call assigns is not kept", "[jit][packing]") {
  const Tensor x = numbers(1, {16, width});
  const Variable of_eager(weight(2)), of_compiled(weight(2));
  const auto step = [](const Variable& w, const Tensor& input) {
    const Tensor y = matmul(input, transpose(w));
    w *= 0.5;
    return y;
  };
  const auto f = compile(step, unchecked);
  for (int i = 0; i < 6; ++i) CHECK(same_bits(f(of_compiled, x), step(of_eager, x)));
  CHECK(f.explain().signatures.at(0).plan.kept_bytes == 0);
}

TEST_CASE("within a transaction a Variable's pending value is used", "[jit][packing]") {
  const Tensor x = numbers(1, {16, width});
  const Variable w(weight(2));
  const auto layer = [&](const Tensor& input) { return matmul(input, transpose(w)); };
  const auto f = compile(layer, unchecked);
  settle(f, x);
  f(x);
  const uint64_t by_plan = f.explain().plan_calls;
  {
    tracer::Transaction transaction;
    const InterpreterScope scope(transaction);
    w.set(weight(3));
    for (int i = 0; i < 3; ++i) CHECK(same_bits(f(x), matmul(x, transpose(weight(3)))));
  }
  CHECK(f.explain().plan_calls > by_plan);
  CHECK(same_bits(f(x), matmul(x, transpose(weight(2)))));
}

TEST_CASE("what the segments of a call that looks read of Variables stays packed",
          "[jit][packing]") {
  const Tensor x = numbers(1, {16, width});
  const auto looks = [](const Variable& w) {
    return [w](const Tensor& input) {
      const Tensor y = matmul(input, transpose(w));
      return bool(sum(y) > 1e9) ? y : matmul(y * 2.0, transpose(w));
    };
  };
  for (const Variable& w : {Variable(weight(2)), parameter(weight(2))}) {
    const auto layer = looks(w);
    const auto f = compile(layer);
    f.set_stance(Stance::fail_on_fallback);
    for (int call = 0; call < 3; ++call) CHECK(same_bits(f(x), layer(x)));  // makes its Plans
    w.set(weight(3));
    CHECK(same_bits(f(x), layer(x)));
    const int64_t before = in_use();
    for (int call = 0; call < 3; ++call) CHECK(same_bits(f(x), layer(x)));
    CHECK(kept_since(before) == (packs() ? 2 : 0));  // in each of the two Plans
    for (uint64_t seed = 3; seed < 6; ++seed) {
      w.set(weight(seed));
      for (int call = 0; call < 3; ++call) CHECK(same_bits(f(x), layer(x)));
    }
  }
  const Variable both(numbers(4, {2 * width, width}));
  const auto of_part = [&](const Tensor& input, const Tensor& part) {
    return bool(sum(both.get()) > 1e9) ? input : matmul(input, transpose(part));
  };
  const auto g = compile(of_part);
  g.set_stance(Stance::fail_on_fallback);
  for (const int64_t first : {int64_t{0}, width}) {  // two parts are not one value
    const Tensor part = slice(both.get(), 0, Range{first, first + width});
    for (int call = 0; call < 6; ++call) CHECK(same_bits(g(x, part), of_part(x, part)));
  }
  const Variable w(weight(2)), copy(weight(2));
  const auto step = [](const Variable& v) {
    return [v](const Tensor& input) {
      const Tensor y = matmul(input, transpose(v));
      if (bool(sum(y) < 1e9)) v -= matmul(transpose(y), input) * 1e-6;
      return matmul(input, v);
    };
  };
  const auto f = compile(step(w));
  f.set_stance(Stance::fail_on_fallback);
  for (int call = 0; call < 8; ++call) CHECK(same_bits(f(x), step(copy)(x)));
  CHECK(same_bits(w.get(), copy.get()));
}

TEST_CASE("threads that run a Plan while a Variable is assigned see one of its values",
          "[jit][packing]") {
  const Tensor x = numbers(1, {16, width});
  // Reads w packed and as it is: both of the same value.
  const auto layer = [&](const Tensor& value) { return matmul(x, transpose(value)) + value[0]; };
  std::vector<Tensor> weights;
  std::vector<std::vector<float>> expected;  // same_bits() may not be used on other threads
  for (uint64_t seed = 0; seed < 4; ++seed) {
    weights.push_back(weight(seed));
    expected.push_back(layer(weights.back()).to_vector<float>());
  }
  const Variable w(weights[0]);
  const auto f = compile([&] { return layer(w); }, unchecked);
  settle(f);
  std::vector<std::thread> threads;
  std::vector<int> wrong(3, 0);
  for (int& count : wrong) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        if (std::ranges::find(expected, f().to_vector<float>()) == expected.end()) ++count;
      }
    });
  }
  for (std::size_t i = 0; i < 300; ++i) {
    w.set(weights[i % 4]);
    if (i % 3 == 0) std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(3, 0));
  for (int i = 0; i < 3; ++i) CHECK(same_bits(f(), layer(w)));
}

namespace {

class LaunchCounter final : public Executable {
 public:
  void launch(const Launch& launch) const override {
    ++launches;
    from = launch.buffers[0];
  }
  mutable int launches = 0;
  mutable const void* from = nullptr;
};

}  // namespace

TEST_CASE("contents are packed at their second call, once", "[jit][packing][host]") {
  const auto executable = std::make_shared<LaunchCounter>();
  const program::KeptPacking kept({.value = 3, .byte_offset = 8}, 4, executable, 64);
  CHECK(kept.operand() == 3);
  CHECK(kept.packed() == 4);
  std::byte memory[16];
  const auto find = [&](uint64_t cell, uint64_t version) {
    return kept.find({.cell = cell, .version = version}, memory, backend(Device{}), 1);
  };
  CHECK_FALSE(find(1, 0));
  const StorageHandle packed = find(1, 0);
  REQUIRE(packed);
  CHECK(find(1, 0) == packed);
  CHECK(executable->launches == 1);
  CHECK(executable->from == memory + 8);
  CHECK_FALSE(find(1, 1));
  CHECK_FALSE(find(2, 1));
  CHECK_FALSE(find(1, 0));
  CHECK(executable->launches == 1);
  CHECK(find(1, 0));
  CHECK(executable->launches == 2);
}

TEST_CASE("no more is kept packed than the process allows", "[jit][packing][host]") {
  const auto executable = std::make_shared<LaunchCounter>();
  std::byte memory[16];
  const auto is_kept = [&](const program::KeptPacking& kept) {
    for (int i = 0; i < 2; ++i) {
      if (kept.find({}, memory, backend(Device{}), 1)) return true;
    }
    return false;
  };
  const std::size_t most = program::most_kept_bytes / 4 * 3;
  const program::KeptPacking second({}, 1, executable, most);
  {
    const program::KeptPacking first({}, 1, executable, most);
    CHECK(is_kept(first));
    CHECK_FALSE(is_kept(second));
  }
  CHECK(is_kept(second));
}
