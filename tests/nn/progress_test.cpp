// The progress line, written to a file: few plain lines, or one that changes in place.
#include "nn/progress.h"

#include "core/error.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <regex>
#include <string>

using namespace nitinol;

namespace {

/// All that `body` writes to the stream it is given.
template <class Body>
std::string written(const Body& body) {
  std::FILE* const stream = std::tmpfile();
  REQUIRE(stream != nullptr);
  body(stream);
  REQUIRE(std::fseek(stream, 0, SEEK_SET) == 0);
  std::string text;
  std::array<char, 4096> part{};
  while (const std::size_t count = std::fread(part.data(), 1, part.size(), stream)) {
    text.append(part.data(), count);
  }
  std::fclose(stream);
  return text;
}

}  // namespace

TEST_CASE("where nothing can change in place, progress is a few lines", "[nn]") {
  const std::string text = written([](std::FILE* stream) {
    nn::Progress progress(
        {.name = "train", .steps = 900, .items = 64, .unit = "images", .stream = stream});
    for (int i = 0; i < 900; ++i) progress.step("loss 0.5");
  });
  INFO(text);
  CHECK(std::ranges::count(text, '\n') == 4);
  CHECK(text.find('\r') == std::string::npos);
  CHECK(std::regex_search(
      text, std::regex("^train     225/900  loss 0\\.5  [0-9,]+ images/s  0:00 left\n")));
  CHECK(std::regex_search(text, std::regex("train     900/900  loss 0\\.5  [0-9,]+ images/s  in "
                                           "0:00\n$")));
}

TEST_CASE("fewer steps than lines, and no remark", "[nn]") {
  const std::string text = written([](std::FILE* stream) {
    nn::Progress progress({.steps = 2, .stream = stream});
    for (int i = 0; i < 3; ++i) progress.step();  // one more than was said
  });
  INFO(text);
  CHECK(std::regex_match(
      text, std::regex("1/2  [0-9,]+ steps/s  0:00 left\n2/2  [0-9,]+ steps/s  in 0:00\n")));
}

TEST_CASE("in place, each line overwrites the one before, and few are written", "[nn]") {
  const std::string text = written([](std::FILE* stream) {
    nn::Progress progress(
        {.name = "fit", .steps = 1000, .stream = stream, .style = nn::ProgressStyle::in_place});
    CHECK(progress.is_due());
    for (int i = 0; i < 1000; ++i) progress.step(std::string(200, 'x'));
  });
  CHECK(text.starts_with("\rfit          1/1000 [                    ]  xxx"));
  CHECK(text.ends_with("\x1b[K\n"));
  CHECK(std::ranges::count(text, '\n') == 1);
  CHECK(std::ranges::count(text, '\r') < 100);
  // No longer than the line of a terminal whose width is not known.
  CHECK(text.find('\x1b') <= 80);
  CHECK(text.find("\r1000") == std::string::npos);
}

TEST_CASE("progress refuses counts below 1", "[nn][errors]") {
  CHECK_THROWS_WITH(nn::Progress({.steps = 0}), Catch::Contains("at least 1"));
}
