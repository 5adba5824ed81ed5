#include "tests/backends/cpu/jit/kernel_case.h"

#include "backends/cpu/jit_loader.h"
#include "backends/host/stage.h"
#include "backends/reference/interpreted.h"
#include "tests/nan_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace nitinol::testing {
namespace {

constexpr std::size_t margin = 256;  ///< bytes around each buffer that must stay as they are

/// All that a Launch points to.
struct Arguments {
  std::vector<std::vector<std::byte>> memory;
  std::vector<void*> buffers;
  std::vector<int64_t> strides, offsets;
  std::vector<uint64_t> scalars;
};

/// Whether operand k has a stride along loop d at all.
bool moves(const Kernel& kernel, std::size_t k, std::size_t d, std::size_t rank) {
  const bool is_reduced = kernel.order != Order::none && d + 1 == rank;
  if (!is_reduced || kernel.operands[k].role == Role::position) return true;
  // Outputs of row stages do not lie along the reduced loop.
  for (const Stage& stage : kernel.stages) {
    if (stage.level != Stage::Level::element) continue;
    for (const Sink& sink : stage.sinks) {
      if (sink.kind == Sink::Kind::store && sink.index == k) return true;
    }
    for (const Source& source : stage.sources) {
      if (source.kind == Source::Kind::operand && source.index == k) return true;
    }
  }
  return false;
}

/// Strides of operand k: the innermost (vectorised) loop by its class, the others packed around it.
void append_strides(const Kernel& kernel, std::size_t k, const Domain& domain,
                    std::vector<int64_t>& strides) {
  const std::size_t rank = domain.sizes.size();
  const std::size_t inner = kernel.order == Order::sequential && rank > 1 ? rank - 2 : rank - 1;
  const Operand& operand = kernel.operands[k];
  std::vector<int64_t> mine(rank, 0);
  if (operand.role != Role::scalar) {
    const bool is_zero = operand.inner == StrideClass::zero || !moves(kernel, k, inner, rank);
    mine[inner] = is_zero ? 0 : operand.inner == StrideClass::one ? 1 : domain.any_stride;
    int64_t extent = std::max<int64_t>(1, mine[inner] * domain.sizes[inner]);
    for (std::size_t d = rank; d-- > 0;) {
      if (d == inner || !moves(kernel, k, d, rank)) continue;
      mine[d] = extent + 1;
      extent = mine[d] * domain.sizes[d];
    }
  }
  strides.insert(strides.end(), mine.begin(), mine.end());
}

std::byte* first_byte(std::vector<std::byte>& memory) {
  const auto address = reinterpret_cast<std::uintptr_t>(memory.data()) + margin;
  return memory.data() + margin + (64 - address % 64) % 64;
}

Arguments make_arguments(const Kernel& kernel, const Domain& domain, std::mt19937& random) {
  Arguments arguments;
  const std::size_t count = kernel.operands.size(), rank = domain.sizes.size();
  for (std::size_t k = 0; k < count; ++k) {
    const Operand& operand = kernel.operands[k];
    append_strides(kernel, k, domain, arguments.strides);
    int64_t extent = 1;
    for (std::size_t d = 0; d < rank; ++d) {
      extent += arguments.strides[k * rank + d] * std::max<int64_t>(domain.sizes[d] - 1, 0);
    }
    const std::size_t size = size_of(operand.dtype);
    const auto skipped =
        static_cast<std::size_t>(domain.misalignment +
                                 static_cast<int64_t>(k) * domain.misalignment_step) *
        size;
    auto& memory = arguments.memory.emplace_back(
        2 * margin + 64 + skipped + static_cast<std::size_t>(extent) * size, std::byte{0xab});
    std::byte* const first = first_byte(memory) + skipped;
    for (std::size_t i = 0; i < static_cast<std::size_t>(extent); ++i) {
      if (operand.role == Role::output) break;
      uint64_t bits = random_bits(operand.dtype, random);
      if (domain.no_zero && bits == 0) bits = 1;
      std::memcpy(first + i * size, &bits, size);
    }
    const bool is_memory = operand.role == Role::input || operand.role == Role::output;
    arguments.buffers.push_back(is_memory ? first : nullptr);
    uint64_t bits = random_bits(operand.dtype, random);
    if (domain.no_zero && bits == 0) bits = 1;
    arguments.scalars.push_back(bits);
    arguments.offsets.push_back(static_cast<int64_t>(random() % 100));
    if (operand.alias >= 0) {
      arguments.buffers[k] = arguments.buffers[static_cast<std::size_t>(operand.alias)];
    }
  }
  return arguments;
}

Launch launch_of(const Arguments& arguments, const Domain& domain) {
  return {.buffers = arguments.buffers,
          .sizes = domain.sizes,
          .strides = arguments.strides,
          .offsets = arguments.offsets,
          .scalars = arguments.scalars};
}

std::string compare(const Kernel& kernel, Arguments& got, Arguments& expected) {
  for (std::size_t k = 0; k < kernel.operands.size(); ++k) {
    const DType dtype = kernel.operands[k].dtype;
    const auto size = static_cast<std::ptrdiff_t>(size_of(dtype));
    const std::byte* const a = first_byte(got.memory[k]);
    const std::byte* const b = first_byte(expected.memory[k]);
    const auto bytes = static_cast<std::ptrdiff_t>(got.memory[k].size() - 2 * margin - 64);
    const std::ptrdiff_t before = static_cast<std::ptrdiff_t>(margin) / size;
    for (std::ptrdiff_t i = -before; i < bytes / size + before; ++i) {
      uint64_t x = 0, y = 0;
      std::memcpy(&x, a + i * size, static_cast<std::size_t>(size));
      std::memcpy(&y, b + i * size, static_cast<std::size_t>(size));
      if (x == y || (test::is_nan(dtype, x) && test::is_nan(dtype, y))) continue;
      return fmt::format("operand {} ({}) element {}: got {:#x}, expected {:#x}", k, name_of(dtype),
                         i, x, y);
    }
  }
  return {};
}

}  // namespace

cpu::JitPlugin& plugin() {
  cpu::JitPlugin* const found = cpu::jit_plugin();
  if (found == nullptr) throw std::runtime_error("the code generator cannot be loaded");
  return *found;
}

cpu::StageCodes code_for(const Kernel& kernel, Isa isa) {
  return cpu::load_stages(plugin().generate(kernel, isa, cpu::Effort::full), kernel);
}

std::vector<Isa> isa_levels() {
  std::vector<Isa> levels;
  for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
    if (isa <= host_isa()) levels.push_back(isa);
  }
  return levels;
}

uint64_t random_bits(DType dtype, std::mt19937& random) {
  const uint64_t all = uint64_t{random()} << 32 | random();
  if (dtype == boolean) return all & 1;
  const uint64_t mask =
      size_of(dtype) == 8 ? ~uint64_t{0} : (uint64_t{1} << size_of(dtype) * 8) - 1;
  if (!is_floating(dtype)) return random() % 4 == 0 ? all % 5 : all & mask;
  // In f64 first: special values, everyday numbers, any bits.
  constexpr double specials[] = {0.0,    -0.0, 1.0,     -1.0,         0.5,           1e-310,
                                 -1e-40, 1e30, 65504.0, 2147483648.0, -2147483648.0, 9.3e18};
  const uint32_t kind = random() % 8;
  if (kind == 0) return all & mask;
  double number = std::uniform_real_distribution(-10.0, 10.0)(random);
  if (kind == 1) number = specials[random() % std::size(specials)];
  if (kind == 2) number = (random() % 2 != 0U ? 1 : -1) * std::numeric_limits<double>::infinity();
  if (kind == 3) number *= 1000;
  if (kind == 4) number = static_cast<double>(static_cast<int>(number)) + 0.5;
  if (random() % 64 == 0) number = std::numeric_limits<double>::quiet_NaN();
  if (dtype == f64) return std::bit_cast<uint64_t>(number);
  const uint64_t bits = std::bit_cast<uint32_t>(static_cast<float>(number));
  if (dtype == f32) return bits;
  return dtype == bf16 ? bits >> 16 : all & 0xffff;
}

std::string difference(const Kernel& kernel, const cpu::StageCodes& code, const Domain& domain,
                       std::mt19937& random) {
  const std::mt19937 same = random;
  Arguments got = make_arguments(kernel, domain, random);
  std::mt19937 again = same;
  Arguments expected = make_arguments(kernel, domain, again);
  host::run_loop_nest(kernel, code.stages.data(), launch_of(got, domain));
  reference::make_interpreted(kernel)->launch(launch_of(expected, domain));
  return compare(kernel, got, expected);
}

std::string difference(const Kernel& kernel, Isa isa, const Domain& domain, std::mt19937& random) {
  const std::string found = difference(kernel, code_for(kernel, isa), domain, random);
  return found.empty() ? found : fmt::format("at {}: {}", name_of(isa), found);
}

}  // namespace nitinol::testing
