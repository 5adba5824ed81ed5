// What explain() says, as data, as text and as JSON.
#include "jit/explain.h"

#include "core/executables.h"
#include "tests/jit/calls.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iterator>

using namespace nitinol;
using namespace nitinol::test;

TEST_CASE("explain counts calls by how they ran", "[jit][explain]") {
  const auto g = compile([](const Tensor& x) { return x + 1.0; }, {.name = "increment"});
  CHECK(g.explain().calls == 0);
  CHECK(g.explain().signatures.empty());
  const Tensor x = ramp(10);
  g(x);
  CHECK(g.explain().signatures.at(0).tier == Tier::recorded);
  for (int i = 0; i < 5; ++i) g(x);
  g.eager(x);
  const Explanation e = g.explain();
  CHECK(e.name == "increment");
  CHECK(e.calls == 7);
  CHECK(e.recorded_calls == 3);  // 1, 2 and 4
  CHECK(e.plan_calls == 3);
  CHECK(e.eager_calls == 1);
  REQUIRE(e.signatures.size() == 1);
  CHECK(e.signatures[0].signature == "float32[10]");
  CHECK(e.signatures[0].tier == Tier::traced);
  CHECK(e.signatures[0].calls == 6);
  CHECK(e.signatures[0].cause == "");
  CHECK(e.remarks.empty());
}

TEST_CASE("a recompilation is explained by the first difference", "[jit][explain]") {
  const auto cause = [](const auto& f, const auto& first, const auto& second) {
    const auto g = compile(f);
    std::apply(g, first);
    std::apply(g, second);
    REQUIRE(g.explain().signatures.size() == 2);
    return g.explain().signatures[1].cause;
  };
  const auto add = [](const Tensor& x, const Tensor& y) { return x + y; };
  const Tensor x = ramp(4);
  const Tensor y = ramp(4);
  CHECK(cause(add, std::tuple(x, y), std::tuple(x, ramp(1))) ==
        "argument 1 is float32[1], was float32[4]");
  CHECK(cause(add, std::tuple(x, y), std::tuple(cast(x, f64), y)) ==
        "argument 0 is float64[4], was float32[4]");
  CHECK(cause(add, std::tuple(x, y), std::tuple(slice(ramp(8), 0, {0, 8, 2}), y)) ==
        "argument 0 is float32[4] strides [2], was float32[4]");
  CHECK(cause(add, std::tuple(x, y), std::tuple(x, x)) ==
        "other arguments are the same tensor or Variable, or track gradients");
  CHECK(cause([](const Tensor& a, Scalar s) { return a * s; }, std::tuple(x, Scalar(1.5)),
              std::tuple(x, Scalar(2))) == "argument 1 is Scalar int64, was Scalar float64");
  CHECK(cause([](const Tensor& a, int n) { return a * n; }, std::tuple(x, 3), std::tuple(x, 4)) ==
        "argument 1 is 4, was 3");
  CHECK(cause([](const std::vector<Tensor>& list) { return list[0] * 2.0; },
              std::tuple(std::vector{x}),
              std::tuple(std::vector{x, y})) == "argument 0 is of length 2, was of length 1");
  CHECK(cause([](const std::vector<Tensor>& list) { return list[0] * 2.0; },
              std::tuple(std::vector{x, x}), std::tuple(std::vector{x, ramp(5)})) ==
        "argument 0, element 1 is float32[5], was float32[4]");
  CHECK(cause([](const Tensor& a, const std::string& s) { return s == "a" ? a : -a; },
              std::tuple(x, std::string("a")),
              std::tuple(x, std::string("b"))) == "argument 1 is \"b\", was \"a\"");
  CHECK(cause([](const Tensor& a, double s) { return a * s; }, std::tuple(x, 0.2),
              std::tuple(x, 0.1)) == "argument 1 is 0.1, was 0.2");
}

TEST_CASE("parameters may have names", "[jit][explain]") {
  const auto g = compile([](const Tensor& a, double s, bool b) { return b ? a * s : a; },
                         {.arguments = {"x", "rate"}});
  g(ramp(4), 0.2, true);
  g(ramp(4), 0.1, true);
  g(ramp(4), 0.1, false);
  CHECK(g.explain().signatures.at(1).cause == "argument 1 (rate) is 0.1, was 0.2");
  CHECK(g.explain().signatures.at(2).cause == "argument 2 is false, was true");
  CHECK(g.explain().signatures.at(0).signature == "float32[4], 0.2, true");
}

TEST_CASE("a fixed argument that keeps changing is remarked on, with what to do",
          "[jit][explain]") {
  const auto g = compile([](const Tensor& x, int64_t n) { return x * n; });
  const Tensor x = ramp(3);
  for (int64_t n = 0; n < 2; ++n) g(x, n);
  CHECK(g.explain().remarks.empty());
  g(x, 2);
  REQUIRE(g.explain().remarks.size() == 1);
  CHECK(g.explain().remarks[0] ==
        "argument 1 has had 3 different values, and each is a signature of its own: if it is a "
        "number, take it as Scalar");
}

TEST_CASE("a HostValue that changed is a cause", "[jit][explain]") {
  HostValue<bool> training = true;
  const auto g = compile([&](const Tensor& x) { return training ? x * 2.0 : x * 3.0; });
  settle(g, ramp(4));
  training = false;
  g(ramp(4));
  CHECK(g.explain().signatures.at(1).cause == "a HostValue changed");
}

TEST_CASE("a HostValue that changed is named, if it has a name", "[jit][explain]") {
  const HostValue<bool> scaled(false, "scaled");
  HostValue<bool> training(true, "Net.training");
  const auto g = compile([&](const Tensor& x) {
    const double factor = scaled ? 0.5 : 1.0;
    return training ? x * factor : x * 3.0;
  });
  settle(g, ramp(4));
  training = false;
  g(ramp(4));
  CHECK(g.explain().signatures.at(1).cause == "Net.training changed");
}

TEST_CASE("what has no Plan has its reason and place", "[jit][explain]") {
  const auto g = compile([](const Tensor& x) { return x * sum(x).item<float>(); });
  g(ramp(4));
  g(ramp(4));
  const SignatureReport report = g.explain().signatures.at(0);
  CHECK(report.tier == without_plan());
  CHECK(report.recorded_calls == 1);
  CHECK(report.deferred_calls + report.eager_calls == 1);
  CHECK(report.reason == "the function looks at a tensor's elements by item()");
  CHECK_THAT(report.place, Catch::Contains("explain_test.cpp:"));
  const std::string text = to_string(g.explain());
  CHECK_THAT(text, Catch::Contains(report.tier == Tier::deferred
                                       ? "not one plan because the function looks at"
                                       : "eager because the function looks at") &&
                       Catch::Contains("explain_test.cpp:"));
}

TEST_CASE("a look, its warning and a cause say the place that is given", "[jit][explain]") {
  const PlaceScope scope([](void*) -> std::string { return "model.py:42"; });
  const Tensor x = ramp(4);
  const auto look = compile([](const Tensor& a) { return a * sum(a).item<float>(); });
  std::string logged;
  set_log_sink([&](LogLevel, std::string_view text) { logged = text; });
  look(x);
  set_log_sink({});
  CHECK(look.explain().signatures.at(0).place == "model.py:42");
  CHECK_THAT(to_string(look.explain()), Catch::Contains("\n      at model.py:42\n"));
  CHECK_THAT(logged, Catch::EndsWith("by item() at model.py:42"));
  const auto branch = compile([](const Tensor& a) { return a[0] > 0 ? a : -a; });
  branch(x);
  CHECK(branch.explain().signatures.at(0).place == "model.py:42");

  // Where no read is to blame, there is no place in C++.
  const Variable w = parameter(ones({4}));
  const Tensor tracked = w * 2;
  const auto captures = compile([&](const Tensor& a) { return a * tracked; });
  captures(x);
  CHECK(captures.explain().signatures.at(0).place == "model.py:42");

  const auto loop = compile([](const Tensor& a, const Scalar& s) { return a * s.to_double(); });
  settle(loop, x, 2.0);
  loop(x, 3.0);
  CHECK_THAT(loop.explain().signatures.at(1).cause, Catch::EndsWith("to_double() at model.py:42"));
}

TEST_CASE("each kernel's operations, bytes and cost are told", "[jit][explain]") {
  const auto g =
      compile([](const Tensor& x, const Tensor& w) { return sum(exp(matmul(x, w)) * 2.0, {1}); });
  const Tensor x = reshape(ramp(12), {4, 3});
  const Tensor w = reshape(ramp(15), {3, 5});
  settle(g, x, w);
  const SignatureReport report = g.explain().signatures.at(0);
  REQUIRE(report.plan.steps.size() == 2);
  const program::StepReport& product = report.plan.steps[0];
  CHECK(product.kind == "library");
  CHECK(product.ops == std::vector<std::string>{"matmul"});
  CHECK(product.bytes_read == (12 + 15) * sizeof(float));
  CHECK(product.bytes_written == 20 * sizeof(float));
  const program::StepReport& kernel = report.plan.steps[1];
  CHECK(kernel.kind == "kernel");
  CHECK(kernel.ops == std::vector<std::string>{"exp", "mul", "sum"});
  CHECK(kernel.bytes_read == 20 * sizeof(float));
  CHECK(kernel.bytes_written == 4 * sizeof(float));
  CHECK(report.plan.arena_bytes >= 20 * sizeof(float));
  CHECK_THAT(report.graph, Catch::Contains("matmul") && Catch::Contains("return"));
}

TEST_CASE("of a part that is broadcast a step counts each element once", "[jit][explain]") {
  const auto f = [](const Tensor& x, const Tensor& b) -> Tensor { return x * slice(b, 0, {0, 6}); };
  const auto g = compile(f, {.check = Check::never});
  const Tensor x = ones({5, 6}), b = ones({1000});
  for (int call = 0; call < 3; ++call) g(x, b);
  const std::vector<StepReport> steps = g.explain().signatures.at(0).plan.steps;
  REQUIRE(steps.size() == 1);
  CHECK(steps[0].bytes_read == (5 * 6 + 6) * sizeof(float));
}

TEST_CASE("compile time is split", "[jit][explain]") {
  clear_executables();
  const auto g = compile([](const Tensor& x) { return tanh(x) * 0.5 + cos(x); });
  settle(g, ramp(64));
  const SignatureReport report = g.explain().signatures.at(0);
  const jit::PlanReport& plan = report.plan;
  CHECK(plan.passes_s > 0);
  CHECK(plan.fusion_s > 0);
  CHECK(plan.prepare_s > 0);
  CHECK(plan.total_s == Approx(plan.passes_s + plan.fusion_s + plan.prepare_s));
  CHECK(report.compile_s >= plan.total_s);
  const BuildReport& build = plan.steps.at(0).build;
  CHECK((build.origin != CodeOrigin::none) == (if_generated(1) == 1));
  CHECK(plan.kernels_generated == if_generated(1));
  if (build.origin == CodeOrigin::none) return;
  CHECK(build.emit_s > 0);
  CHECK(build.codegen_s > 0);
  CHECK(build.code_bytes > 100);
  CHECK(build.emit_s + build.codegen_s + build.link_s <= plan.prepare_s);
  CHECK_FALSE(plan.steps[0].was_cached);
  CHECK_THAT(to_string(g.explain()), Catch::Contains("generated in"));
}

TEST_CASE("a kernel that existed is said to be reused", "[jit][explain]") {
  const auto g = compile([](const Tensor& x) { return tanh(x) * 0.5 + sin(x); });
  settle(g, ramp(64));
  settle(g, ramp(65));
  const jit::PlanReport plan = g.explain().signatures.at(1).plan;
  CHECK(plan.steps.at(0).was_cached);
  CHECK(plan.kernels_generated == 0);
  if (plan.steps[0].build.origin != CodeOrigin::none)
    CHECK_THAT(to_string(g.explain()), Catch::Contains("kernel reused"));
}

TEST_CASE("the third value of a fixed argument draws a remark, the second does not",
          "[jit][explain]") {
  const auto g = compile([](const Tensor& x, int n, double s) { return x * s + n; });
  const Tensor x = ramp(4);
  g(x, 1, 0.1);
  g(x, 1, 0.2);
  CHECK(g.explain().remarks.empty());
  g(x, 1, 0.3);
  const Explanation e = g.explain();
  REQUIRE(e.remarks.size() == 1);
  CHECK_THAT(e.remarks[0], Catch::StartsWith("argument 2 has had 3 different values") &&
                               Catch::Contains("Scalar"));
  CHECK_THAT(to_string(e), Catch::Contains("remark: argument 2"));
}

TEST_CASE("discarded Plan runs are counted", "[jit][explain]") {
  const auto g = compile([](const Tensor& a, const Tensor& b) { return floor_divide(a, b); },
                         {.name = "divide", .check = Check::never});
  settle(g, arange(4), arange(1, 5));
  CHECK_THROWS_AS(g(arange(4), arange(4)), Error);
  const Explanation e = g.explain();
  CHECK(e.failed_checks == 1);
  CHECK(e.plan_calls == 1);
  CHECK_THAT(to_string(e), Catch::Contains("1 plan run discarded"));
}

TEST_CASE("JSON says the same as the data", "[jit][explain]") {
  const auto g = compile([](const Tensor& x) { return exp(x) * 2.0; }, {.name = "quoted \"name\""});
  settle(g, ramp(10));
  const Explanation e = g.explain();
  const nlohmann::json json = nlohmann::json::parse(e.to_json());
  CHECK(json["name"] == "quoted \"name\"");
  CHECK(json["calls"] == e.calls);
  CHECK(json["plan_calls"] == 1);
  CHECK(json["recorded_calls"] == 2);
  CHECK(json["eager_calls"] == 0);
  CHECK(json["failed_checks"] == 0);
  CHECK(json["remarks"].empty());
  const nlohmann::json& signature = json["signatures"].at(0);
  CHECK(signature["signature"] == "float32[10]");
  CHECK(signature["tier"] == "compiled");
  CHECK(signature["compile_s"] > 0);
  CHECK(signature["graph"] == e.signatures[0].graph);
  const nlohmann::json& step = signature["steps"].at(0);
  CHECK(step["kind"] == "kernel");
  CHECK(step["ops"] == std::vector<std::string>{"exp", "mul"});
  CHECK(step["bytes_read"] == 40);
  CHECK(step["bytes_written"] == 40);
  CHECK(step["code_bytes"] == e.signatures[0].plan.steps[0].build.code_bytes);
}

// ---- what the page shows, as data

namespace {

/// Two products with a kernel between them.
const jit::PlanReport& two_products(Explanation& explanation) {
  const auto g =
      compile([](const Tensor& x, const Tensor& w) { return matmul(relu(matmul(x, w)), w); },
              {.name = "two_products", .arguments = {"x"}});
  settle(g, ones({8, 16}), ones({16, 16}));
  explanation = g.explain();
  return explanation.signatures.at(0).plan;
}

}  // namespace

TEST_CASE("explain says which step reads what of which earlier one, in bytes", "[jit][explain]") {
  Explanation e;
  const jit::PlanReport& plan = two_products(e);
  REQUIRE(plan.steps.size() == 3);
  const auto named = [&](const ValueAccess& access) { return plan.values.at(access.value); };
  constexpr std::size_t x_bytes = 8 * 16 * 4;
  REQUIRE(plan.steps[0].reads.size() == 2);
  CHECK(named(plan.steps[0].reads[0]).name == "argument 0 (x)");
  CHECK(named(plan.steps[0].reads[0]).type == "float32[8, 16]");
  CHECK(plan.steps[0].reads[0].bytes == x_bytes);
  CHECK(plan.steps[0].reads[0].from == -1);
  CHECK(named(plan.steps[0].reads[1]).name == "argument 1");
  CHECK(named(plan.steps[0].reads[1]).bytes == std::size_t{16} * 16 * 4);
  REQUIRE(plan.steps[1].reads.size() == 1);
  CHECK(plan.steps[1].reads[0].from == 0);
  CHECK(plan.steps[1].reads[0].bytes == x_bytes);
  CHECK(plan.steps[1].reads[0].value == plan.steps[0].writes.at(0).value);
  CHECK(plan.steps[2].reads.at(0).from == 1);
  CHECK(named(plan.steps[2].writes.at(0)).name == "result 0");
}

TEST_CASE("temporaries that live at the same step lie apart", "[jit][explain]") {
  const int64_t n = GENERATE(32, 160);  // as large as 160's are, some take over others' places
  const Variable w(ones({n, n}) * (1.0 / static_cast<double>(n)));
  const auto g = compile([&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 6; ++i) y = relu(matmul(y, w)) + y;
    return sum(y);
  });
  settle(g, ones({n, n}));
  const Explanation e = g.explain();
  const jit::PlanReport& plan = e.signatures.at(0).plan;
  using Value = program::ValueReport;
  std::vector<Value> temporaries;
  std::ranges::copy_if(plan.values, std::back_inserter(temporaries),
                       [](const Value& value) { return value.kind == Value::Kind::temporary; });
  CHECK(temporaries.size() >= 6);
  const auto apart = [](std::size_t a, std::size_t a_end, std::size_t b, std::size_t b_end) {
    return a_end <= b || b_end <= a;
  };
  for (const Value& a : temporaries) {
    CHECK(a.offset + a.bytes <= plan.arena_bytes);
    CHECK(a.last_step > a.first_step);  // who writes it is not who reads it
    for (const Value& b : temporaries) {
      // One that is stored in place comes when the one that lay there goes.
      const bool takes_over = (b.is_in_place && b.first_step == a.last_step) ||
                              (a.is_in_place && a.first_step == b.last_step);
      if (&a == &b || (takes_over && a.offset == b.offset)) continue;
      CHECK((apart(a.first_step, a.last_step + 1, b.first_step, b.last_step + 1) ||
             apart(a.offset, a.offset + a.bytes, b.offset, b.offset + b.bytes)));
    }
  }
}

TEST_CASE("what is updated in place says so, and whose value it is", "[jit][explain]") {
  const Variable counts(zeros({64}));
  const auto g = compile([&](const Tensor& x) {
    counts += x * 2.0;
    return sum(x);
  });
  settle(g, ones({64}));
  const Explanation e = g.explain();
  const std::vector<program::ValueReport>& values = e.signatures.at(0).plan.values;
  const auto found =
      std::ranges::find(values, "new value of Variable 0", &program::ValueReport::name);
  REQUIRE(found != values.end());
  CHECK(found->is_in_place);
  CHECK(found->type == "float32[64]");
  CHECK(std::ranges::count(values, "Variable 0", &program::ValueReport::name) == 1);
}

TEST_CASE("a step has its kernel and code as text, when asked", "[jit][explain]") {
  Explanation e;
  const jit::PlanReport& plan = two_products(e);
  CHECK(plan.kernel_text(0).empty());
  CHECK(plan.code_texts(0).empty());  // a library's
  CHECK_THAT(plan.kernel_text(1), Catch::StartsWith("kernel elementwise"));
  const auto fused = compile([](const Tensor& x) { return exp(x) * 2.0; });
  settle(fused, ramp(10));
  const Explanation of_fused = fused.explain();
  const std::vector<CodeText> texts = of_fused.signatures.at(0).plan.code_texts(0);
  if (if_generated(1) == 0) return;
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].language == "LLVM IR");
  CHECK_THAT(texts[0].text, Catch::Contains("define "));
  CHECK(texts[1].language == "assembly");
  CHECK_THAT(texts[1].text, Catch::Contains("ret"));
}

TEST_CASE("bounds are those of the bytes and operations of each step", "[jit][explain]") {
  Explanation e;
  const jit::PlanReport& plan = two_products(e);
  const std::vector<jit::Bound> bounds = plan.bounds();
  REQUIRE(bounds.size() == 3);
  for (const jit::Bound& bound : bounds) {
    CHECK(bound.move_s > 0);
    CHECK(bound.seconds() == std::max(bound.move_s, bound.compute_s));
  }
  CHECK(bounds[0].compute_s > bounds[1].compute_s);  // 2 * 8 * 16 * 16 operations, and 128
  const nlohmann::json without = nlohmann::json::parse(e.to_json());
  CHECK_FALSE(without["signatures"][0]["steps"][0].contains("bound_s"));
  const nlohmann::json with = nlohmann::json::parse(e.to_json(Bounds::measured));
  CHECK(with["signatures"][0]["steps"][0]["bound_s"] == bounds[0].seconds());
}

TEST_CASE("an Explanation outlives the function", "[jit][explain]") {
  Explanation e;
  const jit::PlanReport& plan = two_products(e);
  clear_executables();
  CHECK_THAT(plan.kernel_text(1), Catch::Contains("operand 0: input f32"));
  CHECK_THAT(plan.to_dot(), Catch::Contains("label=\"2. kernel relu\""));
}

TEST_CASE("a graph in Graphviz's language has a box for each step", "[jit][explain]") {
  Explanation e;
  const std::string dot = two_products(e).to_dot();
  CHECK_THAT(dot,
             Catch::StartsWith("digraph {\n") && Catch::Contains("label=\"1. library matmul\"") &&
                 Catch::Contains("label=\"3. library matmul\"") && Catch::Contains("f32[8, 16]"));
  CHECK(jit::PlanReport().to_dot().empty());
}

TEST_CASE("JSON has values, and what steps read and write of them", "[jit][explain]") {
  Explanation e;
  static_cast<void>(two_products(e));
  const nlohmann::json json = nlohmann::json::parse(e.to_json());
  const nlohmann::json& signature = json["signatures"].at(0);
  const nlohmann::json& values = signature["values"];
  const nlohmann::json& last = signature["steps"].at(2);
  CHECK(values.at(0)["kind"] == "input");
  CHECK(values.at(0)["name"] == "argument 0 (x)");
  CHECK_FALSE(values.at(0).contains("offset"));
  const nlohmann::json& between = values.at(last["reads"].at(0)["value"].get<std::size_t>());
  CHECK(between["kind"] == "temporary");
  CHECK(between["offset"].is_number());
  CHECK(between["first_step"] == 1);
  CHECK(between["last_step"] == 2);
  CHECK(last["reads"].at(0)["from"] == 1);
  CHECK(last["operations"] == 2 * 8 * 16 * 16);
  CHECK(values.at(last["writes"].at(0)["value"].get<std::size_t>())["in_place"] == false);
  CHECK(signature["steps"].at(1)["kernel"].get<std::string>().starts_with("kernel "));
}

TEST_CASE("the page begins with a summary", "[jit][explain]") {
  const auto g = compile([](const Tensor& x) { return exp(x) * 2.0; }, {.name = "f"});
  settle(g, ramp(10));
  CHECK_THAT(to_string(g.explain()),
             Catch::StartsWith("f: 3 calls in 1 signature\n"
                               "  1 by plans, 2 recorded, 0 eager\n"
                               "  (float32[10]): compiled\n"
                               "    3 calls: 2 recorded, 1 by the plan, 0 eager\n"
                               "    plan: 1 step in ") &&
                 Catch::Contains("      1. kernel  exp, mul\n"
                                 "                 reads 40 B, writes 40 B"));
}

TEST_CASE("a second size prints what differs, not the Plan once more", "[jit][explain]") {
  const auto g = compile([](const Tensor& x) { return exp(x) * 2.0; }, {.name = "f"});
  for (const int64_t n : {10, 20}) settle(g, ramp(n));
  const std::string text = to_string(g.explain());
  const std::size_t second = text.find("(float32[20]): compiled");
  REQUIRE(second != std::string::npos);
  CHECK(text.find("1. kernel") < second);
  CHECK(text.find("1. kernel", second) == std::string::npos);
  CHECK_THAT(text.substr(second),
             Catch::Contains("recorded because argument 0 is float32[20], was "
                             "float32[10]\n") &&
                 Catch::Contains("      the steps of (float32[10]), each kernel reused\n"));
}
