// What lives, by who made it: eager operations, compiled steps, Variables.
#include "jit/memory_snapshot.h"

#include "core/memory_notes.h"
#include "nitinol.h"
#include "tests/in_child.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace nitinol::memory_snapshot_test {

constexpr int64_t count = 10'000;
constexpr std::size_t size = count * 4;

/// The lines of an operation, together.
MemoryLine line(const MemorySnapshot& snapshot, const std::string& made_by) {
  MemoryLine all;
  for (const MemoryLine& one : snapshot.lines) {
    if (one.made_by != made_by) continue;
    all.bytes += one.bytes, all.blocks += one.blocks, all.held += one.held;
    all.at_peak += one.at_peak, all.made += one.made;
    all.places.insert(all.places.end(), one.places.begin(), one.places.end());
  }
  return all;
}

TEST_CASE("a snapshot has what lives, by operation", "[jit][memory][no-isa]") {
  const Tensor before = ones({count});
  const MemoryNotes notes;
  const Tensor a = exp(before), b = exp(a);
  const Tensor view = reshape(a, {-1, 2});
  std::optional<Tensor> c = a * b;
  MemorySnapshot snapshot = memory_snapshot();
  CHECK(line(snapshot, "exp").bytes == 2 * size);
  CHECK(line(snapshot, "exp").blocks == 2);
  CHECK(line(snapshot, "mul").bytes == size);
  CHECK(line(snapshot, "reshape").blocks == 0);
  CHECK(snapshot.bytes == 3 * size);
  CHECK(snapshot.others >= size);
  REQUIRE(snapshot.blocks.size() == 3);
  CHECK(snapshot.blocks[0].bytes == size);
  CHECK(snapshot.blocks[0].age_s >= 0);
  CHECK_FALSE(snapshot.blocks[0].is_held);
  c.reset();
  snapshot = memory_snapshot();
  CHECK(line(snapshot, "mul").blocks == 0);
  CHECK(line(snapshot, "mul").made == 1);
  CHECK(line(snapshot, "mul").at_peak == size);
  CHECK(snapshot.bytes == 2 * size);
  CHECK(snapshot.peak == 3 * size);
}

TEST_CASE("each line of the program is one of the snapshot", "[jit][memory][no-isa]") {
  const MemoryNotes notes;
  const Tensor x = ones({count});
  const Tensor a = exp(x);
  const Tensor b = exp(x);
  const MemorySnapshot snapshot = memory_snapshot();
  int lines = 0;
  for (const MemoryLine& one : snapshot.lines) lines += one.made_by == "exp" ? 1 : 0;
  CHECK(lines == 2);
  const std::vector<std::string> places = line(snapshot, "exp").places;
  REQUIRE(places.size() == 2);
  CHECK(places[0].find("memory_snapshot_test.cpp:") != std::string::npos);
}

TEST_CASE("values and gradients of Variables are told from others", "[jit][memory][no-isa]") {
  const MemoryNotes notes;
  const Variable weight = parameter(log(ones({count})));
  CHECK(line(memory_snapshot(), "log").held == size);
  const Tensor old = weight;
  weight.set(exp(old));
  MemorySnapshot snapshot = memory_snapshot();
  CHECK(line(snapshot, "log").bytes == size);
  CHECK(line(snapshot, "log").held == 0);
  CHECK(line(snapshot, "exp").held == size);
  sum(weight * weight).backward();
  snapshot = memory_snapshot();
  std::size_t held = 0;
  for (const MemoryLine& one : snapshot.lines) held += one.held;
  CHECK(held == 2 * size);
  Tensor left;
  {
    const Variable other(cos(old));
    left = other;
    CHECK(line(memory_snapshot(), "cos").held == size);
  }
  CHECK(line(memory_snapshot(), "cos").bytes == size);
  CHECK(line(memory_snapshot(), "cos").held == 0);
}

TEST_CASE("a composite operation is one, whatever it is made of", "[jit][memory][no-isa]") {
  const Tensor x = ones({100, 100});
  for (int i = 0; i < 4; ++i) {  // at first op by op, then as a program
    const MemoryNotes notes;
    const Tensor y = softmax(x, -1);
    const MemorySnapshot snapshot = memory_snapshot();
    CHECK(line(snapshot, "softmax").bytes == size);
    CHECK(snapshot.bytes == size);
  }
}

TEST_CASE("steps of compiled functions make blocks, too", "[jit][memory][no-isa]") {
  const Tensor x = ones({count});
  const auto f = compile([](const Tensor& a) { return exp(a) * 2 + 1; }, {.check = Check::never});
  for (int i = 0; i < 6; ++i) f(x);
  REQUIRE(f.explain().plan_calls > 0);
  const MemoryNotes notes;
  const Tensor y = f(x);
  MemorySnapshot snapshot = memory_snapshot();
  REQUIRE(snapshot.blocks.size() == 1);
  CHECK(snapshot.blocks[0].bytes == size);
  CHECK(snapshot.blocks[0].made_by == "exp, mul, add");
  REQUIRE_FALSE(snapshot.blocks[0].places.empty());
  CHECK(snapshot.blocks[0].places[0].find("memory_snapshot_test.cpp:") != std::string::npos);

  const Tensor matrix = ones({100, 100});
  const auto g = compile([](const Tensor& a) { return sum(matmul(matmul(a, a), a)); },
                         {.check = Check::never});
  for (int i = 0; i < 6; ++i) g(matrix);
  snapshot = memory_snapshot();
  CHECK(line(snapshot, "temporaries").made > 0);
  CHECK(line(snapshot, "temporaries").bytes == 0);
  CHECK(snapshot.peak >= snapshot.bytes + size);
}

TEST_CASE("what is copied from the program has a line, too", "[jit][memory][no-isa]") {
  const MemoryNotes notes;
  const std::vector<float> numbers(count);
  const Tensor x = from_span<float>(numbers, {count});
  CHECK(line(memory_snapshot(), "from the program's memory").bytes == size);
}

TEST_CASE("blocks outlive the notes", "[jit][memory][no-isa]") {
  std::optional<Tensor> kept;
  {
    const MemoryNotes notes;
    kept = exp(ones({count}));
  }
  CHECK_FALSE(memory_notes::is_on());
  CHECK_THROWS_WITH(memory_snapshot(), Catch::Contains("NITINOL_MEMORY=1"));
  const Tensor unnoted = exp(*kept);
  {
    const MemoryNotes notes, nested;
    CHECK(line(memory_snapshot(), "exp").blocks == 1);
    kept.reset();
    CHECK(memory_snapshot().blocks.empty());
  }
}

TEST_CASE("memory over time is a curve of bounded length", "[jit][memory][no-isa]") {
  const MemoryNotes notes;
  const Tensor x = ones({1000});
  for (int i = 0; i < 20'000; ++i) static_cast<void>(x + x);
  const MemorySnapshot snapshot = memory_snapshot();
  CHECK(snapshot.points.size() <= 4097);
  CHECK(snapshot.points.size() > 100);
  CHECK(std::ranges::is_sorted(snapshot.points, {}, &MemoryPoint::time_s));
  CHECK(snapshot.points.back().bytes == 4000);
  CHECK(std::ranges::max(snapshot.points, {}, &MemoryPoint::bytes).bytes == snapshot.peak);
  CHECK(line(snapshot, "add").made == 20'000);
}

/// All shares of a point.
std::size_t sum_of(const MemoryPoint& point) {
  std::size_t sum = 0;
  for (const MemoryPoint::Share& share : point.shares) sum += share.bytes;
  return sum;
}

/// The share of an operation at the point of most bytes.
std::size_t share_at_peak(const MemorySnapshot& snapshot, const std::string& made_by) {
  const MemoryPoint& most = *std::ranges::max_element(snapshot.points, {}, &MemoryPoint::bytes);
  std::size_t sum = 0;
  for (const MemoryPoint::Share& share : most.shares)
    sum += snapshot.lines.at(share.line).made_by == made_by ? share.bytes : 0;
  return sum;
}

TEST_CASE("memory over time is told by lines", "[jit][memory][no-isa]") {
  const Tensor before = ones({count});
  const MemoryNotes notes;
  const Tensor kept = exp(before);
  {
    const Tensor a = sin(before), b = sin(a), c = cos(b);
    const MemorySnapshot within = memory_snapshot();
    CHECK(sum_of(within.points.back()) == 4 * size);
  }
  MemorySnapshot snapshot = memory_snapshot();
  CHECK(snapshot.peak == 4 * size);
  CHECK(share_at_peak(snapshot, "exp") == size);
  CHECK(share_at_peak(snapshot, "sin") == 2 * size);
  CHECK(share_at_peak(snapshot, "cos") == size);
  REQUIRE(snapshot.points.back().shares.size() == 1);
  CHECK(snapshot.lines.at(snapshot.points.back().shares[0].line).made_by == "exp");
  // Long after, with points that stand for many: their shares are those of what most was.
  for (int i = 0; i < 20'000; ++i) {
    const Tensor a = tanh(before);
    if (i % 3 == 0) static_cast<void>(log(a));
  }
  snapshot = memory_snapshot();
  CHECK(snapshot.points.size() > 100);
  for (const MemoryPoint& point : snapshot.points) REQUIRE(sum_of(point) == point.bytes);
  CHECK(share_at_peak(snapshot, "sin") == 2 * size);
}

TEST_CASE("of many lines those that have most are told", "[jit][memory][no-isa]") {
  const MemoryNotes notes;
  const Tensor x = ones({count});
  std::vector<Tensor> kept;
  Tensor (*const functions[])(const Tensor&) = {
      exp,   log,  sin,     cos,   tan,   tanh, sqrt,  square, abs,
      exp2,  log2, expm1,   log1p, asin,  acos, atan,  sinh,   cosh,
      asinh, erf,  sigmoid, relu,  floor, ceil, trunc, sign,   reciprocal};
  for (const auto f : functions) kept.push_back(f(ones({count / 10})));
  const Tensor large = neg(x);
  const MemorySnapshot snapshot = memory_snapshot();
  const MemoryPoint& last = snapshot.points.back();
  CHECK(last.shares.size() >= 20);
  CHECK(last.shares.size() < snapshot.lines.size());
  CHECK(sum_of(last) < last.bytes);
  CHECK(std::ranges::max(last.shares, {}, &MemoryPoint::Share::bytes).bytes == size);
  const std::string page = snapshot.to_html();
  CHECK(page.find("<code>other lines</code>") != std::string::npos);
  CHECK(page.find("<title>memory_snapshot_test.cpp:") != std::string::npos);
}

TEST_CASE("threads and forks may go on meanwhile", "[jit][memory][no-isa]") {
  const MemoryNotes notes;
  std::vector<std::thread> threads;
  std::vector<Tensor> kept(3);
  for (Tensor& one : kept) {
    threads.emplace_back([&one] {
      for (int i = 0; i < 2000; ++i) one = exp(ones({count / 100}));
    });
  }
  for (int i = 0; i < 20; ++i) static_cast<void>(memory_snapshot());
  CHECK(test::in_child([&] {
          const Tensor mine = log(ones({count}));
          return line(memory_snapshot(), "log").bytes == size ? 0 : 1;
        }) == 0);
  for (std::thread& thread : threads) thread.join();
  const MemorySnapshot snapshot = memory_snapshot();
  CHECK(line(snapshot, "exp").blocks == 3);
  CHECK(line(snapshot, "exp").made == 6000);
  CHECK(snapshot.blocks.size() == 3);
}

TEST_CASE("a snapshot as text, JSON and a page", "[jit][memory][no-isa]") {
  const Tensor before = ones({count});
  const MemoryNotes notes;
  const Tensor x = sin(before);
  const Variable weight = parameter(exp(x));
  const MemorySnapshot snapshot = memory_snapshot();
  const std::string text = to_string(snapshot);
  INFO(text);
  CHECK(text.find("80 kB in 2 blocks") != std::string::npos);
  CHECK(
      text.find("40 kB       1         40 kB     40 kB        1  exp  memory_snapshot_test.cpp:") !=
      std::string::npos);
  CHECK(to_string(snapshot, 1).find("and 1 more lines") != std::string::npos);
  const nlohmann::json json = nlohmann::json::parse(snapshot.to_json());
  CHECK(json["bytes"] == 2 * size);
  CHECK(json["blocks"].size() == 2);
  CHECK(json["blocks"][0]["device"] == "cpu:0");
  CHECK(json["lines"].size() == 2);
  CHECK(json["points"].size() == snapshot.points.size());
  CHECK(json["points"].back()[1] == 2 * size);
  CHECK(json["points"].back()[2].size() == 2);
  const test::TemporaryFolder folder;
  snapshot.save(folder / "memory.html");
  snapshot.save(folder / "memory.json");
  CHECK(std::filesystem::file_size(folder / "memory.html") == snapshot.to_html().size());
  CHECK(std::filesystem::file_size(folder / "memory.json") == snapshot.to_json().size());
  CHECK_THROWS_AS(snapshot.save(folder / "no/memory.json"), Error);
  MemorySnapshot odd = snapshot;
  odd.lines[0].made_by = "<script>\xFF";
  const std::string page = odd.to_html();
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.ends_with("</html>\n"));
  CHECK(page.find("<script>") == std::string::npos);
  CHECK(page.find("://") == std::string::npos);
  CHECK(page.find("memory_snapshot_test.cpp:") != std::string::npos);
  CHECK(MemorySnapshot().to_html().ends_with("</html>\n"));
  CHECK_FALSE(to_string(MemorySnapshot()).empty());
}

}  // namespace nitinol::memory_snapshot_test
