// Engine: how processes that were started together send bytes to each other.
//
// An MPI library is linked by a module of its own, libnitinol_<name>.so beside the library, which
// is opened when a process of several asks for its world (dist/engine_loader.cpp): programs that
// run alone open none. All that is asked of it is messages from process to process; what they say,
// in which order and what is done when none comes is dist/meeting.cpp's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace nitinol::dist {

/// A message under way.
using Request = uintptr_t;

/// One per process, never destroyed. Throws Error(io), with the library's text, where it fails.
class Engine {
 public:
  virtual ~Engine() = default;
  /// "Open MPI 4.1.4".
  [[nodiscard]] virtual std::string name() const = 0;
  /// Whether several threads may call at once; else calls must not overlap.
  [[nodiscard]] virtual bool takes_threads() const = 0;
  /// Whether only the thread that opened it may call.
  [[nodiscard]] virtual bool is_of_one_thread() const = 0;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  /// Messages have tags from 0 to this.
  [[nodiscard]] virtual int most_tag() const = 0;
  /// Most bytes of a message.
  static constexpr std::size_t most_bytes = std::size_t{1} << 30;

  /// Begins to send. `data` must stay as it is until is_done(). Messages to one process with one
  /// tag arrive in the order in which they were sent.
  [[nodiscard]] virtual Request send(int to, int tag, const void* data, std::size_t bytes) = 0;
  /// Begins to receive at most `bytes`.
  [[nodiscard]] virtual Request receive(int from, int tag, void* data, std::size_t bytes) = 0;
  /// Whether it has come to its end; then it must not be asked again. Throws if more came than was
  /// to be received.
  [[nodiscard]] virtual bool is_done(Request& request) = 0;
  /// Gives up a receive.
  virtual void cancel(Request request) = 0;
  /// Whether a message of this tag has come; then it is stored, and `from` says whose it is.
  [[nodiscard]] virtual bool take(int tag, void* data, std::size_t bytes, int& from) = 0;

  /// False when somebody else has closed the library.
  [[nodiscard]] virtual bool is_open() const = 0;
  /// Closes the library, if it was opened here. All processes call it.
  virtual void close() = 0;
  /// Ends all processes.
  [[noreturn]] virtual void abort(int status) = 0;
};

/// Name of the one symbol that a module exports: an EngineEntry.
inline constexpr const char* engine_symbol = "nitinol_mpi_plugin";
/// Raised with every change of what crosses the boundary; the entry point returns null if it
/// differs.
inline constexpr int engine_version = 1;
using EngineEntry = Engine* (*)(int version);

}  // namespace nitinol::dist
