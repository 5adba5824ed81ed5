#include "io/zip_name.h"

#include <catch2/catch.hpp>

#include <string>

namespace nitinol::zip_name_test {
namespace {

using io::is_zip_name;
using io::shown_zip_name;

TEST_CASE("names of members are UTF-8 without NUL", "[io][npz]") {
  for (const char* name : {"", "a/b.npy",
                           "gr\xC3\xB6\xC3\x9F"
                           "e",
                           "\xE2\x82\xAC", "\xED\x9F\xBF", "\xF0\x9F\x8E\xB2", "\xF4\x8F\xBF\xBF"})
    CHECK(is_zip_name(name));
  CHECK_FALSE(is_zip_name(std::string("a\0b", 3)));
  for (const char* name :
       {"\xFF", "\x80", "\xC0\xAF", "\xC1\xBF", "\xC3", "\xC3(", "\xE0\x80\x80", "\xE0\x9F\xBF",
        "\xE2\x82", "\xE2\x82(", "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF0\x9F\x8E",
        "\xF4\x90\x80\x80", "\xF5\x80\x80\x80"}) {
    INFO(shown_zip_name(name));
    CHECK_FALSE(is_zip_name(name));
  }
}

TEST_CASE("a message shows the beginning of a name", "[io][npz]") {
  CHECK(shown_zip_name("a/b.npy") == "\"a/b.npy\"");
  CHECK(shown_zip_name("\xC3\xB6") == "\"\xC3\xB6\"");
  CHECK(shown_zip_name("a\n\x7F\xFF") == "\"a???\"");
  CHECK(shown_zip_name(std::string("a\0b", 3)) == "\"a?b\"");
  const std::string long_one(100, 'a');
  CHECK(shown_zip_name(long_one) == "\"" + long_one + "\"");
  CHECK(shown_zip_name(long_one + "b") == "\"" + long_one + "...\"");
  CHECK(shown_zip_name(std::string(99, 'a') + "\xC3\xB6") ==
        "\"" + std::string(99, 'a') + "...\"");  // no half of a letter
}

}  // namespace
}  // namespace nitinol::zip_name_test
