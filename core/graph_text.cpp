// Graphs as text: printing, and the parser that reads it back.
//
//   graph     = { statement ( ";" | newline ) }
//   statement = name [ ":" type ] "=" made | "return" { name }
//   made      = "input" | "constant" elements | op { name } { attr "=" value } | "part" name number
//   type      = [ "weak" ] dtype dims [ "strides=" dims ] [ "on" device ":" number ]
//   elements  = element | "[" element { "," element } "]"     in row-major order, whatever the rank
//   value     = true | false | dtype | integer | number with point or exponent | dims
//
// Example: a: f32[4, 3] strides=[1, 4] = input; b: f32[] = constant 0.5; c = mul a b; return c
//
// Strides are printed where they are not those of a contiguous tensor, the device where it is not
// cpu:0. The type of an op's result may be left out: it is inferred. Text comes from people and
// files, so everything is checked: sizes and strides stay far from overflow, a constant has at most
// as many elements as are printed, and whatever an op's inference says or throws becomes an Error
// with line and column. What parses, verifies.
#include "core/element_text.h"
#include "core/error.h"
#include "core/graph.h"
#include "core/graph_infer.h"
#include "core/host_access.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <new>

namespace nitinol {
namespace {

constexpr int64_t largest_printed_constant = 16;

// ---- printing -----------------------------------------------------------------------------------

/// a, b, ... z, aa, ab, ...
std::string name_of_value(Value value) {
  std::string name;
  for (uint64_t rest = uint64_t{value} + 1; rest > 0; rest = (rest - 1) / 26) {
    name.insert(name.begin(), static_cast<char>('a' + (rest - 1) % 26));
  }
  return name;
}

/// Calls visit(address) for each element in row-major order, the first of which lies at `address`.
template <class Byte, class Visit>
void for_each_element(const Spec& spec, const Strides& strides, Byte* address, Visit visit) {
  const auto bytes = static_cast<int64_t>(size_of(spec.dtype));
  Dims index = Dims::filled(spec.shape.size(), 0);
  for (int64_t left = element_count(spec.shape); left > 0; --left) {
    visit(address);
    for (int i = index.size() - 1; i >= 0; --i) {
      address += strides[i] * bytes;
      if (++index[i] < spec.shape[i]) break;
      address -= strides[i] * spec.shape[i] * bytes;
      index[i] = 0;
    }
  }
}

std::string constant_text(const Tensor& tensor) {
  const std::size_t bytes = size_of(tensor.dtype());
  const HostElements elements(tensor.internals());
  const auto visit_all = [&](auto visit) {
    for_each_element(tensor.spec(), elements.strides(), elements.first(), visit);
  };
  if (tensor.size() > largest_printed_constant) {
    uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
    visit_all([&](const std::byte* element) {
      for (std::size_t i = 0; i < bytes; ++i)
        hash = (hash ^ static_cast<uint8_t>(element[i])) * 0x100000001b3;
    });
    return fmt::format("@{:016x}", hash);
  }
  std::string text;
  visit_all([&](const std::byte* element) {
    uint64_t bits = 0;
    std::memcpy(&bits, element, bytes);
    text += fmt::format("{}{}", text.empty() ? "" : ", ", element_text(tensor.dtype(), bits));
  });
  return tensor.rank() == 0 ? text : "[" + text + "]";
}

std::string type_text(const Spec& spec, const Strides& strides) {
  std::string text = fmt::format("{}{}{}", spec.is_weak ? "weak " : "", short_name_of(spec.dtype),
                                 to_string(spec.shape));
  if (strides.size() == spec.shape.size() && !is_contiguous(spec.shape, strides)) {
    text += " strides=" + to_string(strides);
  }
  if (spec.device != Device{}) {
    text += " on " + describe(spec.device);
  }
  return text;
}

std::string statement_text(const Node& node) {
  switch (node.kind) {
    case Node::Kind::input:
      return type_text(node.spec, node.strides) + " = input";
    case Node::Kind::constant:
      return fmt::format("{} = constant {}",
                         type_text(node.spec, node.constant.internals().strides),
                         constant_text(node.constant));
    case Node::Kind::part:
      return fmt::format("{} = part {} {}", type_text(node.spec, {}), name_of_value(node.inputs[0]),
                         std::get<int64_t>(node.attrs[0]));
    case Node::Kind::op:
      break;
  }
  std::string text = fmt::format("{} = {}", type_text(node.spec, {}), node.op->name);
  for (const Value input : node.inputs) text += " " + name_of_value(input);
  const std::string attrs = to_string(*node.op, node.attrs);
  return attrs.empty() ? text : text + " " + attrs;
}

/// In quotes, as Graphviz reads it; a line break is written as two characters.
std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + '"';
}

std::string dot_node(const Graph& graph, Value value) {
  const Node& node = graph[value];
  std::string what;
  if (node.kind == Node::Kind::op) {
    const std::string attrs = to_string(*node.op, node.attrs);
    what = fmt::format("{}{}{}", node.op->name, attrs.empty() ? "" : " ", attrs);
  } else if (node.kind == Node::Kind::part) {
    what = fmt::format("part {}", std::get<int64_t>(node.attrs[0]));
  } else if (node.kind == Node::Kind::constant) {
    what = "constant " + constant_text(node.constant);
  } else {
    const auto place = std::ranges::find(graph.inputs, value) - graph.inputs.begin();
    what = fmt::format("input {}", place);
  }
  const std::string label =
      fmt::format("{}: {}\n{}", name_of_value(value), what, type_text(node.spec, node.strides));
  return fmt::format("n{} [label={}{}];\n", value, quoted(label),
                     node.kind == Node::Kind::op ? "" : ", shape=ellipse");
}

// ---- parsing ------------------------------------------------------------------------------------

/// A block of ordinary memory. It counts as borrowed, so that nothing reuses it in place.
StorageHandle host_block(std::size_t bytes) {
  auto* storage = new Storage;
  storage->data = ::operator new(std::max<std::size_t>(bytes, 1), std::align_val_t(64));
  storage->bytes = bytes;
  storage->is_borrowed = true;
  storage->release = [](Storage* block) noexcept {
    ::operator delete(block->data, std::align_val_t(64));
    delete block;
  };
  return adopt<Storage>(storage);
}

class Parser {
 public:
  Parser(std::string_view text, std::span<const Op* const> ops) : text_(text) {
    for (const Op* op : ops) ops_.emplace(op->name, op);
  }

  Graph run() {
    while (true) {
      skip_separators();
      const std::size_t start = at_;
      const std::string_view name = word("a name or 'return'");
      if (name == "return" && !next_is(':') && !next_is('=')) break;
      statement(name, start);
    }
    check_complete(at_);
    while (!ends_statement()) graph_.outputs.push_back(value());
    skip_separators();
    if (at_ != text_.size()) fail(at_, "text after the return statement", "the end");
    return std::move(graph_);
  }

 private:
  struct Type {
    Spec spec;
    std::optional<Strides> strides;
  };

  [[noreturn]] void fail(std::size_t where, std::string what, std::string expected,
                         std::string got = {}) const {
    const std::string_view before = text_.substr(0, where);
    const auto line = std::ranges::count(before, '\n') + 1;
    const auto line_start = before.rfind('\n');  // npos + 1 is 0
    throw Error(ErrorKind::value, {.where = fmt::format("parse: line {}, column {}", line,
                                                        where - (line_start + 1) + 1),
                                   .what = std::move(what),
                                   .expected = std::move(expected),
                                   .got = std::move(got),
                                   .fix = {}});
  }

  // -- words

  static bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_.+-%@()").find(c) != std::string_view::npos;
  }
  void skip_blanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  void skip_separators() {
    for (skip_blanks(); at_ < text_.size() && (text_[at_] == ';' || text_[at_] == '\n');
         skip_blanks())
      ++at_;
  }
  bool next_is(char c) {
    skip_blanks();
    return at_ < text_.size() && text_[at_] == c;
  }
  bool ends_statement() { return next_is(';') || next_is('\n') || at_ == text_.size(); }
  bool accept(char c) {
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }
  [[nodiscard]] std::string here() const {
    if (at_ >= text_.size()) return "the end of the text";
    return text_[at_] == '\n' ? "the end of the line" : fmt::format("'{}'", text_[at_]);
  }
  void expect(char c, const char* after) {
    if (!accept(c)) fail(at_, fmt::format("after {}", after), fmt::format("'{}'", c), here());
  }
  std::string_view word(const char* expected) {
    skip_blanks();
    const std::size_t start = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    if (at_ == start) fail(at_, "syntax", expected, here());
    return text_.substr(start, at_ - start);
  }
  /// The next word, which stays unread.
  std::string_view peek() {
    skip_blanks();
    std::size_t end = at_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(at_, end - at_);
  }
  int64_t integer() {
    skip_blanks();
    const std::size_t start = at_;
    const std::string_view text = word("an integer");
    int64_t result = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    if (error != std::errc() || end != text.data() + text.size()) {
      fail(start, "a number", "an integer of 64 bits", fmt::format("'{}'", text));
    }
    return result;
  }
  Dims dims() {
    expect('[', "a name or dtype");
    Dims result;
    while (!accept(']')) {
      if (!result.empty()) expect(',', "a number in a list");
      const std::size_t start = at_;
      const int64_t item = integer();
      if (result.size() == max_rank)
        fail(start, "a list", fmt::format("at most {} numbers", max_rank));
      result.push_back(item);
    }
    return result;
  }

  // -- types

  /// Sizes and strides so large that sums and products of them could overflow are no tensor.
  void check_extent(std::size_t where, const Shape& shape, const Strides& strides) const {
    constexpr int64_t limit = int64_t{1} << 58;
    int64_t count = 1;
    int64_t extent = 0;
    for (int i = 0; i < shape.size(); ++i) {
      int64_t reach = 0;
      if (shape[i] < 0) fail(where, "a shape", "sizes of at least 0", to_string(shape));
      if (strides[i] > limit || strides[i] < -limit ||
          __builtin_mul_overflow(count, std::max<int64_t>(shape[i], 1), &count) ||
          __builtin_mul_overflow(shape[i], strides[i] < 0 ? -strides[i] : strides[i], &reach) ||
          __builtin_add_overflow(extent, reach, &extent) || count > limit || extent > limit) {
        fail(where, fmt::format("shape {} with strides {}", to_string(shape), to_string(strides)),
             "a tensor that could be addressed");
      }
    }
  }

  Type type() {
    Type result;
    const std::size_t start = at_;
    std::string_view name = word("a dtype");
    if (name == "weak") {
      result.spec.is_weak = true;
      name = word("a dtype");
    }
    const std::optional<DType> dtype = dtype_named(name);
    if (!dtype) fail(start, "a type", "a dtype", fmt::format("'{}'", name));
    result.spec.dtype = *dtype;
    result.spec.shape = dims();
    check_extent(start, result.spec.shape, Dims::filled(result.spec.shape.size(), 1));
    if (peek() == "strides") {
      word("strides");
      expect('=', "strides");
      result.strides = dims();
      if (result.strides->size() != result.spec.shape.size()) {
        fail(start, "strides", "as many as dimensions", to_string(*result.strides));
      }
      check_extent(start, result.spec.shape, *result.strides);
    }
    if (peek() == "on") result.spec.device = device();
    return result;
  }

  Device device() {
    word("on");
    const std::size_t start = at_;
    const std::string_view name = word("a device");
    expect(':', "a device");
    const std::string text = fmt::format("{}:{}", name, integer());
    const std::optional<Device> named = device_named(text);
    if (!named) fail(start, "a device", "a kind and a number of 0 to 127: cpu:0", text);
    return *named;
  }

  // -- statements

  /// One that has parts, too.
  Value any_value() {
    skip_blanks();
    const std::size_t start = at_;
    const std::string_view name = word("the name of a value");
    const auto found = names_.find(name);
    if (found == names_.end())
      fail(start, "a value", "a name defined above", fmt::format("'{}'", name));
    return found->second;
  }

  Value value() {
    skip_blanks();
    const std::size_t start = at_;
    const Value value = any_value();
    if (has_parts(graph_[value])) fail(start, "a value", "a part of what has several results");
    return value;
  }

  void statement(std::string_view name, std::size_t start) {
    if ((name[0] < 'a' || name[0] > 'z') && (name[0] < 'A' || name[0] > 'Z') && name[0] != '%' &&
        name[0] != '_') {
      fail(start, "a name", "a letter, '_' or '%' at its start", fmt::format("'{}'", name));
    }
    std::optional<Type> declared;
    if (accept(':')) declared = type();
    expect('=', "a name and type");
    skip_blanks();
    const std::size_t verb_start = at_;
    const std::string_view verb = word("input, constant or an op");
    if (verb != "part") check_complete(verb_start);
    Node node;
    if (verb == "input" || verb == "constant") {
      if (!declared) fail(verb_start, fmt::format("{} without type", verb), "'name: type ='");
      node = verb == "input" ? input(*declared) : constant(*declared, verb_start);
    } else if (verb == "part") {
      node = part(declared, verb_start);
    } else {
      node = application(verb, verb_start);
      infer(node, declared, verb_start);
    }
    if (!ends_statement()) fail(at_, "a statement", "';' or a new line after it", here());
    const auto number = static_cast<Value>(graph_.nodes.size());
    if (!names_.try_emplace(name, number).second)
      fail(start, "a name", "one not used above", fmt::format("'{}'", name));
    if (node.kind == Node::Kind::input) graph_.inputs.push_back(number);
    placeholders_.push_back(placeholder(node));
    if (has_parts(node)) expect_parts(number, node);
    graph_.nodes.push_back(std::move(node));
  }

  /// Fails while parts are missing.
  void check_complete(std::size_t where) const {
    if (expected_.empty()) return;
    fail(where, "a statement",
         fmt::format("part {} of the op of several results above",
                     std::get<int64_t>(expected_.back().attrs[0])));
  }

  /// What comes next is a part of the latest op of several results, until all have come.
  void expect_parts(Value number, const Node& node) {
    std::vector<const Tensor*> operands;
    for (const Value input : node.inputs) operands.push_back(&placeholders_[input]);
    expected_ = parts_for(number, node, operands);
    std::ranges::reverse(expected_);
  }

  Node part(const std::optional<Type>& declared, std::size_t start) {
    const std::size_t where = at_;
    const Value whole = any_value();
    const int64_t number = integer();
    if (expected_.empty() || expected_.back().inputs[0] != whole ||
        expected_.back().attrs != Attrs{number}) {
      fail(where, "a part", "the next one of the op of several results before it");
    }
    Node node = std::move(expected_.back());
    expected_.pop_back();
    check_declared(node, declared, start);
    return node;
  }

  static Node input(const Type& declared) {
    Node node;
    node.kind = Node::Kind::input;
    node.spec = declared.spec;
    node.strides = declared.strides.value_or(strides_of(declared.spec.shape));
    return node;
  }

  Node constant(const Type& declared, std::size_t start) {
    constexpr int64_t largest_gap = 4096;
    Node node;
    node.kind = Node::Kind::constant;
    node.spec = declared.spec;
    const Shape& shape = node.spec.shape;
    if (element_count(shape) > largest_printed_constant) {
      fail(start, "a constant", fmt::format("at most {} elements", largest_printed_constant));
    }
    const Strides strides = declared.strides.value_or(strides_of(shape));
    int64_t below = 0;
    int64_t above = 0;
    for (int i = 0; i < shape.size(); ++i) {
      if (shape[i] > 1) (strides[i] < 0 ? below : above) += (shape[i] - 1) * strides[i];
    }
    if (above - below > largest_gap)
      fail(start, "a constant", "strides that keep its elements near each other");
    if (shape.empty()) {
      node.constant = make_number(node.spec, element(node.spec.dtype));
      return node;
    }
    const std::size_t bytes = size_of(node.spec.dtype);
    const StorageHandle block = host_block(static_cast<std::size_t>(above - below + 1) * bytes);
    node.constant = make_tensor(node.spec, strides, -below, block);
    if (!accept('[')) fail(at_, "a constant", "'['", here());
    bool is_first = true;
    auto* const first = static_cast<std::byte*>(block->data) - below * static_cast<int64_t>(bytes);
    for_each_element(node.spec, strides, first, [&](std::byte* address) {
      if (!is_first) expect(',', "an element");
      is_first = false;
      const uint64_t bits = element(node.spec.dtype);
      std::memcpy(address, &bits, bytes);
    });
    expect(']', "as many elements as the shape has");
    return node;
  }

  /// The bits of the element that comes next.
  uint64_t element(DType dtype) {
    skip_blanks();
    const std::size_t start = at_;
    const std::string_view text = word("an element");
    const std::optional<uint64_t> bits = element_bits(dtype, text);
    if (!bits) fail(start, "an element", std::string(name_of(dtype)), fmt::format("'{}'", text));
    return *bits;
  }

  Node application(std::string_view verb, std::size_t start) {
    const auto found = ops_.find(verb);
    if (found == ops_.end())
      fail(start, "an op", "one of the vocabulary", fmt::format("'{}'", verb));
    Node node;
    node.op = found->second;
    if (node.op->kind == OpKind::composite)
      fail(start, "an op", "no composite one: they are recorded expanded");
    while (!ends_statement()) {
      skip_blanks();
      const std::size_t where = at_;
      const std::string_view name = word("an operand or attribute");
      if (!accept('=')) {
        at_ = where;
        if (!node.attrs.empty()) fail(where, "an operand", "attributes last");
        node.inputs.push_back(value());
        continue;
      }
      const std::size_t index = node.attrs.size();
      if (index >= node.op->attr_names.size() || node.op->attr_names[index] != name) {
        fail(where, fmt::format("an attribute of {}", verb),
             index < node.op->attr_names.size() ? std::string(node.op->attr_names[index])
                                                : "no more",
             fmt::format("'{}'", name));
      }
      node.attrs.push_back(attr());
    }
    return node;
  }

  Attr attr() {
    if (next_is('[')) return dims();
    skip_blanks();
    const std::size_t start = at_;
    const std::string_view text = word("the value of an attribute");
    if (text == "true" || text == "false") return text == "true";
    if (const auto dtype = dtype_named(text)) return *dtype;
    if (const auto integer = element_bits(i64, text)) return static_cast<int64_t>(*integer);
    if (text == "-nan") return -std::numeric_limits<double>::quiet_NaN();
    const auto number = element_bits(f64, text);
    if (!number)
      fail(start, "the value of an attribute", "a bool, number, dtype or list",
           fmt::format("'{}'", text));
    return std::bit_cast<double>(*number);
  }

  void infer(Node& node, const std::optional<Type>& declared, std::size_t start) {
    std::vector<const Tensor*> operands;
    for (const Value input : node.inputs) operands.push_back(&placeholders_[input]);
    try {
      node.spec = inferred_spec(node, operands);
    } catch (const std::exception& error) {
      fail(start, error.what(), {});
    }
    check_extent(start, node.spec.shape, Dims::filled(node.spec.shape.size(), 1));
    check_declared(node, declared, start);
  }

  void check_declared(const Node& node, const std::optional<Type>& declared,
                      std::size_t start) const {
    if (declared && declared->strides) fail(start, "strides", "them at inputs and constants only");
    if (declared && declared->spec != node.spec) {
      fail(start, "the declared type", type_text(node.spec, {}), type_text(declared->spec, {}));
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::map<std::string_view, const Op*> ops_;
  std::map<std::string_view, Value> names_;
  std::vector<Tensor> placeholders_;
  std::vector<Node> expected_;  ///< parts that must come next, the last one first
  Graph graph_;
};

}  // namespace

std::string to_string(const Graph& graph) {
  std::string text;
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    text += fmt::format("{}: {}; ", name_of_value(v), statement_text(graph[v]));
  }
  text += "return";
  for (const Value output : graph.outputs) text += " " + name_of_value(output);
  return text;
}

std::string by_lines(std::string graph_text) {
  constexpr std::string_view end = "; ";
  for (std::size_t at = graph_text.find(end); at != std::string::npos;
       at = graph_text.find(end, at))
    graph_text.replace(at, end.size(), "\n");
  return graph_text;
}

std::string to_dot(const Graph& graph, std::span<const GraphCluster> clusters) {
  std::string text =
      "digraph {\n  node [shape=box, fontname=\"sans-serif\", fontsize=10];\n"
      "  graph [fontname=\"sans-serif\", fontsize=10];\n";
  std::vector<bool> is_drawn(graph.nodes.size(), false);
  for (std::size_t c = 0; c < clusters.size(); ++c) {
    text += fmt::format("  subgraph cluster_{} {{\n    label={};\n", c, quoted(clusters[c].label));
    for (const Value v : clusters[c].nodes) {
      if (!is_drawn[v]) text += "    " + dot_node(graph, v);
      is_drawn[v] = true;
    }
    text += "  }\n";
  }
  for (Value v = 0; v < graph.nodes.size(); ++v) {
    if (!is_drawn[v]) text += "  " + dot_node(graph, v);
    for (const Value input : graph[v].inputs) text += fmt::format("  n{} -> n{};\n", input, v);
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    text += fmt::format("  r{} [label=\"output {}\", shape=ellipse];\n  n{} -> r{};\n", i, i,
                        graph.outputs[i], i);
  }
  return text + "}\n";
}

Graph parse(std::string_view text, std::span<const Op* const> ops) {
  return Parser(text, ops).run();
}

}  // namespace nitinol
