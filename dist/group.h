// Group: processes that were started together and compute together.
//
//     // mpirun -n 4 ./train
//     dist::init();
//     const Tensor total = dist::all_reduce(loss);  // (eager/ops/collectives.h)
//
// A program that was started alone is a world of one, in which every collective gives what it was
// given: the same program runs both ways. Processes are found by MPI, which a launcher has started
// them with (mpirun, srun): docs/distributed.md.
#pragma once

#include "core/integer.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::dist {

struct GroupState;  // dist/group_state.h

/// What init() may be told.
struct Options {
  /// Seconds after which a rank that waits for others throws Error(io), which names them; unless
  /// NITINOL_DIST_TIMEOUT says how many. Infinity waits for ever.
  double timeout = 300;
};

/// Joins the processes that were started together; in a program that was started alone it does
/// nothing. Then as many threads compute as this process has cores, divided by the processes that
/// it shares them with, unless the environment or the program has said how many. A second call does
/// nothing. Call it before the work begins, in the main thread; world() does so if nobody has.
///
/// At exit() the processes wait for each other; after exit() with a status that is not 0, or when a
/// collective has failed, all are ended.
///
/// Throws Error(io) if processes were started together and this library has no module for their
/// MPI, or cannot open it.
void init(const Options& options = {});

/// Some of the processes, or all: world(). Copying copies a handle.
class Group {
 public:
  /// A group that this process is no member of.
  Group() = default;

  /// Whether this process is one of its members. What follows throws Error(value) if not.
  [[nodiscard]] bool is_member() const { return state_ != nullptr; }
  /// This process's number among the members, from 0 on.
  [[nodiscard]] int rank() const;
  /// How many members there are.
  [[nodiscard]] int size() const;
  /// The members' ranks in the world, in their order.
  [[nodiscard]] std::span<const int> members() const;

  /// The members that give the same `colour` as this one, in the order of `key`, then of their
  /// ranks here. All members call it. A member that gives a negative colour gets a group that it is
  /// no member of.
  [[nodiscard]] Group split(Integer colour, Integer key = 0) const;

  friend bool operator==(const Group&, const Group&) = default;

 private:
  friend GroupState& state_of(const Group& group, const char* where);
  friend Group group_of(std::shared_ptr<GroupState> state);
  explicit Group(std::shared_ptr<GroupState> state) : state_(std::move(state)) {}
  std::shared_ptr<GroupState> state_;
};

/// All processes that were started together. Calls init() if nobody has.
[[nodiscard]] const Group& world();

/// The number of this process among those on its machine, from 0 on: for which GPU it takes.
[[nodiscard]] int local_rank();
/// How many processes of the world are on this machine.
[[nodiscard]] int local_size();
/// By what the processes reach each other, and how: "Open MPI v4.1.4, called by any thread; rank 1
/// of 4, 1 of 2 on host a". "one process" of a world of one.
[[nodiscard]] std::string description();

}  // namespace nitinol::dist

#pragma GCC visibility pop
