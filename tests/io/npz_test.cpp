#include "io/npz.h"

#include "core/error.h"
#include "eager/ops/ops.h"
#include "tests/hostile_files.h"
#include "tests/mutated.h"
#include "tests/same_bits.h"
#include "tests/seeds.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

namespace nitinol::npz_test {
namespace {

namespace fs = std::filesystem;
using test::TemporaryFolder;

fs::path data_file(const std::string& name) {
  return fs::path(NITINOL_SOURCE_DIR) / "tests/io/data/npz" / name;
}

// ---- zip files made by hand, which may lie

std::string little(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

uint32_t checksum_of(const std::string& text) {
  uint32_t crc = 0xFFFFFFFF;
  for (const char c : text) {
    crc ^= static_cast<uint8_t>(c);
    for (int i = 0; i < 8; ++i) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

struct Member {
  std::string name, data;
  uint32_t method = 0, flags = 0;
  int64_t size = -1, compressed = -1;  // what is said of them, if it is not the data's
  int64_t offset = -1;
};

/// What the list and what precedes the data say alike.
std::string fields_of(const Member& m) {
  const auto stored = static_cast<int64_t>(m.data.size());
  return little(20, 2) + little(m.flags, 2) + little(m.method, 2) + little(0, 4) +
         little(checksum_of(m.data), 4) +
         little(static_cast<uint64_t>(m.compressed < 0 ? stored : m.compressed), 4) +
         little(static_cast<uint64_t>(m.size < 0 ? stored : m.size), 4) + little(m.name.size(), 2);
}

std::string local_part(const Member& m) {
  return "PK\3\4" + fields_of(m) + little(0, 2) + m.name + m.data;
}

std::string zip_of(const std::vector<Member>& members) {
  std::string file, list;
  for (const Member& m : members) {
    const uint64_t offset = m.offset < 0 ? file.size() : static_cast<uint64_t>(m.offset);
    list += "PK\1\2" + little(20, 2) + fields_of(m) + std::string(12, '\0') + little(offset, 4) +
            m.name;
    if (m.offset < 0) file += local_part(m);
  }
  const std::string count = little(members.size(), 2);
  return file + list + "PK\5\6" + little(0, 4) + count + count + little(list.size(), 4) +
         little(file.size(), 4) + little(0, 2);
}

/// A .npy file.
std::string npy(const std::string& dictionary, const std::string& data) {
  return std::string("\x93NUMPY\1\0", 8) + little(dictionary.size(), 2) + dictionary + data;
}
std::string bytes_npy(const std::string& data) {
  return npy(
      "{'descr': '|u1', 'fortran_order': False, 'shape': (" + std::to_string(data.size()) + ",), }",
      data);
}

class Files {
 public:
  [[nodiscard]] fs::path write(const std::string& bytes) const {
    const fs::path path = folder_ / "given.npz";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }

  /// The Error of such a file; it names the file.
  [[nodiscard]] std::string error(const std::string& bytes, ErrorKind kind = ErrorKind::io) const {
    try {
      return "read " + std::to_string(load_npz(write(bytes)).size()) + " tensors";
    } catch (const Error& error) {
      CHECK(error.kind() == kind);
      CHECK_THAT(error.message(), Catch::StartsWith("load_npz: ") && Catch::Contains("given.npz"));
      return error.message();
    }
  }

 private:
  TemporaryFolder folder_;
};

Tensor found(const std::vector<NamedTensor>& tensors, const std::string& name) {
  for (const auto& [each, tensor] : tensors)
    if (each == name) return tensor;
  FAIL("no " + name);
  return {};
}

// ---- what is read and written

TEST_CASE("load_npz reads what NumPy writes", "[io][npz]") {
  for (const char* file : {"several.npz", "compressed.npz"}) {
    INFO(file);
    const std::vector<NamedTensor> all = load_npz(data_file(file));
    CHECK(same_bits(found(all, "f32"), tensor({{0.0, 0.5, 1.0}, {1.5, 2.0, 2.5}}, f32)));
    CHECK(same_bits(found(all, "layer/weight"), tensor({{0, 1}, {2, 3}, {4, 5}}, f64)));
    CHECK(same_bits(found(all, "größe"), tensor({{1, -2}, {3, -4}}, i32)));
    CHECK(same_bits(found(all, "bool"), tensor({true, false, true})));
    CHECK(same_bits(found(all, "scalar"), tensor(-7, i64)));
    CHECK(same_bits(found(all, "empty"), zeros({0, 3}, u8)));
    CHECK(same_bits(found(all, "f16"), tensor({1.5, -2.0, INFINITY}, f16)));
  }
  const std::vector<NamedTensor> stored = load_npz(data_file("several.npz"));
  CHECK(stored.size() == 7);
  CHECK(stored.front().first == "f32");
  CHECK(stored.back().first == "f16");
  CHECK(same_bits(found(load_npz(data_file("compressed.npz")), "zeros"), zeros({40, 50})));
  CHECK(load_npz(data_file("nothing.npz")).empty());
}

TEST_CASE("save_npz and load_npz keep names, order and bits", "[io][npz]") {
  const TemporaryFolder folder;
  const Tensor table = reshape(arange(24), {2, 3, 4});
  std::vector<NamedTensor> all;
  for (const DType dtype : {boolean, u8, u16, u32, u64, i8, i16, i32, i64, f16, f32, f64})
    all.emplace_back(std::string(name_of(dtype)), cast(table, dtype));
  all.emplace_back("a view", slice(transpose(table), 1, Range{1, 3}));
  all.emplace_back("reversed", flip(table, {0, 2}));
  all.emplace_back("one value, often", expand(tensor(2.5F), {3, 4}));
  all.emplace_back("a number", tensor(-0.0));
  all.emplace_back("nothing", zeros({3, 0, 2}));
  all.emplace_back("in/a folder/ünd", ones({1}));
  all.emplace_back("", ones({2}));
  all.emplace_back("ends.npy", ones({3}));
  for (const bool is_compressed : {false, true}) {
    save_npz(folder / "all.npz", all, {.is_compressed = is_compressed});
    const std::vector<NamedTensor> read = load_npz(folder / "all.npz");
    REQUIRE(read.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      INFO(all[i].first);
      CHECK(read[i].first == all[i].first);
      CHECK(same_bits(read[i].second, copy(all[i].second)));
    }
  }
  save_npz(folder / "none.npz", {});
  CHECK(load_npz(folder / "none.npz").empty());
  CHECK(folder.names().size() == 2);  // and no temporary file
}

TEST_CASE("save_npz: compressed files are smaller, and the same each time", "[io][npz]") {
  const TemporaryFolder folder;
  const std::vector<NamedTensor> all = {{"x", zeros({300, 300})}};
  save_npz(folder / "a.npz", all);
  save_npz(folder / "b.npz", all, {.is_compressed = true});
  save_npz(folder / "c.npz", all, {.is_compressed = true});
  CHECK(fs::file_size(folder / "a.npz") > 360'000);
  CHECK(fs::file_size(folder / "b.npz") < 3'600);
  CHECK(test::bytes_of(folder / "b.npz") == test::bytes_of(folder / "c.npz"));
  save_npz(folder / "d.npz", {{"\xC3\xB6", zeros({1})}});
  CHECK((test::bytes_of(folder / "d.npz")[7] & 8) != 0);  // the name is UTF-8, else code page 437
}

TEST_CASE("save_npz: what cannot be written leaves the old file", "[io][npz]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.npz";
  save_npz(path, {{"old", ones({2})}});
  const auto error = [&](const std::vector<NamedTensor>& tensors) {
    try {
      save_npz(path, tensors);
    } catch (const Error& e) {
      return e.message();
    }
    return std::string("written");
  };
  const Tensor x = ones({2});
  CHECK_THAT(error({{"a", x}, {"a", x}}), Catch::Contains("each name once"));
  CHECK_THAT(error({{std::string("a\0b", 3), x}}), Catch::Contains("UTF-8 without NUL"));
  for (const char* name : {"\xFF", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80",
                           "\xF0\x80\x80\x80", "\xC3", "\xE2\x82", "\x80"}) {
    CHECK_THAT(error({{name, x}}), Catch::Contains("UTF-8 without NUL"));
  }
  CHECK_THAT(error({{std::string(65532, 'a'), x}}), Catch::Contains("at most 65531"));
  CHECK_THAT(error({{"a", x}, {"b", cast(x, bf16)}}),
             Catch::Contains("\"b\" in") && Catch::Contains("x.to(f32)"));
  CHECK(load_npz(path).front().first == "old");
  CHECK(folder.names().size() == 1);
  save_npz(path, {{std::string(65531, 'a'), x}, {"\xF0\x9F\x8E\xB2\xED\x9F\xBF", x}});
  CHECK(load_npz(path).size() == 2);
  CHECK_THROWS_WITH(save_npz(folder / "no/x.npz", {}), Catch::Contains("No such file"));
}

// ---- what is refused

TEST_CASE("load_npz says what is no zip file", "[io][npz]") {
  const Files files;
  CHECK_THAT(files.error(""), Catch::Contains("is not a zip file, or is damaged"));
  CHECK_THAT(files.error("PK\3\4"), Catch::Contains("is not a zip file"));
  CHECK_THAT(files.error(bytes_npy("12")), Catch::Contains("is not a zip file"));
  const std::string good = zip_of({{.name = "a.npy", .data = bytes_npy("1234")}});
  CHECK(files.error(good) == "read 1 tensors");
  for (std::size_t size = 0; size < good.size(); size += 7) {
    INFO(size);
    CHECK(!files.error(good.substr(0, size)).starts_with("read"));
  }
  CHECK_THROWS_WITH(static_cast<void>(load_npz("/nowhere/x.npz")),
                    Catch::Contains("/nowhere/x.npz"));
}

TEST_CASE("load_npz refuses members that are no arrays", "[io][npz]") {
  const Files files;
  const auto error = [&](const Member& member, ErrorKind kind = ErrorKind::io) {
    return files.error(zip_of({{.name = "good.npy", .data = bytes_npy("12")}, member}), kind);
  };
  const std::string data = bytes_npy("1234");
  CHECK_THAT(error({.name = "read.me", .data = data}),
             Catch::Contains("the member \"read.me\"") && Catch::Contains("a .npy file"));
  CHECK_THAT(error({.name = "folder/", .data = ""}), Catch::Contains("\"folder/\""));
  CHECK_THAT(error({.name = "a.npy", .data = "text"}),
             Catch::Contains("\"a.npy\" in") && Catch::Contains("is not a .npy file"));
  CHECK_THAT(error({.name = "a.npy", .data = ""}), Catch::Contains("is not a .npy file"));
  CHECK_THAT(error({.name = "good.npy", .data = data}),
             Catch::Contains("\"good.npy\"") && Catch::Contains("each name once"));
  CHECK_THAT(error({.name = "\xFF.npy", .data = data}),
             Catch::Contains("the name of \"?.npy\" in"));
  CHECK_THAT(error({.name = "a.npy", .data = data, .flags = 1}, ErrorKind::unsupported),
             Catch::Contains("\"a.npy\" in") && Catch::Contains("is encrypted"));
  CHECK_THAT(error({.name = "a.npy", .data = data, .method = 12}, ErrorKind::unsupported),
             Catch::Contains("method 12"));
  CHECK_THAT(error({.name = "../a.npy", .data = data}), Catch::Equals("read 2 tensors"));
  try {
    static_cast<void>(load_npz(data_file("object.npz")));
    FAIL("read");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::unsupported);
    CHECK_THAT(e.message(), Catch::StartsWith("load_npz: \"bad.npy\" in \"") &&
                                Catch::Contains("Python objects"));
  }
}

TEST_CASE("load_npz does not believe sizes", "[io][npz]") {
  const Files files;
  const auto error = [&](const Member& member) { return files.error(zip_of({member})); };
  const std::string data = bytes_npy("1234");
  const auto size = static_cast<int64_t>(data.size());
  // More or less than the header asks for.
  CHECK_THAT(error({.name = "a.npy", .data = data + "5"}),
             Catch::Contains("the size of \"a.npy\" in") &&
                 Catch::Contains("does not agree with its header"));
  CHECK_THAT(error({.name = "a.npy", .data = data.substr(0, data.size() - 1)}),
             Catch::Contains("does not agree with its header"));
  // More than the file has.
  CHECK_THAT(error({.name = "a.npy", .data = data, .size = 4'000'000, .compressed = 4'000'000}),
             Catch::Contains("is not a zip file, or is damaged"));
  CHECK_THAT(error({.name = "a.npy", .data = data, .size = size + 1}),
             Catch::Contains("the size of \"a.npy\""));
  CHECK_THAT(error({.name = "a.npy", .data = data, .size = size - 1}),
             Catch::Contains("the size of \"a.npy\""));
  // A few bytes that are said to become gigabytes, as the header says, too.
  const std::string huge =
      npy("{'descr': '|u1', 'fortran_order': False, 'shape': (4000000000,), }", "");
  CHECK_THAT(error({.name = "a.npy", .data = huge, .method = 8, .size = 4'000'000'070}),
             Catch::Contains("can hold, at most"));
  // Deflated, as one block that is stored: complete, and with bytes missing.
  const auto deflated = [&](const std::string& text) {
    return "\1" + little(text.size(), 2) + little(~text.size(), 2) + text;
  };
  const Member part = {
      .name = "a.npy", .data = deflated(data.substr(0, 60)), .method = 8, .size = size};
  CHECK_THAT(error(part), Catch::Contains("\"a.npy\" in") && Catch::Contains("is damaged"));
  Member cut = {.name = "a.npy", .data = deflated(data), .method = 8, .size = size};
  cut.compressed = static_cast<int64_t>(cut.data.size()) - 2;
  CHECK_THAT(error(cut), Catch::Contains("\"a.npy\" in"));
  CHECK_THAT(error({.name = "a.npy", .data = "\7\7\7\7\7", .method = 8, .size = size}),
             Catch::Contains("\"a.npy\" in") && Catch::Contains("data error"));
  // Members within a member: each small, all together more than the file.
  Member inner = {.name = "b.npy", .data = bytes_npy(std::string(1000, 'x'))};
  const Member outer = {.name = "a.npy", .data = bytes_npy(local_part(inner))};
  CHECK(files.error(zip_of({outer})) == "read 1 tensors");
  inner.offset = static_cast<int64_t>(local_part(outer).size() - local_part(inner).size());
  CHECK_THAT(files.error(zip_of({outer, inner})),
             Catch::Contains("the compressed size of \"b.npy\""));
}

TEST_CASE("load_npz sees bytes that changed", "[io][npz]") {
  const Files files;
  const std::string good = zip_of({{.name = "a.npy", .data = bytes_npy("1234")}});
  std::string bad = good;
  bad[bad.find("1234")] = 'x';
  CHECK_THAT(files.error(bad), Catch::Contains("\"a.npy\" in") && Catch::Contains("CRC error"));
  bad = good;
  bad[bad.find("a.npy")] = 'b';  // of the two places the first
  static_cast<void>(files.error(bad));
  bad = good;
  bad[0] = 'X';
  CHECK_THAT(files.error(bad), Catch::Contains("is damaged"));
}

TEST_CASE("seeds of the .npz fuzzer, and what becomes of them", "[npz][errors]") {
  const std::vector<test::Bytes> seeds = test::seeds_in("/tests/io/data/npz");
  REQUIRE(seeds.size() == 4);
  const auto reads = [](const test::Bytes& bytes) {
    return test::reads(test::read_npz, bytes, test::times_zipped);
  };
  CHECK(std::ranges::count_if(seeds, reads) == 3);
  std::mt19937 random(1);
  int read = 0;
  for (int i = 0; i < 4000; ++i)
    read += reads(test::mutated(seeds[random() % seeds.size()], seeds, random)) ? 1 : 0;
  CHECK(read > 10);
}

}  // namespace
}  // namespace nitinol::npz_test
