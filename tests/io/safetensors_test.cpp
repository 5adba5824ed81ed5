// safetensors files: what is written is read back; what is damaged is refused with a clear Error.
#include "io/safetensors.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "tests/op_samples.h"
#include "tests/same_bits.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <unistd.h>

using namespace nitinol;
using namespace nitinol::test;

namespace {

/// A path in the temporary folder, whose file goes at the end.
class Scratch {
 public:
  Scratch()
      : path_(std::filesystem::temp_directory_path() /
              ("nitinol_" + std::to_string(getpid()) + ".safetensors")) {}
  ~Scratch() { std::filesystem::remove(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

  /// Writes a file of this header and so many bytes of elements.
  void write(const std::string& header, std::size_t bytes) const {
    std::string text(8, '\0');
    for (int i = 0; i < 8; ++i) text[i] = static_cast<char>(header.size() >> (8 * i));
    write(text + header + std::string(bytes, 'x'));
  }
  void write(const std::string& text) const {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << text;
  }

 private:
  std::filesystem::path path_;
};

std::string refusal(const Scratch& file) {
  try {
    static_cast<void>(load_safetensors(file.path()));
  } catch (const Error& error) {
    return error.message();
  }
  return "loaded";
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

}  // namespace

TEST_CASE("every dtype and shape is read back as it was written", "[safetensors]") {
  const Scratch file;
  std::vector<NamedTensor> tensors;
  for (const DType dtype : list_of(any_dtype)) {
    const std::string name(name_of(dtype));
    tensors.emplace_back(name, edge_values(dtype));
    tensors.emplace_back(name + ".matrix", transpose(random_values(dtype, {3, 5}, 1), 0, 1));
    tensors.emplace_back(name + ".number", random_values(dtype, {}, 2));
    tensors.emplace_back(name + ".empty", random_values(dtype, {2, 0}, 3));
  }
  save_safetensors(file.path(), tensors, {{"author", "somebody \"quoted\""}});
  const SafetensorsFile loaded = load_safetensors(file.path());
  REQUIRE(loaded.tensors.size() == tensors.size());
  CHECK(loaded.metadata.at("author") == "somebody \"quoted\"");
  for (const auto& [name, tensor] : loaded.tensors) {
    INFO(name);
    const auto original =
        std::ranges::find(tensors, name, [](const NamedTensor& named) { return named.first; });
    REQUIRE(original != tensors.end());
    CHECK(same_bits(tensor, original->second));
  }
}

TEST_CASE("no tensors at all", "[safetensors]") {
  const Scratch file;
  save_safetensors(file.path(), {});
  CHECK(load_safetensors(file.path()).tensors.empty());
}

TEST_CASE("what cannot be saved leaves the old file", "[safetensors][errors]") {
  const Scratch file;
  save_safetensors(file.path(), {{"x", ones({2})}});
  CHECK_THROWS_WITH(save_safetensors(file.path(), {{"y", ones({2})}, {"y", ones({2})}}),
                    Catch::Contains("\"y\""));
  CHECK_THROWS_WITH(save_safetensors(file.path(), {{"\xff", ones({2})}}), Catch::Contains("UTF-8"));
  CHECK(load_safetensors(file.path()).tensors.at(0).first == "x");
  CHECK_THROWS_WITH(save_safetensors("/nowhere/at/all", {}),
                    Catch::Contains("\"/nowhere/at/all\" cannot be opened"));
}

TEST_CASE("damaged files are refused, and the message says how", "[safetensors][errors]") {
  const Scratch file;
  const auto check = [&](const std::string& header, std::size_t bytes, const char* expected) {
    file.write(header, bytes);
    CHECK_THAT(refusal(file), Catch::Contains(expected));
  };
  file.write("short");
  CHECK_THAT(refusal(file), Catch::Contains("the length of the header"));
  file.write(std::string(8, '\xff'));
  CHECK_THAT(refusal(file), Catch::Contains("the length of the header"));
  file.write(std::string("\x00\xe1\xf5\x05\x00\x00\x00\x00", 8) + "{}");  // 100,000,000
  CHECK_THAT(refusal(file), Catch::Contains("the length of the header"));

  check("nonsense", 0, "not JSON");
  check("[1]", 0, "the header: expected a JSON object");
  check(std::string(10000, '['), 0, "a JSON object");
  check(R"({"x":)", 0, "not JSON");
  check(R"({"x":[1]})", 0, "the entry of \"x\"");
  check(R"({"x":{"more":{}}})", 0, "the header");
  check(R"({"x":{"shape":)" + std::string(1000000, '[') + std::string(1000000, ']') + "}}", 0,
        "lists of numbers");
  check(R"({"x":{"dtype":"F32","dtype":"F32"}})", 0, "each name once");
  check(R"({"x":)" + entry("F32", "[\"2\"]", "[0,8]") + "}", 8, "lists of numbers");
  check(R"({"x":)" + entry("F32", "[null]", "[0,8]") + "}", 8, "lists of numbers");
  check(R"({"__metadata__":3})", 0, "the metadata");
  check(R"({"__metadata__":{"a":{}}})", 0, "the metadata");
  check(R"({")" + std::string(1000, 'x') + R"(":3})", 0, "xx...");
  check(R"({"x":3})", 0, "the entry of \"x\"");
  check(
      R"({"x":)" + entry("F32", "[2]", "[0,8]") + R"(,"x":)" + entry("F32", "[2]", "[8,16]") + "}",
      16, "each name once");
  check(R"({"x":{"shape":[2],"data_offsets":[0,8]}})", 8, "has no dtype");
  check(R"({"x":)" + entry("F8_E4M3", "[2]", "[0,2]") + "}", 2, "F8_E4M3");
  check(R"({"x":{"dtype":"F32","data_offsets":[0,8]}})", 8, "has no shape");
  check(R"({"x":)" + entry("F32", "[-2]", "[0,8]") + "}", 8, "impossible shape");
  check(R"({"x":)" + entry("F32", "[1.5]", "[0,8]") + "}", 8, "impossible shape");
  check(R"({"x":)" + entry("F32", "[4294967296,4294967296]", "[0,0]") + "}", 0, "impossible shape");
  check(R"({"x":)" + entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") + "}", 4, "at most 8 dimensions");
  check(R"({"x":)" + entry("F32", "[2]", "[0]") + "}", 8, "two numbers");
  check(R"({"x":)" + entry("F32", "[2]", "[8,0]") + "}", 8, "the bytes of \"x\"");
  check(R"({"x":)" + entry("F32", "[2]", "[0,4]") + "}", 8, "the bytes of \"x\"");
  check(R"({"x":)" + entry("F32", "[2]", "[0,8]") + "}", 4, "bytes of elements after the header");
  check(R"({"x":)" + entry("F32", "[2]", "[0,8]") + "}", 12, "bytes of elements after the header");
  check(
      R"({"x":)" + entry("F32", "[2]", "[0,8]") + R"(,"y":)" + entry("F32", "[2]", "[4,12]") + "}",
      12, "to begin at byte 8");
  check(R"({"x":)" + entry("F32", "[2]", "[4,12]") + "}", 12, "to begin at byte 0");
  check(R"({"__metadata__":{"a":1}})", 0, "the metadata");
  CHECK_THROWS_WITH(load_safetensors("/dev/null"), Catch::Contains("not a regular file"));
}
