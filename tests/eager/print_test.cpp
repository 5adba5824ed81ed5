#include "eager/print.h"

#include "tests/eager/host_tensor.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

using namespace nitinol;
using test::host_tensor;
using test::reversed;

// The expected texts are what NumPy 2.4 prints between "array(" and its dtype.

TEST_CASE("floats are printed with as few digits as read back, in columns", "[eager][print]") {
  const Tensor x = host_tensor<float>({2, 2}, {1, 2.5F, -3, 0.1F});
  CHECK(to_string(x) ==
        "tensor([[ 1. ,  2.5],\n"
        "        [-3. ,  0.1]], float32[2, 2])");
  CHECK(to_string(reversed(x)) ==
        "tensor([[ 1. , -3. ],\n"
        "        [ 2.5,  0.1]], float32[2, 2])");
  CHECK(to_string(host_tensor<double>({3}, {0.5, 20, 300.25})) ==
        "tensor([  0.5 ,  20.  , 300.25], float64[3])");
  CHECK(to_string(host_tensor<double>({2}, {1.0 / 3, 2})) ==
        "tensor([0.33333333, 2.        ], float64[2])");
  CHECK(to_string(host_tensor<double>({}, {-0.0})) == "tensor(-0., float64[])");
}

TEST_CASE("a wide range asks for scientific notation", "[eager][print]") {
  CHECK(to_string(host_tensor<double>({2}, {1, 1001})) ==
        "tensor([1.000e+00, 1.001e+03], float64[2])");
  CHECK(to_string(host_tensor<float>({2}, {1e-5F, 2e-5F})) ==
        "tensor([1.e-05, 2.e-05], float32[2])");
  CHECK(to_string(host_tensor<double>({2}, {1e-300, -1.5})) ==
        "tensor([ 1.0e-300, -1.5e+000], float64[2])");
  CHECK(to_string(host_tensor<float>({1}, {123456})) == "tensor([123456.], float32[1])");
  CHECK(to_string(host_tensor<float>({1}, {1234567})) == "tensor([1.234567e+06], float32[1])");
  CHECK(to_string(host_tensor<double>({}, {std::numeric_limits<double>::denorm_min()})) ==
        "tensor(5.e-324, float64[])");
}

TEST_CASE("infinities and NaN align", "[eager][print]") {
  constexpr double inf = std::numeric_limits<double>::infinity();
  CHECK(to_string(host_tensor<double>({3}, {1, NAN, inf})) ==
        "tensor([ 1., nan, inf], float64[3])");
  CHECK(to_string(host_tensor<double>({2}, {1.5, -inf})) == "tensor([ 1.5, -inf], float64[2])");
  CHECK(to_string(host_tensor<double>({1}, {NAN})) == "tensor([nan], float64[1])");
}

TEST_CASE("16-bit floats need fewer digits to read back", "[eager][print]") {
  CHECK(to_string(host_tensor<uint16_t>(f16, {2}, {0x2e66, 0x3c00})) ==
        "tensor([0.1, 1. ], float16[2])");
  CHECK(to_string(host_tensor<uint16_t>(f16, {1}, {0x0001})) == "tensor([6.e-08], float16[1])");
  CHECK(to_string(host_tensor<uint16_t>(bf16, {2}, {0x3dcd, 0x4049})) ==
        "tensor([0.1 , 3.14], bfloat16[2])");
}

TEST_CASE("integers and booleans align", "[eager][print]") {
  CHECK(to_string(host_tensor<int64_t>({3}, {1, -20, 300})) == "tensor([  1, -20, 300], int64[3])");
  CHECK(to_string(host_tensor<uint8_t>({2}, {0, 255})) == "tensor([  0, 255], uint8[2])");
  CHECK(to_string(host_tensor<bool>({2}, {true, false})) == "tensor([ True, False], bool[2])");
  CHECK(to_string(host_tensor<bool>({}, {true})) == "tensor(True, bool[])");
}

TEST_CASE("rows of higher dimensions stand apart", "[eager][print]") {
  CHECK(to_string(host_tensor<int32_t>({2, 1, 2}, {1, 2, 3, 4})) ==
        "tensor([[[1, 2]],\n"
        "\n"
        "        [[3, 4]]], int32[2, 1, 2])");
  CHECK(to_string(host_tensor<float>({3, 0}, {})) == "tensor([], float32[3, 0])");
}

TEST_CASE("long rows break, long tensors show their edges", "[eager][print]") {
  std::vector<int64_t> numbers(1001);
  std::iota(numbers.begin(), numbers.end(), 0);
  CHECK(to_string(host_tensor<int64_t>({1001}, numbers)) ==
        "tensor([   0,    1,    2, ...,  998,  999, 1000], int64[1001])");
  numbers.resize(24);
  CHECK(to_string(host_tensor<int64_t>({24}, numbers)) ==
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15,\n"
        "        16, 17, 18, 19, 20, 21, 22, 23], int64[24])");
  numbers.resize(1000);
  const std::string all = to_string(host_tensor<int64_t>({1000}, numbers));
  CHECK(all.find("...") == std::string::npos);
  const std::string table = to_string(host_tensor<double>({500, 8}, std::vector<double>(4000, 1)));
  CHECK(table ==
        "tensor([[1., 1., 1., ..., 1., 1., 1.],\n"
        "        [1., 1., 1., ..., 1., 1., 1.],\n"
        "        [1., 1., 1., ..., 1., 1., 1.],\n"
        "        ...,\n"
        "        [1., 1., 1., ..., 1., 1., 1.],\n"
        "        [1., 1., 1., ..., 1., 1., 1.],\n"
        "        [1., 1., 1., ..., 1., 1., 1.]], float64[500, 8])");
}

TEST_CASE("streams and fmt print tensors", "[eager][print]") {
  const Tensor x = host_tensor<float>({}, {1.5F});
  std::ostringstream stream;
  stream << x << "; " << Tensor();
  CHECK(stream.str() == "tensor(1.5, float32[]); tensor(undefined)");
  CHECK(fmt::format("{:>24}", x) == "  tensor(1.5, float32[])");
}
