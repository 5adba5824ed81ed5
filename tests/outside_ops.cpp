#include "tests/outside_ops.h"

#include "core/error.h"
#include "core/launch.h"
#include "core/library.h"
#include "eager/all_ops.h"
#include "eager/apply.h"
#include "eager/ops/ops.h"
#include "tests/nan_bits.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

namespace nitinol::test {
namespace {

constexpr std::array<std::string_view, 1> number_attr = {"number"};

thread_local std::vector<Note> notes;
thread_local bool is_listening = true;

/// The elements of operand k in row-major order.
std::vector<std::byte> elements_of(const LibraryCall& call, const Launch& launch, std::size_t k) {
  const OperandLayout& layout = call.operands[k];
  const auto size = static_cast<int64_t>(size_of(layout.dtype));
  std::vector<std::byte> elements;
  Dims index = Dims::filled(layout.shape.size(), 0);
  const auto* address = static_cast<const std::byte*>(launch.buffers[k]);
  for (int64_t left = element_count(layout.shape); left > 0; --left) {
    elements.insert(elements.end(), address, address + size);
    for (int i = index.size() - 1; i >= 0; --i) {
      address += layout.strides[i] * size;
      if (++index[i] < layout.shape[i]) break;
      address -= layout.strides[i] * layout.shape[i] * size;
      index[i] = 0;
    }
  }
  return elements;
}

void store(const Launch& launch, std::size_t k, const std::vector<std::byte>& elements) {
  if (!elements.empty()) std::memcpy(launch.buffers[k], elements.data(), elements.size());
}

LibraryCall call_of(Routine routine, const Tensor& x, std::span<const Spec> results) {
  LibraryCall call = {.kind = LibraryCall::Kind::routine, .operands = {}, .routine = routine};
  call.operands.push_back({x.dtype(), x.shape(), x.internals().strides});
  for (const Spec& spec : results)
    call.operands.push_back({spec.dtype, spec.shape, strides_of(spec.shape)});
  return call;
}

Spec strong(const Tensor& x) {
  Spec spec = x.spec();
  spec.is_weak = false;
  return spec;
}

void write_down(const LibraryCall& call, const Launch& launch) {
  if (!is_listening) throw Error(ErrorKind::io, {.where = "noted", .what = "nobody listens"});
  const std::vector<std::byte> elements = elements_of(call, launch, 0);
  const DType dtype = call.operands[0].dtype;
  uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t at = 0; at < elements.size(); at += size_of(dtype)) {
    uint64_t bits = 0;
    std::memcpy(&bits, elements.data() + at, size_of(dtype));
    hash = (hash ^ (is_nan(dtype, bits) ? ~uint64_t{0} : bits)) * 0x100000001b3;
    hash ^= hash >> 32;
  }
  notes.push_back({call.axis, hash});
  store(launch, 1, elements);
}

void turn(const LibraryCall& call, const Launch& launch) {
  std::vector<std::byte> elements = elements_of(call, launch, 0);
  store(launch, 2, elements);
  const std::size_t size = size_of(call.operands[0].dtype);
  std::ranges::reverse(elements);
  for (std::size_t at = 0; at < elements.size(); at += size)
    std::reverse(elements.begin() + static_cast<std::ptrdiff_t>(at),
                 elements.begin() + static_cast<std::ptrdiff_t>(at + size));
  store(launch, 1, elements);
}

constinit const Op noted_record = {
    .name = "noted",
    .kind = OpKind::library,
    .effect = Effect::ordered,
    .attr_names = number_attr,
    .infer = [](const Op&, Inputs x, const Attrs&) { return strong(*x[0]); },
    .call =
        [](Inputs x, const Attrs& attrs, const Spec& spec) {
          LibraryCall call = call_of(write_down, *x[0], {&spec, 1});
          call.axis = static_cast<int>(std::get<int64_t>(attrs[0]));
          return call;
        },
    .gradient = {.rule =
                     [](const GradientCall& call, int) {
                       return noted(call.gradient, std::get<int64_t>(call.attrs[0]) + 1000);
                     }},
    .summary = "For tests."};

constinit const Op turned_record = {
    .name = "turned",
    .kind = OpKind::library,
    .infer_all =
        [](const Op&, Inputs x, const Attrs&) {
          const Spec same = strong(*x[0]);
          Spec flat = same;
          flat.shape = {x[0]->size()};
          return std::vector{flat, same};
        },
    .call_all = [](Inputs x, const Attrs&,
                   std::span<const Spec> results) { return call_of(turn, *x[0], results); },
    .gradient = {.rule =
                     [](const GradientCall& call, int) {
                       const Tensor &flat = call.gradients[0], &same = call.gradients[1];
                       if (!flat.is_defined()) return same;
                       const Tensor back = reshape(turned(flat).first, call.input_specs[0].shape);
                       return same.is_defined() ? back + same : back;
                     }},
    .summary = "For tests."};

}  // namespace

std::vector<Note> take_notes() {
  synchronize();
  return std::exchange(notes, {});
}

void listen(bool listens) {
  is_listening = listens;
}

const Op& noted_op() {
  return noted_record;
}

Tensor noted(const Tensor& x, int64_t number) {
  return apply(noted_op(), {&x}, {number});
}

const Op& turned_op() {
  return turned_record;
}

std::pair<Tensor, Tensor> turned(const Tensor& x) {
  const Tensor* const input = &x;
  std::vector<Tensor> results = apply_all(turned_op(), Inputs(&input, 1));
  return {std::move(results[0]), std::move(results[1])};
}

std::span<const Op* const> ops_with_outside() {
  static const std::vector<const Op*> ops = [] {
    std::vector<const Op*> list(all_ops().begin(), all_ops().end());
    list.push_back(&noted_op());
    list.push_back(&turned_op());
    return list;
  }();
  return ops;
}

}  // namespace nitinol::test
