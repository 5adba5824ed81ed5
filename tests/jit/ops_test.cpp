// Every op of the table, compiled against eager.
//
// Samples are compiled many at a time, as one function of all their operands: a Plan then has as
// many steps as there are samples, and the work per signature is paid once.
#include "core/executables.h"
#include "eager/apply.h"
#include "eager/promotion.h"
#include "tests/jit/calls.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <array>
#include <set>
#include <tuple>

using namespace nitinol;
using namespace nitinol::test;

namespace {

using Tensors = std::vector<Tensor>;

Tensor apply_to(const Op& op, const Tensors& inputs, const Attrs& attrs) {
  std::vector<const Tensor*> pointers;
  for (const Tensor& input : inputs) pointers.push_back(&input);
  return apply(op, pointers, attrs);
}

/// Something elementwise that changes the bits.
Tensor changed(const Tensor& x) {
  if (x.dtype() == boolean) return logical_not(x);
  return x * 3 - 1;
}

/// The op on operands that were computed, with a reader of its result. Operands that must stay
/// what they are (indices, divisors, bounds) are left alone.
Tensor embedded(const Op& op, Tensors inputs, const Attrs& attrs) {
  const bool is_fragile = op.effect == Effect::may_fail || op.kind == OpKind::create;
  if (!is_fragile) {
    const bool is_where = op.name == "where";
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      if (!(is_where && k == 0)) inputs[k] = changed(inputs[k]);
    }
  }
  return changed(apply_to(op, inputs, attrs));
}

/// True if eager computes it: what an op makes of a neighbour may be no operand of it.
bool is_accepted(const Op& op, const Sample& sample) {
  return error_of([&] { return embedded(op, sample.inputs, sample.attrs); }) == "no error";
}

/// True for samples worth embedding: all of f32, and every fourth of two others. The rest of the
/// table is covered by applying the op alone; each kernel takes milliseconds.
bool is_chosen(const Sample& sample, std::size_t number) {
  const DType dtype = sample.inputs[0].dtype();
  return dtype == f32 || ((dtype == f16 || dtype == i8) && number % 4 == 1);
}

using Application = Tensor (*)(const Op&, Tensors, const Attrs&);

Tensor plain(const Op& op, Tensors inputs, const Attrs& attrs) {
  return apply_to(op, inputs, attrs);
}

/// What moves tensors to another device runs eagerly (tests/backends/devices_test.cpp).
bool is_compiled(const Op& op) {
  return op.kind != OpKind::transfer;
}

/// Compiles one function of all samples and compares it with eager, at 1 and 2 threads.
void check_compiled(const Op& op, const std::vector<Sample>& list, Application application) {
  const auto all = [&op, &list, application](const std::vector<Tensors>& operands) {
    Tensors results;
    for (std::size_t i = 0; i < list.size(); ++i)
      results.push_back(application(op, operands[i], list[i].attrs));
    return results;
  };
  std::vector<Tensors> operands;
  for (const Sample& sample : list) operands.push_back(sample.inputs);
  const auto compiled = compile(all, {.name = std::string(op.name)});
  for (const int threads : {1, 2}) {
    const Threads scope(threads);
    const Tensors expected = all(operands);
    const Tensors got = settle(compiled, operands);
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      INFO(list[i].describe(op) << " threads " << threads);
      CHECK(same_bits(got[i], expected[i]));
      CHECK(got[i].spec() == expected[i].spec());
    }
  }
  INFO(compiled.explain());
  CHECK(compiled.explain().plan_calls >= 2);
  CHECK(compiled.explain().eager_calls == 0);
}

/// One number of each kind, as arguments of a compiled function.
struct Given {
  Scalar truth, integer, real;
};

/// An application of which operand `place` is a number: by itself, or broadcast to the operand's
/// shape.
struct WithNumber {
  Sample sample;
  std::size_t place = 0;
  bool is_expanded = false;

  [[nodiscard]] Tensor apply(const Op& op, const Given& given) const {
    Tensors inputs = sample.inputs;
    Tensor& operand = inputs[place];
    const DType dtype = operand.dtype();
    const Argument number(dtype == boolean    ? given.truth
                          : is_integer(dtype) ? given.integer
                                              : given.real);
    const Promoted promoted("test", number, dtype);
    operand = is_expanded ? expand(*promoted.get(), operand.shape()) : *promoted.get();
    return apply_to(op, inputs, sample.attrs);
  }
};

/// For every operand of the op and every dtype: an application that eager takes.
std::vector<WithNumber> with_numbers(const Op& op, const Given& given) {
  std::vector<WithNumber> out;
  std::set<std::tuple<std::size_t, DType, DType, bool>> seen;
  for (const Sample& sample : samples(op)) {
    for (std::size_t k = 0; k < sample.inputs.size(); ++k) {
      for (const bool is_expanded : {false, true}) {
        const WithNumber candidate = {sample, k, is_expanded};
        const auto key =
            std::tuple(k, sample.inputs[0].dtype(), sample.inputs[k].dtype(), is_expanded);
        if (seen.contains(key)) continue;
        if (error_of([&] { return candidate.apply(op, given); }) != "no error") continue;
        seen.insert(key);
        out.push_back(candidate);
      }
    }
  }
  return out;
}

/// Samples that should be refused: operands of dtypes that the op does not take, and of a shape
/// that fits nothing.
std::vector<Sample> wrong_samples(const Op& op) {
  std::vector<Sample> out;
  const Sample good = samples(op).front();
  for (std::size_t k = 0; k < good.inputs.size(); ++k) {
    for (const DType dtype : {boolean, i64, f32, f64}) {
      out.push_back(good);
      out.back().inputs[k] = cast(good.inputs[k], dtype);
    }
    out.push_back(good);
    out.back().inputs[k] = zeros({2, 3, 5, 7, 11}, good.inputs[k].dtype());
  }
  return out;
}

}  // namespace

TEST_CASE("every op gives eager's bits when compiled", "[jit][ops]") {
  for (const Op* op : all_ops()) {
    if (is_compiled(*op)) check_compiled(*op, samples(*op), plain);
  }
}

TEST_CASE("every op gives eager's bits between elementwise neighbours", "[jit][ops]") {
  for (const Op* op : all_ops()) {
    if (!is_compiled(*op)) continue;
    const std::vector<Sample> all = samples(*op);
    std::vector<Sample> list;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (is_chosen(all[i], i) && is_accepted(*op, all[i])) list.push_back(all[i]);
    }
    if (list.empty() && is_accepted(*op, all.back())) list.push_back(all.back());
    INFO(op->name);
    REQUIRE_FALSE(list.empty());
    check_compiled(*op, list, embedded);
  }
}

TEST_CASE("a Scalar argument is an operand of every op at every place", "[jit][ops]") {
  const Given first = {true, 2, 0.75};
  const std::array<Given, 3> others = {{{false, 1, -1.5}, {true, 3, 0.0}, {true, 2, 0.75}}};
  std::size_t count = 0;
  for (const Op* op : all_ops()) {
    if (!is_compiled(*op)) continue;
    const std::vector<WithNumber> list = with_numbers(*op, first);
    const auto f = [&](const Scalar& truth, const Scalar& integer, const Scalar& real) {
      Tensors results;
      for (const WithNumber& item : list)
        results.push_back(item.apply(*op, {truth, integer, real}));
      return results;
    };
    if (list.empty()) continue;
    count += list.size();
    const auto compiled = compile(f, {.name = std::string(op->name), .check = Check::never});
    settle(compiled, first.truth, first.integer, first.real);
    INFO(compiled.explain());
    CHECK(compiled.explain().plan_calls == 1);
    for (const Given& given : others) {
      const Tensors expected = f(given.truth, given.integer, given.real);
      const Tensors got = compiled(given.truth, given.integer, given.real);
      for (std::size_t i = 0; i < list.size(); ++i) {
        INFO(list[i].sample.describe(*op) << " operand " << list[i].place);
        CHECK(same_bits(got[i], expected[i]));
        CHECK(got[i].spec() == expected[i].spec());
      }
    }
  }
  CHECK(count > 500);
}

TEST_CASE("what an op refuses it refuses with the same words when compiled", "[jit][ops]") {
  int refused = 0;
  for (const Op* op : all_ops()) {
    const Attrs attrs = samples(*op).front().attrs;
    const auto f = [&](const Tensors& inputs) { return apply_to(*op, inputs, attrs); };
    const auto g = compile(f);
    settle(g, samples(*op).front().inputs);
    for (const Sample& sample : wrong_samples(*op)) {
      INFO(sample.describe(*op));
      const std::string eager = error_of([&] { return f(sample.inputs); });
      CHECK(error_of([&] { return g(sample.inputs); }) == eager);
      refused += eager == "no error" ? 0 : 1;
    }
  }
  CHECK(refused > 50);
}

TEST_CASE("values that an op refuses are refused by its Plan with eager's words", "[jit][ops]") {
  const auto check = [](const auto& f, const Tensor& a, const Tensor& good, const Tensor& bad) {
    const auto g = compile(f, {.name = "g", .check = Check::never});
    CHECK(same_bits(settle(g, a, good), f(a, good)));
    const std::string eager = error_of([&] { return f(a, bad); });
    CHECK(eager != "no error");
    CHECK(error_of([&] { return g(a, bad); }) == eager);
    CHECK(g.explain().failed_checks == 1);
    CHECK(same_bits(g(a, good), f(a, good)));
  };
  const auto all_but_zero = [](const Tensor& x, const Tensor& y) {
    check_nonzero(y);  // stays, though its result is not used
    return x * 2;
  };
  for (const DType dtype : {u8, i8, u16, i16, u32, i32, u64, i64}) {
    const Tensor a = random_values(dtype, {300}, 1);
    const Tensor good = full({300}, 7, dtype);
    const Tensor bad = where(arange(300) == 299, zeros({300}, dtype), good);
    const auto divide = [](const Tensor& x, const Tensor& y) { return floor_divide(x, y) + 1; };
    const auto rest = [](const Tensor& x, const Tensor& y) { return remainder(x, y) * 2; };
    INFO(name_of(dtype));
    check(divide, a, good, bad);
    check(rest, a, good, bad);
    check(all_but_zero, a, good, bad);
    check(all_but_zero, a, flip(good, {0}) != 0, bad != 0);
  }
  const auto rows = [](const Tensor& x, const Tensor& y) { return take(x, y) * 2.0; };
  const auto with_number = [](const Tensor& x, const Scalar& n) { return x + n * 2; };
  for (const DType dtype : {u8, i8, u16, i16, u32, i32}) {
    INFO(name_of(dtype));
    const Tensor x = random_values(dtype, {300}, 1);
    const auto g = compile(with_number, {.name = "g", .check = Check::never});
    CHECK(same_bits(settle(g, x, 11), with_number(x, 11)));
    const int64_t large = int64_t{1} << (8 * size_of(dtype) - 1);
    for (const int64_t bad : {large, -1 - large}) {
      const std::string eager = error_of([&] { return with_number(x, bad); });
      CHECK(eager.starts_with("value"));
      CHECK(error_of([&] { return g(x, bad); }) == eager);
    }
    CHECK(g.explain().failed_checks == 2);
    CHECK(same_bits(g(x, 12), with_number(x, 12)));
  }
  const Tensor wide = random_values(u64, {300}, 1);
  const auto with_wide = compile(with_number, {.name = "g", .check = Check::never});
  CHECK(same_bits(settle(with_wide, wide, 11), with_number(wide, 11)));
  CHECK(error_of([&] { return with_wide(wide, -1); }) ==
        error_of([&] { return with_number(wide, -1); }));
  CHECK(with_wide.explain().failed_checks == 1);
  const Tensor table = random_values(f32, {4, 3}, 2);
  check(rows, table, tensor({0, 3, -4}), tensor({0, 3, 4}));
  check(rows, table, tensor({0, 3, -4}), tensor({-5, 3, 3}));
  const auto along = [](const Tensor& x, const Tensor& y) { return gather(x, 1, y) * 2.0; };
  const auto back = [](const Tensor& x, const Tensor& y) { return scatter_add_along(x, 1, y, 3); };
  const Tensor good = tensor({{0}, {2}, {-3}, {-1}});
  for (const Tensor& bad : {tensor({{0}, {2}, {3}, {-1}}), tensor({{0}, {-4}, {1}, {9}})}) {
    check(along, table, good, bad);
    check(back, table, good, bad);
  }
}
