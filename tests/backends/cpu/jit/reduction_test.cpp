// Generated reductions against the interpreter, bit for bit.

#include "core/math.h"
#include "tests/backends/cpu/jit/kernel_case.h"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::testing;

namespace {

DType dtype_with(ScalarType type) {
  for (int i = 0; i < dtype_count; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (compute_type(dtype) == type && dtype != f16 && dtype != bf16) return dtype;
  }
  return f32;
}

/// One reduction of formula(input) and a row stage that stores it.
template <class Formula>
Kernel reduction(Order order, DType input, Combine combine, Formula formula) {
  Kernel kernel;
  kernel.order = order;
  kernel.operands = {{.role = Role::input, .dtype = input}};
  Stage element;
  element.sources = {{Source::Kind::operand, 0}};
  const Expr value = formula(argument(element.program, compute_type(input), 0));
  element.sinks = {{Sink::Kind::accumulate, 0, value.id}};
  kernel.reductions = {{combine, value.type}};
  const ScalarType result = is_arg(combine) ? ScalarType::i64 : value.type;
  kernel.operands.push_back({.role = Role::output, .dtype = dtype_with(result)});
  Stage row;
  row.level = Stage::Level::row;
  row.sources = {{Source::Kind::reduction, 0}};
  row.sinks = {{Sink::Kind::store, 1, argument(row.program, result, 0).id}};
  kernel.stages = {element, row};
  return kernel;
}

Expr itself(Expr x) {
  return x;
}

void check(const Kernel& kernel, const std::vector<Domain>& domains, std::mt19937& random) {
  for (const Isa isa : isa_levels()) {
    const auto code = code_for(kernel, isa);
    for (const Domain& domain : domains) {
      INFO(name_of(isa) << " " << name_of(kernel.operands[0].dtype) << " "
                        << name_of(kernel.reductions[0].combine) << " size "
                        << domain.sizes.back());
      CHECK(difference(kernel, code, domain, random) == "");
    }
  }
}

std::vector<Domain> domains_of(Order order) {
  if (order == Order::lanes) {
    return {{.sizes = {1}},        {.sizes = {2, 31}},  {.sizes = {3, 64}}, {.sizes = {130}},
            {.sizes = {2, 4095}},  {.sizes = {4096}},   {.sizes = {9000}},  {.sizes = {70, 7}},
            {.sizes = {2, 3, 40}}, {.sizes = {9, 1500}}};
  }
  return {{.sizes = {1, 5}}, {.sizes = {2, 33, 3}}, {.sizes = {17, 300}}, {.sizes = {64, 2}}};
}

/// softmax: two reductions that depend on each other, and stores per element.
Kernel softmax(Order order, DType dtype) {
  Kernel kernel;
  kernel.order = order;
  kernel.operands = {{.role = Role::input, .dtype = dtype}, {.role = Role::output, .dtype = dtype}};
  kernel.reductions = {{Combine::maximum, ScalarType::f32}, {Combine::add, ScalarType::f32}};
  const auto begin = [](Stage& stage, int sources) {
    stage.sources = {{Source::Kind::operand, 0}};
    for (int r = 1; r < sources; ++r) {
      stage.sources.push_back({Source::Kind::reduction, static_cast<uint16_t>(r - 1)});
    }
    std::vector<Expr> arguments;
    for (int k = 0; k < sources; ++k) {
      arguments.push_back(argument(stage.program, ScalarType::f32, static_cast<uint32_t>(k)));
    }
    return arguments;
  };
  Stage largest, sum, quotient;
  largest.sinks = {{Sink::Kind::accumulate, 0, begin(largest, 1)[0].id}};
  const auto shifted = begin(sum, 2);
  sum.sinks = {{Sink::Kind::accumulate, 1, exp(shifted[0] - shifted[1]).id}};
  const auto all = begin(quotient, 3);
  quotient.sinks = {{Sink::Kind::store, 1, (exp(all[0] - all[1]) / all[2]).id}};
  kernel.stages = {largest, sum, quotient};
  return kernel;
}

}  // namespace

TEST_CASE("every reduction of every dtype, lanes and sequential", "[no-isa]") {
  std::mt19937 random(1);
  for (const Order order : {Order::lanes, Order::sequential}) {
    for (int i = 0; i < dtype_count; ++i) {
      const auto dtype = static_cast<DType>(i);
      for (const Combine combine : {Combine::add, Combine::multiply, Combine::maximum,
                                    Combine::minimum, Combine::logical_or, Combine::logical_and,
                                    Combine::arg_maximum, Combine::arg_minimum}) {
        const bool is_logical = combine == Combine::logical_or || combine == Combine::logical_and;
        const bool is_sum = combine == Combine::add || combine == Combine::multiply;
        if (dtype == boolean ? is_sum : is_logical) continue;
        check(reduction(order, dtype, combine, itself), domains_of(order), random);
      }
    }
  }
}

TEST_CASE("reductions of long programs", "[no-isa]") {
  std::mt19937 random(2);
  for (const Order order : {Order::lanes, Order::sequential}) {
    for (const DType dtype : {f16, f32, f64}) {
      const auto formula = [](Expr x) { return sin(x) * exp(-(x * x)) + tanh(x); };
      check(reduction(order, dtype, Combine::add, formula), domains_of(order), random);
      check(reduction(order, dtype, Combine::arg_maximum, formula), domains_of(order), random);
    }
  }
}

TEST_CASE("strided operands of reductions", "[no-isa]") {
  std::mt19937 random(3);
  for (const Order order : {Order::lanes, Order::sequential}) {
    Kernel kernel = reduction(order, f32, Combine::add, itself);
    for (const StrideClass c : {StrideClass::any, StrideClass::zero}) {
      kernel.operands[0].inner = c;
      if (c == StrideClass::any) kernel.operands[1].inner = c;
      check(kernel, domains_of(order), random);
    }
  }
}

TEST_CASE("stages that use the results of others", "[no-isa]") {
  std::mt19937 random(4);
  for (const Order order : {Order::lanes, Order::sequential}) {
    for (const DType dtype : {f32, bf16}) {
      check(softmax(order, dtype), domains_of(order), random);
    }
  }
}

TEST_CASE("several accumulators of different lanes, and row values", "[no-isa]") {
  std::mt19937 random(5);
  for (const Order order : {Order::lanes, Order::sequential}) {
    Kernel kernel;
    kernel.order = order;
    kernel.operands = {{.role = Role::input, .dtype = f32},
                       {.role = Role::output, .dtype = f64},
                       {.role = Role::output, .dtype = boolean},
                       {.role = Role::output, .dtype = f32}};
    kernel.reductions = {{Combine::add, ScalarType::f64},
                         {Combine::maximum, ScalarType::f32},
                         {Combine::logical_or, ScalarType::pred}};
    kernel.row_values = {ScalarType::f64, ScalarType::pred};
    Stage element;
    element.sources = {{Source::Kind::operand, 0}};
    const Expr x = argument(element.program, ScalarType::f32, 0);
    element.sinks = {{Sink::Kind::accumulate, 0, convert<double>(x).id},
                     {Sink::Kind::accumulate, 1, x.id},
                     {Sink::Kind::accumulate, 2, (x > 9.5).id}};
    Stage row;
    row.level = Stage::Level::row;
    row.sources = {
        {Source::Kind::reduction, 0}, {Source::Kind::reduction, 1}, {Source::Kind::reduction, 2}};
    const Expr sum = argument(row.program, ScalarType::f64, 0);
    const Expr largest = argument(row.program, ScalarType::f32, 1);
    const Expr any = argument(row.program, ScalarType::pred, 2);
    const Expr mixed = sum + convert<double>(largest);
    row.sinks = {{Sink::Kind::store, 1, mixed.id},
                 {Sink::Kind::store, 2, any.id},
                 {Sink::Kind::row_value, 0, sqrt(abs(mixed)).id},
                 {Sink::Kind::row_value, 1, any.id}};
    Stage last;
    last.sources = {
        {Source::Kind::operand, 0}, {Source::Kind::row_value, 0}, {Source::Kind::row_value, 1}};
    const Expr y = argument(last.program, ScalarType::f32, 0);
    const Expr scale = convert<float>(argument(last.program, ScalarType::f64, 1));
    const Expr flag = argument(last.program, ScalarType::pred, 2);
    last.sinks = {{Sink::Kind::store, 3, select(flag, y / scale, y).id}};
    kernel.stages = {element, row, last};
    check(kernel, domains_of(order), random);
  }
}
