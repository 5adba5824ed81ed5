#include "jit/describe.h"

#include <fmt/format.h>

#include <algorithm>

namespace nitinol::jit {

namespace {

/// With the device where that is not the host.
std::string with_device(const Spec& spec) {
  return describe(spec) + (spec.device == Device{} ? "" : " on " + describe(spec.device));
}

}  // namespace

std::string describe_leaf(const Tensor& tensor) {
  if (!tensor.is_defined()) return "undefined tensor";
  const TensorData& data = tensor.internals();
  if (is_contiguous(data.spec.shape, data.strides)) return with_device(data.spec);
  return fmt::format("{} strides {}", with_device(data.spec), to_string(data.strides));
}

std::string describe_leaf(const Variable& variable) {
  return "Variable " + with_device(variable.spec());
}

std::string describe_leaf(const Scalar& scalar) {
  return fmt::format("Scalar {}", name_of(scalar.dtype()));
}

std::string describe_leaf(bool value) {
  return value ? "true" : "false";
}

std::string describe_leaf(int64_t value) {
  return fmt::format("{}", value);
}

std::string describe_leaf(uint64_t value) {
  return fmt::format("{}", value);
}

std::string describe_leaf(double value) {
  return fmt::format("{}", value);
}

std::string describe_leaf(std::string_view value) {
  constexpr std::size_t longest = 40;
  if (value.size() <= longest) return fmt::format("\"{}\"", value);
  return fmt::format("\"{}...\" of {} characters", value.substr(0, longest), value.size());
}

std::string join(std::span<const Word> words) {
  std::string text;
  for (const Word& word : words) {
    if (word.kind == Word::Kind::length) continue;
    if (!text.empty()) text += ", ";
    if (word.is_named) text += word.where + (word.kind == Word::Kind::fixed ? "=" : ": ");
    text += word.text;
  }
  return text.empty() ? "no arguments" : text;
}

std::string subject(const Word& word) {
  return word.is_named ? fmt::format("`{}`", word.where) : word.where;
}

std::string first_difference(std::span<const Word> before, std::span<const Word> now) {
  const auto [was, is] = std::ranges::mismatch(before, now, [](const Word& a, const Word& b) {
    return a.text == b.text && a.where == b.where && a.identity == b.identity;
  });
  if (was == before.end() && is == now.end()) return "";
  if (was == before.end()) return fmt::format("{} is {}, was not there", subject(*is), is->text);
  if (is == now.end()) return fmt::format("{} is not there, was {}", subject(*was), was->text);
  if (is->text == was->text && is->where == was->where)
    return fmt::format("{} is another object, {}", subject(*is), is->text);
  return fmt::format("{} is {}, was {}", subject(*is), is->text, was->text);
}

void Describer::begin_argument(std::size_t position, std::string_view name) {
  path_ = {name.empty() ? fmt::format("argument {}", position)
                        : fmt::format("argument {} ({})", position, name)};
}

void Describer::length(std::size_t count) {
  add(fmt::format("of length {}", count), Word::Kind::length);
}

void Describer::enter(std::string_view kind, std::size_t position) {
  path_.push_back(fmt::format("{} {}", kind, position));
}

void Describer::add(std::string text, Word::Kind kind) {
  words_.push_back(
      {.where = fmt::format("{}", fmt::join(path_, ", ")),
       .text = std::move(text),
       .kind = kind,
       .advice = kind == Word::Kind::fixed ? "if it is a number, take it as Scalar" : ""});
}

}  // namespace nitinol::jit
