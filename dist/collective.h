// What a collective does at one member: on the host's memory, or by a device's library.
#pragma once

#include "core/executable.h"
#include "core/launch.h"
#include "core/library.h"

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::dist {

struct GroupState;
struct World;

/// What goes to another member and what comes from it, of as many bytes as the collective says.
struct Dealing {
  int member = 0;
  const std::byte* out = nullptr;  ///< null: nothing goes
  std::byte* in = nullptr;         ///< null: nothing comes
  /// Where nothing goes or comes, a header does: each of the two hears what the other is doing.
  bool is_answered = false;
  int in_part = 0;  ///< which part of the other member's slot holds what comes
};

/// All of it at one member; addresses are the host's or a device's.
struct Dealings {
  boost::container::small_vector<Dealing, 3> others;
  std::size_t bytes = 0;            ///< of each
  const std::byte* kept = nullptr;  ///< what the member gives itself; null if nothing
  std::byte* kept_to = nullptr;
  /// Of a slot: what goes to the first of `others`, to the second, …; 1 if that is the same for
  /// all. 0 where not all members meet.
  int parts = 0;
};

/// Runs LibraryCall::Kind::collective on the host's memory. Waits for the other members of its
/// group. Throws Error(io) as Meeting does, and Error(value) if there is no such group any more.
void run_collective(const LibraryCall& call, const Launch& launch);

/// The same on a thread of the group's, if it may call the engine; null if not, when it has been
/// done.
[[nodiscard]] std::unique_ptr<Underway> begin_collective(const LibraryCall& call,
                                                         const Launch& launch);

/// Each member's `own`, of the same size, in the order of members: before there are ops.
[[nodiscard]] std::vector<std::byte> gather_bytes(GroupState& group, std::span<const std::byte> own,
                                                  std::string_view function);

/// A collective of tensors in a device's memory. While it lives, other collectives that this
/// process asks of the group wait.
class OnDevice {
 public:
  /// Throws as run_collective().
  explicit OnDevice(const LibraryCall& call);

  /// The group's number in this process.
  [[nodiscard]] int group() const { return call_.collective.group; }
  [[nodiscard]] int rank() const;
  [[nodiscard]] int size() const;
  /// "all_reduce at model.cpp:41".
  [[nodiscard]] const std::string& text() const;

  /// As gather_bytes(), within this.
  [[nodiscard]] std::vector<std::byte> gather(std::span<const std::byte> own,
                                              std::string_view function);
  /// Until the others have come to the same, with tensors on devices, too: by messages without
  /// data, which a library of the device's then moves. Throws as run_collective().
  void meet();
  /// The same with data in the host's memory, without gaps.
  void run_on_host(const void* from, void* to);
  /// What such a library has to move, from and to memory without gaps.
  [[nodiscard]] Dealings dealings(const void* from, void* to) const;

 private:
  const LibraryCall& call_;
  std::shared_ptr<GroupState> group_;
  std::unique_lock<std::mutex> lock_;
};

/// Why group number `group` can have no collective any more, as far as this process has heard;
/// empty if it can, or is no more.
[[nodiscard]] std::string failure_of(int group);
/// Lets a group fail, and tells its members; nothing if it has failed already, or is no more.
void let_fail(int group, const std::string& why);
/// Seconds after which a rank that waits for others gives up.
[[nodiscard]] double patience();

}  // namespace nitinol::dist
