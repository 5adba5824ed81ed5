// NaN and infinity are found where they arise: in eager ops, ways back, compiled calls, segments.
#include "nitinol.h"
#include "tests/has_text.h"
#include "tests/jit/calls.h"
#include "tests/run_self.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <limits>
#include <string>
#include <thread>

using namespace nitinol;
using namespace nitinol::test;

namespace nitinol::nan_check_test {

constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();

Tensor floats(std::vector<float> values) {
  return tensor(values).to(default_device());
}

/// The report of the Error that f() throws; `where` is empty if it throws none.
template <class F>
ErrorReport report_of(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::value);
    return error.report();
  }
  return {};
}

TEST_CASE("an eager op that makes NaN says which element, of what", "[jit][nan]") {
  const Tensor x = reshape(floats({1, 2, 4, -0.5F, 8, 16}), {2, 3});
  const ResultCheckScope scope(ResultCheck::nan);
  const ErrorReport report = report_of([&] { static_cast<void>(log(x)); });
  CHECK(report.where == "log");
  CHECK(has(report.what, "element [1, 0] of the result, float32[2, 3], is"));
  CHECK(has(report.what, "nan"));
  CHECK(has(report.got, "float32[2, 3] from -0.5 to 16, there -0.5"));
  CHECK(has(report.expected, "no NaN out of operands that have none"));
}

TEST_CASE("NaN that goes in may come out", "[jit][nan]") {
  const Tensor x = floats({1, not_a_number, 3});
  const ResultCheckScope scope(ResultCheck::nan);
  CHECK(report_of([&] {
          static_cast<void>(exp(x) * 2);
          static_cast<void>(sum(x));
          static_cast<void>(reshape(x, {3, 1}));
        }).where.empty());
}

TEST_CASE("infinity is looked for on request", "[jit][nan]") {
  const Tensor x = floats({1, 1000});
  {
    const ResultCheckScope scope(ResultCheck::nan);
    CHECK(report_of([&] { static_cast<void>(exp(x)); }).where.empty());
  }
  const ResultCheckScope scope(ResultCheck::infinity);
  const ErrorReport report = report_of([&] { static_cast<void>(exp(x)); });
  CHECK(report.where == "exp");
  CHECK(has(report.what, "element [1] of the result, float32[2], is inf"));
  CHECK(report_of([&] { static_cast<void>(log(floats({-1}))); }).where == "log");
  CHECK(report_of([&] { static_cast<void>(floats({infinity}) + 1); }).where.empty());
}

TEST_CASE("integers, booleans and nothing are not looked through", "[jit][nan]") {
  const ResultCheckScope scope(ResultCheck::infinity);
  CHECK(report_of([&] {
          static_cast<void>(arange(5, i32, default_device()) + 1);
          static_cast<void>(floats({1, 2}) < 2);
          static_cast<void>(exp(zeros({0, 3})));
          static_cast<void>(cast(floats({1e30F}), bf16));
        }).where.empty());
  CHECK(report_of([&] { static_cast<void>(cast(floats({1e30F}), f16)); }).where == "cast");
}

TEST_CASE("every dtype's NaN and infinity are seen, in small and large tensors of any layout",
          "[jit][nan]") {
  const DType dtype = GENERATE(f16, bf16, f32, f64);
  const int64_t rows = GENERATE(1, 50, 50'000);  // of two columns
  CAPTURE(dtype, rows);
  const auto with = [&](float value) {
    std::vector<float> elements(2 * static_cast<std::size_t>(rows), -60000.0F);
    elements.back() = value;
    return cast(reshape(floats(elements), {rows, 2}), dtype);
  };
  for (const auto& view :
       {+[](const Tensor& x) { return x; }, +[](const Tensor& x) { return transpose(x); }}) {
    for (const float value : {0.0F, 60000.0F, -1e-7F}) {
      CHECK_FALSE(has_any(ResultCheck::nan, view(with(value))));
      CHECK_FALSE(has_any(ResultCheck::infinity, view(with(value))));
    }
    for (const float value : {infinity, -infinity}) {
      CHECK_FALSE(has_any(ResultCheck::nan, view(with(value))));
      CHECK(has_any(ResultCheck::infinity, view(with(value))));
    }
    for (const float value : {not_a_number, -not_a_number}) {
      CHECK(has_any(ResultCheck::nan, view(with(value))));
      CHECK(has_any(ResultCheck::infinity, view(with(value))));
    }
  }
}

TEST_CASE("a scope is the thread's, and ends", "[jit][nan]") {
  const Tensor x = floats({-1});
  const auto finds = [&] { return !report_of([&] { static_cast<void>(log(x)); }).where.empty(); };
  CHECK(!finds());
  {
    const ResultCheckScope outer(ResultCheck::nan);
    CHECK(finds());
    {
      const ResultCheckScope inner(ResultCheck::none);
      CHECK(!finds());
    }
    CHECK(finds());
    bool is_found_elsewhere = true;
    std::jthread([&] {
      try {
        static_cast<void>(log(x));
        is_found_elsewhere = false;
      } catch (const Error&) {
        is_found_elsewhere = true;
      }
    }).join();
    CHECK(!is_found_elsewhere);
  }
  CHECK(!finds());
}

TEST_CASE("the way back is looked through", "[jit][nan]") {
  const Variable w = parameter(floats({0, 4}));
  const ResultCheckScope scope(ResultCheck::nan);
  const Tensor loss = sum(sqrt(w.get()) * 0);  // whose derivative at 0 is 0 times infinity
  const ErrorReport report = report_of([&] { loss.backward(); });
  CHECK(!report.where.empty());
  CHECK(has(report.what, "element [0]"));
}

TEST_CASE("a compiled call finds NaN in what it gives, and says where it came from", "[jit][nan]") {
  const int line = __LINE__ + 3;
  const auto f = compile(
      [](const Tensor& x) {
        const Tensor y = log(x) + 1;
        return sum(y * y);
      },
      {.name = "loss", .check = Check::never});
  const Tensor good = floats({1, 2, 3}), bad = floats({1, -2, 3});
  static_cast<void>(f(good));
  const ResultCheckScope scope(ResultCheck::nan);
  test::settle(f, good);
  const uint64_t plans = f.explain().plan_calls;
  CHECK(same_bits(f(good), f.eager(good)));
  CHECK(f.explain().plan_calls == plans + 1);
  std::string place;
  const ErrorReport report = report_of([&] {
    try {
      static_cast<void>(f(bad));
    } catch (const Error& error) {
      place = error.location();
      throw;
    }
  });
  CHECK(report.where == "log");
  CHECK(has(report.what, "element [1]"));
  CHECK(has(report.got, "there -2"));
  if (place.find("nan_check_test.cpp:") != std::string::npos)  // where there are line tables
    CHECK(has(place, fmt::format("nan_check_test.cpp:{}", line)));
  CHECK(has(report.fix, "In the compiled call: step 1, kernel log, add"));
  CHECK(same_bits(f(good), f.eager(good)));
}

TEST_CASE("what would be assigned is looked through, and nothing is then", "[jit][nan]") {
  const auto with = [](bool checks, float value) {
    const Variable w{floats({1, 2})}, count{floats({0})};
    const auto step = compile(
        [&](const Tensor& x) {
          w.set(w.get() - sqrt(x));
          count.set(count.get() + 1);
          return sum(x);
        },
        {.name = "step", .check = Check::never, .check_nan = checks});
    for (int i = 0; i < 4; ++i) static_cast<void>(step(floats({1, 4})));
    const Explanation explanation = step.explain();
    REQUIRE(explanation.plan_calls > 0);
    CHECK((explanation.signatures.at(0).plan.in_place_bytes > 0) == !checks);
    const ErrorReport report = report_of([&] { static_cast<void>(step(floats({value, 9}))); });
    CHECK(report.where == (checks && value < 0 ? "sqrt" : ""));
    const float calls = count.get().to_vector<float>()[0];
    CHECK(calls == (report.where.empty() ? 5 : 4));
    return w.get();
  };
  CHECK(with(true, -1).to_vector<float>() == std::vector<float>{-3, -6});
  CHECK(same_bits(with(true, 16), with(false, 16)));
  static_cast<void>(with(false, -1));
}

TEST_CASE("a compiled call that is given NaN gives eager's bits", "[jit][nan]") {
  const auto f = compile([](const Tensor& x) { return exp(x) * 2; },
                         {.check = Check::never, .check_nan = true});
  const Tensor x = floats({1, not_a_number, 3});
  test::settle(f, x);
  CHECK(same_bits(f(x), f.eager(x)));
}

TEST_CASE("a compiled function whose results track gradients runs op by op", "[jit][nan]") {
  const auto f = compile([](const Tensor& x) { return sum(sqrt(x) * 0); },
                         {.check = Check::never, .check_nan = true});
  const Variable w = parameter(floats({1, 4}));
  for (int i = 0; i < 3; ++i) f(w.get()).backward();
  const Explanation explanation = f.explain();
  CHECK(explanation.signatures.at(0).tier == Tier::eager);
  CHECK(has(explanation.signatures.at(0).reason, "looked through"));
  w.set(floats({0, 4}));
  const ResultCheckScope scope(ResultCheck::nan);
  CHECK(!report_of([&] { f(w.get()).backward(); }).where.empty());
}

TEST_CASE("segments are looked through", "[jit][nan]") {
  const auto f = compile(
      [](const Tensor& x) {
        const Tensor y = x * 2;
        if (sum(y).item<float>() > 1000) return y;
        return log(y - 1);
      },
      {.name = "looks"});
  const Tensor good = floats({1, 2, 3}), bad = floats({1, 0.25F, 3});
  const ResultCheckScope scope(ResultCheck::nan);
  for (int i = 0; i < 6; ++i) static_cast<void>(f(good));
  const ErrorReport report = report_of([&] {
    const Tensor y = f(bad);
    static_cast<void>(y.to_vector<float>());
  });
  CHECK(report.where == "log");
  CHECK(has(report.what, "element [1]"));
  CHECK(same_bits(f(good), f.eager(good)));
}

TEST_CASE("a signature says that it is looked through", "[jit][nan]") {
  const auto f = compile([](const Tensor& x) { return exp(x); }, {.check = Check::never});
  const Tensor x = floats({1});
  test::settle(f, x);
  {
    const ResultCheckScope scope(ResultCheck::nan);
    test::settle(f, x);
  }
  const Explanation explanation = f.explain();
  REQUIRE(explanation.signatures.size() == 2);
  CHECK(has(explanation.signatures[1].cause, "what is checked of results"));
}

TEST_CASE("work with NaN", "[.nan-work][host]") {
  {
    const ResultCheckScope not_here(ResultCheck::none);  // whatever the process says
    static_cast<void>(log(floats({-2})));
  }
  static_cast<void>(log(floats({-1})));
}

TEST_CASE("NITINOL_CHECK looks through the whole process", "[jit][nan][host]") {
  CHECK(run_self("NITINOL_CHECK=", "[.nan-work]").status == 0);
  for (const char* value : {"nan", "infinity"}) {
    const Run run = run_self(std::string("NITINOL_CHECK=") + value, "[.nan-work]");
    CHECK(run.status != 0);
    CHECK(has(run.output, "log"));
    CHECK(has(run.output, "element [0]"));
    CHECK(has(run.output, "from -1"));
  }
}

}  // namespace nitinol::nan_check_test
