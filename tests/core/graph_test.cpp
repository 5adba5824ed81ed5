// tests/core/graph_test.cpp -- The text form of graphs, and what verify() demands of them.
//
// core is tested without eager, so the vocabulary here is a small one of its own.

#include "core/graph.h"

#include "core/element_text.h"
#include "core/error.h"
#include "core/host_access.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <random>
#include <string>

using namespace nitinol;

namespace {

Spec same_as_first(const Op&, Inputs inputs, const Attrs&) {
  return inputs[0]->spec();
}

Spec broadcast_of_both(const Op& op, Inputs inputs, const Attrs&) {
  Spec spec = inputs[0]->spec();
  spec.shape = broadcast_shapes(op.name, spec.shape, inputs[1]->shape());
  return spec;
}

Spec without_axes(const Op& op, Inputs inputs, const Attrs& attrs) {
  Spec spec = inputs[0]->spec();
  const Dims axes = normalize_axes(op.name, std::get<Dims>(attrs[0]), spec.shape.size());
  for (int i = axes.size() - 1; i >= 0; --i) {
    if (std::get<bool>(attrs[1]))
      spec.shape[static_cast<int>(axes[i])] = 1;
    else
      spec.shape.erase(static_cast<int>(axes[i]));
  }
  return spec;
}

constexpr std::string_view sum_attrs[] = {"axes", "keepdims"};
constexpr std::string_view mixed_attrs[] = {"flag", "count", "factor", "dtype", "axes"};

/// All elements in one row, and as they are.
std::vector<Spec> flat_and_same(const Op&, Inputs inputs, const Attrs&) {
  Spec flat = inputs[0]->spec();
  flat.shape = {element_count(flat.shape)};
  return {flat, inputs[0]->spec()};
}

constinit const Op mul_op = {.name = "mul", .arity = 2, .infer = broadcast_of_both};
constinit const Op join_op = {.name = "join", .arity = -1, .infer = same_as_first};
constinit const Op sum_op = {
    .name = "sum", .kind = OpKind::reduce, .attr_names = sum_attrs, .infer = without_axes};
constinit const Op mixed_op = {.name = "mixed", .attr_names = mixed_attrs, .infer = same_as_first};
constinit const Op softmax_op = {
    .name = "softmax", .kind = OpKind::composite, .infer = same_as_first};

constinit const Op turned_op = {
    .name = "turned", .kind = OpKind::library, .infer_all = flat_and_same};

Graph parsed(std::string_view text) {
  static constexpr const Op* ops[] = {&mul_op,   &join_op,    &sum_op,
                                      &mixed_op, &softmax_op, &turned_op};
  return parse(text, ops);
}

std::string message_of(std::string_view text) {
  try {
    static_cast<void>(parsed(text));
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::value);
    return error.message();
  }
  return "no error";
}

/// What verify() says when `change` has been made to the graph.
template <class Change>
std::string message_of_broken(Graph graph, const Change& change) {
  change(graph);
  try {
    verify(graph, "some_pass");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::internal);
    return error.message();
  }
  return "no error";
}

void check_round_trip(const std::string& text) {
  const Graph graph = parsed(text);
  CHECK(to_string(graph) == text);
  CHECK_NOTHROW(verify(graph, "parse"));
}

template <class T>
T element(const Graph& graph, Value constant, int64_t offset) {
  T value;
  const HostElements elements(graph[constant].constant.internals());
  std::memcpy(&value, elements.first() + offset * static_cast<int64_t>(sizeof(T)), sizeof(T));
  return value;
}

}  // namespace

TEST_CASE("a graph prints as the text it was parsed from", "[core][graph]") {
  check_round_trip(
      "a: f32[4, 3] = input; b: f32[] = constant 0.5; c: f32[4, 3] = mul a b; "
      "d: f32[4] = sum c axes=[1] keepdims=false; return d");
  check_round_trip("a: f32[] = input; return a a a");
  check_round_trip("return");
  check_round_trip("a: i8[2] = input; b: i8[2] = join a a a; return b");
}

TEST_CASE("a graph as Graphviz's language has a node for each value and boxes for clusters",
          "[core][graph]") {
  const Graph graph = parsed(
      "x: f32[4, 3] = input; c: f32[] = constant 0.5; y = mul x c; s = sum y axes=[1] "
      "keepdims=false; return s");
  CHECK(
      to_dot(graph, std::vector<GraphCluster>{{"a \"quoted\" \\ name", {2, 3}}, {"again", {3}}}) ==
      R"(digraph {
  node [shape=box, fontname="sans-serif", fontsize=10];
  graph [fontname="sans-serif", fontsize=10];
  subgraph cluster_0 {
    label="a \"quoted\" \\ name";
    n2 [label="c: mul\nf32[4, 3]"];
    n3 [label="d: sum axes=[1] keepdims=false\nf32[4]"];
  }
  subgraph cluster_1 {
    label="again";
  }
  n0 [label="a: input 0\nf32[4, 3]", shape=ellipse];
  n1 [label="b: constant 0.5\nf32[]", shape=ellipse];
  n0 -> n2;
  n1 -> n2;
  n2 -> n3;
  r0 [label="output 0", shape=ellipse];
  n3 -> r0;
}
)");
}

TEST_CASE("strides, weak scalars and devices are part of the text", "[core][graph]") {
  check_round_trip("a: f32[4, 3] strides=[1, 4] = input; b: weak f64[] = input; return a");
  check_round_trip(
      "a: bool[2] strides=[-1] on reference:0 = input; b: u8[] on cpu:3 = input; return");
  CHECK(parsed("a: f32[4, 3] strides=[1, 4] = input; return")[0].strides == Dims{1, 4});
  CHECK(parsed("a: f32[4, 3] = input; return")[0].strides == Dims{3, 1});
}

TEST_CASE("attributes of every kind survive the text", "[core][graph]") {
  const std::string head = "a: f32[2] = input; b: f32[2] = mixed a flag=";
  for (const std::string attrs :
       {"true count=-3 factor=0.1 dtype=bf16 axes=[]",
        "false count=1 factor=1.0 dtype=bool axes=[-1, 2]",
        "true count=9223372036854775807 factor=inf dtype=i64 axes=[0]",
        "true count=0 factor=-0.0 dtype=f16 axes=[0, 1, 2, 3, 4, 5, 6, 7]"}) {
    check_round_trip(head + attrs + "; return b");
  }
  const Graph graph = parsed(head + "true count=1 factor=1e300 dtype=f64 axes=[3]; return b");
  CHECK(graph[1].attrs == Attrs{true, int64_t{1}, 1e300, f64, Dims{3}});
}

TEST_CASE("constants survive the text bit for bit", "[core][graph]") {
  check_round_trip("a: f32[] = constant -0; return a");
  check_round_trip("a: f64[3] = constant [nan, inf, -inf]; return a");
  check_round_trip("a: f32[2] = constant [nan(0xffc00000), nan(0x7f800001)]; return a");
  check_round_trip("a: f16[4] = constant [65504, 5.9604645e-08, -0, nan]; return a");
  check_round_trip("a: bf16[2] = constant [1.0078125, -inf]; return a");
  check_round_trip("a: bool[1, 2] = constant [true, false]; return a");
  check_round_trip("a: i64[2] = constant [-9223372036854775808, 9223372036854775807]; return a");
  check_round_trip("a: u8[0] = constant []; return a");
  check_round_trip("a: f32[2, 2] strides=[1, 2] = constant [1, 2, 3, 4]; return a");
  check_round_trip("a: i8[2, 2] strides=[-2, 0] = constant [1, 1, 3, 3]; return a");

  const Graph graph = parsed("a: f32[2, 2] strides=[1, 2] = constant [1, 2, 3, 4]; return a");
  CHECK(element<float>(graph, 0, 1) == 3);
  CHECK(element<float>(graph, 0, 2) == 2);
}

TEST_CASE("the text of an element reads back to its bits", "[core][graph]") {
  for (const DType dtype : {u8, i8, f16, bf16}) {
    const uint64_t count = uint64_t{1} << (8 * size_of(dtype));
    uint64_t wrong = 0;
    for (uint64_t bits = 0; bits < count; ++bits) {
      wrong += element_bits(dtype, element_text(dtype, bits)) != bits;
    }
    CHECK(wrong == 0);
  }
  std::mt19937_64 random(7);
  for (const DType dtype : {i16, i32, i64, f32, f64}) {
    const uint64_t mask = ~uint64_t{0} >> (64 - 8 * size_of(dtype));
    uint64_t wrong = 0;
    for (int i = 0; i < 20000; ++i) {
      const uint64_t bits = random() & mask;
      wrong += element_bits(dtype, element_text(dtype, bits)) != bits;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("16-bit floats round to nearest even and do not overflow silently", "[core][graph]") {
  CHECK(element_bits(f16, "1.00048828125") == 0x3c00);
  CHECK(element_bits(f16, "1.00146484375") == 0x3c02);
  CHECK(element_bits(f16, "65519") == 0x7bff);
  CHECK(element_bits(f16, "65520") == std::nullopt);
  CHECK(element_bits(bf16, "1e39") == std::nullopt);
  CHECK(element_bits(f16, "1e-30") == 0);
}

TEST_CASE("a large constant prints as a hash that does not parse", "[core][graph]") {
  Graph graph = parsed(
      "a: i8[16] = constant [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]; return a");
  const Tensor tensor = graph[0].constant;
  graph.nodes[0].spec.shape = {2, 16};
  graph.nodes[0].constant = make_tensor(graph[0].spec, {0, 1}, 0, tensor.internals().storage);
  const std::string text = to_string(graph);
  CHECK_THAT(text, Catch::Contains("a: i8[2, 16] strides=[0, 1] = constant @"));
  CHECK_THROWS_AS(parsed(text), Error);
}

TEST_CASE("the type of a result may be left out of the text", "[core][graph]") {
  CHECK(to_string(parsed("x: f32[4] = input\ny = mul x x\n\nreturn y\n")) ==
        "a: f32[4] = input; b: f32[4] = mul a a; return b");
}

TEST_CASE("there are names for any number of values", "[core][graph]") {
  std::string text = "%0: f32[] = input;";
  for (int i = 1; i < 800; ++i) text += fmt::format("%{} = mul %0 %0;", i);
  const std::string printed = to_string(parsed(text + "return %799"));
  CHECK_THAT(printed, Catch::Contains("; aa: f32[] = mul a a") && Catch::EndsWith("return adt"));
  check_round_trip(printed);
}

TEST_CASE("a parse error says where and what", "[core][graph][error]") {
  CHECK(message_of("a: f32[4] = input\nb = foo a\nreturn b") ==
        "parse: line 2, column 5: an op: expected one of the vocabulary, got 'foo'.");
  CHECK(message_of("a: f32[4] = input; b = mul a c; return b") ==
        "parse: line 1, column 30: a value: expected a name defined above, got 'c'.");
  CHECK_THAT(message_of("a: f32[4] = input; b: f32[5] = mul a a; return b"),
             Catch::Contains("column 32: the declared type: expected f32[4], got f32[5]"));
  CHECK_THAT(message_of("a: f32[4] = input; b: f32[3] = input; c = mul a b; return c"),
             Catch::Contains("do not broadcast"));
  CHECK_THAT(message_of("a: f32[4] = input; b = mul a; return b"),
             Catch::Contains("expected 2, got 1"));
  CHECK_THAT(message_of("a: i8[] = constant 128; return a"),
             Catch::Contains("expected int8, got '128'"));
  CHECK_THAT(message_of("a: f32[4] = input; b = sum a axes=1 keepdims=true; return b"),
             Catch::Contains("column 24"));
  CHECK_THAT(message_of("a: f32[4] = input; b = softmax a; return b"),
             Catch::Contains("composite"));
}

TEST_CASE("hostile text gives errors", "[core][graph][error]") {
  for (const std::string text :
       {"",
        "return a",
        "a",
        "a:",
        "a: f32",
        "a: f32[",
        "a: f32[1,",
        "a: f32[1] =",
        "a = input; return",
        "a: f32[-1] = input; return",
        "a: f32[9223372036854775807, 2] = input; return",
        "a: f32[0, 9223372036854775807, 9223372036854775807] = input; return",
        "a: f32[2] strides=[-9223372036854775808] = input; return",
        "a: f32[1,1,1,1,1,1,1,1,1] = input; return",
        "a: f32[2] strides=[1, 1] = input; return",
        "a: f32[1000000000000] = constant [1]; return",
        "a: f32[2] strides=[1000000000] = constant [1, 2]; return",
        "a: f32[2] = constant [1]; return",
        "a: f32[2] = constant [1, 2, 3]; return",
        "a: f32[] = constant nan(0x1); return",
        "a: f16[] = constant nan(0x17fc0); return",
        "a: f32[] = constant 0x1p3; return",
        "a: f32[] on mars:0 = input; return",
        "a: f32[] on cpu:128 = input; return",
        "a: f32[] = input; a: f32[] = input; return",
        "1: f32[] = input; return",
        "a: f32[] = input; return a; x",
        "a: f32[] = input; b = mul a a flag=true; return b",
        "a: f32[] = input; b = join; return b",
        "a: f32[] = input; b = sum a keepdims=true axes=[]; return b",
        "a: f32[] = input b: f32[] = input; return",
        "a: f32[1] = constant 1; return"}) {
    CAPTURE(text);
    CHECK_THAT(message_of(text), Catch::StartsWith("parse: line 1, column "));
  }
}

TEST_CASE("damaged text never does worse than an error", "[core][graph][error]") {
  const std::string good =
      "a: f32[4, 3] strides=[1, 4] = input; b: weak f64[] = constant 0.5; c = mul a b; "
      "d = sum c axes=[1] keepdims=false; e = mixed d flag=true count=1 factor=2.0 dtype=i8 "
      "axes=[]; return e";
  std::mt19937 random(3);
  int survivors = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (int k = static_cast<int>(random() % 3); k >= 0; --k) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text.erase(at, 1 + random() % 9);
      else
        text[at] = good[random() % good.size()];
    }
    try {
      verify(parsed(text), "parse");
      ++survivors;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::value) FAIL(text + "\n" + error.what());
    }
  }
  CHECK(survivors > 0);
}

TEST_CASE("verify names the stage, the value and the rule", "[core][graph]") {
  const Graph good = parsed("a: f32[4] = input; b: f32[] = constant 2; c = mul a b; return c");
  const auto broken = [&good](auto change) { return message_of_broken(good, change); };
  CHECK(broken([](Graph&) {}) == "no error");
  CHECK(broken([](Graph& g) { g.nodes[2].inputs[0] = 2; }) ==
        "verify after some_pass: value 2 (mul): expected operands that come earlier, got value 2.");
  CHECK_THAT(broken([](Graph& g) { g.inputs.clear(); }),
             Catch::Contains("1 times among the inputs, got 0"));
  CHECK_THAT(broken([](Graph& g) { g.inputs.push_back(0); }), Catch::Contains("got 2"));
  CHECK_THAT(broken([](Graph& g) { g.inputs.push_back(1); }),
             Catch::Contains("value 1 (constant)"));
  CHECK_THAT(broken([](Graph& g) { g.inputs.push_back(9); }),
             Catch::Contains("the number of a node, got 9"));
  CHECK_THAT(broken([](Graph& g) { g.outputs[0] = 3; }), Catch::Contains("outputs"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[0].op = &mul_op; }), Catch::Contains("no op"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].op = nullptr; }), Catch::Contains("expected an op"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].op = &softmax_op; }), Catch::Contains("composite"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].inputs.pop_back(); }),
             Catch::Contains("expected 2, got 1"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].attrs.emplace_back(true); }),
             Catch::Contains("attributes"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].spec.dtype = f64; }),
             Catch::Contains("the inferred spec float32[4], got float64[4]"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].spec.is_weak = true; }), Catch::Contains("got weak"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[1].constant = {}; }),
             Catch::Contains("a tensor exactly if"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[1].spec.dtype = i32; }),
             Catch::Contains("the spec of its tensor"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[0].strides = {}; }),
             Catch::Contains("a stride for each dimension"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].strides = {1}; }), Catch::Contains("no strides"));
}

TEST_CASE("uses are counted as operands and as outputs", "[core][graph]") {
  CHECK(use_counts(parsed("a: f32[4] = input; b = mul a a; c = mul a b; return b b")) ==
        std::vector<int>{3, 3, 0});
}

TEST_CASE("parts of an op of several results are in the text, and follow it", "[core][graph]") {
  const std::string text =
      "a: f32[2, 3] = input; b: f32[6] = turned a; c: f32[6] = part b 0; d: f32[2, 3] = part b 1; "
      "e: f32[2, 3] = mul d d; return c e";
  check_round_trip(text);
  CHECK(to_string(parsed("a: f32[2, 3] = input; b = turned a; c = part b 0; d = part b 1; "
                         "e = mul d d; return c e")) == text);
  const std::string begin = "a: f32[2, 3] = input; b = turned a; ";
  for (const auto& [rest, expected] : std::initializer_list<std::pair<const char*, const char*>>{
           {"return a", "part 0 of the op"},
           {"c = part b 0; return a", "part 1 of the op"},
           {"c = mul a a; d = part b 0; e = part b 1; return a", "part 0 of the op"},
           {"c = part b 1; d = part b 0; return a", "a part: expected the next one"},
           {"c = part b 0; d = part b 0; return a", "a part: expected the next one"},
           {"c = part a 0; d = part b 1; return a", "a part: expected the next one"},
           {"c = part b 0; d = part b 1; e = part b 2; return a", "a part: expected the next one"},
           {"c = part b 0; d = part b 1; e = mul b b; return a", "a part of what has several"},
           {"c = part b 0; d = part b 1; return b", "a part of what has several"},
           {"c: f32[5] = part b 0; d = part b 1; return c", "the declared type"},
           {"c = part b; d = part b 1; return c", "an integer"},
           {"c = part b 0 1; d = part b 1; return c", "a statement"},
           {"c: f32[6] strides=[2] = part b 0; d = part b 1; return c", "strides"}}) {
    CAPTURE(rest);
    CHECK_THAT(message_of(begin + rest),
               Catch::StartsWith("parse: line 1, column ") && Catch::Contains(expected));
  }
  const Graph good = parsed(text);
  const auto broken = [&good](auto change) { return message_of_broken(good, change); };
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].attrs = {int64_t{1}}; }),
             Catch::Contains("value 1 (turned): expected its parts after it"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].spec.shape = {5}; }),
             Catch::Contains("its parts after it"));
  CHECK_THAT(broken([](Graph& g) { std::swap(g.nodes[2], g.nodes[3]); }),
             Catch::Contains("its parts after it"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[3].inputs[0] = 0; }), Catch::Contains("value 1"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[4].inputs[0] = 1; }),
             Catch::Contains("operands that are one value"));
  CHECK_THAT(broken([](Graph& g) { g.outputs[0] = 1; }), Catch::Contains("value 1 (turned)"));
  CHECK_THAT(broken([](Graph& g) { g.nodes[2].op = g.nodes[4].op; }), Catch::Contains("value 2"));
}
