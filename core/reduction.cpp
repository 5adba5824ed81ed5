#include "core/reduction.h"

#include "core/error.h"
#include "core/joins.h"

#include <bit>
#include <string>

namespace nitinol {

std::string_view name_of(Combine combine) {
  switch (combine) {
    case Combine::add:
      return "add";
    case Combine::multiply:
      return "multiply";
    case Combine::maximum:
      return "maximum";
    case Combine::minimum:
      return "minimum";
    case Combine::logical_or:
      return "logical_or";
    case Combine::logical_and:
      return "logical_and";
    case Combine::arg_maximum:
      return "arg_maximum";
    case Combine::arg_minimum:
      return "arg_minimum";
    case Combine::log_add_exp:
      return "log_add_exp";
  }
  return "?";
}

int lanes_of(ScalarType type) {
  return size_of(type) == 8 ? reduction_order::lanes_64 : reduction_order::lanes_32;
}

bool depends_on_order(const Reduction& reduction) {
  return is_float(reduction.type) &&
         (reduction.combine == Combine::add || reduction.combine == Combine::multiply);
}

std::optional<int> lanes_in_common(std::span<const Reduction> reductions) {
  int lanes = 0;
  for (const Reduction& reduction : reductions) {
    if (!depends_on_order(reduction)) continue;
    const int own = lanes_of(reduction.type);
    if (lanes != 0 && lanes != own) return std::nullopt;
    lanes = own;
  }
  return lanes;
}

uint64_t neutral_bits(const Reduction& reduction) {
  return with_reduction(reduction, []<class T>(auto combine, std::type_identity<T>) -> uint64_t {
    return std::bit_cast<native::Bits<T>>(neutral_of<combine.value, T>());
  });
}

void throw_meaningless(const Reduction& reduction) {
  throw Error(ErrorKind::internal,
              {.where = "reduction",
               .what = "no values of type " + std::string(name_of(reduction.type)) +
                       " are joined by " + std::string(name_of(reduction.combine))});
}

}  // namespace nitinol
