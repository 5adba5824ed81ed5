#include "backends/cuda/text/arguments.h"

#include "core/kernel.h"
#include "core/round_up.h"

#include <fmt/format.h>

#include <bit>
#include <cstddef>

namespace nitinol::cuda {

std::optional<int> known_stride(const Kernel& kernel, const Schedule& schedule,
                                std::size_t operand) {
  if (schedule.shape == Schedule::Shape::columns) return {};
  const Operand& moved = kernel.operands[operand];
  if (moved.inner == StrideClass::one) return 1;
  if (moved.inner == StrideClass::zero && moved.role != Role::output) return 0;
  return {};
}

std::vector<Field> fields_of(const Kernel& kernel, const Schedule& schedule) {
  using Kind = Field::Kind;
  std::vector<Field> fields = {{Kind::gate}};
  if (has_checks(kernel)) fields.push_back({Kind::status});
  if (schedule.is_split)
    fields.insert(fields.end(), {{Kind::counters}, {Kind::workspace}, {Kind::results}});
  const auto for_each_operand = [&](auto add) {
    for (std::size_t k = 0; k < kernel.operands.size(); ++k)
      add(static_cast<uint16_t>(k), kernel.operands[k].role);
  };
  for_each_operand([&](uint16_t k, Role role) {
    if (role == Role::scalar) return fields.push_back({Kind::scalar, k});
    if (role != Role::position) return fields.push_back({Kind::memory, k});
    fields.push_back({Kind::offset, k});
    for (uint8_t loop = 0; loop < schedule.rank; ++loop) fields.push_back({Kind::step, k, loop});
  });
  fields.push_back({Kind::rows});
  for (uint8_t loop = 0; loop < schedule.rank; ++loop) fields.push_back({Kind::size, 0, loop});
  for_each_operand([&](uint16_t k, Role role) {
    if (role == Role::scalar || role == Role::position) return;
    for (uint8_t loop = 0; loop < schedule.rank; ++loop) {
      if (loop + 1 < schedule.rank || !known_stride(kernel, schedule, k))
        fields.push_back({Kind::stride, k, loop});
    }
  });
  if (schedule.is_split) fields.insert(fields.end(), {{Kind::groups}, {Kind::group_size}});
  return fields;
}

std::size_t ends_of(std::size_t parts) {
  return std::bit_ceil(parts);
}

std::size_t argument_bytes(const std::vector<Field>& fields, const Schedule& schedule,
                           std::size_t parts) {
  std::size_t bytes = 0;
  for (const Field& field : fields) {
    const bool is_index = field.kind == Field::Kind::rows || field.kind == Field::Kind::size ||
                          field.kind == Field::Kind::stride;
    const bool is_narrow =
        is_index ? !schedule.is_wide
                 : field.kind == Field::Kind::groups || field.kind == Field::Kind::group_size;
    bytes += is_narrow ? 4 : 8;
  }
  return (parts == 1 ? 0 : ends_of(parts) * sizeof(uint32_t)) +
         parts * round_up(bytes, std::size_t{8});
}

std::string name_of(const Field& field) {
  switch (field.kind) {
    case Field::Kind::gate:
      return "gate";
    case Field::Kind::status:
      return "status";
    case Field::Kind::counters:
      return "counters";
    case Field::Kind::workspace:
      return "workspace";
    case Field::Kind::results:
      return "results";
    case Field::Kind::memory:
      return fmt::format("p{}", field.operand);
    case Field::Kind::scalar:
      return fmt::format("s{}", field.operand);
    case Field::Kind::offset:
      return fmt::format("o{}", field.operand);
    case Field::Kind::step:
    case Field::Kind::stride:
      return fmt::format("t{}_{}", field.operand, field.loop);
    case Field::Kind::rows:
      return "rows";
    case Field::Kind::size:
      return fmt::format("n{}", field.loop);
    case Field::Kind::groups:
      return "groups";
    case Field::Kind::group_size:
      return "group_size";
  }
  return "?";
}

}  // namespace nitinol::cuda
