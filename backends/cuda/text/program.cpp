#include "backends/cuda/text/program.h"

#include "backends/cuda/text/instruction.h"
#include "core/expr.h"
#include "core/join_logarithms.h"
#include "core/joins.h"

#include <vector>

namespace nitinol::cuda {
namespace {

class ProgramWriter {
 public:
  ProgramWriter(Writer& out, const ScalarProgram& program, std::span<const std::string> arguments,
                PrintLoad load)
      : out_(out),
        instrs_(program.instrs),
        arguments_(arguments),
        load_(load),
        end_(instrs_.size()) {
    std::vector<uint32_t> open;
    for (uint32_t id = 0; id < instrs_.size(); ++id) {
      if (instrs_[id].op == ScalarOp::begin_if) open.push_back(id);
      if (instrs_[id].op != ScalarOp::end_if) continue;
      end_[open.back()] = id;
      open.pop_back();
    }
  }

  void write() {
    for (uint32_t id = 0; id < instrs_.size(); ++id) write(id);
  }

 private:
  void write(uint32_t id) {
    const ScalarInstr& instr = instrs_[id];
    switch (instr.op) {
      case ScalarOp::argument:
        return define(id, arguments_[instr.imm]);
      case ScalarOp::load:
        return define(id, load_(instr, value_name(instr.a)));
      case ScalarOp::begin_if: {
        const uint32_t end = end_[id];
        out_.line("{} {} = {};", word_of(instrs_[end].type), value_name(end),
                  value_name(instrs_[end].a));
        return out_.open("if ({})", value_name(instr.a));
      }
      case ScalarOp::end_if:
        out_.line("{} = {};", value_name(id), value_name(instr.b));
        return out_.close();
      default:
        return define(
            id, expression(instr, {{value_name(instr.a), value_name(instr.b), value_name(instr.c)},
                                   instrs_[instr.a].type}));
    }
  }

  void define(uint32_t id, const std::string& value) {
    out_.line("const {} {} = {};", word_of(instrs_[id].type), value_name(id), value);
  }

  Writer& out_;
  const std::vector<ScalarInstr>& instrs_;
  std::span<const std::string> arguments_;
  PrintLoad load_;
  std::vector<uint32_t> end_;  ///< of a begin_if: its end_if
};

/// Writes the statements of a join, which begins with `arguments`; gives the names of its results.
template <class Join>
std::vector<std::string> write_formula(Writer& out, const std::vector<std::string>& arguments,
                                       Join join) {
  ScalarProgram program;
  std::vector<std::string> names;
  for (const Expr& result : join(program)) names.push_back(value_name(result.id));
  write_program(out, program, arguments,
                [](const ScalarInstr&, const std::string&) { return std::string(); });
  return names;
}

void write_join(Writer& out, const Reduction& reduction) {
  const ScalarType type = reduction.type;
  with_combine(reduction.combine, [&](auto c) {
    if constexpr (is_arg(c.value)) {
      const auto names = write_formula(
          out, {"a.value", "a.position", "b.value", "b.position"}, [&](auto& program) {
            const auto at = [&](uint32_t k) {
              return Placed<Expr, Expr>{argument(program, type, k),
                                        argument(program, ScalarType::i64, k + 1)};
            };
            const auto a = at(0), b = at(2);
            const auto best = join<c.value>(a, b);
            return std::vector{best.value, best.position};
          });
      out.line("return {{{}, {}}};", names[0], names[1]);
    } else {
      const auto names = write_formula(out, {"a", "b"}, [&](auto& program) {
        const Expr a = argument(program, type, 0), b = argument(program, type, 1);
        return std::vector{join<c.value>(a, b)};
      });
      out.line("return {};", names[0]);
    }
  });
}

/// Whether newer GPUs have an instruction for it, of device_words().
bool has_instruction(const Reduction& reduction) {
  return reduction.type == ScalarType::f32 && is_extreme(reduction.combine) &&
         !is_arg(reduction.combine);
}

void write_quick_join(Writer& out, const Reduction& reduction, std::string_view type,
                      const std::string& name) {
  out.open("DEVICE {0} {1}({0} a, {0} b)", type, name);
  if (has_instruction(reduction)) {
    out.line("#ifdef HAS_EXTREMES");
    out.line("return {}(a, b);", takes_largest(reduction.combine) ? "largest_of" : "smallest_of");
    out.line("#else");
  }
  write_join(out, reduction);
  if (has_instruction(reduction)) out.line("#endif");
  out.close();
}

void write_arg_words(Writer& out, const Reduction& reduction, std::size_t r) {
  const auto type = word_of(reduction.type);
  out.line("struct Joined{} {{ {} value; i64 position; }};", r, type);
  out.line("DEVICE Joined{0} placed{0}({1} value, i64 position) {{ return {{value, position}}; }}",
           r, type);
  out.line("DEVICE Joined{0} nothing{0}() {{ return {{{1}, {2:#x}ll}}; }}", r,
           literal(reduction.type, neutral_bits(reduction)), no_position);
  out.line(
      "DEVICE Joined{0} shuffled{0}(Joined{0} x, int lanes) {{ return {{shuffle_xor(x.value, "
      "lanes), shuffle_xor(x.position, lanes)}}; }}",
      r);
  out.line(
      "DEVICE Joined{0} fresh{0}(const Joined{0}* at) {{ return {{fresh(&at->value), "
      "fresh(&at->position)}}; }}",
      r);
  out.line("DEVICE i64 result{0}(Joined{0} x) {{ return x.position; }}", r);
}

void write_plain_words(Writer& out, const Reduction& reduction, std::size_t r) {
  const auto type = word_of(reduction.type);
  out.line("typedef {} Joined{};", type, r);
  out.line("DEVICE Joined{0} placed{0}({1} value, i64) {{ return value; }}", r, type);
  out.line("DEVICE Joined{0} nothing{0}() {{ return {1}; }}", r,
           literal(reduction.type, neutral_bits(reduction)));
  out.line(
      "DEVICE Joined{0} shuffled{0}(Joined{0} x, int lanes) {{ return shuffle_xor(x, lanes); }}",
      r);
  out.line("DEVICE Joined{0} fresh{0}(const Joined{0}* at) {{ return fresh(at); }}", r);
  out.line("DEVICE {1} result{0}(Joined{0} x) {{ return x; }}", r, type);
}

}  // namespace

std::string value_name(uint32_t id) {
  return fmt::format("v{}", id);
}

void write_program(Writer& out, const ScalarProgram& program,
                   std::span<const std::string> arguments, PrintLoad load) {
  ProgramWriter(out, program, arguments, load).write();
}

void write_joins(Writer& out, const Reduction& reduction, std::size_t r) {
  if (is_arg(reduction.combine))
    write_arg_words(out, reduction, r);
  else
    write_plain_words(out, reduction, r);
  write_quick_join(out, reduction, fmt::format("Joined{}", r), fmt::format("join{}", r));
}

void write_join_of_values(Writer& out, const Reduction& reduction, const std::string& name) {
  write_quick_join(out, reduction, word_of(reduction.type), name);
}

ScalarType result_type(const Reduction& reduction) {
  return is_arg(reduction.combine) ? ScalarType::i64 : reduction.type;
}

}  // namespace nitinol::cuda
