#include "core/error.h"
#include "core/interpreter.h"
#include "core/storage.h"
#include "core/tensor.h"
#include "eager/ops/ops.h"
#include "eager/print.h"
#include "io/npy.h"
#include "tests/eager/host_tensor.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <limits>
#include <source_location>
#include <sstream>
#include <string>
#include <vector>

using namespace nitinol;
using test::host_tensor;
using test::reversed;

namespace {

// Notes what is read, and where.
class ReadNotes : public Interpreter {
 public:
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override {
    return base_interpreter().run(op, inputs, attrs, spec);
  }
  std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                              std::span<const Spec> specs) override {
    return base_interpreter().run_all(op, inputs, attrs, specs);
  }
  void read(const Tensor&, const ReadSite& site) override {
    what.emplace_back(site.what);
    lines.push_back(site.place.line());
    addresses.push_back(site.return_address);
  }
  Tensor get(const Variable& variable) override { return base_interpreter().get(variable); }
  void set(const Variable& variable, const Tensor& value) override {
    base_interpreter().set(variable, value);
  }
  void created(const Tensor&) override {}
  void guard(const HostValueGuard&) override {}

  std::vector<std::string> what;
  std::vector<uint32_t> lines;
  std::vector<const void*> addresses;
};

template <class F>
Error error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  FAIL("nothing was thrown");
  throw;
}

}  // namespace

TEST_CASE("item converts the one element", "[eager][read]") {
  CHECK(host_tensor<float>({}, {2.75F}).item<double>() == 2.75);
  CHECK(host_tensor<int32_t>({}, {7}).item<std::size_t>() == 7);
  CHECK(host_tensor<float>({}, {2.75F}).item<long long>() == 2);
  CHECK(host_tensor<float>({}, {2.75F}).item<long double>() == 2.75L);
  CHECK(host_tensor<uint8_t>({}, {65}).item<char>() == 'A');
  CHECK(host_tensor<float>({1, 1}, {-2.75F}).item<int>() == -2);
  CHECK(host_tensor<double>({}, {1e300}).item<int64_t>() == std::numeric_limits<int64_t>::max());
  CHECK(host_tensor<double>({}, {NAN}).item<int32_t>() == 0);
  CHECK(host_tensor<double>({}, {-5}).item<uint8_t>() == 0);
  CHECK(host_tensor<int64_t>({1}, {-1}).item<uint8_t>() == 255);
  const int64_t large = (int64_t{1} << 62) + 1;
  CHECK(host_tensor<int64_t>({}, {large}).item<int64_t>() == large);
  CHECK(host_tensor<uint8_t>({}, {7}).item<bool>());
  CHECK(host_tensor<uint16_t>(f16, {}, {0x0001}).item<double>() == std::ldexp(1.0, -24));
  CHECK(host_tensor<uint16_t>(f16, {}, {0xfc00}).item<float>() ==
        -std::numeric_limits<float>::infinity());
  CHECK(host_tensor<uint16_t>(bf16, {}, {0xbf80}).item<float>() == -1.0F);
}

TEST_CASE("item of several elements says what to do and where", "[eager][read]") {
  const Tensor x = host_tensor<float>({2, 2}, {1, 2, 3, 4});
  const uint32_t line = __LINE__ + 1;
  const Error error = error_of([&] { static_cast<void>(x.item<float>()); });
  CHECK(error.kind() == ErrorKind::shape);
  CHECK(error.message() ==
        "item(): float32[2, 2] is not a single value: expected 1 element, got 4.\nReduce it first "
        "(sum, mean, any, all, ...) or index one element.");
  CHECK(error.location() == std::string(__FILE__) + ":" + std::to_string(line));
  CHECK(error_of([] { static_cast<void>(host_tensor<float>({0}, {}).item<float>()); }).kind() ==
        ErrorKind::shape);
  CHECK(error_of([] { static_cast<void>(Tensor().item<float>()); }).kind() == ErrorKind::value);
}

TEST_CASE("a tensor is true if its one element is not zero", "[eager][read]") {
  CHECK(host_tensor<float>({}, {0.5F}));
  CHECK(host_tensor<float>({1}, {NAN}));
  CHECK_FALSE(host_tensor<float>({}, {-0.0F}));
  CHECK_FALSE(host_tensor<bool>({}, {false}));
  CHECK(host_tensor<double>({}, {std::numeric_limits<double>::denorm_min()}));
  const Tensor x = host_tensor<int32_t>({3}, {1, 1, 1});
  CHECK_THROWS_WITH(static_cast<bool>(x), Catch::StartsWith("bool(tensor): int32[3] is not"));
  const Error error = error_of([&] { static_cast<void>(static_cast<bool>(x)); });
  CHECK_FALSE(error.location().empty());
}

TEST_CASE("to_vector gives the elements in row-major order", "[eager][read]") {
  const Tensor x = host_tensor<int32_t>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(x.to_vector<int32_t>() == std::vector<int32_t>{1, 2, 3, 4, 5, 6});
  CHECK(reversed(x).to_vector<int32_t>() == std::vector<int32_t>{1, 4, 2, 5, 3, 6});
  const Tensor cube = host_tensor<uint8_t>({2, 2, 2}, {0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(reversed(cube).to_vector<uint8_t>() == std::vector<uint8_t>{0, 4, 2, 6, 1, 5, 3, 7});
  const Tensor row = host_tensor<double>({3}, {1, 2, 3});
  Spec wide = row.spec();
  wide.shape = {2, 3};
  const Tensor repeated = make_tensor(wide, {0, 1}, 0, row.internals().storage);
  CHECK(repeated.to_vector<double>() == std::vector<double>{1, 2, 3, 1, 2, 3});
  const Tensor backwards = make_tensor(row.spec(), {-1}, 2, row.internals().storage);
  CHECK(backwards.to_vector<double>() == std::vector<double>{3, 2, 1});
  CHECK(host_tensor<bool>({2}, {true, false}).to_vector<bool>() == std::vector<bool>{true, false});
  CHECK(host_tensor<int16_t>({}, {5}).to_vector<int16_t>() == std::vector<int16_t>{5});
  CHECK(host_tensor<float>({2, 0}, {}).to_vector<float>().empty());
}

TEST_CASE("f16 and bf16 are read as float", "[eager][read]") {
  const Tensor half = host_tensor<uint16_t>(f16, {2, 2}, {0x3c00, 0xc000, 0x7bff, 0x8001});
  CHECK(half.to_vector<float>() == std::vector<float>{1, -2, 65504, -std::ldexp(1.0F, -24)});
  CHECK(reversed(half).to_vector<float>()[1] == 65504);
  CHECK(host_tensor<uint16_t>(bf16, {1}, {0x4049}).to_vector<float>()[0] == 3.140625F);
  CHECK_THROWS_WITH(half.data<float>(), Catch::Contains("to_vector<float>()"));
  CHECK_THROWS_WITH(half.to_vector<double>(), Catch::Contains("expected to_vector<float>()"));
}

TEST_CASE("data gives the elements in place, or says why not", "[eager][read]") {
  const Tensor x = host_tensor<int64_t>({2, 2}, {1, 2, 3, 4});
  CHECK(x.data<int64_t>().data() == x.internals().address());
  CHECK(x.data<int64_t>().size() == 4);
  CHECK(host_tensor<bool>({1}, {true}).data<bool>()[0]);
  CHECK(host_tensor<float>({0}, {}).data<float>().empty());
  const Error wrong_type = error_of([&] { static_cast<void>(x.data<float>()); });
  CHECK(wrong_type.kind() == ErrorKind::value);
  CHECK(wrong_type.message() ==
        "data<float>(): the elements of int64[2, 2] are not read as float: expected "
        "data<int64_t>(), got data<float>().\nAsk for its own type, or convert it first: "
        "x.to(f32).");
  const Error view = error_of([&] { static_cast<void>(reversed(x).data<int64_t>()); });
  CHECK(view.kind() == ErrorKind::value);
  CHECK(view.message() ==
        "data<int64_t>(): int64[2, 2] is a view whose elements are not in row-major order in "
        "memory: expected strides [2, 1], got [1, 2].\nRead a copy: to_vector() gives the elements "
        "in order.");
}

TEST_CASE("every way to look at elements asks the interpreter", "[eager][read]") {
  const Tensor x = host_tensor<float>({1}, {1});
  ReadNotes notes;
  const InterpreterScope scope(notes);
  std::ostringstream stream;
  const uint32_t line = __LINE__ + 1;
  CHECK(x.item<float>() == 1);
  CHECK(x.to_vector<float>().size() == 1);
  CHECK(x.data<float>().size() == 1);
  CHECK(to_string(x) == "tensor([1.], float32[1])");
  CHECK(static_cast<bool>(x));
  stream << x;
  CHECK(fmt::format("{}", x) == stream.str());
  CHECK(notes.what == std::vector<std::string>{"item()", "to_vector()", "data()", "print",
                                               "bool(tensor)", "print", "print"});
  CHECK(notes.lines[0] == line);
  CHECK(notes.lines[2] == line + 2);
  CHECK(notes.lines[4] == 0);
  CHECK(notes.addresses[4] != nullptr);
  CHECK(notes.addresses[5] != nullptr);
  // Errors that need no element do not end a trace.
  CHECK_THROWS(x.to_vector<double>());
  CHECK_THROWS(x.data<double>());
  CHECK(notes.what.size() == 7);
}

TEST_CASE("strides and the first byte lead to every element", "[eager][read]") {
  const Tensor x = host_tensor<int64_t>({2, 3}, {0, 1, 2, 3, 4, 5});
  CHECK(x.strides() == Strides{3, 1});
  CHECK(x.read_bytes() == x.internals().address());
  const Tensor turned = x.at({1, Range{.step = -1}});
  CHECK(turned.strides() == Strides{-1});
  const auto* const first = static_cast<const int64_t*>(turned.read_bytes());
  for (int64_t i = 0; i < 3; ++i) CHECK(first[i * turned.strides()[0]] == 5 - i);
  CHECK(expand(x[0], {4, 3}).strides() == Strides{0, 1});
  CHECK(*static_cast<const double*>((Tensor(Scalar(2.5))).read_bytes()) == 2.5);
  CHECK(zeros({0, 2}).read_bytes() == nullptr);
  CHECK_THROWS_WITH(Tensor().read_bytes(), Catch::Contains("undefined"));
}

TEST_CASE("bytes are read with the place of the call", "[eager][read]") {
  ReadNotes notes;
  const Tensor x = host_tensor<float>({2}, {1, 2});
  const InterpreterScope scope(notes);
  const auto line = std::source_location::current().line() + 1;
  static_cast<void>(x.read_bytes());
  CHECK(notes.what == std::vector<std::string>{"read_bytes()"});
  CHECK(notes.lines == std::vector<uint32_t>{line});
}

TEST_CASE("bytes of another device's memory are copied first", "[eager][read]") {
  float element = 1;
  Storage storage = {};
  storage.data = &element;
  storage.backend = reinterpret_cast<Backend*>(&storage);  // only looked at, never asked
  storage.release = [](Storage*) noexcept {};
  const Spec spec = {.dtype = f32, .shape = {1}, .device = {Device::Kind::cuda}};
  const Tensor x = make_tensor(spec, {1}, 0, StorageHandle(&storage));
  const Error error = error_of([&] { static_cast<void>(x.read_bytes()); });
  CHECK(error.kind() == ErrorKind::device);
  CHECK(error.message() ==
        "read_bytes(): the memory of float32[1] is not the host's: expected a tensor on cpu:0, "
        "got one on cuda:0.\nRead a copy: x.to(Device{}) and its bytes.");
}
