// Places in errors and fallbacks are lines of the user, never of a header of ours or of the
// standard library.
#include "core/error.h"
#include "nitinol.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <source_location>
#include <sstream>
#include <string>
#include <unistd.h>
#include <vector>

using namespace nitinol;

namespace {

uint_least32_t line_here(std::source_location place = std::source_location::current()) {
  return place.line();
}

/// Whether `place` is one of these lines here. Where the program has no line table it is a function
/// with an offset, which must at least not be ours.
void check_place(const std::string& place, uint_least32_t first, uint_least32_t last) {
  INFO("\"" << place << "\", lines " << first << " to " << last);
  const std::size_t colon = place.rfind(':');
  const bool is_line =
      place.find(".cpp:") != std::string::npos || place.find(".h:") != std::string::npos;
  CHECK_FALSE(place.empty());
  if (!is_line) {
    CHECK(place.find(" + 0x") != std::string::npos);
    CHECK(place.find(" nitinol::") == std::string::npos);
    CHECK(place.rfind("nitinol::", 0) == std::string::npos);
    return;
  }
  CHECK(place.find("errors/locations_test.cpp:") != std::string::npos);
  const auto line = std::stoul(place.substr(colon + 1));
  CHECK(line >= first);
  CHECK(line <= last);
}

/// The Error that f throws names a line of f.
template <class F>
void check_error(uint_least32_t first, const F& f, uint_least32_t last) {
  try {
    f();
    FAIL_CHECK("no error");
  } catch (const Error& error) {
    INFO(error.message());
    check_place(error.location(), first, last);
  }
}

/// Compiled, f falls back because of a line of f.
template <class F>
void check_fallback(uint_least32_t first, const F& f, uint_least32_t last) {
  const auto g = compile(f);
  g(arange(3, f32));
  REQUIRE(g.explain().signatures.size() == 1);
  INFO(g.explain().signatures[0].reason);
  CHECK_THAT(g.explain().signatures[0].reason, Catch::Contains("looks at a tensor's elements"));
  check_place(g.explain().signatures[0].place, first, last);
}

}  // namespace

TEST_CASE("each way to read a tensor falls back at the user's line", "[errors][jit]") {
  std::ostringstream stream;
  // clang-format off
  check_fallback(line_here(), [](const Tensor& x) {
    return x * sum(x).item<float>();
  }, line_here());
  check_fallback(line_here(), [](const Tensor& x) {
    return x * x.data<float>()[0];
  }, line_here());
  check_fallback(line_here(), [](const Tensor& x) {
    return x * x.to_vector<float>()[0];
  }, line_here());
  check_fallback(line_here(), [](const Tensor& x) {
    return sum(x) > 1 ? x : -x;
  }, line_here());
  check_fallback(line_here(), [&](const Tensor& x) {
    stream << x;
    return x;
  }, line_here());
  check_fallback(line_here(), [](const Tensor& x) {
    return to_string(x).empty() ? x : -x;
  }, line_here());
  check_fallback(line_here(), [](const Tensor& x) {
    return fmt::format("{}", x).empty() ? x : -x;
  }, line_here());
  check_fallback(line_here(), [](const Tensor& x) {
    return x * x.at({0}).item<float>();
  }, line_here());
  check_fallback(line_here(), [w = Variable(ones({}))](const Tensor& x) {
    return x * w.item<float>();
  }, line_here());
  check_fallback(line_here(), [](const Tensor& x) {
    return std::max(x[0], x[1]);  // compares in a header of the standard library
  }, line_here());
  // clang-format on
}

TEST_CASE("each way to read a tensor fails at the user's line", "[errors]") {
  const Tensor x = ones({2, 3});
  const Variable w(x);
  std::ostringstream stream;
  check_error(
      line_here(), [&] { static_cast<void>(x.item<float>()); }, line_here());
  check_error(
      line_here(), [&] { static_cast<void>(x.data<int>()); }, line_here());
  check_error(
      line_here(), [&] { static_cast<void>(x.to_vector<int>()); }, line_here());
  check_error(
      line_here(), [&] { static_cast<void>(static_cast<bool>(x)); }, line_here());
  check_error(
      line_here(), [&] { static_cast<void>(x.at({0}).item<float>()); }, line_here());
  check_error(
      line_here(), [&] { static_cast<void>(w.item<float>()); }, line_here());
  check_error(
      line_here(), [&] { static_cast<void>(w.to_vector<int>()); }, line_here());
  check_error(
      line_here(), [&] { static_cast<void>(std::max(x, x + 1.0)); }, line_here());
}

TEST_CASE("files that do not fit fail at the user's line", "[errors]") {
  const auto path = std::filesystem::temp_directory_path() /
                    ("nitinol_locations_" + std::to_string(getpid()) + ".safetensors");
  nn::save(path, nn::linear(3, 4));
  check_error(
      line_here(), [&] { nn::load(path, nn::linear(3, 5)); }, line_here());
  check_error(
      line_here(), [&] { nn::load(path, nn::batch_norm(3)); }, line_here());
  check_error(
      line_here(), [&] { nn::load("no such file", nn::linear(3, 5)); }, line_here());
  check_error(
      line_here(), [&] { nn::save("/dev/null", nn::linear(3, 5)); }, line_here());
  check_error(
      line_here(), [&] { static_cast<void>(load_npy(path)); }, line_here());
  std::filesystem::remove(path);
}

TEST_CASE("what inline functions of ours call fails at the user's line", "[errors]") {
  const Tensor x = ones({2, 3});
  const nn::Sequential net(nn::linear(4, 2), relu);
  nn::DataLoader loader({x, ones({2}), ones({2})}, {.batch = 2});
  const uint_least32_t line_of_f = line_here() + 1;
  const auto f = compile([](const Tensor& a) { return matmul(a, a); });
  // clang-format off
  check_error(line_here(), [&] { static_cast<void>(net(x)); }, line_here());
  check_error(line_here(), [&] { static_cast<void>((x > 0) && ones({7})); }, line_here());
  check_error(line_here(), [&] { static_cast<void>(x.at({0})[7]); }, line_here());
  check_error(line_here(), [&] { static_cast<void>(tensor(std::vector{1, 2}, f32)[5]); }, line_here());
  check_error(line_here(), [&] {
    for (const auto& [a, b] : loader) static_cast<void>(a.rank() + b.rank());
  }, line_here());
  check_error(line_here(), [&] { static_cast<void>(grad([](const Tensor& a) { return a; })(x)); }, line_here());
  check_error(line_here(), [&] { static_cast<void>(compile(std::function<Tensor()>())); }, line_here());
  check_error(line_of_f, [&] { f(x); }, line_of_f);
  // clang-format on
}
