#include "bindings/python/src/watched.h"

#include "bindings/python/src/errors.h"
#include "bindings/python/src/pytree.h"

#include <utility>

namespace nitinol::python {
namespace {

struct Number {
  uint64_t number;
  std::shared_ptr<const jit::Meaning> meaning;
};

/// What stands for a value: the same for equal plain ones. Of any other object each assignment is a
/// change.
Number number_of(nb::handle value) {
  static auto* known = new std::shared_ptr<Interned>(std::make_shared<Interned>());
  static uint64_t last_unknown = 0;
  if (!value.is_valid() || !is_plain(value)) return {uint64_t{1} << 63 | ++last_unknown, nullptr};
  Numbers numbers(**known);
  const uint64_t number = numbers.of(value);
  return {number, numbers.meaning()};
}

}  // namespace

Watched::Watched(nb::handle value, std::string name, uint64_t birth) {
  auto [number, meaning] = number_of(value);
  cell_ = std::make_shared<Cell>(number, std::move(name), birth);
  meaning_ = std::move(meaning);
}

void Watched::set(nb::handle value) {
  auto [number, meaning] = number_of(value);
  cell_->number = number;
  meaning_ = std::move(meaning);
  release_waiting();  // the old value, now: here Python's lock is held
}

bool Watched::same(const void* cell, uint64_t number) {
  return static_cast<const Cell*>(cell)->number.load() == number;
}

void Watched::note() const {
  if (!is_watched()) return;
  // Guards of one cell are equal, whatever they keep.
  const auto read = std::make_shared<const Read>(cell_, meaning_);
  current().guard({.object = std::shared_ptr<const void>(read, cell_.get()),
                   .name = cell_->name,
                   .bits = cell_->number.load(),
                   .same = &same,
                   .birth = cell_->birth});
}

}  // namespace nitinol::python
