// Executable: a step that a backend has prepared.
#pragma once

#include "core/build_report.h"
#include "core/launch.h"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nitinol {

/// A step that was begun and goes on beside the thread that began it. Its destructor waits.
class Underway {
 public:
  virtual ~Underway() = default;
  /// Until it has been done. Throws what it has failed with.
  virtual void wait() = 0;
};

/// A prepared step. Immutable, so one Executable may be launched from several threads. Its
/// destructor waits for launches that use it.
class Executable {
 public:
  virtual ~Executable() = default;
  /// Runs the step, or on an asynchronous device enqueues it: what `launch` points to is read
  /// before this returns, the memory of its buffers and its status word when the step runs. Throws
  /// Error(internal) if the arguments are not of the classes it was prepared for.
  virtual void launch(const Launch& launch) const = 0;
  /// Runs the step, or begins it: then what its buffers point to, and this, must stay until it has
  /// been waited for. What is begun and launched acts on the outside in that order. Null: it has
  /// been done.
  [[nodiscard]] virtual std::unique_ptr<Underway> begin(const Launch& arguments) const {
    launch(arguments);
    return nullptr;
  }
  /// Runs the step once for each of these arguments, in any order or at the same time.
  virtual void launch_all(std::span<const Launch> launches) const {
    for (const Launch& arguments : launches) launch(arguments);
  }
  /// Called when a Plan is made, with the sizes, strides and offsets of one launch, or of those
  /// that launch_all() will get, and without buffers: the time to choose and compile what they
  /// need. What this returns, unless null, is for launches that differ from the examples in
  /// buffers, scalars, status and threads alone; it must not outlive this.
  [[nodiscard]] virtual std::unique_ptr<const Executable> specialise(
      std::span<const Launch> /*examples*/) const {
    return nullptr;
  }
  [[nodiscard]] virtual BuildReport report() const { return {}; }
  /// For explain(), when a Plan that launches it so has been made: what runs launches like these,
  /// and where its code came from.
  [[nodiscard]] virtual std::string describe(std::span<const Launch> /*examples*/) const {
    return {};
  }
  /// The code by which it runs launches like these, for people to read: written anew, which may
  /// take as long as making it took. None of libraries, and of loops that were compiled with this
  /// one.
  [[nodiscard]] virtual std::vector<CodeText> code_texts(
      std::span<const Launch> /*examples*/) const {
    return {};
  }
  /// Bytes that it holds beside a copy of its step: code, or the objects of a library.
  [[nodiscard]] virtual std::size_t bytes() const { return 0; }
};

}  // namespace nitinol
