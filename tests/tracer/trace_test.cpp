// Two recordings of one function: what counts as the same, and how a difference is told.
#include "tracer/trace.h"

#include "core/host_value.h"
#include "nitinol.h"
#include "tracer/recorder.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace nitinol;
using Catch::Matchers::Contains;
using tracer::Trace;

namespace {

using Function = std::function<Tensor(const Tensor&)>;

/// What a call f(x) does. The same x each time, as the arguments of one signature are alike.
Trace record(const Function& function, const Tensor& x) {
  tracer::Recorder recorder;
  // A handle of its own, as a compiled function gives it.
  const TensorData& data = x.internals();
  const std::vector<Tensor> arguments = {
      make_tensor(data.spec, data.strides, data.offset, data.storage)};
  recorder.declare_arguments(arguments, {}, {});
  Tensor result;
  {
    const InterpreterScope scope(recorder);
    result = function(arguments[0]);
  }
  const std::vector<const Tensor*> results = {&result};
  return recorder.finish(results);
}

/// What is told of the first difference, or "none".
std::string difference(const Function& before, const Function& now) {
  const Tensor x = arange(0, 12, 1, f32);
  return tracer::first_difference(record(before, x), record(now, x)).value_or("none");
}

}  // namespace

TEST_CASE("two recordings of one function agree", "[tracer][trace]") {
  const Variable w(ones({12}));
  const Tensor captured = full({12}, 3);
  const Function f = [&](const Tensor& x) {
    w += x;
    return sum(reshape(x * captured + tensor({1.5F}), {3, 4}), {1});
  };
  CHECK(difference(f, f) == "none");
}

TEST_CASE("another operation, attribute or operand is told", "[tracer][trace]") {
  CHECK_THAT(
      difference([](const Tensor& x) { return exp(x); }, [](const Tensor& x) { return log(x); }),
      Contains("it was exp") && Contains("now it is log"));
  CHECK_THAT(difference([](const Tensor& x) { return sum(x, {0}); },
                        [](const Tensor& x) { return sum(x, {0}, keepdims); }),
             Contains("keepdims=true"));
  CHECK_THAT(difference(
                 [](const Tensor& x) {
                   return flip(reshape(x, {3, 4}), {0});
                 },
                 [](const Tensor& x) {
                   return flip(reshape(x, {3, 4}), {1});
                 }),
             Contains("operation"));
  const auto swapped = [](const Tensor& x) {
    const Tensor y = exp(x);
    return y - x;
  };
  const auto straight = [](const Tensor& x) {
    const Tensor y = exp(x);
    return x - y;
  };
  CHECK_THAT(difference(straight, swapped), Contains("other operands"));
  CHECK_THAT(difference([](const Tensor& x) { return exp(x); },
                        [](const Tensor& x) { return exp(x) * 2; }),
             Contains("first extra one"));
}

TEST_CASE("captured tensors are the same part of the same memory", "[tracer][trace]") {
  const Tensor buffer = arange(0, 24, 1, f32);
  const auto part = [&](int64_t from, int64_t step = 1) -> Function {
    const Tensor captured = slice(buffer, 0, {from, from + 12 * step, step});
    return [captured](const Tensor& x) { return x * captured; };
  };
  CHECK(difference(part(0), part(0)) == "none");  // made anew, and yet the same part
  CHECK_THAT(difference(part(0), part(12)), Contains("another captured tensor"));
  CHECK_THAT(difference(part(0), part(0, 2)), Contains("another captured tensor"));
  const Function same_values = [copied = copy(slice(buffer, 0, {0, 12}))](const Tensor& x) {
    return x * copied;
  };
  CHECK_THAT(difference(part(0), same_values), Contains("another captured tensor"));
}

TEST_CASE("tensors made from host data are compared by bytes", "[tracer][trace]") {
  const auto times = [](float factor) -> Function {
    return [factor](const Tensor& x) { return x * tensor({factor}); };
  };
  CHECK(difference(times(2), times(2)) == "none");
  CHECK_THAT(difference(times(0.0F), times(-0.0F)), Contains("made from host data"));
  const Tensor outside = tensor({2.0F});
  CHECK_THAT(difference(times(2), [&](const Tensor& x) { return x * outside; }),
             Contains("changed its origin"));
}

TEST_CASE("other Variables, results and host values are told", "[tracer][trace]") {
  const Variable a(ones({12}));
  const Variable b(ones({12}));
  const auto reads = [](const Variable& v) -> Function {
    return [&v](const Tensor& x) { return x + v; };
  };
  CHECK(difference(reads(a), reads(a)) == "none");
  CHECK_THAT(difference(reads(a), reads(b)), Contains("other Variables are read"));
  const auto assigns = [](const Variable& v) -> Function {
    return [&v](const Tensor& x) {
      v.set(x + 1);
      return x;
    };
  };
  CHECK_THAT(difference(assigns(a), assigns(b)), Contains("other Variables are assigned"));
  const auto returns = [](bool first) -> Function {
    return [first](const Tensor& x) {
      const Tensor y = exp(x);
      const Tensor z = log(x);
      return first ? y : z;
    };
  };
  CHECK_THAT(difference(returns(true), returns(false)), Contains("other values are returned"));
  HostValue<int> mode(1);
  const Function asks = [mode](const Tensor& x) {
    static_cast<void>(static_cast<int>(mode));
    return x + 1;
  };
  const Tensor x = ones({12});
  const Trace one = record(asks, x);
  mode = 2;
  CHECK(tracer::first_difference(one, record(asks, x)));
}
