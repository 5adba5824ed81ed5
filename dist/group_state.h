// What is behind a Group, and what a process knows of all.
#pragma once

#include "dist/background.h"
#include "dist/engine.h"
#include "dist/group.h"
#include "dist/shared_memory.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace nitinol::dist {

/// How many axes of a shape are told to others.
inline constexpr std::size_t told_axes = 8;

/// What a member says it is doing, at the beginning of each first message.
struct Header {
  uint64_t number = 0;  ///< of the collective in its group
  uint64_t bytes = 0;   ///< for each member
  uint8_t kind = 0;     ///< Collective::Kind
  uint8_t dtype = 0;
  uint8_t rank = 0;       ///< of the shape
  uint8_t is_strict = 0;  ///< whether lines are compared
  int32_t partner = 0;    ///< Collective::partner
  std::array<int64_t, told_axes> shape = {};
  uint32_t is_on_device = 0;        ///< whether the tensors are on devices
  std::array<char, 156> call = {};  ///< "all_reduce at model.cpp:41", which ends in 0
};
static_assert(sizeof(Header) == 248);

/// A member's part of a Group.
struct GroupState {
  int id = 0;  ///< in this process, for ops: 0 is the world
  int tag = 0;
  int rank = 0;
  std::vector<int> ranks;  ///< in the world, by rank here

  // World::mutex guards these two.
  std::string failure;             ///< why there can be no collective any more
  std::map<int, Header> waits_in;  ///< by rank in the world: where it has waited long

  std::mutex mutex;          ///< of what follows: one collective at a time
  uint64_t number = 0;       ///< of the last collective
  std::vector<Header> last;  ///< by rank: what was heard last
  std::vector<std::byte> scratch;
  /// The same on all members, from the beginning. Null: all goes by messages.
  std::unique_ptr<SharedMemory> memory;

  Background background;  ///< collectives that go on beside what began them

  [[nodiscard]] int size() const { return static_cast<int>(ranks.size()); }
};

/// The state; throws Error(value) for a group that this process is no member of.
[[nodiscard]] GroupState& state_of(const Group& group, const char* where);
[[nodiscard]] Group group_of(std::shared_ptr<GroupState> state);

/// A message of tag notice_tag: something that others wait for will not come.
struct Notice {
  int32_t tag = 0;         ///< of the group; -1: the process has come to its end
  int32_t is_waiting = 0;  ///< it may still come: the text is the Header of what is waited in
  std::array<char, 1016> text = {};
};
static_assert(sizeof(Header) <= sizeof(Notice::text));
inline constexpr int notice_tag = 0, first_group_tag = 1;

/// What a process knows of the others.
struct World {
  Engine* engine = nullptr;    ///< null in a world of one
  bool takes_threads = false;  ///< the engine does
  std::thread::id thread;      ///< that opened the engine
  double timeout = 300;
  bool is_strict = false;    ///< NITINOL_CHECK=ranks
  bool wants_memory = true;  ///< NITINOL_DIST_MEMORY
  int local_rank = 0, local_size = 1;
  std::vector<std::string> hosts;  ///< by rank in the world
  std::shared_ptr<GroupState> all;

  std::mutex mutex;                               ///< of what follows
  std::vector<std::weak_ptr<GroupState>> groups;  ///< by id
  int last_tag = first_group_tag;                 ///< of a group of this process
  std::vector<bool> has_left;                     ///< by rank in the world
  /// Some group. Written under the mutex, before the group's failure.
  std::atomic<bool> has_failed = false;

  std::mutex engine_mutex;  ///< held in calls of an engine that does not take threads
};
/// Whether init() has been called, by the program or by world().
[[nodiscard, gnu::visibility("default")]] bool has_joined();
/// Opened at the first call. Throws what init() throws.
[[nodiscard]] World& the_world();

/// Throws unless the engine can be called here.
void check_usable(const World& world, const char* where);
/// For calls of the engine.
[[nodiscard]] std::unique_lock<std::mutex> engine_lock(World& world);
/// Takes the notices that have come.
void take_notices(World& world);
/// Throws Error(io) if the group has failed. World::mutex is held.
void check_failure(const GroupState& group);
/// Sends a notice about a group to its other members. World::mutex is held.
void send_notice(World& world, const GroupState& group, const Notice& notice);
/// Tells all members that the group has failed, and throws Error(kind) with this text.
[[noreturn]] void break_group(World& world, GroupState& group, const std::string& text);
/// Group number `id`. Throws Error(value) if it is no more.
[[nodiscard]] std::shared_ptr<GroupState> group_with(World& world, int id);
/// Makes a group known to this process. Its tag is one that no member has for another group.
[[nodiscard]] std::shared_ptr<GroupState> add_group(World& world, std::vector<int> ranks, int tag);

}  // namespace nitinol::dist
