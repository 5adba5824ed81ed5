// How far is each function of core/math.h from the true value, and how fast is it?
//
// float64: 2^22 random arguments over several ranges, against the C library in long double.
// float32: all 2^32 arguments (all bit patterns, NaN included), against the same formula in
// float64, whose own error is the other row's (2^-29 of a float32 ulp). Functions of two: 2^24
// random pairs, against the C library. Prints the table of docs/accuracy.md; minutes. With
// arguments: only those functions.
//
// Fails if a function of the vocabulary that rounds more than once (its program has more than one
// rounding instruction) has no row here, or none in docs/accuracy.md.
//
// Error in ulp: |result - true| divided by the spacing of floats at the true value. A wrong NaN,
// infinity or sign of zero counts as infinite error.

#include "bench/special_functions.h"
#include "core/loop.h"
#include "core/math.h"
#include "eager/all_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

/// The worst result found.
template <class T>
struct Worst {
  double ulp = 0;
  T x = 0, y = 0;
  void take(const Worst& other) {
    if (other.ulp > ulp) *this = other;
  }
};

template <class T, class Reference>
double error_in_ulp(T got, Reference want) {
  constexpr double wrong = std::numeric_limits<double>::infinity();
  using Limits = std::numeric_limits<T>;
  if (std::isnan(want) || std::isnan(got)) return std::isnan(want) == std::isnan(got) ? 0 : wrong;
  if (std::isinf(want) || want == 0) {
    return got == static_cast<T>(want) && std::signbit(got) == std::signbit(want) ? 0 : wrong;
  }
  if (got == 0 && std::signbit(got) != std::signbit(want)) return wrong;
  // Overflow is right where the true value rounds to it; measured as if the range went on.
  if (std::isinf(got) && std::isinf(static_cast<T>(want))) return 0;
  const Reference beyond = std::ldexp(Reference{1}, Limits::max_exponent);
  const Reference value = std::isinf(got) ? std::copysign(beyond, Reference{got}) : Reference{got};
  const int exponent = std::max(std::ilogb(want), Limits::min_exponent - 1);
  return static_cast<double>(std::ldexp(std::abs(value - want), Limits::digits - 1 - exponent));
}

/// The same in ulp of `least`, where the true value is smaller.
template <class T, class Reference>
double error_in_ulp_of(Reference least, T got, Reference want) {
  if (!(std::abs(want) < least) || !std::isfinite(got)) return error_in_ulp(got, want);
  const int digits = std::numeric_limits<T>::digits - 1 - std::ilogb(least);
  return static_cast<double>(std::ldexp(std::abs(got - want), digits));
}

constexpr std::size_t chunk = 1 << 16;

/// error_in_ulp<float>, quick where neither number is special.
double quick_error(float got, double want) {
  constexpr int mantissa = math::Format<float>::mantissa, wide = math::Format<double>::mantissa;
  constexpr int bias = math::Format<double>::bias;
  if (!(std::abs(want) < std::numeric_limits<float>::max()) || want == 0 || got == 0 ||
      !std::isfinite(got)) {
    return error_in_ulp(got, want);
  }
  const int biased = static_cast<int>(std::bit_cast<uint64_t>(want) >> wide & 0x7ff);
  const int exponent = std::max(biased - bias, std::numeric_limits<float>::min_exponent - 1);
  const auto scale = static_cast<uint64_t>(bias + mantissa - exponent) << wide;
  return std::abs(got - want) * std::bit_cast<double>(scale);
}

/// All f32 arguments whose upper 16 bits are in [first, last).
Worst<float> check_chunks(Loop loop, Loop reference, uint32_t first, uint32_t last) {
  std::vector<float> x(chunk), y(chunk);
  std::vector<double> wide(chunk), want(chunk);
  Worst<float> worst;
  for (uint32_t high = first; high < last; ++high) {
    for (uint32_t low = 0; low < chunk; ++low) x[low] = std::bit_cast<float>(high << 16 | low);
    std::copy(x.begin(), x.end(), wide.begin());
    const void *const in[] = {x.data()}, *const wide_in[] = {wide.data()};
    loop(in, y.data(), static_cast<int64_t>(chunk));
    reference(wide_in, want.data(), static_cast<int64_t>(chunk));
    for (std::size_t i = 0; i < chunk; ++i) {
      worst.take({quick_error(y[i], want[i]), x[i], 0});
    }
  }
  return worst;
}

Worst<float> check_all_f32(Loop loop, Loop reference) {
  Worst<float> lower, upper;
  std::thread other([&] { lower = check_chunks(loop, reference, 0, chunk / 2); });
  upper = check_chunks(loop, reference, chunk / 2, chunk);
  other.join();
  lower.take(upper);
  return lower;
}

/// Random bit patterns, and numbers of moderate size of either sign.
template <class T>
T random_argument(std::mt19937_64& random) {
  const auto unit = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  switch (random() % 4) {
    case 0:
      return std::bit_cast<T>(static_cast<native::Bits<T>>(random()));
    case 1:
      return static_cast<T>(unit() * 2 - 1);
    case 2:
      return static_cast<T>(unit() * 60 - 30);
    default:
      return static_cast<T>(std::exp(unit() * 40 - 20) * (unit() < 0.5 ? -1 : 1));
  }
}

template <class Reference, class Unit>
Worst<double> check_f64(Loop loop, Reference reference, Unit of) {
  std::mt19937_64 random(1);
  std::vector<double> x(1 << 22), y(x.size());
  for (double& value : x) value = random_argument<double>(random);
  const void* const in[] = {x.data()};
  loop(in, y.data(), static_cast<int64_t>(x.size()));
  Worst<double> worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double wide = x[i], want = reference(wide);
    worst.take({error_in_ulp_of<double, long double>(of(wide), y[i], want), x[i], 0});
  }
  return worst;
}

/// In [0, 1).
double unit(std::mt19937_64& random) {
  return static_cast<double>(random() >> 11) * 0x1p-53;
}

/// y for an x that makes pow(x, y) any number.
template <class T>
T exponent_for(T& x, std::mt19937_64& random) {
  x = std::abs(x);
  const double position = unit(random) * 2.2 - 1.1;
  return static_cast<T>(position * std::log(std::numeric_limits<T>::max()) / std::log(x));
}
/// y of about the size of x.
template <class T>
T beside(T& x, std::mt19937_64& random) {
  return static_cast<T>(x * std::exp2(unit(random) * 60 - 30) * (unit(random) < 0.5 ? -1 : 1));
}
/// y at a distance from x.
template <class T>
T away_from(T& x, std::mt19937_64& random) {
  if (unit(random) < 0.5) x = static_cast<T>(-std::exp(unit(random) * 40 - 38));
  return x + static_cast<T>((unit(random) * 2 - 1) * 50);
}

/// Half of the pairs are arbitrary, for half `other` chooses the second number. `unit` is a number
/// whose ulp is the unit.
template <class T, class Wide, class Reference, class Other, class Unit>
Worst<T> check_pairs(Loop loop, Reference reference, Other other, Unit of) {
  std::mt19937_64 random(2);
  std::vector<T> x(1 << 24), y(x.size()), z(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = random_argument<T>(random);
    y[i] = random_argument<T>(random);
    if (i % 2 != 0) y[i] = other(x[i], random);
  }
  const void* const in[] = {x.data(), y.data()};
  loop(in, z.data(), static_cast<int64_t>(x.size()));
  Worst<T> worst;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Wide want = reference(Wide{x[i]}, Wide{y[i]}), least = of(Wide{x[i]}, Wide{y[i]});
    worst.take({error_in_ulp_of<T, Wide>(least, z[i], want), x[i], y[i]});
  }
  return worst;
}

/// Elements per second, one thread, in cache, arguments in [low, high].
template <class T, int inputs>
double speed(Loop loop, double low, double high) {
  using Clock = std::chrono::steady_clock;
  std::vector<T> x(4096), y(x.size());
  const double step = (high - low) / static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    x[i] = static_cast<T>(low + step * static_cast<double>(i));
  }
  const void* const in[] = {x.data(), x.data()};
  double best = 0;
  for (int round = 0; round < 10; ++round) {
    const auto start = Clock::now();
    for (int k = 0; k < 50; ++k) loop(in, y.data(), static_cast<int64_t>(x.size()));
    const std::chrono::duration<double> took = Clock::now() - start;
    best = std::max(best, 50 * static_cast<double>(x.size()) / took.count());
  }
  return best * 1e-9;
}

template <class T, int inputs>
void print_row(std::string_view name, const Loops& loops, const Worst<T>& worst, double low,
               double high) {
  std::printf("| %.*s | %s | %.3f | ", static_cast<int>(name.size()), name.data(),
              sizeof(T) == 4 ? "f32" : "f64", worst.ulp);
  std::printf(sizeof(T) == 4 ? "%.9g" : "%.17g", static_cast<double>(worst.x));
  if (inputs == 2) std::printf(sizeof(T) == 4 ? ", %.9g" : ", %.17g", static_cast<double>(worst.y));
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (isa <= host_isa()) {
      std::printf(" | %.2f", speed<T, inputs>(loops.at(isa), low, high));
    } else {
      std::printf(" | -");
    }
  }
  std::printf(" |\n");
  std::fflush(stdout);
}

/// The functions that were looked for.
std::set<std::string_view>& known() {
  static std::set<std::string_view> names;
  return names;
}

bool is_wanted(std::string_view name, std::span<char* const> names) {
  known().insert(name);
  return names.empty() || std::ranges::find(names, name) != names.end();
}

constexpr auto no_unit = [](auto...) { return 0; };

/// `of` gives a number whose ulp is the unit, unless the result's is larger.
template <class F, class Reference, class Unit = decltype(no_unit)>
void check(std::string_view name, F, Reference reference, double low, double high,
           std::span<char* const> names, Unit of = no_unit) {
  if (!is_wanted(name, names)) return;
  constexpr const Loops& f32 = loops_of<F, float, float>;
  constexpr const Loops& f64 = loops_of<F, double, double>;
  print_row<float, 1>(name, f32, check_all_f32(f32.pick(), f64.pick()), low, high);
  print_row<double, 1>(name, f64, check_f64(f64.pick(), reference, of), low, high);
}
long double logistic(long double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
template <class F>
auto times_x(F f) {
  return [f](long double x) { return x * f(x); };
}

/// Exponents that pow decides by products and roots: all f32 numbers to each of them.
template <std::size_t k>
void check_power(std::span<char* const> names) {
  constexpr double exponent = math::simple_exponents[k];
  static const std::string name = fmt::format("pow {}", exponent);
  check(
      name,
      [](auto x) {
        constexpr double y = math::simple_exponents[k];
        return pow(x, constant<Element<decltype(x)>>(x, y));
      },
      [](long double x) { return std::pow(x, static_cast<long double>(exponent)); }, 0.1, 5, names);
}

template <std::size_t... k>
void check_powers(std::span<char* const> names, std::index_sequence<k...>) {
  (check_power<k>(names), ...);
}

void check_activations(std::span<char* const> names) {
  check(
      "sigmoid", [](auto x) { return sigmoid(x); }, logistic, -5, 5, names);
  check(
      "silu", [](auto x) { return silu(x); }, times_x(logistic), -5, 5, names);
  check(
      "gelu", [](auto x) { return gelu(x); }, times_x(special::normal_cdf), -5, 5, names);
  check(
      "gelu_tanh", [](auto x) { return gelu_tanh(x); }, times_x([](long double x) {
        return logistic(1.595769121605730711759542394021987L * (x + 0.044715L * x * x * x));
      }),
      -5, 5, names);
  check(
      "softplus", [](auto x) { return select(x <= 0, 0, x) + log1p(exp(-abs(x))); },
      [](long double x) { return std::max(x, 0.0L) + std::log1p(std::exp(-std::abs(x))); }, -5, 5,
      names);
  check(
      "rsqrt", [](auto x) { return 1 / sqrt(x); }, [](long double x) { return 1 / std::sqrt(x); },
      0.1, 10, names);
  check(
      "elu", [](auto x) { return elu(x, decltype(x)(1)); },
      [](auto x) { return x > 0 ? x : std::expm1(x); }, -5, 5, names);
  check(
      "mish", [](auto x) { return mish(x); },
      [](auto x) { return x * std::tanh(std::log1p(std::exp(x))); }, -5, 5, names);
  check(
      "hardsigmoid", [](auto x) { return hardsigmoid(x); },
      [](auto x) {
        using T = decltype(x);
        return x <= -3 ? T{0} : x >= 3 ? T{1} : (x + 3) / 6;
      },
      -5, 5, names);
  check(
      "hardswish", [](auto x) { return hardswish(x); },
      [](auto x) {
        using T = decltype(x);
        return x <= -3 ? T{0} : x >= 3 ? x : x * (x + 3) / 6;
      },
      -5, 5, names);
}

/// Ops without a row: quotients and ranges, whose parts are exact or have rows, and clamp, which
/// adds to make a NaN only.
constexpr std::string_view composed[] = {"remainder", "floor_divide", "fmod",
                                         "clamp",     "fmax",         "fmin"};

bool rounds(const ScalarInstr& instr) {
  switch (instr.op) {
    case ScalarOp::add:
    case ScalarOp::sub:
    case ScalarOp::mul:
    case ScalarOp::div:
    case ScalarOp::fma:
    case ScalarOp::sqrt:
      return is_float(instr.type);
    default:
      return false;
  }
}

/// False, with a line for each, if functions lack a row here or in docs/accuracy.md.
bool check_vocabulary() {
  std::ifstream file(NITINOL_SOURCE_DIR "/docs/accuracy.md");
  const std::string page((std::istreambuf_iterator<char>(file)), {});
  bool is_complete = true;
  for (const Op* op : all_ops()) {
    if (op->kind != OpKind::elementwise || op->formula.emit == nullptr || op->is_predicate ||
        !op->accepts.contains(f32)) {
      continue;
    }
    ScalarProgram program;
    std::vector<Expr> arguments;
    for (int k = 0; k < op->arity; ++k) {
      const bool is_condition = op->name == "where" && k == 0;
      arguments.push_back(argument(program, is_condition ? ScalarType::pred : ScalarType::f32,
                                   static_cast<uint32_t>(k)));
    }
    static_cast<void>(op->formula.emit(arguments));
    const bool is_composed = std::ranges::find(composed, op->name) != std::end(composed);
    if (std::ranges::count_if(program.instrs, rounds) <= 1 || is_composed) continue;
    const std::string row = "| " + std::string(op->name) + " | f32 |";
    if (known().contains(op->name) && page.find(row) != std::string::npos) continue;
    std::fprintf(stderr, "%s has no row%s\n", op->name.data(),
                 known().contains(op->name) ? " in docs/accuracy.md" : "");
    is_complete = false;
  }
  return is_complete;
}

void check_functions(std::span<char* const> names) {
  std::printf("| function | type | max ulp | at | baseline | avx2 | avx512 |\n");
  std::printf("|---|---|---|---|---|---|---|\n");
  check(
      "exp", [](auto x) { return exp(x); }, [](auto x) { return std::exp(x); }, -5, 5, names);
  check(
      "exp2", [](auto x) { return exp2(x); }, [](auto x) { return std::exp2(x); }, -5, 5, names);
  check(
      "expm1", [](auto x) { return expm1(x); }, [](auto x) { return std::expm1(x); }, -5, 5, names);
  check(
      "log", [](auto x) { return log(x); }, [](auto x) { return std::log(x); }, 0.01, 10, names);
  check(
      "log2", [](auto x) { return log2(x); }, [](auto x) { return std::log2(x); }, 0.01, 10, names);
  check(
      "log10", [](auto x) { return log10(x); }, [](auto x) { return std::log10(x); }, 0.01, 10,
      names);
  check(
      "log1p", [](auto x) { return log1p(x); }, [](auto x) { return std::log1p(x); }, -0.9, 10,
      names);
  check(
      "sin", [](auto x) { return sin(x); }, [](auto x) { return std::sin(x); }, -6, 6, names);
  check(
      "cos", [](auto x) { return cos(x); }, [](auto x) { return std::cos(x); }, -6, 6, names);
  check(
      "tan", [](auto x) { return tan(x); }, [](auto x) { return std::tan(x); }, -6, 6, names);
  check(
      "tanh", [](auto x) { return tanh(x); }, [](auto x) { return std::tanh(x); }, -4, 4, names);
  check(
      "erf", [](auto x) { return erf(x); }, [](auto x) { return std::erf(x); }, -3, 3, names);
  check(
      "sqrt", [](auto x) { return sqrt(x); }, [](auto x) { return std::sqrt(x); }, 0, 10, names);
}

/// `reference` in double for f32, in long double for f64.
template <class F, class Reference, class Other, class Unit>
void check_binary(std::string_view name, F, Reference reference, Other other, Unit of,
                  std::span<char* const> names) {
  if (!is_wanted(name, names)) return;
  constexpr const Loops& f32 = loops_of<F, float, float, float>;
  constexpr const Loops& f64 = loops_of<F, double, double, double>;
  print_row<float, 2>(name, f32, check_pairs<float, double>(f32.pick(), reference, other, no_unit),
                      0.1, 5);
  print_row<double, 2>(name, f64,
                       check_pairs<double, long double>(f64.pick(), reference, other, of), 0.1, 5);
}

/// Wherever a NaN is not the result's, or an infinity is.
template <class Wide>
Wide log_of_sum(Wide a, Wide b) {
  if (a == b) return a + std::log(Wide{2});
  return std::max(a, b) + std::log1p(std::exp(-std::abs(a - b))) + (a - a) * 0 + (b - b) * 0;
}

void check_binaries(std::span<char* const> names) {
  const auto power = [](auto& x, auto& random) { return exponent_for(x, random); };
  const auto near_it = [](auto& x, auto& random) { return beside(x, random); };
  const auto away = [](auto& x, auto& random) { return away_from(x, random); };
  check_binary(
      "pow", [](auto x, auto y) { return pow(x, y); },
      [](auto x, auto y) { return std::pow(x, y); }, power, no_unit, names);
  check_binary(
      "atan2", [](auto y, auto x) { return atan2(y, x); },
      [](auto y, auto x) { return std::atan2(y, x); }, near_it, no_unit, names);
  check_binary(
      "hypot", [](auto x, auto y) { return hypot(x, y); },
      [](auto x, auto y) { return std::hypot(x, y); }, near_it, no_unit, names);
  check_binary(
      "logaddexp", [](auto x, auto y) { return logaddexp(x, y); },
      [](auto x, auto y) { return log_of_sum(x, y); }, away,
      [](auto x, auto y) { return std::log1p(std::exp(-std::abs(x - y))); }, names);
}

void check_inverses(std::span<char* const> names) {
  check(
      "cbrt", [](auto x) { return cbrt(x); }, [](auto x) { return std::cbrt(x); }, -5, 5, names);
  check(
      "erfc", [](auto x) { return erfc(x); }, [](auto x) { return std::erfc(x); }, -3, 3, names);
  check(
      "erfinv", [](auto x) { return erfinv(x); }, special::erfinv, -1, 1, names);
  // On the left, that of what is reflected, or of 1.
  check(
      "lgamma", [](auto x) { return lgamma(x); }, [](auto x) { return std::lgamma(x); }, 0.1, 10,
      names, [](auto x) { return x < 0 ? std::max(std::lgamma(1 - x), 1.0L) : 0.0L; });
  check(
      "digamma", [](auto x) { return digamma(x); }, special::digamma, 0.1, 10, names,
      [](auto x) { return x < 0 ? std::max(special::digamma(1 - x), 1.0L) : 0.0L; });
  check(
      "asin", [](auto x) { return asin(x); }, [](auto x) { return std::asin(x); }, -1, 1, names);
  check(
      "acos", [](auto x) { return acos(x); }, [](auto x) { return std::acos(x); }, -1, 1, names);
  check(
      "atan", [](auto x) { return atan(x); }, [](auto x) { return std::atan(x); }, -5, 5, names);
  check(
      "sinh", [](auto x) { return sinh(x); }, [](auto x) { return std::sinh(x); }, -5, 5, names);
  check(
      "cosh", [](auto x) { return cosh(x); }, [](auto x) { return std::cosh(x); }, -5, 5, names);
  check(
      "asinh", [](auto x) { return asinh(x); }, [](auto x) { return std::asinh(x); }, -5, 5, names);
  check(
      "acosh", [](auto x) { return acosh(x); }, [](auto x) { return std::acosh(x); }, 1, 5, names);
  check(
      "atanh", [](auto x) { return atanh(x); }, [](auto x) { return std::atanh(x); }, -1, 1, names);
}

}  // namespace
}  // namespace nitinol

int main(int argc, char** argv) {
  const std::span<char* const> names(argv + 1, static_cast<std::size_t>(argc - 1));
  nitinol::check_functions(names);
  nitinol::check_inverses(names);
  nitinol::check_binaries(names);
  nitinol::check_powers(names,
                        std::make_index_sequence<std::size(nitinol::math::simple_exponents)>());
  nitinol::check_activations(names);
  return nitinol::check_vocabulary() ? 0 : 1;
}
