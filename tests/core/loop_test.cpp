#include "core/loop.h"

#include "core/math.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <unistd.h>
#include <vector>

using namespace nitinol;

namespace {

std::vector<Isa> host_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (isa <= host_isa()) isas.push_back(isa);
  }
  return isas;
}

const auto rare_square = [](auto x) { return if_any(x > 100, x + 1, [&] { return x * x; }); };
float rare_square_of(float x) {
  return x > 100 ? x * x : x + 1;
}

}  // namespace

TEST_CASE("a loop computes every element and no more, at any length", "[core][loop]") {
  const auto formula = [](auto x, auto y) { return x * y + 1; };
  const Loops loops = loops_of<decltype(formula), double, double, double>;
  for (const Isa isa : host_isas()) {
    for (int64_t n = 0; n < 70; ++n) {
      std::vector<double> x(70, 3), y(70, 5), out(71, -1);
      const void* const in[] = {x.data(), y.data()};
      loops.at(isa)(in, out.data(), n);
      CHECK(std::count(out.begin(), out.end(), 16) == n);
      CHECK(std::count(out.begin() + n, out.end(), -1) == 71 - n);
    }
  }
}

TEST_CASE("rare lanes are recomputed, in place too", "[core][loop]") {
  const Loops loops = loops_of<decltype(rare_square), float, float>;
  for (const Isa isa : host_isas()) {
    for (const std::size_t n : {1U, 15U, 255U, 256U, 257U, 1000U}) {
      std::vector<float> x(n);
      for (std::size_t i = 0; i < n; ++i) x[i] = i % 300 == 7 ? 200 : static_cast<float>(i % 90);
      std::vector<float> want(n);
      std::transform(x.begin(), x.end(), want.begin(), rare_square_of);
      const void* const in[] = {x.data()};
      loops.at(isa)(in, x.data(), static_cast<int64_t>(n));
      CHECK(x == want);
    }
  }
}

TEST_CASE("in place works with either of two inputs", "[core][loop]") {
  const auto formula = [](auto x, auto y) {
    return if_any(y > 100, x - y, [&] { return x + 2 * y; });
  };
  const Loops loops = loops_of<decltype(formula), float, float, float>;
  for (const Isa isa : host_isas()) {
    std::vector<float> x(500, 1), y(500, 2);
    y[300] = 1000;
    const void* const in[] = {x.data(), y.data()};
    loops.at(isa)(in, y.data(), 500);
    CHECK(y[0] == -1);
    CHECK(y[300] == 2001);
    CHECK(y[301] == -1);
  }
}

TEST_CASE("a block computes the side that its lanes need, or both", "[core][loop]") {
  const auto formula = [](auto x, auto y) {
    const auto condition = both(y >= 2, [&] { return y != 3; });
    return either(
        x, condition, [&] { return x * y; },
        [&] { return if_any((x > 100) & !condition, x - y, [&] { return x; }); });
  };
  const auto wanted = [](float x, float y) {
    if (y >= 2 && y != 3) return x * y;
    return x > 100 ? x : x - y;
  };
  const std::vector<std::vector<float>> patterns = {{1}, {4}, {3}, {1, 4}, {3, 4}, {1, 3}};
  const Loops loops = loops_of<decltype(formula), float, float, float>;
  for (const Isa isa : host_isas()) {
    for (const auto& pattern : patterns) {
      for (const float odd : {pattern[0], 1.0F, 3.0F, 5.0F}) {
        constexpr std::size_t n = 1000;
        std::vector<float> x(n), y(n), want(n);
        for (std::size_t i = 0; i < n; ++i) {
          x[i] = i % 300 == 7 ? 200 : static_cast<float>(i % 90);
          y[i] = i == 300 ? odd : pattern[i % pattern.size()];
          want[i] = wanted(x[i], y[i]);
        }
        std::vector<float> out(n);
        const void* const in[] = {x.data(), y.data()};
        loops.at(isa)(in, out.data(), static_cast<int64_t>(n));
        CHECK(out == want);
        loops.at(isa)(in, y.data(), static_cast<int64_t>(n));
        CHECK(y == want);
      }
    }
  }
}

TEST_CASE("bool is one byte, 0 or 1, in and out", "[core][loop]") {
  const auto less = [](auto x, auto y) { return x < y; };
  const auto negation = [](auto x) { return !x; };
  const Loops compare = loops_of<decltype(less), bool, float, float>;
  const Loops flip = loops_of<decltype(negation), bool, bool>;
  for (const Isa isa : host_isas()) {
    std::vector<float> x(333), y(333, 0);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? -1 : NAN;
    std::vector<uint8_t> out(333, 7), flipped(333, 7);
    const void* const in[] = {x.data(), y.data()};
    compare.at(isa)(in, out.data(), 333);
    const void* const bools[] = {out.data()};
    flip.at(isa)(bools, flipped.data(), 333);
    for (std::size_t i = 0; i < out.size(); ++i) {
      CHECK(out[i] == (i % 3 == 0 ? 1 : 0));
      CHECK(flipped[i] == 1 - out[i]);
    }
  }
}

TEST_CASE("the loops for the process's instruction set are picked", "[core][loop]") {
  const Loops loops = loops_of<decltype(rare_square), float, float>;
  CHECK(loops.pick() == loops.at(current_isa()));
}

// ---- vectorisation -----------------------------------------------------------------------------
// No timing: the machine code of each loop must hold packed instructions of full width and
// nothing that works on single floats in a loop. objdump reads the code of this program, cut from
// memory at the loop's address; the function ends before the next symbol, which we do not know, so
// the first kilobytes up to the first `ret` are looked at.

#if defined(__x86_64__) && !defined(NITINOL_SANITIZED) && defined(__OPTIMIZE__)

namespace {

std::string disassembly(Loop loop) {
  const std::string file =
      std::filesystem::temp_directory_path() / ("nitinol_loop_" + std::to_string(getpid()));
  const char* const code = reinterpret_cast<const char*>(loop);
  std::ofstream(file, std::ios::binary).write(code, 1 << 14);
  const std::string command = "objdump -D -b binary -m i386:x86-64 " + file + " 2>/dev/null";
  std::string text;
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer;
  while (const std::size_t count = fread(buffer.data(), 1, buffer.size(), pipe)) {
    text.append(buffer.data(), count);
  }
  pclose(pipe);
  std::remove(file.c_str());
  return text.substr(0, text.find("\tret"));
}

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) {
    ++count;
  }
  return count;
}

/// Packed instructions of the ISA's full width, and hardly any scalar arithmetic.
template <class R, class... A, class F>
void check_vectorised(const char* name, F) {
  const Loops loops = loops_of<F, R, A...>;
  for (const Isa isa : host_isas()) {
    if (isa == Isa::baseline) continue;  // SSE2 has no fma or rounding; right, not fast
    const std::string text = disassembly(loops.at(isa));
    if (text.empty()) {
      WARN("objdump is not installed: vectorisation is not checked");
      return;
    }
    const std::size_t packed = occurrences(text, isa == Isa::avx512 ? "%zmm" : "%ymm");
    std::size_t single = 0;
    for (const char* const op : {"addss", "mulss", "subss", "divss", "sqrtss", "13ss", "23ss",
                                 "addsd", "mulsd", "subsd", "divsd", "sqrtsd", "13sd", "23sd",
                                 "32ss",  "32sd",  "31ss",  "31sd",  "ucomis", "comis"}) {
      single += occurrences(text, op);
    }
    CAPTURE(name, name_of(isa), sizeof(R), packed, single);
    CHECK(packed >= 2);
    CHECK(single == 0);
  }
}

template <class F>
void check_unary(const char* name, F formula) {
  check_vectorised<float, float>(name, formula);
  check_vectorised<double, double>(name, formula);
}

}  // namespace

TEST_CASE("loops over math functions are vectorised", "[core][loop]") {
  check_unary("exp", [](auto x) { return exp(x); });
  check_unary("exp2", [](auto x) { return exp2(x); });
  check_unary("expm1", [](auto x) { return expm1(x); });
  check_unary("tanh", [](auto x) { return tanh(x); });
  check_unary("erf", [](auto x) { return erf(x); });
  check_unary("sqrt", [](auto x) { return sqrt(x); });
  check_unary("floor", [](auto x) { return floor(x) + round_even(x); });
  check_unary("log", [](auto x) { return log(x); });
  check_unary("log2", [](auto x) { return log2(x); });
  check_unary("log10", [](auto x) { return log10(x); });
  check_unary("log1p", [](auto x) { return log1p(x); });
}

TEST_CASE("the common path of trigonometric loops is vectorised", "[core][loop]") {
  // The rare path converts between 64-bit integers and doubles, which AVX2 does one by one.
  const auto sin_common = [](auto x) {
    return if_any(x > 1000, sin(x) + cos(x) + tan(x), [&] { return x; });
  };
  using F = decltype(sin_common);
  for (const Isa isa : host_isas()) {
    if (isa == Isa::baseline) continue;
    const std::string text = disassembly(loops_of<F, float, float>.at(isa));
    CHECK((text.empty() || occurrences(text, isa == Isa::avx512 ? "%zmm" : "%ymm") > 50));
  }
}

TEST_CASE("loops over simple formulas are vectorised", "[core][loop]") {
  const auto add = [](auto x, auto y) { return x + y; };
  const auto larger = [](auto x, auto y) { return maximum(x, y); };
  const auto less = [](auto x, auto y) { return x < y; };
  const auto shift = [](auto x) { return (x << 1) ^ (x & 3); };
  check_vectorised<float, float, float>("add", add);
  check_vectorised<int8_t, int8_t, int8_t>("add", add);
  check_vectorised<int64_t, int64_t, int64_t>("add", add);
  check_vectorised<float, float, float>("maximum", larger);
  check_vectorised<double, double, double>("maximum", larger);
  check_vectorised<int32_t, int32_t, int32_t>("maximum", larger);
  check_vectorised<bool, float, float>("less", less);
  check_vectorised<bool, double, double>("less", less);
  check_vectorised<uint32_t, uint32_t>("shift", shift);
  check_vectorised<uint16_t, uint16_t>("shift", shift);
  check_vectorised<int32_t, float>("convert", [](auto x) { return convert<int32_t>(x); });
  check_vectorised<double, float>("convert", [](auto x) { return convert<double>(x); });
  check_vectorised<float, uint16_t>("half", [](auto x) { return half_to_float(x); });
  check_vectorised<uint16_t, float>("half", [](auto x) { return float_to_half(x); });
}

#endif
