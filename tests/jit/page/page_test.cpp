// The page of an Explanation: what stands in it, and that nothing of the user's becomes HTML.
#include "core/place.h"
#include "jit/explain.h"
#include "tests/jit/calls.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <ctime>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <vector>

using namespace nitinol;
using namespace nitinol::test;

namespace nitinol::page_test {

/// What is wrong with the form of a page: elements that are not closed where they should be, and
/// links to what is not there. Empty if nothing is.
std::string fault_of(const std::string& page) {
  static const std::regex tag("<(/?)([a-z0-9]+)((?:\"[^\"]*\"|[^>\"])*?)(/?)>");
  static const std::regex id("id=\"([^\"]*)\"");
  static const std::regex link("href=\"#([^\"]*)\"");
  std::vector<std::string> open;
  const std::size_t body = page.find("<body>");
  const std::string text = page.substr(body, page.find("</html>") - body);
  for (std::sregex_iterator it(text.begin(), text.end(), tag), end; it != end; ++it) {
    if ((*it)[4].length() > 0) continue;
    if ((*it)[1].length() == 0) {
      open.push_back((*it)[2]);
      continue;
    }
    if (open.empty() || open.back() != (*it)[2]) return "unexpected </" + (*it)[2].str() + ">";
    open.pop_back();
  }
  std::set<std::string> ids;
  for (std::sregex_iterator it(text.begin(), text.end(), id), end; it != end; ++it) {
    if (!ids.insert((*it)[1]).second) return "twice: " + (*it)[1].str();
  }
  for (std::sregex_iterator it(text.begin(), text.end(), link), end; it != end; ++it) {
    if (!ids.contains((*it)[1])) return "a link to nothing: " + (*it)[1].str();
  }
  return open.empty() ? "" : "not closed: " + open.back();
}

std::size_t count_of(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

}  // namespace nitinol::page_test

using namespace nitinol::page_test;
using Catch::Contains;

TEST_CASE("the page shows signatures, why they exist, the graph, steps and memory",
          "[jit][page][host]") {
  const Variable w(ones({16, 16}));
  const auto g = compile([&](const Tensor& x) { return sum(relu(matmul(relu(matmul(x, w)), w))); },
                         {.name = "mlp", .arguments = {"x"}});
  settle(g, ones({8, 16}));
  g(ones({8, 16}));
  settle(g, ones({4, 16}));
  const std::string page = g.explain().to_html();
  CHECK(fault_of(page) == "");
  CHECK_THAT(page, Contains("<label for=\"s1pw\">all of it"));
  CHECK_THAT(page, Contains("<title>mlp - explain()</title>") && Contains("2 signatures"));
  CHECK_THAT(page, Contains("recorded because it was the first") &&
                       Contains("recorded because argument 0 (x) is float32[4, 16], was float32[8, "
                                "16]"));
  CHECK_THAT(page, Contains(">argument 0 (x)</text>") && Contains(">Variable 0</text>") &&
                       Contains(">result 0</text>") && Contains(">512 B</text>"));
  CHECK_THAT(page, Contains("page_test.cpp:"));
  CHECK_THAT(page, Contains("<summary>kernel</summary><pre>kernel "));
  CHECK_THAT(page, Contains("This machine needs at least "));
  CHECK(count_of(page, "<svg class=\"memory\"") == 1);
  CHECK(count_of(page, "<svg class=\"graph\"") == 1);  // the other one has the same steps
  CHECK_THAT(page, Contains("The steps of <a href=\"#s1\"><code>(float32[8, 16])</code></a>"));
  if (if_generated(1) == 0) return;
  CHECK_THAT(page, Contains("<summary>LLVM IR</summary><pre>") &&
                       Contains("<summary>assembly</summary><pre>"));
  const std::string small = g.explain().to_html({.code = false});
  CHECK(fault_of(small) == "");
  CHECK_THAT(small, Contains("<summary>kernel</summary>") && !Contains("LLVM IR"));
  CHECK(small.size() < page.size());
}

TEST_CASE("what the user has named is text on the page, whatever it is", "[jit][page][host]") {
  const std::string evil = "</script><script>alert('x')</script> \"q\" & <b onclick=\"x\">";
  const PlaceScope scope([](void*) -> std::string { return "<img src=x onerror=alert(1)>.py:3"; });
  const auto g =
      compile([](const Tensor& x, const std::string& s) { return s.empty() ? x : exp(x) * 2; },
              {.name = evil, .arguments = {"<i>", evil}});
  settle(g, ones({3}), evil);
  settle(g, ones({3}), "'><u>");
  const std::string page = g.explain().to_html();
  CHECK(fault_of(page) == "");
  for (const char* const bad : {"<script", "<b onclick", "<img", "<i>", "<u>", "onerror=alert(1)>"})
    CHECK_THAT(page, !Contains(bad));
  CHECK_THAT(page, Contains("<h1>&lt;/script&gt;&lt;script&gt;alert(&#39;x&#39;)"));
  CHECK_THAT(page, Contains("&lt;img src=x onerror=alert(1)&gt;.py:3"));
  CHECK_THAT(page, Contains("default-src 'none'; style-src 'unsafe-inline'"));
}

TEST_CASE("looks at data have their outcomes on the page, and eager calls their reasons",
          "[jit][page][host]") {
  const auto g = compile([](const Tensor& x) {
    const Tensor y = exp(x) * 2;
    return sum(y).item<float>() > 100 ? y * 3 : y - 1;
  });
  for (int i = 0; i < 6; ++i) g(ones({4}));
  for (int i = 0; i < 3; ++i) g(ones({4}) * 5);
  const Explanation e = g.explain();
  const std::string page = e.to_html();
  CHECK(fault_of(page) == "");
  CHECK_THAT(page, Contains("because the function looks at a tensor&#39;s elements by item()"));
  if (e.signatures.at(0).tier != Tier::deferred) return;
  REQUIRE(e.segments);
  CHECK_THAT(page, Contains("<h2>Segments</h2>") && Contains("<th>outcomes</th>"));
  uint64_t looks = 0;
  for (const SegmentsReport::Segment& segment : e.segments->segments) looks += segment.looks.size();
  CHECK(looks > 0);
  CHECK(count_of(page, " times</div>") + count_of(page, " false</div>") == looks);
}

TEST_CASE("the plan of the way back stands on the page", "[jit][page][host]") {
  const Variable w = parameter(ones({16, 4}));
  const auto g = compile([&](const Tensor& x) { return mean(square(matmul(x, w))); });
  for (int i = 0; i < 4; ++i) g(ones({8, 16})).backward();
  const Explanation e = g.explain();
  REQUIRE(e.signatures.at(0).backward);
  const std::string page = e.to_html({.code = false});
  CHECK(fault_of(page) == "");
  CHECK_THAT(page, Contains("<h3>Backward: ") && Contains(">gradient 0</text>") &&
                       Contains(">kept for backward</text>") && Contains("id=\"s1b1\""));
}

TEST_CASE("a function that was never called has a page", "[jit][page]") {
  const auto g = compile([](const Tensor& x) { return x + 1; }, {.name = "f"});
  const std::string page = g.explain().to_html();
  CHECK(fault_of(page) == "");
  CHECK_THAT(page, Contains("0 calls in 0 signatures"));
}

TEST_CASE("a Plan of 500 steps has all of them, soon", "[jit][page][host]") {
  const Variable w(ones({8, 8}) * 0.125);
  const auto g = compile([&](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < 250; ++i) y = relu(matmul(y, w));
    return y;
  });
  settle(g, ones({8, 8}));
  const Explanation e = g.explain();
  REQUIRE(e.signatures.at(0).plan.steps.size() == 500);
  static_cast<void>(e.signatures[0].plan.bounds());  // measures the machine
  const std::clock_t start = std::clock();           // what this process computes
  const std::string page = e.to_html();
  const double took = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  CHECK(took < 1);
  CHECK(count_of(page, "<a href=\"#s1p") >= 500);
  CHECK(count_of(page, "<summary>kernel</summary>") == 1);  // all are one
  CHECK(count_of(page, "The kernel of <a href=") == 249);
  CHECK(page.size() < std::size_t{2} << 20);
}

TEST_CASE("a page is written to a file", "[jit][page][host]") {
  const TemporaryFolder folder;
  const auto g = compile([](const Tensor& x) { return exp(x) * 2; }, {.name = "f"});
  settle(g, ones({8}));
  const std::string path = (folder / "page.html").string();
  g.explain().save_html(path, {.code = false});
  std::ifstream file(path, std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  CHECK(text == g.explain().to_html({.code = false}));
  CHECK_THROWS_AS(g.explain().save_html((folder / "no/page.html").string()), Error);
}
