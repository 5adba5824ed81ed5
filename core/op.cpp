#include "core/op.h"

#include <fmt/format.h>

namespace nitinol {
namespace {

std::string to_string(const Attr& attr) {
  struct Printer {
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return fmt::format("{:#}", value); }
    std::string operator()(DType value) const { return std::string(short_name_of(value)); }
    std::string operator()(const Dims& value) const { return nitinol::to_string(value); }
  };
  return std::visit(Printer{}, attr);
}

}  // namespace

std::string_view name_of(OpKind kind) {
  switch (kind) {
    case OpKind::elementwise:
      return "elementwise";
    case OpKind::reduce:
      return "reduce";
    case OpKind::view:
      return "view";
    case OpKind::index:
      return "index";
    case OpKind::create:
      return "create";
    case OpKind::library:
      return "library";
    case OpKind::transfer:
      return "transfer";
    case OpKind::composite:
      return "composite";
  }
  return "?";
}

std::string to_string(const Op& op, const Attrs& attrs) {
  std::string text;
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    const std::string_view name = i < op.attr_names.size() ? op.attr_names[i] : "attr";
    text += fmt::format("{}{}={}", i == 0 ? "" : " ", name, to_string(attrs[i]));
  }
  return text;
}

}  // namespace nitinol
