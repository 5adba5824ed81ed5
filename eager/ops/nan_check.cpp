// Where memory is a device's, it is looked through there, and one element comes to the host; all of
// a tensor only if it has what is looked for.
#include "core/error.h"
#include "core/host_access.h"
#include "core/result_check.h"
#include "core/unseen.h"
#include "eager/ops/cast.h"
#include "eager/ops/reduce.h"
#include "eager/ops/unary.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

bool is_bad(ResultCheck check, double value) {
  return std::isnan(value) || (check == ResultCheck::infinity && std::isinf(value));
}

double number_of(const TensorData& data) {
  return data.spec.dtype == f64 ? std::bit_cast<double>(data.number)
                                : std::bit_cast<float>(static_cast<uint32_t>(data.number));
}

/// Whether its elements can be looked at.
bool is_here(const TensorData& data) {
  const TensorData::Memory memory = data.memory.load(std::memory_order_acquire);
  return memory == TensorData::Memory::here && element_count(data.spec.shape) > 0;
}

/// Whether one has a NaN's bits, or, if wanted, an infinity's: all bits of the exponent are set.
/// What is too much has a negative difference, which vectors of any machine can gather.
template <class Bits>
bool has_bits(ResultCheck check, const std::byte* first, std::size_t count, Bits exponent) {
  const Bits most = check == ResultCheck::nan ? exponent : static_cast<Bits>(exponent - 1);
  constexpr Bits without_sign = std::numeric_limits<Bits>::max();
  Bits differences = 0;
  for (const Bits bits : std::span(reinterpret_cast<const Bits*>(first), count))
    differences = static_cast<Bits>(differences | (most - (bits & without_sign)));
  return differences < 0;
}

bool has_any_here(ResultCheck check, DType dtype, const std::byte* first, std::size_t count) {
  switch (size_of(dtype)) {
    case sizeof(int64_t):
      return has_bits<int64_t>(check, first, count, 0x7ff0'0000'0000'0000);
    case sizeof(int32_t):
      return has_bits<int32_t>(check, first, count, 0x7f80'0000);
    default:
      return has_bits<int16_t>(check, first, count, dtype == f16 ? 0x7c00 : 0x7f80);
  }
}

/// Few enough for ops and their memory to take longer than the look.
bool is_looked_at_here(const TensorData& data) {
  constexpr int64_t few = 1 << 15;
  return data.storage && data.storage->backend == nullptr &&
         element_count(data.spec.shape) <= few && is_contiguous(data.spec.shape, data.strides);
}

bool looks(ResultCheck check, const Tensor& tensor) {
  const TensorData& data = tensor.internals();
  if (!is_floating(data.spec.dtype)) return false;
  if (data.is_number())
    return (data.spec.dtype == f32 || data.spec.dtype == f64) && is_bad(check, number_of(data));
  if (!is_here(data)) return false;
  if (is_looked_at_here(data)) {
    return has_any_here(check, data.spec.dtype, HostElements(data).first(),
                        static_cast<std::size_t>(element_count(data.spec.shape)));
  }
  const Tensor bare = bare_copy(tensor);
  return first_element(
             any(check == ResultCheck::nan ? isnan(bare) : logical_not(isfinite(bare)))) != 0;
}

/// The first element in row-major order that is looked for, and its number.
struct Found {
  int64_t position = 0;
  double value = 0;
};

Found first_bad(ResultCheck check, const Tensor& tensor) {
  if (tensor.internals().is_number()) return {0, number_of(tensor.internals())};
  const std::vector<double> elements = cast(bare_copy(tensor), f64).to_vector<double>();
  const auto bad =
      std::ranges::find_if(elements, [&](double value) { return is_bad(check, value); });
  return {bad - elements.begin(), *bad};
}

/// "float32[10, 4] from -1 to 5.25, there -0.5".
std::string range_of(const Tensor& operand, const Tensor& result, int64_t position) {
  const std::string spec = describe(operand.spec());
  if (operand.internals().is_number()) {
    return is_floating(operand.dtype()) ? fmt::format("{} {}", spec, number_of(operand.internals()))
                                        : spec;
  }
  if (!is_here(operand.internals())) return spec;
  const Tensor wide = cast(bare_copy(operand), f64);
  const std::vector<double> elements = wide.to_vector<double>();
  const auto [least, most] = std::ranges::minmax_element(elements);
  std::string text = fmt::format("{} from {:g} to {:g}", spec, *least, *most);
  if (operand.shape() == result.shape() && operand.rank() > 0)
    text += fmt::format(", there {:g}", elements[static_cast<std::size_t>(position)]);
  return text;
}

[[noreturn]] void throw_bad(ResultCheck check, const Op& op, Inputs inputs, const Tensor& result,
                            const CallSite* place) {
  const Found found = first_bad(check, result);
  std::string operands;
  for (const Tensor* input : inputs) {
    operands +=
        fmt::format("{}{}", operands.empty() ? "" : "; ", range_of(*input, result, found.position));
  }
  const std::string text = place != nullptr ? place->text() : "";
  const std::string step = CompiledCallScope::step_of(op);
  std::string remarks = text.empty() ? "" : "Applied at " + text + ".";
  if (!step.empty())
    remarks += fmt::format("{}In the compiled call: {}.", remarks.empty() ? "" : "\n", step);
  throw Error(ErrorKind::value,
              {.where = std::string(op.name),
               .what = fmt::format("element {} of the result, {}, is {}",
                                   to_string(indices_at(result.shape(), found.position)),
                                   describe(result.spec()), found.value),
               .expected = fmt::format("no {} out of operands that have none",
                                       check == ResultCheck::nan ? "NaN" : "NaN or infinity"),
               .got = operands.empty() ? "no operands" : operands,
               .fix = std::move(remarks)});
}

}  // namespace

bool has_any(ResultCheck check, const Tensor& tensor) {
  const Unseen unseen;
  return looks(check, tensor);
}

void check_result(ResultCheck check, const Op& op, Inputs inputs, const Tensor& result,
                  const CallSite* place) {
  const Unseen unseen;
  if (!looks(check, result)) return;
  const auto has = [&](const Tensor* input) { return looks(check, *input); };
  if (!std::ranges::any_of(inputs, has)) throw_bad(check, op, inputs, result, place);
}

}  // namespace nitinol
