#include "core/kernel.h"

#include "core/hash.h"

#include <fmt/format.h>

#include <algorithm>

namespace nitinol {
namespace {

std::string_view name_of(Role role) {
  switch (role) {
    case Role::input:
      return "input";
    case Role::output:
      return "output";
    case Role::scalar:
      return "scalar";
    case Role::position:
      return "position";
    case Role::scratch:
      return "scratch";
  }
  return "?";
}

std::string_view name_of(StrideClass inner) {
  switch (inner) {
    case StrideClass::zero:
      return "0";
    case StrideClass::one:
      return "1";
    case StrideClass::any:
      return "any";
  }
  return "?";
}

std::string_view name_of(Order order) {
  switch (order) {
    case Order::none:
      return "elementwise";
    case Order::lanes:
      return "lanes";
    case Order::sequential:
      return "sequential";
  }
  return "?";
}

std::string_view name_of(Source::Kind kind) {
  switch (kind) {
    case Source::Kind::operand:
      return "operand ";
    case Source::Kind::reduction:
      return "reduction ";
    case Source::Kind::row_value:
      return "row value ";
  }
  return "?";
}

std::string_view name_of(Sink::Kind kind) {
  switch (kind) {
    case Sink::Kind::store:
      return "store to operand ";
    case Sink::Kind::accumulate:
      return "accumulate into reduction ";
    case Sink::Kind::row_value:
      return "keep as row value ";
    case Sink::Kind::check:
      return "check, else status ";
  }
  return "?";
}

void print(std::string& text, const Stage& stage, std::size_t number) {
  text += fmt::format("  stage {} {}\n", number,
                      stage.level == Stage::Level::element ? "per element" : "per row");
  for (std::size_t k = 0; k < stage.sources.size(); ++k) {
    text += fmt::format("    argument {}: {}{}\n", k, name_of(stage.sources[k].kind),
                        stage.sources[k].index);
  }
  const std::string program = to_string(stage.program);
  for (std::size_t begin = 0; begin < program.size();) {
    const std::size_t end = program.find('\n', begin);
    text += fmt::format("    {}\n", std::string_view(program).substr(begin, end - begin));
    begin = end + 1;
  }
  for (const Sink& sink : stage.sinks) {
    text += fmt::format("    {}{}: %{}\n", name_of(sink.kind), sink.index, sink.value);
  }
}

}  // namespace

bool operator==(const Kernel& a, const Kernel& b) {
  return a.order == b.order && a.stores == b.stores &&
         a.prebuilt.stages.empty() == b.prebuilt.stages.empty() && a.operands == b.operands &&
         a.reductions == b.reductions && a.row_values == b.row_values && a.stages == b.stages;
}

std::size_t hash_of(const Kernel& kernel) {
  Hash hash;
  hash.add(kernel.order);
  hash.add(kernel.stores);
  hash.add(kernel.prebuilt.stages.empty());
  hash.add(kernel.operands.size());
  for (const Operand& operand : kernel.operands) {
    hash.add(static_cast<uint32_t>(operand.role) | static_cast<uint32_t>(operand.dtype) << 8 |
             static_cast<uint32_t>(operand.inner) << 16);
    hash.add(operand.alias);
  }
  hash.add(kernel.reductions.size());
  for (const Reduction& reduction : kernel.reductions) {
    hash.add(static_cast<uint32_t>(reduction.combine) | static_cast<uint32_t>(reduction.type) << 8);
  }
  hash.add(kernel.row_values.size());
  for (const ScalarType type : kernel.row_values) hash.add(type);
  for (const Stage& stage : kernel.stages) {
    hash.add(stage.level);
    hash.add(stage.program.hash());
    hash.add(stage.sources.size());
    for (const Source& source : stage.sources) {
      hash.add(static_cast<uint32_t>(source.kind) | static_cast<uint32_t>(source.index) << 8);
    }
    hash.add(stage.sinks.size());
    for (const Sink& sink : stage.sinks) {
      hash.add(static_cast<uint32_t>(sink.kind) | static_cast<uint32_t>(sink.index) << 8);
      hash.add(sink.value);
    }
  }
  return hash.result();
}

std::string to_string(const Kernel& kernel) {
  std::string text = fmt::format("kernel {}{}\n", name_of(kernel.order),
                                 kernel.stores == Stores::non_temporal ? ", non-temporal" : "");
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
    const Operand& operand = kernel.operands[k];
    text +=
        fmt::format("  operand {}: {} {}", k, name_of(operand.role), short_name_of(operand.dtype));
    if (operand.role != Role::scalar)
      text += fmt::format(", inner stride {}", name_of(operand.inner));
    if (operand.alias >= 0) text += fmt::format(", in place of operand {}", operand.alias);
    text += '\n';
  }
  for (std::size_t r = 0; r < kernel.reductions.size(); ++r) {
    text += fmt::format("  reduction {}: {} {}\n", r, name_of(kernel.reductions[r].type),
                        name_of(kernel.reductions[r].combine));
  }
  for (std::size_t v = 0; v < kernel.row_values.size(); ++v) {
    text += fmt::format("  row value {}: {}\n", v, name_of(kernel.row_values[v]));
  }
  for (std::size_t s = 0; s < kernel.stages.size(); ++s) print(text, kernel.stages[s], s);
  return text;
}

bool looks_up(const Stage& stage, std::size_t operand) {
  return std::ranges::any_of(stage.program.instrs, [operand](const ScalarInstr& instr) {
    return instr.op == ScalarOp::load && instr.imm == operand;
  });
}

bool has_checks(const Kernel& kernel) {
  return std::ranges::any_of(kernel.stages, [](const Stage& stage) {
    return std::ranges::find(stage.sinks, Sink::Kind::check, &Sink::kind) != stage.sinks.end();
  });
}

int64_t block_of(const Kernel& kernel) {
  if (kernel.order == Order::lanes) return reduction_order::lanes_block;
  return std::ranges::any_of(kernel.reductions, depends_on_order)
             ? reduction_order::ordered_block
             : reduction_order::unordered_block;
}

}  // namespace nitinol
