// A value of Python that recordings depend on where they read it: of a HostValue, of a module's
// attribute.
#pragma once

#include "bindings/python/src/from.h"
#include "jit/compiled_function.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

namespace nitinol::python {

/// With Python's lock, all of it. Keeps nothing of the value but, of a plain one, its number.
class Watched {
 public:
  /// `birth`: the epoch in which what holds the value was made (core/interpreter.h).
  Watched(nb::handle value, std::string name, uint64_t birth);
  /// Null: there is none any more.
  void set(nb::handle value);
  /// Notes, in a recording, that the value is read: what is recorded holds for this value only.
  void note() const;

 private:
  struct Cell {
    std::atomic<uint64_t> number;
    std::string name;
    uint64_t birth;
  };
  /// What a guard keeps: with the meaning a value that is set back finds the Plan of before.
  struct Read {
    std::shared_ptr<const Cell> cell;
    std::shared_ptr<const jit::Meaning> meaning;
  };
  static bool same(const void* cell, uint64_t number);

  std::shared_ptr<Cell> cell_;
  std::shared_ptr<const jit::Meaning> meaning_;
};

}  // namespace nitinol::python
