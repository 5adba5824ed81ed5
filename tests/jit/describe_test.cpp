// What a binding says of its arguments, in signatures, causes, remarks and errors.
#include "jit/describe.h"

#include "jit/compiled_function.h"
#include "nitinol.h"
#include "tests/jit/calls.h"

#include <catch2/catch.hpp>

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

using namespace nitinol;
using jit::Word;

namespace {

/// A call f({"w": w}, rate, flag) of another language, of a function that looks at its rate.
class NamedCaller final : public jit::Caller {
 public:
  NamedCaller(const Tensor& w, Scalar rate, bool flag)
      : w_(w), rate_(std::move(rate)), flag_(flag) {
    leaves.tensors.push_back(&w_);
    leaves.scalars.push_back(&rate_);
    leaves.fixed.push_back(flag ? 1 : 0);
  }
  jit::Leaves leaves;

  void run() override { result_ = f(w_, rate_); }
  void run_on(std::span<const Tensor> tensors, std::span<const Tensor> scalars) override {
    Scalar rate = rate_;
    rate.set_traced(scalars[0]);
    result_ = f(tensors[0], rate);
  }
  void result_leaves(jit::Leaves& of_result) override { of_result.tensors.push_back(&result_); }
  void change_result(FunctionRef<void(Tensor&)> change) override { change(result_); }
  std::vector<Word> describe_arguments(std::span<const std::string>) override {
    return {{.where = "params", .text = "dict of 1", .kind = Word::Kind::length, .is_named = true},
            {.where = "params['w']",
             .text = jit::describe_leaf(w_),
             .kind = Word::Kind::tensor,
             .is_named = true},
            {.where = "rate", .text = "float", .kind = Word::Kind::scalar, .is_named = true},
            {.where = "flag",
             .text = flag_ ? "True" : "False",
             .kind = Word::Kind::fixed,
             .is_named = true}};
  }
  std::shared_ptr<const void> result_form() override { return std::make_shared<int>(); }
  void restore(const void*, std::span<Tensor> tensors) override { result_ = std::move(tensors[0]); }

 private:
  Tensor f(const Tensor& w, const Scalar& rate) const {
    return rate.to_double() > 0 && flag_ ? exp(w) : w + 1;
  }

  Tensor w_;
  Scalar rate_;
  bool flag_;
  Tensor result_;
};

void call(jit::CompiledFunction& function, const Tensor& w, double rate, bool flag) {
  NamedCaller caller(w, rate, flag);
  function.call(caller.leaves, caller);
}

}  // namespace

TEST_CASE("named arguments read as the user would write them", "[jit][explain]") {
  jit::CompiledFunction function({.name = "step"}, true);
  for (int i = 0; i < 3; ++i) call(function, ones({3, 4}), 0.1, true);
  call(function, ones({3, 4}), 0.1, false);
  call(function, ones({3, 4}), 0.2, false);
  call(function, ones({2, 4}), 0.2, false);
  const Explanation explanation = function.explain();
  REQUIRE(explanation.signatures.size() == 4);
  CHECK(explanation.signatures[0].signature ==
        "params['w']: float32[3, 4], rate: float, flag=True");
  CHECK(explanation.signatures[1].cause == "`flag` is False, was True");
  CHECK_THAT(explanation.signatures[2].cause,
             Catch::StartsWith("`rate` is 0.2, was 0.1, and host code looks at it by to_double()"));
  CHECK(explanation.signatures[3].cause == "`params['w']` is float32[2, 4], was float32[3, 4]");
  CHECK(explanation.remarks.empty());  // rates and shapes are not values of the signature

  function.set_stance(static_cast<int>(Stance::fail_on_recompile));
  for (int i = 0; i < 3; ++i) call(function, ones({3, 4}), 0.1, true);
  const std::string error = test::error_of([&] {
    call(function, ones({5, 4}), 0.1, true);
    return 0;
  });
  CHECK_THAT(error, Catch::Contains("`params['w']` is float32[5, 4], was float32[3, 4]") &&
                        Catch::Contains("got params['w']: float32[5, 4], rate: float, flag=True"));
}

TEST_CASE("a named value that keeps changing draws a remark, whatever its text", "[jit][explain]") {
  const std::vector<Word> words = {
      {.where = "mode", .text = "Scalar ['a']", .kind = Word::Kind::fixed, .is_named = true},
      {.where = "argument 1", .text = "true", .kind = Word::Kind::fixed}};
  CHECK(jit::join(words) == "mode=Scalar ['a'], true");
  const auto g = compile([](const Tensor& x, const std::string&) { return x * 2; });
  for (const char* text : {"a[0]", "Scalar b", "c"}) g(ones({2}), std::string(text));
  REQUIRE(g.explain().remarks.size() == 1);
  CHECK_THAT(g.explain().remarks[0], Catch::StartsWith("argument 1 has had 3 different values"));
}
