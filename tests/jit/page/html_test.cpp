// Text of the user's in HTML.
#include "jit/page/html.h"

#include <catch2/catch.hpp>

#include <string>

using namespace nitinol;

TEST_CASE("what HTML gives a meaning to is escaped", "[jit][page]") {
  CHECK(jit::escaped("</script><script>alert(\"1\" & '2')") ==
        "&lt;/script&gt;&lt;script&gt;alert(&quot;1&quot; &amp; &#39;2&#39;)");
  CHECK(jit::escaped("plain 1, ü\n\t…") == "plain 1, ü\n\t…");
  CHECK(jit::escaped(std::string("a\0b\x1b[0m", 7)) ==
        "a\xEF\xBF\xBD"
        "b\xEF\xBF\xBD[0m");
}

TEST_CASE("a long text is cut between characters", "[jit][page]") {
  CHECK(jit::shortened("abcd", 4) == "abcd");
  CHECK(jit::shortened("abcde", 4) == "abc…");
  CHECK(jit::shortened("äöüß", 4) == "äöüß");
  CHECK(jit::shortened("äöüßx", 4) == "äöü…");
  CHECK(jit::shortened("", 4).empty());
}
