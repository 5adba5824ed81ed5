// What a recorded call looks like, as text and as data.
#include "tracer/recorder.h"

#include "core/graph.h"
#include "nitinol.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <functional>
#include <thread>

using namespace nitinol;
using tracer::Trace;
using tracer::TraceInput;

namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

struct Arguments {
  std::vector<Tensor> tensors = {};
  std::vector<Variable> variables = {};
  std::vector<Tensor> scalars = {};
};

/// Records one call of `function`; assignments are committed if `commits`.
enum class Ending : uint8_t { commit, discard };
Trace record(const Arguments& arguments, const Function& function,
             Ending ending = Ending::discard) {
  tracer::Recorder recorder;
  std::vector<const Variable*> variables;
  for (const Variable& variable : arguments.variables) variables.push_back(&variable);
  recorder.declare_arguments(arguments.tensors, variables, arguments.scalars);
  std::vector<Tensor> results;
  {
    const InterpreterScope scope(recorder);
    results = function(arguments.tensors);
  }
  std::vector<const Tensor*> pointers;
  for (const Tensor& result : results) pointers.push_back(&result);
  Trace trace = recorder.finish(pointers);
  if (ending == Ending::commit) recorder.commit();
  verify(trace.graph, "recorder");
  return trace;
}

std::string text_of(const Arguments& arguments, const Function& function) {
  return to_string(record(arguments, function).graph);
}

Tensor ramp(int64_t n) {
  return arange(0, n, 1, f32);
}

}  // namespace

TEST_CASE("operations are recorded in order, with attributes and shapes", "[tracer]") {
  CHECK(
      text_of({{zeros({2, 3})}},
              [](const std::vector<Tensor>& x) { return std::vector{sum(exp(x[0]) * x[0], 1)}; }) ==
      "a: f32[2, 3] = input; b: f32[2, 3] = exp a; c: f32[2, 3] = mul b a; "
      "d: f32[2] = sum c axes=[1] keepdims=false; return d");
}

TEST_CASE("a recorded call returns eager's results", "[tracer]") {
  const Tensor x = ramp(10);
  Tensor seen;
  record({{x}}, [&](const std::vector<Tensor>& in) {
    seen = exp(in[0]) * 2.0;
    return std::vector{seen};
  });
  CHECK(same_bits(seen, exp(x) * 2.0));
}

TEST_CASE("composite operations are recorded as their expansion", "[tracer]") {
  const std::string text = text_of(
      {{zeros({2, 3})}}, [](const std::vector<Tensor>& x) { return std::vector{softmax(x[0])}; });
  CHECK_THAT(text, Catch::Contains("= max ") && Catch::Contains("= exp ") &&
                       Catch::Contains("= sum ") && !Catch::Contains("softmax"));
}

TEST_CASE("one tensor given twice is its first position", "[tracer]") {
  const Tensor x = ramp(2);
  CHECK(text_of({{x, x}}, [](const std::vector<Tensor>& in) {
          return std::vector{in[0] + in[1]};
        }) == "a: f32[2] = input; b: f32[2] = input; c: f32[2] = add a a; return c");
}

TEST_CASE("an argument may be returned, and a value twice", "[tracer]") {
  CHECK(text_of({{ramp(2)}}, [](const std::vector<Tensor>& in) {
          const Tensor y = exp(in[0]);
          return std::vector{in[0], y, y};
        }) == "a: f32[2] = input; b: f32[2] = exp a; return a b b");
}

TEST_CASE("captured tensors become constants, once each", "[tracer]") {
  const Tensor captured = tensor({1.0F, 2.0F});
  const Trace trace = record({{ramp(2)}}, [&](const std::vector<Tensor>& in) {
    return std::vector{in[0] * captured + captured};
  });
  CHECK(to_string(trace.graph) ==
        "a: f32[2] = input; b: f32[2] = constant [1, 2]; c: f32[2] = mul a b; "
        "d: f32[2] = add c b; return d");
  CHECK(trace.graph[1].constant.handle() == captured.handle());
  CHECK(trace.host_made.empty());
  CHECK_FALSE(trace.obstacle);
}

TEST_CASE("tensors made from host data are marked as such", "[tracer]") {
  const Trace trace = record({{ramp(2)}}, [](const std::vector<Tensor>& in) {
    return std::vector{in[0] * tensor({1.0F, 2.0F})};
  });
  CHECK(trace.host_made == std::vector<Value>{1});
  CHECK_FALSE(trace.obstacle);
}

TEST_CASE("much host data is an obstacle that says what to do", "[tracer]") {
  const std::vector<float> numbers(20000, 1.0F);
  const Trace trace = record({{ramp(20000)}}, [&](const std::vector<Tensor>& in) {
    return std::vector{in[0] * from_span<float>(numbers, {20000})};
  });
  REQUIRE(trace.obstacle);
  CHECK_THAT(trace.obstacle->reason, Catch::Contains("80000 bytes from host data") &&
                                         Catch::Contains("make it once outside"));
}

TEST_CASE("a look at the data is an obstacle with its place, and gives the value", "[tracer]") {
  float seen = 0;
  const Trace trace = record({{ramp(3)}}, [&](const std::vector<Tensor>& in) {
    seen = sum(in[0]).item<float>();
    return std::vector{in[0] * seen};
  });
  CHECK(seen == 3);
  REQUIRE(trace.obstacle);
  CHECK(trace.obstacle->reason == "the function looks at a tensor's elements by item()");
  CHECK_THAT(trace.obstacle->place, Catch::Contains("recorder_test.cpp:"));
}

TEST_CASE("a call of very many operations is an obstacle and still computes", "[tracer]") {
  Tensor seen;
  const Trace trace = record({{zeros({1})}}, [&](const std::vector<Tensor>& in) {
    seen = in[0];
    for (int i = 0; i < 100'001; ++i) seen = seen + 1.0;
    return std::vector{seen};
  });
  REQUIRE(trace.obstacle);
  CHECK(trace.obstacle->reason == "one call makes more than 100000 operations");
  CHECK(same_bits(seen, full({1}, 100'001.0F)));
}

TEST_CASE("the first obstacle is the one told", "[tracer]") {
  const Trace trace = record({{ramp(1)}}, [&](const std::vector<Tensor>& in) {
    if (in[0]) return in;
    return std::vector{in[0] * in[0].item<float>()};
  });
  REQUIRE(trace.obstacle);
  CHECK_THAT(trace.obstacle->reason, Catch::Contains("bool"));
}

TEST_CASE("data that goes through the host and back is an obstacle", "[tracer]") {
  const Trace trace = record({{ramp(3)}}, [&](const std::vector<Tensor>& in) {
    const std::vector<float> values = exp(in[0]).to_vector<float>();
    return std::vector{in[0] * from_span<float>(values, {3})};
  });
  REQUIRE(trace.obstacle);
  CHECK_THAT(trace.obstacle->reason, Catch::Contains("to_vector"));
}

TEST_CASE("a tensor that another thread makes meanwhile is an obstacle", "[tracer]") {
  const Trace trace = record({{ramp(3)}}, [](const std::vector<Tensor>& in) {
    Tensor other;
    std::thread([&other] { other = ramp(3) * 2.0; }).join();
    return std::vector{in[0] + other};
  });
  REQUIRE(trace.obstacle);
  CHECK_THAT(trace.obstacle->reason,
             Catch::Contains("float32[3] was made during the call but not by it"));
}

TEST_CASE("a tensor that another thread made before is a captured one", "[tracer]") {
  Tensor other;
  std::thread([&other] { other = ramp(3) * 2.0; }).join();
  const Trace trace = record(
      {{ramp(3)}}, [&](const std::vector<Tensor>& in) { return std::vector{in[0] + other}; });
  CHECK_FALSE(trace.obstacle);
}

TEST_CASE("Variables in arguments are inputs by position, others by cell", "[tracer]") {
  const Variable given(ramp(2));
  const Variable captured(ramp(2));
  const Trace trace = record({{}, {given}}, [&](const std::vector<Tensor>&) {
    const Tensor first = captured.get();
    return std::vector{first * given.get()};
  });
  CHECK(to_string(trace.graph) ==
        "a: f32[2] = input; b: f32[2] = input; c: f32[2] = mul a b; return c");
  REQUIRE(trace.inputs.size() == 2);
  CHECK(trace.inputs[0].kind == TraceInput::Kind::variable);
  CHECK(trace.inputs[0].leaf == -1);
  CHECK(trace.inputs[0].captured == captured);
  CHECK(trace.inputs[1].leaf == 0);
  CHECK_FALSE(trace.inputs[1].captured.is_defined());
}

TEST_CASE("assignments come after the results, the last one of each Variable", "[tracer]") {
  const Variable w(ramp(2));
  const Trace trace = record({{ramp(2)}}, [&](const std::vector<Tensor>& in) {
    w.set(in[0]);
    w += in[0];
    return std::vector{w.get() * in[0]};
  });
  CHECK(to_string(trace.graph) ==
        "a: f32[2] = input; b: f32[2] = add a a; c: f32[2] = mul b a; return c b");
  CHECK(trace.result_count == 1);
  REQUIRE(trace.assigned.size() == 1);
  CHECK(trace.assigned[0].captured == w);
}

TEST_CASE("Variables change when the recording is committed, and only then", "[tracer]") {
  const Variable w(zeros({2}));
  const Function step = [&](const std::vector<Tensor>&) {
    w += 1.0;
    return std::vector{w.get()};
  };
  record({}, step, Ending::discard);
  CHECK(same_bits(w.get(), zeros({2})));
  record({}, step, Ending::commit);
  CHECK(same_bits(w.get(), ones({2})));
}

TEST_CASE("HostValues that are read are guards", "[tracer]") {
  const HostValue<bool> training = true;
  const Trace trace = record({{ramp(2)}}, [&](const std::vector<Tensor>& in) {
    return std::vector{training ? in[0] * 2.0 : in[0]};
  });
  REQUIRE(trace.guards.size() == 1);
  CHECK(trace.guards[0].same(trace.guards[0].object.get(), trace.guards[0].bits));
}

TEST_CASE("layouts of arguments are recorded", "[tracer]") {
  const Trace trace = record({{transpose(zeros({2, 3}), 0, 1)}},
                             [](const std::vector<Tensor>& in) { return std::vector{exp(in[0])}; });
  CHECK(trace.graph[0].strides == Strides{1, 3});
}

TEST_CASE("a recording is on while the Recorder lives, on its thread", "[tracer]") {
  CHECK_FALSE(tracer::is_recording());
  record({}, [](const std::vector<Tensor>&) {
    CHECK(tracer::is_recording());
    bool elsewhere = true;
    std::thread([&elsewhere] { elsewhere = tracer::is_recording(); }).join();
    CHECK_FALSE(elsewhere);
    return std::vector<Tensor>{};
  });
  CHECK_FALSE(tracer::is_recording());
}
