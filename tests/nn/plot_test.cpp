// Curves as text, letter by letter.
#include "nitinol.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <vector>

namespace nitinol::plot_test {

using Values = std::vector<double>;

TEST_CASE("a curve in ASCII", "[nn][plot]") {
  CHECK(nn::plot(Values{4, 3, 2, 1},
                 {.title = "loss", .width = 4, .height = 2, .style = nn::PlotStyle::ascii}) ==
        "loss\n"
        "4 '.\n"
        "1   '.\n"
        "  1 4 steps\n");
  // A fall is drawn through all rows.
  CHECK(nn::plot(Values{100, 0, 0, 0},
                 {.width = 4, .height = 3, .unit = "epochs", .style = nn::PlotStyle::ascii}) ==
        "100 '.\n"
        " 50  :\n"
        "  0  :..\n"
        "    1 4 epochs\n");
}

TEST_CASE("a curve in braille", "[nn][plot]") {
  CHECK(nn::plot(Values{7, 6, 5, 4, 3, 2, 1, 0},
                 {.width = 4, .height = 2, .style = nn::PlotStyle::braille}) ==
        "7 ⠑⢄\n"
        "0   ⠑⢄\n"
        "  1 8 steps\n");
}

TEST_CASE("few values are joined, many are averaged", "[nn][plot]") {
  const nn::PlotOptions options = {.width = 5, .height = 2, .style = nn::PlotStyle::ascii};
  CHECK(nn::plot(Values{0, 4}, options) ==
        "4    .'\n"
        "0 .''\n"
        "  1 2 steps\n");
  Values noisy;
  for (int i = 0; i < 1000; ++i) noisy.push_back(i < 500 ? (i % 2 == 0 ? 9 : 11) : 0);
  const std::string text =
      nn::plot(noisy, {.width = 4, .height = 2, .style = nn::PlotStyle::ascii});
  CHECK(text ==
        "10 ''.\n"
        " 0   :.\n"
        "   1 1000 steps\n");
}

TEST_CASE("values that are no curve", "[nn][plot]") {
  const nn::PlotOptions options = {.width = 3, .height = 2, .style = nn::PlotStyle::ascii};
  CHECK(nn::plot(Values{}, options) == "no values\n");
  CHECK(nn::plot(Values{2}, options) == "\n2 '''\n  1 1 steps\n");
  CHECK(nn::plot(Values{NAN, NAN}, options) == "\n\n 1 2 steps (2 not finite)\n");
  CHECK(nn::plot(Values{1, NAN, 3}, options) ==
        "3   '\n"
        "1 .\n"
        "  1 3 steps (1 not finite)\n");
  const std::string far = nn::plot(Values{-1.7e308, 1.7e308}, options);
  CHECK(std::ranges::count(far, '\n') == 3);
  CHECK(nn::plot(arange(4), options) == nn::plot(Values{0, 1, 2, 3}, options));
  CHECK_THROWS_WITH(nn::plot(Values{1}, {.width = 1}), Catch::Contains("width"));
  CHECK_THROWS_WITH(nn::plot(Values{1}, {.height = 1001}), Catch::Contains("at most 1000"));
}

TEST_CASE("points are braille where the locale is UTF-8", "[nn][plot]") {
  const auto with = [](const char* all, const char* ctype, const char* language) {
    const char* const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    const char* const values[] = {all, ctype, language};
    std::string before[3];
    for (int i = 0; i < 3; ++i) {
      const char* const old = std::getenv(names[i]);
      before[i] = old == nullptr ? "" : old;
      ::setenv(names[i], values[i], 1);
    }
    const std::string text = nn::plot(Values{1, 2, 3});
    for (int i = 0; i < 3; ++i) ::setenv(names[i], before[i].c_str(), 1);
    return std::ranges::any_of(text, [](char c) { return static_cast<uint8_t>(c) >= 0x80; });
  };
  CHECK(with("", "", "en_US.UTF-8"));
  CHECK(with("C.utf8", "C", "C"));
  CHECK_FALSE(with("", "", ""));
  CHECK_FALSE(with("C", "", "en_US.UTF-8"));
}

}  // namespace nitinol::plot_test
