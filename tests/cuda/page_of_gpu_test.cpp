// The page of explain() of what runs on a GPU: its kernels and its routines have their CUDA C++. By
// the fake driver or a real one. In ctest's cuda.fake.calls.
#include "nitinol.h"
#include "tests/cuda/using_fake.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace nitinol::page_of_gpu_test {

TEST_CASE("the page of what runs on a GPU shows CUDA C++", "[cuda][explain]") {
  if (!has_gpu()) return;
  const auto f = compile([](const Tensor& x) { return cumsum(exp(x) * 2, 0); }, {.name = "model"});
  for (int i = 0; i < 3; ++i) static_cast<void>(f(ones({1000}, f32, gpu)));
  const Explanation explanation = f.explain();
  const jit::PlanReport& plan = explanation.signatures.at(0).plan;
  REQUIRE(plan.steps.size() == 2);
  for (std::size_t step = 0; step < plan.steps.size(); ++step) {  // a kernel, a routine
    const std::vector<CodeText> texts = plan.code_texts(step);
    REQUIRE(texts.size() == 1);
    CHECK(texts[0].language == "CUDA C++");
    CHECK(has(texts[0].text, "KERNEL(entry0, 256) {"));
  }
  CHECK_THAT(plan.code_texts(0)[0].text, Catch::StartsWith("// points in 1 loop"));  // its schedule
  CHECK(has(plan.code_texts(1)[0].text, "join_of"));
  const std::string page = explanation.to_html();
  std::size_t kernels = 0;
  for (std::size_t at = page.find("<summary>CUDA C++</summary>"); at != std::string::npos;
       at = page.find("<summary>CUDA C++</summary>", at + 1)) {
    ++kernels;
    CHECK(page.find("KERNEL(entry0, 256) {", at) != std::string::npos);
  }
  CHECK(kernels == 2);
  CHECK(has(page, "template &lt;class T&gt; DEVICE T sum_of"));
  CHECK(has(page, "class=\"bound\""));
  CHECK_FALSE(has(page, "LLVM IR"));
  CHECK_FALSE(has(explanation.to_html({.code = false}), "CUDA C++"));
}

}  // namespace nitinol::page_of_gpu_test
