#include "backends/cuda/text/body.h"

#include "backends/cuda/text/instruction.h"

#include <algorithm>
#include <numeric>
#include <set>

namespace nitinol::cuda {
namespace {

std::string_view type_of(const Field& field) {
  switch (field.kind) {
    case Field::Kind::gate:
      return "const u32*";
    case Field::Kind::status:
    case Field::Kind::counters:
      return "u32*";
    case Field::Kind::workspace:
    case Field::Kind::results:
      return "u8*";
    case Field::Kind::memory:
      return "void*";
    case Field::Kind::scalar:
      return "u64";
    case Field::Kind::offset:
    case Field::Kind::step:
      return "i64";
    case Field::Kind::rows:
    case Field::Kind::size:
    case Field::Kind::stride:
      return "Index";
    case Field::Kind::groups:
    case Field::Kind::group_size:
      return "u32";
  }
  return "?";
}

void write_arguments(Body& body) {
  body.out.line("typedef {} Index;", body.schedule.is_wide ? "i64" : "i32");
  body.out.line("typedef {} UnsignedIndex;", body.schedule.is_wide ? "u64" : "u32");
  const int parts = body.schedule.parts;
  body.out.open("struct {}", parts > 1 ? "Part" : "Arguments");
  for (const Field& field : fields_of(body.kernel, body.schedule))
    body.out.line("{} {};", type_of(field), name_of(field));
  body.out.close("};");
  // Part i has the blocks before ends[i] that no part before it has.
  if (parts > 1)
    body.out.line("struct Arguments {{ u32 ends[{}]; Part parts[{}]; }};", ends_of(parts), parts);
}

/// The value of a scalar's bits.
std::string scalar_text(DType dtype, std::size_t k) {
  const ScalarType type = compute_type(dtype);
  if (dtype == f32) return fmt::format("f32_of((u32)a.s{})", k);
  if (dtype == f64) return fmt::format("f64_of(a.s{})", k);
  if (is_float(type) || type == ScalarType::pred)
    return decoded(dtype, fmt::format("({})a.s{}", stored_word(dtype), k));
  return fmt::format("({})a.s{}", word_of(type), k);
}

/// How many elements operand k moves from one point of the last loop to the next: "" if none,
/// "1", or the argument.
std::string stride_text(const Body& body, std::size_t k) {
  if (const auto known = known_stride(body.kernel, body.schedule, k)) return *known == 1 ? "1" : "";
  return fmt::format("a.t{}_{}", k, body.last_loop());
}

/// What follows m<k> where the element `at` of the last loop is.
std::string offset_text(const Body& body, std::size_t k, const std::string& at) {
  const std::string stride = stride_text(body, k);
  if (stride.empty()) return "0";
  return stride == "1" ? at : fmt::format("({}) * {}", at, stride);
}

class PieceWriter {
 public:
  PieceWriter(Body& body, const Stage& stage, const PieceText& piece)
      : body_(body), stage_(stage), piece_(piece), width_(body.schedule.width) {}

  void keep(uint16_t k) {
    load(k);
    body_.out.line("UNROLL");
    body_.out.line("for (int j = 0; j < {}; ++j) {} = x{}.v[j];", width_, kept(k), k);
  }

  void write() {
    write_loads();
    write_results();
  }

  void write_loads() {
    for (const uint16_t k : memory_sources(body_, stage_)) {
      if (!is_kept(k)) load(k);
    }
  }

  void write_results() {
    for (const Sink& sink : stage_.sinks) {
      if (sink.kind == Sink::Kind::store && !is_kept(sink.index))
        body_.out.line("Vector<{}, {}> y{};", word(sink.index), width_, sink.index);
    }
    if (width_ > 1) body_.out.line("UNROLL");
    body_.out.open("for (int j = 0; j < {}; ++j)", width_);
    write_point();
    body_.out.close();
    for (const Sink& sink : stage_.sinks) {
      if (sink.kind == Sink::Kind::store && !is_kept(sink.index)) store(sink.index);
    }
  }

 private:
  [[nodiscard]] std::string_view word(std::size_t k) const {
    return stored_word(body_.kernel.operands[k].dtype);
  }
  [[nodiscard]] bool is_kept(std::size_t k) const {
    return k < piece_.is_kept.size() && piece_.is_kept[k];
  }
  [[nodiscard]] std::string kept(std::size_t k) const {
    return fmt::format("keep{}[({}) * {} + j]", k, piece_.kept_at, width_);
  }
  /// Moves as the threads do, so that neighbours may be loaded at once.
  [[nodiscard]] bool is_vector(std::size_t k) const {
    return width_ > 1 && body_.schedule.is_aligned && stride_text(body_, k) == "1";
  }
  /// Threads go beyond the end, and take the last point again there.
  [[nodiscard]] bool is_clamped() const {
    return !piece_.is_whole && body_.schedule.shape != Schedule::Shape::columns;
  }
  [[nodiscard]] const char* is_valid() const { return piece_.is_whole ? "true" : "e + j < last"; }
  static constexpr const char* clamped_at = "least<Index>(e + j, last - 1)";
  /// Whether the end of a row may lie within a piece.
  [[nodiscard]] bool is_cut() const {
    return width_ > 1 && !piece_.is_whole && !body_.schedule.is_even;
  }

  void load(uint16_t k) {
    Writer& out = body_.out;
    if (stride_text(body_, k).empty())  // the same for all
      return out.line("const {} x{} = *m{};", word(k), k, k);
    out.line("Vector<{}, {}> x{};", word(k), width_, k);
    const std::string vector = fmt::format(
        "x{0} = load_at_once<Vector<{1}, {2}> >(m{0} + {3});", k, word(k), width_,
        is_clamped() && !is_cut() ? fmt::format("least<Index>(e, last - {})", width_) : "e");
    if (is_vector(k) && !is_cut()) return out.line("{}", vector);
    if (is_vector(k)) out.line("if (e + {} <= last) {} else", width_, vector);
    out.line("UNROLL");
    out.line("for (int j = 0; j < {}; ++j) x{}.v[j] = m{}[{}];", width_, k, k,
             offset_text(body_, k, is_clamped() ? clamped_at : "e + j"));
  }

  void store(uint16_t k) {
    Writer& out = body_.out;
    const std::string vector = fmt::format("store_at_once(m{0} + e, y{0});", k);
    const std::string& condition = piece_.condition;
    if (is_vector(k)) {
      const std::string fits =
          piece_.is_whole ? condition + "true" : fmt::format("{}e + {} <= last", condition, width_);
      out.line("if ({}) {}", fits, vector);
      if (!is_cut()) return;
      out.line("else");
    }
    out.line("UNROLL");
    out.line("for (int j = 0; j < {}; ++j) if ({}{}) m{}[{}] = y{}.v[j];", width_, condition,
             is_valid(), k, offset_text(body_, k, "e + j"), k);
  }

  [[nodiscard]] std::string element(std::size_t k) const {
    const std::string stored = is_kept(k)                      ? kept(k)
                               : stride_text(body_, k).empty() ? fmt::format("x{}", k)
                                                               : fmt::format("x{}.v[j]", k);
    return decoded(body_.kernel.operands[k].dtype, stored);
  }

  [[nodiscard]] std::string argument(const Source& source) const {
    const std::size_t k = source.index;
    if (source.kind == Source::Kind::reduction) return fmt::format("r{}", k);
    if (source.kind == Source::Kind::row_value) return fmt::format("q{}", k);
    const Role role = body_.kernel.operands[k].role;
    if (role == Role::scalar) return fmt::format("s{}", k);
    if (role == Role::position)
      return fmt::format("o{0} + (i64)at * a.t{0}_{1}", k, body_.last_loop());
    return element(k);
  }

  void write_point() {
    std::vector<std::string> arguments;
    for (const Source& source : stage_.sources) arguments.push_back(argument(source));
    body_.out.line("const Index at = {};", is_clamped() ? clamped_at : "e + j");
    const auto load = [&](const ScalarInstr& instr, const std::string& distance) {
      return decoded(body_.kernel.operands[instr.imm].dtype,
                     fmt::format("m{}[(i64)({}) + {}]", instr.imm,
                                 offset_text(body_, instr.imm, "at"), distance));
    };
    write_program(body_.out, stage_.program, arguments, load);
    for (const Sink& sink : stage_.sinks) write_sink(sink);
  }

  void write_sink(const Sink& sink) {
    const std::string value = value_name(sink.value);
    switch (sink.kind) {
      case Sink::Kind::store:
        return body_.out.line(
            "{} = {};",
            is_kept(sink.index) ? kept(sink.index) : fmt::format("y{}.v[j]", sink.index),
            encoded(body_.kernel.operands[sink.index].dtype, value));
      case Sink::Kind::accumulate:
        return body_.out.line(
            "if ({2}) sum{0}[{3}] = join{0}(sum{0}[{3}], placed{0}({1}, (i64)(e + j)));",
            sink.index, value, is_valid(), accumulator(sink.index));
      case Sink::Kind::row_value:
        return body_.out.line("q{} = {};", sink.index, value);
      case Sink::Kind::check:
        return body_.out.line("if ({}{} && !{}) report(a.status, {}u);", piece_.condition,
                              is_valid(), value, sink.index);
    }
  }

  [[nodiscard]] std::string accumulator(std::size_t r) const {
    // Of 32 lanes, a piece of the second half of a chunk joins those of the first.
    return lanes_of(body_.kernel.reductions[r].type) == reduction_order::lanes_64
               ? "j"
               : piece_.accumulator;
  }

  Body& body_;
  const Stage& stage_;
  const PieceText& piece_;
  const int width_;
};

}  // namespace

void write_head(Body& body) {
  std::set<uint64_t> tables;
  for (const Stage& stage : body.kernel.stages) {
    for (const ScalarInstr& instr : stage.program.instrs) {
      if (instr.op == ScalarOp::table) tables.insert(instr.imm);
    }
  }
  for (const uint64_t id : tables) body.out.append(table_text(id));
  write_arguments(body);
  for (std::size_t r = 0; r < body.kernel.reductions.size(); ++r)
    write_joins(body.out, body.kernel.reductions[r], r);
}

void open_entry(Body& body, std::size_t number) {
  body.out.open("KERNEL(entry{}, {})", number, body.schedule.warps * warp_threads);
  if (body.schedule.parts > 1) {
    body.out.line("u32 part = 0;");
    body.out.line("UNROLL");
    body.out.line("for (u32 step = {}; step > 0; step /= 2)", ends_of(body.schedule.parts) / 2);
    body.out.line("  if (block_index() >= a.ends[part + step - 1]) part += step;");
    body.out.line("const u32 block = block_index() - (part > 0 ? a.ends[part - 1] : 0);");
    body.out.line("const Arguments& all = a;");
    body.out.open("");
    body.out.line("const Part& a = all.parts[part];");
  }
  body.out.line("if (a.gate != 0 && *a.gate != 0) return;");
  for (std::size_t k = 0; k < body.kernel.operands.size(); ++k) {
    const Operand& operand = body.kernel.operands[k];
    if (operand.role == Role::scalar)
      body.out.line("const {} s{} = {};", word_of(compute_type(operand.dtype)), k,
                    scalar_text(operand.dtype, k));
  }
}

void write_indices(Body& body, const std::string& row, std::span<const int> loops) {
  Writer& out = body.out;
  std::string rest = row;
  for (std::size_t i = loops.size(); i-- > 1;) {
    const int loop = loops[i];
    out.line("const Index i{0} = (Index)((UnsignedIndex)({1}) % (UnsignedIndex)a.n{0});", loop,
             rest);
    out.line("const Index rest{0} = (Index)((UnsignedIndex)({1}) / (UnsignedIndex)a.n{0});", loop,
             rest);
    rest = fmt::format("rest{}", loop);
  }
  if (!loops.empty()) out.line("const Index i{} = {};", loops[0], rest);
}

void write_row(Body& body, const std::string& row, int loops) {
  std::vector<int> all(static_cast<std::size_t>(loops));
  std::iota(all.begin(), all.end(), 0);
  write_indices(body, row, all);
  write_operands(body, loops);
}

void write_operands(Body& body, int loops) {
  Writer& out = body.out;
  const auto moved = [&](std::size_t k, std::string_view cast) {
    std::string sum;
    for (int loop = 0; loop < loops; ++loop)
      sum += fmt::format(" + {}i{} * a.t{}_{}", cast, loop, k, loop);
    return sum;
  };
  for (std::size_t k = 0; k < body.kernel.operands.size(); ++k) {
    const Operand& operand = body.kernel.operands[k];
    if (operand.role == Role::scalar) continue;
    if (operand.role == Role::position) {
      out.line("const i64 o{0} = a.o{0}{1};", k, moved(k, "(i64)"));
      continue;
    }
    const std::string type = fmt::format("{}{}*", operand.role == Role::input ? "const " : "",
                                         stored_word(operand.dtype));
    out.line("{0} const m{1} = ({0})a.p{1}{2};", type, k, moved(k, ""));
  }
}

std::vector<uint16_t> memory_sources(const Body& body, const Stage& stage) {
  std::vector<uint16_t> found;
  for (const Source& source : stage.sources) {
    if (source.kind != Source::Kind::operand || !body.is_memory(source.index)) continue;
    if (std::ranges::find(found, source.index) == found.end()) found.push_back(source.index);
  }
  return found;
}

std::vector<uint16_t> reductions_of(const Stage& stage) {
  std::vector<uint16_t> found;
  for (const Sink& sink : stage.sinks) {
    if (sink.kind == Sink::Kind::accumulate) found.push_back(sink.index);
  }
  return found;
}

void write_piece(Body& body, const Stage& stage, const PieceText& piece) {
  PieceWriter(body, stage, piece).write();
}

namespace {

/// What `value` is computed by, which is the last of it.
ScalarProgram part_for(const ScalarProgram& program, uint32_t value) {
  const std::span all(program.instrs);
  std::vector<bool> is_needed(value + 1);
  is_needed[value] = true;
  std::vector<bool> ends;  // whether those are needed of which the beginning is still to come
  for (std::size_t i = value + 1; i-- > 0;) {
    const ScalarInstr& instr = all[i];
    if (instr.op == ScalarOp::end_if) ends.push_back(is_needed[i]);
    if (instr.op == ScalarOp::begin_if) {
      is_needed[i] = ends.back();
      ends.pop_back();
    }
    if (!is_needed[i]) continue;
    const uint32_t operands[] = {instr.a, instr.b, instr.c};
    for (int k = 0; k < operand_count(instr.op); ++k) is_needed[operands[k]] = true;
  }
  ScalarProgram part;
  std::vector<uint32_t> renamed(value + 1);
  for (std::size_t i = 0; i <= value; ++i) {
    if (!is_needed[i]) continue;
    ScalarInstr instr = all[i];
    uint32_t* const operands[] = {&instr.a, &instr.b, &instr.c};
    for (int k = 0; k < operand_count(instr.op); ++k) *operands[k] = renamed[*operands[k]];
    renamed[i] = static_cast<uint32_t>(part.instrs.size());
    part.instrs.push_back(instr);
  }
  return part;
}

}  // namespace

void write_results_apart(Body& body, const Stage& stage) {
  const PieceText point = {.is_whole = true};
  PieceWriter(body, stage, point).write_loads();
  body.out.line("barrier();");
  for (std::size_t i = 0; i < stage.sinks.size(); ++i) {
    Sink sink = stage.sinks[i];
    Stage one = {.level = stage.level,
                 .program = part_for(stage.program, sink.value),
                 .sources = stage.sources,
                 .sinks = {}};
    sink.value = static_cast<uint32_t>(one.program.instrs.size() - 1);
    one.sinks = {sink};
    body.out.open("if (thread_index() == {})", i * warp_threads);
    PieceWriter(body, one, point).write_results();
    body.out.close();
  }
}

void write_kept_load(Body& body, uint16_t k, const PieceText& piece) {
  PieceWriter(body, body.kernel.stages[0], piece).keep(k);
}

void write_row_stage(Body& body, const Stage& stage, const std::string& is_chosen,
                     const std::string& barrier) {
  Writer& out = body.out;
  std::vector<std::string> arguments;
  for (const Source& source : stage.sources) {
    const std::size_t k = source.index;
    if (source.kind == Source::Kind::reduction) {
      arguments.push_back(fmt::format("r{}", k));
    } else if (source.kind == Source::Kind::row_value) {
      arguments.push_back(fmt::format("q{}", k));
    } else {
      const Operand& operand = body.kernel.operands[k];
      arguments.push_back(operand.role == Role::scalar ? fmt::format("s{}", k)
                          : operand.role == Role::position
                              ? fmt::format("o{}", k)
                              : decoded(operand.dtype, fmt::format("*m{}", k)));
    }
  }
  const auto load = [&](const ScalarInstr& instr, const std::string& distance) {
    return decoded(body.kernel.operands[instr.imm].dtype,
                   fmt::format("m{}[{}]", instr.imm, distance));
  };
  declare_results(body, stage);
  out.open("");
  write_program(out, stage.program, arguments, load);
  const bool is_in_place = std::ranges::any_of(stage.sinks, [&](const Sink& sink) {
    return sink.kind == Sink::Kind::store && body.kernel.operands[sink.index].alias >= 0;
  });
  if (is_in_place && !barrier.empty()) out.line("{}", barrier);
  for (const Sink& sink : stage.sinks) {
    const std::string value = value_name(sink.value);
    if (sink.kind == Sink::Kind::row_value) out.line("q{} = {};", sink.index, value);
    if (sink.kind == Sink::Kind::check)
      out.line("if ({} && !{}) report(a.status, {}u);", is_chosen, value, sink.index);
    if (sink.kind == Sink::Kind::store)
      out.line("if ({}) *m{} = {};", is_chosen, sink.index,
               encoded(body.kernel.operands[sink.index].dtype, value));
  }
  out.close();
}

void declare_results(Body& body, const Stage& stage) {
  for (const Sink& sink : stage.sinks) {
    if (sink.kind == Sink::Kind::row_value)
      body.out.line("{} q{};", word_of(body.kernel.row_values[sink.index]), sink.index);
    if (sink.kind == Sink::Kind::accumulate)
      body.out.line("{} r{};", word_of(result_type(body.kernel.reductions[sink.index])),
                    sink.index);
  }
}

void write_stages(Body& body, const std::string& is_chosen, const std::string& barrier,
                  std::string_view sum, FunctionRef<void(const Stage&)> write_elements) {
  for (const Stage& stage : body.kernel.stages) {
    if (stage.level == Stage::Level::row) {
      write_row_stage(body, stage, is_chosen, barrier);
      continue;
    }
    declare_results(body, stage);
    body.out.open("");
    write_elements(stage);
    for (const uint16_t r : reductions_of(stage)) {
      const std::string result = fmt::format("result{}({})", r, fmt::format(fmt::runtime(sum), r));
      body.out.line("r{} = {};", r, empty_or(body, r, result));
    }
    body.out.close();
  }
}

std::string empty_or(const Body& body, std::size_t r, const std::string& result) {
  // A sum of nothing is +0, but what joins a sum without changing it is -0.
  const Reduction& reduction = body.kernel.reductions[r];
  if (reduction.combine != Combine::add || !is_float(reduction.type)) return result;
  return fmt::format("a.n{} == 0 ? {} : {}", body.last_loop(), literal(reduction.type, 0), result);
}

}  // namespace nitinol::cuda
