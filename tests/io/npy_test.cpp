#include "io/npy.h"

#include "core/error.h"
#include "core/tensor.h"
#include "io/npy_header.h"
#include "io/safetensors.h"
#include "nn/checkpoint.h"
#include "tests/eager/host_tensor.h"
#include "tests/temporary_folder.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

using namespace nitinol;
using test::host_tensor;
using test::reversed;
using test::TemporaryFolder;

namespace {

namespace fs = std::filesystem;

fs::path data_file(const std::string& name) {
  return fs::path(NITINOL_SOURCE_DIR) / "tests/eager/data" / name;
}

std::string contents(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(const fs::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

std::string file_of(const std::string& dictionary, const std::string& data) {
  std::string bytes = "\x93NUMPY";
  bytes += {'\x01', '\x00', static_cast<char>(dictionary.size() & 0xff),
            static_cast<char>(dictionary.size() >> 8)};
  return bytes + dictionary + data;
}

std::string load_error(const fs::path& path, ErrorKind kind) {
  try {
    const Tensor x = load_npy(path);
    return "loaded " + describe(x);
  } catch (const Error& error) {
    CHECK(error.kind() == kind);
    CHECK_THAT(error.message(),
               Catch::StartsWith("load_npy: ") && Catch::Contains(path.filename().string()));
    return error.message();
  }
}

}  // namespace

TEST_CASE("load_npy reads what NumPy wrote", "[eager][npy]") {
  const Tensor single = load_npy(data_file("f32.npy"));
  CHECK(single.shape() == Shape{2, 3});
  const std::vector<float> values = single.to_vector<float>();
  CHECK(values == std::vector<float>{1, 2.5F, -0.0F, std::numeric_limits<float>::infinity(),
                                     std::numeric_limits<float>::denorm_min(), -3});
  CHECK(std::signbit(values[2]));

  std::vector<double> numbers(24);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Tensor fortran = load_npy(data_file("f64_fortran.npy"));
  CHECK(fortran.shape() == Shape{2, 3, 4});
  CHECK(fortran.to_vector<double>() == numbers);

  const Tensor half = load_npy(data_file("f16.npy"));
  CHECK(half.dtype() == f16);
  CHECK(half.to_vector<float>() ==
        std::vector<float>{0.0999755859375F, -2, 65504, std::ldexp(1.0F, -24)});

  const Tensor scalar = load_npy(data_file("i64_scalar.npy"));
  CHECK(scalar.shape() == Shape{});
  CHECK(scalar.item<int64_t>() == -7);
  CHECK(describe(load_npy(data_file("u8_empty.npy"))) == "uint8[3, 0, 2]");
  CHECK(load_npy(data_file("bool.npy")).to_vector<bool>() == std::vector<bool>{true, false, true});
  CHECK(load_npy(data_file("i8.npy")).to_vector<int8_t>() == std::vector<int8_t>{-128, 127});
  CHECK(load_npy(data_file("i16_v2.npy")).to_vector<int16_t>() == std::vector<int16_t>{-300, 300});
  CHECK(load_npy(data_file("i32_v3.npy")).item<int32_t>() == std::numeric_limits<int32_t>::max());
}

TEST_CASE("save_npy writes the bytes that NumPy writes", "[eager][npy]") {
  const TemporaryFolder folder;
  for (const char* name :
       {"f32.npy", "f16.npy", "i64_scalar.npy", "u8_empty.npy", "bool.npy", "i8.npy"}) {
    save_npy(folder / name, load_npy(data_file(name)));
    CHECK(contents(folder / name) == contents(data_file(name)));
  }
  CHECK(folder.names().size() == 6);
}

TEST_CASE("views are saved as the elements they show", "[eager][npy]") {
  const TemporaryFolder folder;
  const Tensor x = host_tensor<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  save_npy(folder / "x.npy", reversed(x));
  const Tensor loaded = load_npy(folder / "x.npy");
  CHECK(loaded.shape() == Shape{3, 2});
  CHECK(loaded.to_vector<int32_t>() == std::vector<int32_t>{1, 4, 2, 5, 3, 6});
}

TEST_CASE("a save replaces a file or leaves it as it was", "[eager][npy]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "x.npy";
  write(path, "old");
  CHECK_THROWS_WITH(save_npy(path, host_tensor<uint16_t>(bf16, {1}, {0})),
                    Catch::Contains("bfloat16") && Catch::Contains("x.to(f32)"));
  CHECK(contents(path) == "old");
  fs::create_symlink(path, folder / "link.npy");
  save_npy(folder / "link.npy", host_tensor<float>({1}, {1}));
  CHECK(fs::is_symlink(folder / "link.npy"));
  CHECK(load_npy(path).item<float>() == 1);
  CHECK(folder.names().size() == 2);
  CHECK_THROWS_WITH(save_npy(folder / "none/x.npy", host_tensor<float>({1}, {1})),
                    Catch::Contains("No such file or directory"));
  CHECK_THROWS_WITH(save_npy("/dev/null", host_tensor<float>({1}, {1})),
                    Catch::Contains("not a regular file"));
}

TEST_CASE("a path with a NUL character is no path", "[eager][npy][safetensors]") {
  const TemporaryFolder folder;
  const fs::path path = (folder / "a").native() + std::string("\0b", 2);
  const Tensor x = host_tensor<float>({1}, {1});
  const auto refused = Catch::Contains("the path has a NUL character after");
  CHECK_THROWS_WITH(save_npy(path, x), refused);
  CHECK_THROWS_WITH(save_safetensors(path, {{"x", x}}), refused);
  CHECK_THROWS_WITH(nn::save(path, std::vector<nn::NamedVariable>{{"x", Variable(x)}}), refused);
  CHECK(fs::is_empty(folder / ""));
  save_npy(folder / "a", x);
  CHECK_THROWS_WITH(load_npy(path), refused);
  CHECK_THROWS_WITH(load_safetensors(path), refused);
  CHECK_THROWS_WITH(nn::load(path, std::vector<nn::NamedVariable>{{"x", Variable(x)}}), refused);
}

TEST_CASE("unsupported elements are named", "[eager][npy]") {
  CHECK_THAT(load_error(data_file("complex64.npy"), ErrorKind::unsupported),
             Catch::Contains("holds complex numbers") && Catch::Contains("got '<c8'"));
  CHECK_THAT(load_error(data_file("object.npy"), ErrorKind::unsupported),
             Catch::Contains("Python objects"));
}

TEST_CASE("load_npy reads elements in big-endian order", "[eager][npy]") {
  CHECK(load_npy(data_file("f32_big_endian.npy")).to_vector<float>() == std::vector<float>{1, 2});
  const TemporaryFolder folder;
  const auto load = [&](const std::string& dictionary, const std::string& data) {
    write(folder / "x.npy", file_of(dictionary, data));
    return load_npy(folder / "x.npy");
  };
  const std::string of_two = "', 'fortran_order': False, 'shape': (2,)}";
  CHECK(load("{'descr': '>i2" + of_two, {"\x01\x02\xff\xfe", 4}).to_vector<int16_t>() ==
        std::vector<int16_t>{0x102, -2});
  CHECK(load("{'descr': '>u8" + of_two, std::string(15, '\0') + '\7').to_vector<uint64_t>() ==
        std::vector<uint64_t>{0, 7});
  CHECK(load("{'descr': '>f2" + of_two, {"\x3c\x00\xc0\x00", 4}).to_vector<float>() ==
        std::vector<float>{1, -2});
  CHECK(load("{'descr': '>i1" + of_two, "\1\2").to_vector<int8_t>() == std::vector<int8_t>{1, 2});
  CHECK(load("{'descr': '>b1" + of_two, {"\0\2", 2}).to_vector<bool>() ==
        std::vector<bool>{false, true});
  const Tensor columns =
      load("{'descr': '>u2', 'fortran_order': True, 'shape': (2, 2)}", {"\0\1\0\2\0\3\0\4", 8});
  CHECK(columns.to_vector<uint16_t>() == std::vector<uint16_t>{1, 3, 2, 4});
  CHECK(load("{'descr': '>f8', 'fortran_order': False, 'shape': (0, 2)}", "").shape() ==
        Shape{0, 2});
  write(folder / "x.npy", file_of("{'descr': '>f4" + of_two, "1234567"));
  CHECK_THAT(load_error(folder / "x.npy", ErrorKind::io), Catch::Contains("bytes, got"));
  CHECK_THROWS_WITH(load("{'descr': '>c8" + of_two, ""), Catch::Contains("complex numbers"));
}

TEST_CASE("files that cannot be read say why", "[eager][npy]") {
  const TemporaryFolder folder;
  CHECK_THAT(load_error(folder / "none.npy", ErrorKind::io),
             Catch::Contains("No such file or directory"));
  fs::create_directory(folder / "folder.npy");
  CHECK_THAT(load_error(folder / "folder.npy", ErrorKind::io),
             Catch::Contains("not a regular file"));
}

TEST_CASE("damaged files give errors, not tensors", "[eager][npy]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "bad.npy";
  const auto error_for = [&](const std::string& bytes) {
    write(path, bytes);
    return load_error(path, ErrorKind::io);
  };
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n";
  write(path, file_of(good, "12345678"));
  CHECK(load_npy(path).shape() == Shape{2});
  CHECK_THAT(error_for(""), Catch::Contains("is not a .npy file"));
  CHECK_THAT(error_for("\x93NUMPY"), Catch::Contains("is not a .npy file"));
  CHECK_THAT(error_for(std::string("\x93NUMPY\x04\x00", 8)), Catch::Contains("got 4.0"));
  CHECK_THAT(error_for(std::string("\x93NUMPY\x01\x00\x01", 9)),
             Catch::Contains("expected 10 bytes"));
  CHECK_THAT(error_for(std::string("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12)),
             Catch::Contains("header") && Catch::Contains("4294967295"));
  CHECK_THAT(error_for(file_of(good, "1234567")), Catch::Contains("got 75"));
  CHECK_THAT(error_for(file_of(good, "123456789")), Catch::Contains("expected 76 bytes"));

  const auto error_for_shape = [&](const std::string& shape) {
    return error_for(
        file_of("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + "}", "12345678"));
  };
  CHECK_THAT(error_for_shape("(4294967296, 4294967296)"), Catch::Contains("can be addressed"));
  CHECK_THAT(error_for_shape("(4611686018427387904, 4, 0)"), Catch::Contains("can be addressed"));
  CHECK_THAT(error_for_shape("(99999999999999999999,)"), Catch::Contains("2^63"));
  CHECK_THAT(error_for_shape("(-2,)"), Catch::Contains("a size from 0"));
  CHECK_THAT(error_for_shape("(1000000000,)"), Catch::Contains("expected 4000000"));
  CHECK_THAT(error_for_shape("2"), Catch::Contains("expected '('"));
  CHECK_THAT(error_for_shape("(2"), Catch::Contains("',' or ')'"));
}

TEST_CASE("headers are Python dictionaries of three keys", "[eager][npy]") {
  const auto parse = [](const std::string& text) {
    return io::parse_npy_header(text, {.quoted = "\"a.npy\""});
  };
  const io::NpyHeader wanted{.dtype = i16, .is_fortran = true, .shape = {2, 3}};
  CHECK(parse("{'descr': '<i2', 'fortran_order': True, 'shape': (2, 3), }  \n") == wanted);
  CHECK(parse("{\"shape\":(2L,3L,),\"fortran_order\":True,\"descr\":\"=i2\"}") == wanted);
  CHECK(parse("{'descr': '>i1', 'fortran_order': False, 'shape': ()}").dtype == i8);
  CHECK_FALSE(parse("{'descr': '>i1', 'fortran_order': False, 'shape': ()}").is_big_endian);
  CHECK(parse("{'descr': '>i2', 'fortran_order': False, 'shape': ()}").is_big_endian);
  for (const char* text :
       {"", "{", "{}", "{'descr': '<i2'}", "['descr']", "{'descr': '<i2', 'descr': '<i2'}",
        "{'descr': '<i2', 'fortran_order': 1, 'shape': ()}",
        "{'descr': '<i2', 'fortran_order': True, 'shape': ()} x",
        "{'descr': '<i2', 'fortran_order': True, 'shape': (), 'more': 1}",
        "{'descr: '<i2', 'fortran_order': True, 'shape': ()}",
        "{'descr': '<i2' 'fortran_order': True, 'shape': ()}",
        "{'descr': '<i2', 'fortran_order': True, 'shape': (,)}"}) {
    INFO(text);
    CHECK_THROWS_WITH(parse(text), Catch::Contains("the header of \"a.npy\" is damaged"));
  }
  for (const char* descr :
       {"''", "'<u16'", "'<f16'", "'|V2'", "'<U3'", "'<M8[ns]'", "'<x'", "[]"}) {
    INFO(descr);
    CHECK_THROWS_WITH(
        parse(std::string("{'fortran_order': True, 'shape': (), 'descr': ") + descr + "}"),
        Catch::Contains("holds"));
  }
  CHECK_THROWS_WITH(parse("{'descr': '<i2', 'fortran_order': True, 'shape': (1,1,1,1,1,1,1,1,1)}"),
                    Catch::Contains("at most 8"));
}

TEST_CASE("whatever the bytes are, loading gives a tensor or an Error", "[eager][npy]") {
  const TemporaryFolder folder;
  const fs::path path = folder / "random.npy";
  const std::string good[] = {contents(data_file("f32.npy")),
                              contents(data_file("f32_big_endian.npy"))};
  std::minstd_rand random(1);
  for (std::size_t i = 0; i < 2000; ++i) {
    std::string bytes = good[i % 2];
    for (auto n = random() % 4; n < 5; ++n) bytes[random() % 70] = static_cast<char>(random());
    if (random() % 8 == 0) bytes.resize(random() % bytes.size());
    write(path, bytes);
    try {
      const Tensor x = load_npy(path);
      CHECK(x.size() <= 24);
    } catch (const Error& error) {
      CHECK((error.kind() == ErrorKind::io || error.kind() == ErrorKind::unsupported));
    }
  }
}
