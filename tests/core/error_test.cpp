#include "core/error.h"

#include <catch2/catch.hpp>

#include <optional>
#include <string>
#include <thread>
#include <vector>

using namespace nitinol;

namespace {

Error matmul_error() {
  return Error(ErrorKind::shape,
               {.where = "matmul",
                .what = "inner dimensions of float32[4, 3] and float32[5, 6] differ",
                .expected = "b.shape[-2] == 3",
                .got = "5",
                .fix = "Transpose b, or check the layer's in_features."});
}

[[gnu::noinline]] const void* address_of_the_call() {
  return __builtin_return_address(0);
}

}  // namespace

TEST_CASE("an error's message has its five parts", "[core][error]") {
  const Error error = matmul_error();
  CHECK(error.kind() == ErrorKind::shape);
  CHECK(error.message() ==
        "matmul: inner dimensions of float32[4, 3] and float32[5, 6] differ: expected "
        "b.shape[-2] == 3, got 5.\nTranspose b, or check the layer's in_features.");
  CHECK(error.what() == error.message());
  CHECK(error.report().fix == "Transpose b, or check the layer's in_features.");
}

TEST_CASE("an error's message leaves out the parts that are empty", "[core][error]") {
  CHECK(Error(ErrorKind::io, {.where = "load", .what = "no such file"}).message() ==
        "load: no such file.");
  CHECK(Error(ErrorKind::value, {.what = "bad step", .got = "0"}).message() == "bad step: got 0.");
  CHECK(Error(ErrorKind::value, {.where = "a", .what = "b", .expected = "c"}).message() ==
        "a: b: expected c.");
}

TEST_CASE("an error tells the source location of the outermost call", "[core][error]") {
  const auto here = std::source_location::current();
  const Error inner = matmul_error().with_return_address(address_of_the_call());
  const Error outer = inner.with_location(here);
  CHECK(outer.location() == "tests/core/error_test.cpp:" + std::to_string(here.line()));
  CHECK(std::string(outer.what()) == outer.message() + "\nat " + outer.location());
  CHECK(outer.kind() == ErrorKind::shape);
  CHECK(matmul_error().location().empty());
}

TEST_CASE("a return address becomes the line of the call or its function", "[core][error]") {
  const Error error = matmul_error().with_return_address(address_of_the_call());
  INFO(error.location());
  const bool is_line = error.location().find("error_test.cpp:") != std::string::npos;
  const bool is_offset = error.location().find("0x") != std::string::npos;
  CHECK((is_line || is_offset));
  // Not in any function: still a text, never a crash.
  CHECK_FALSE(describe_return_address(reinterpret_cast<const void*>(16)).empty());
}

TEST_CASE("copies of an error may be read by several threads", "[core][error]") {
  const Error error = matmul_error().with_return_address(address_of_the_call());
  std::vector<std::string> texts(4);
  std::vector<std::thread> threads;
  for (std::string& text : texts) {
    threads.emplace_back([&text, copy = error] { text = copy.what(); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : texts) CHECK(text == error.what());
}

TEST_CASE("a failed assertion is an internal error with its reason", "[core][error]") {
  NITINOL_ASSERT(1 + 1 == 2, "arithmetic");
  try {
    NITINOL_ASSERT(1 + 1 == 3, "sums are right");
    FAIL("did not throw");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    CHECK(error.report().what == "sums are right");
    CHECK(error.report().expected == "1 + 1 == 3");
    CHECK(error.report().where.find("tests/core/error_test.cpp:") == 0);
  }
}

TEST_CASE("every error kind has a name", "[core][error]") {
  CHECK(name_of(ErrorKind::shape) == "shape");
  CHECK(name_of(ErrorKind::unsupported) == "unsupported");
  CHECK(name_of(ErrorKind::internal) == "internal");
}
