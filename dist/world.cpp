#include "core/environment.h"
#include "core/error.h"
#include "core/library.h"
#include "core/log.h"
#include "core/parallel.h"
#include "core/result_check.h"
#include "dist/collective.h"
#include "dist/engine_loader.h"
#include "dist/group_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <sched.h>
#include <span>
#include <unistd.h>

namespace nitinol::dist {

GroupState& state_of(const Group& group, const char* where) {
  if (group.state_) return *group.state_;
  throw Error(
      ErrorKind::value,
      {.where = where,
       .what = "this process is no member of the group",
       .expected = "a member",
       .got = {},
       .fix = "Ask is_member() first: split() with a negative colour leaves a process out."});
}

Group group_of(std::shared_ptr<GroupState> state) {
  return Group(std::move(state));
}

namespace {

/// What each process tells all others at the beginning.
struct Hello {
  std::array<char, 64> version = {};
  std::array<char, 64> host = {};
  std::array<uint64_t, 16> cores = {};  ///< on which it may run, a bit each
};

Hello own_hello() {
  Hello hello;
  constexpr std::string_view version = NITINOL_VERSION;
  std::copy_n(version.data(), std::min(version.size(), hello.version.size() - 1),
              hello.version.data());
  gethostname(hello.host.data(), hello.host.size() - 1);
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    for (std::size_t core = 0; core < 64 * hello.cores.size(); ++core)
      if (CPU_ISSET(core, &set)) hello.cores[core / 64] |= uint64_t{1} << core % 64;
  }
  return hello;
}

std::string_view text(const std::array<char, 64>& field) {
  return {field.data(), strnlen(field.data(), field.size())};
}

double timeout_of(const Options& options) {
  const std::string text = environment_text("NITINOL_DIST_TIMEOUT");
  if (text.empty()) return options.timeout;
  char* end = nullptr;
  const double seconds = std::strtod(text.c_str(), &end);
  if (*end == 0 && seconds > 0) return seconds;
  log(LogLevel::warning,
      fmt::format("NITINOL_DIST_TIMEOUT={} is ignored: expected a number of seconds above 0",
                  text));
  return options.timeout;
}

/// Each rank's `own`, in the order of ranks.
template <class T>
std::vector<T> gathered(GroupState& group, const T& own, std::string_view function) {
  const std::vector<std::byte> bytes =
      gather_bytes(group, std::as_bytes(std::span(&own, 1)), function);
  std::vector<T> all(group.ranks.size());
  std::memcpy(all.data(), bytes.data(), bytes.size());
  return all;
}

/// For a new group, by all of its members.
void open_memory(World& world, GroupState& group, std::string_view function) {
  if (group.size() == 1) return;
  const auto host_of = [&](int rank) -> const std::string& {
    return world.hosts[static_cast<std::size_t>(group.ranks[static_cast<std::size_t>(rank)])];
  };
  std::string reason;
  for (int rank = 1; rank < group.size() && reason.empty(); ++rank)
    if (host_of(rank) != host_of(0)) reason = fmt::format("rank {} is on another host", rank);
  if (reason.empty()) {
    if (!world.wants_memory) reason = "NITINOL_DIST_MEMORY=0";
    const auto gather = [&](std::span<const std::byte> own) {
      return gather_bytes(group, own, function);
    };
    group.memory = SharedMemory::open(group.rank, group.size(), gather, reason);
    group.number = 0;  // the user's first is number 1
  }
  if (group.memory != nullptr) return;
  if (reason.empty()) reason = "another rank cannot share memory";
  log(LogLevel::info, fmt::format("dist: rank {} of {} exchanges by messages alone: {}", group.rank,
                                  group.size(), reason));
}

/// Cores of this process for each that runs on them.
int threads_for(const std::vector<Hello>& all, int rank) {
  const Hello& own = all[static_cast<std::size_t>(rank)];
  int cores = 0, sharing = 0;
  for (const uint64_t word : own.cores) cores += std::popcount(word);
  for (const Hello& other : all) {
    bool shares = false;
    for (std::size_t i = 0; i < own.cores.size(); ++i)
      shares |= (own.cores[i] & other.cores[i]) != 0;
    if (shares && other.host == own.host) ++sharing;
  }
  return std::max(1, cores / std::max(1, sharing));
}

std::atomic<World*> the_only_world = nullptr;
/// Whether this process was forked from one that had joined the others. To ask the system for its
/// number takes as long as a small message.
std::atomic<bool> is_fork = false;

/// When this process ends: with all others, or ending them.
void at_exit(int status, void*) {
  World& world = *the_only_world.load();
  if (world.engine == nullptr || is_fork || !world.engine->is_open()) return;
  try {
    const bool has_failed = world.has_failed;
    if (status != 0 || has_failed) {
      log(LogLevel::warning, fmt::format("rank {} ends {}: all ranks are ended", world.all->rank,
                                         status != 0 ? fmt::format("with status {}", status)
                                                     : "after a collective has failed"));
      usleep(200'000);  // launchers lose what they have not passed on by then
      world.engine->abort(status != 0 ? status : 1);
    }
    const std::lock_guard lock(world.mutex);
    Notice notice = {.tag = -1};
    std::vector<Request> sent;
    {
      const auto engine = engine_lock(world);
      for (int rank = 0; rank < world.all->size(); ++rank) {
        if (rank != world.all->rank)
          sent.push_back(world.engine->send(rank, notice_tag, &notice, sizeof(notice)));
      }
    }
    world.has_left[static_cast<std::size_t>(world.all->rank)] = true;
    // Others may have much to do yet: there is no deadline, and no core is taken from them.
    const auto is_over = [&] {
      take_notices(world);
      const auto engine = engine_lock(world);
      std::erase_if(sent, [&](Request& request) { return world.engine->is_done(request); });
      return sent.empty() && std::ranges::find(world.has_left, false) == world.has_left.end();
    };
    for (int looks = 0; !is_over(); ++looks) usleep(looks < 100 ? 10 : 1000);
    world.engine->close();
  } catch (const std::exception& error) {
    log(LogLevel::warning, fmt::format("at the end of rank {}: {}", world.all->rank, error.what()));
  }
}

void join(World& world, const Start& start) {
  Engine& engine = open_engine(start);
  if (engine.size() == 1 && start.processes > 1) {
    throw Error(ErrorKind::io,
                {.where = "dist::init",
                 .what = fmt::format("{} processes were started together ({}), but {} knows of one",
                                     start.processes, start.sign, engine.name()),
                 .expected = {},
                 .got = {},
                 .fix = "Start the processes by the mpirun of that MPI, or choose the other by "
                        "NITINOL_MPI=openmpi or mpich."});
  }
  if (engine.size() == 1) {
    if (engine.is_open()) engine.close();
    return;
  }
  world.engine = &engine;
  world.takes_threads = engine.takes_threads();
  GroupState& all = *world.all;
  all.rank = engine.rank();
  all.ranks.resize(static_cast<std::size_t>(engine.size()));
  for (int rank = 0; rank < engine.size(); ++rank) all.ranks[static_cast<std::size_t>(rank)] = rank;
  world.hosts.assign(all.ranks.size(), "?");
  world.has_left.assign(all.ranks.size(), false);
}

/// What needs the others.
void get_to_know(World& world) {
  GroupState& all = *world.all;
  const std::vector<Hello> hellos = gathered(all, own_hello(), "dist::init");
  const Hello& own = hellos[static_cast<std::size_t>(all.rank)];
  world.local_size = 0;
  for (std::size_t rank = 0; rank < hellos.size(); ++rank) {
    world.hosts[rank] = text(hellos[rank].host);
    if (hellos[rank].host == own.host) {
      if (static_cast<int>(rank) < all.rank) ++world.local_rank;
      ++world.local_size;
    }
    if (text(hellos[rank].version) != text(own.version)) {
      throw Error(ErrorKind::io,
                  {.where = "dist::init",
                   .what = fmt::format("rank {} on host {} has another version of the library",
                                       rank, world.hosts[rank]),
                   .expected = std::string(text(own.version)),
                   .got = std::string(text(hellos[rank].version)),
                   .fix = {}});
    }
  }
  all.number = 0;  // the user's first is number 1
  open_memory(world, all, "dist::init");
  if (!has_chosen_threads()) set_num_threads(threads_for(hellos, all.rank));
  if (all.rank == 0) {
    log(LogLevel::info,
        fmt::format("dist: {}; {} threads compute in each", description(), num_threads()));
  }
}

}  // namespace

bool has_joined() {
  return the_only_world.load(std::memory_order_acquire) != nullptr;
}

World& the_world() {
  World* const known = the_only_world.load(std::memory_order_acquire);
  if (known != nullptr) return *known;
  init();
  return *the_only_world.load();
}

void init(const Options& options) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (the_only_world.load() != nullptr) return;
  if (!(options.timeout > 0))
    throw Error(ErrorKind::value, {.where = "dist::init",
                                   .what = "the timeout",
                                   .expected = "seconds above 0",
                                   .got = fmt::format("{}", options.timeout),
                                   .fix = {}});
  auto world = std::make_unique<World>();
  world->thread = std::this_thread::get_id();
  world->timeout = timeout_of(options);
  world->is_strict = are_ranks_checked();
  constexpr std::array<std::string_view, 2> switches = {"0", "1"};
  world->wants_memory = environment_choice("NITINOL_DIST_MEMORY", switches) != 0;
  world->all = std::make_shared<GroupState>();
  world->all->tag = first_group_tag;
  world->all->ranks = {0};
  world->hosts = {"localhost"};
  world->has_left = {false};
  world->groups = {world->all};
  if (const Start start = found_start(); !start.library.empty()) join(*world, start);
  the_only_world = world.release();
  pthread_atfork(nullptr, nullptr, [] { is_fork = true; });
  on_exit(at_exit, nullptr);
  if (the_only_world.load()->engine != nullptr) get_to_know(*the_only_world.load());
}

const Group& world() {
  static const Group all = group_of(the_world().all);
  return all;
}

int local_rank() {
  return the_world().local_rank;
}

int local_size() {
  return the_world().local_size;
}

std::string description() {
  const World& world = the_world();
  if (world.engine == nullptr) return "one process";
  const Engine& engine = *world.engine;
  const char* const threads = engine.takes_threads()      ? "called by any thread"
                              : engine.is_of_one_thread() ? "called by the main thread only"
                                                          : "called by one thread at a time";
  return fmt::format("{}, {}; rank {} of {}, {} of {} on host {}", engine.name(), threads,
                     world.all->rank, world.all->size(), world.local_rank, world.local_size,
                     world.hosts[static_cast<std::size_t>(world.all->rank)]);
}

void check_usable(const World& world, const char* where) {
  const auto fail = [where](std::string what, std::string fix) {
    throw Error(ErrorKind::io, {.where = where,
                                .what = std::move(what),
                                .expected = {},
                                .got = {},
                                .fix = std::move(fix)});
  };
  if (is_fork.load(std::memory_order_relaxed))
    fail("this process was forked from one that had joined the others; it is none of them",
         "Fork before dist::init(), or let the child run without collectives.");
  if (!world.engine->is_open())
    fail("MPI has been closed", "Nothing can be sent after MPI_Finalize().");
  if (world.engine->is_of_one_thread() && world.thread != std::this_thread::get_id())
    fail(fmt::format("{} was opened so that only the thread that called dist::init() may use it",
                     world.engine->name()),
         "Call collectives there, or let whoever initialises MPI ask for MPI_THREAD_SERIALIZED.");
}

std::unique_lock<std::mutex> engine_lock(World& world) {
  if (world.takes_threads) return {};
  return std::unique_lock(world.engine_mutex);
}

void take_notices(World& world) {
  Notice notice;
  int from = 0;
  while (true) {
    {
      const auto lock = engine_lock(world);
      if (!world.engine->take(notice_tag, &notice, sizeof(notice), from)) return;
    }
    if (notice.tag < 0) {
      world.has_left[static_cast<std::size_t>(from)] = true;
      continue;
    }
    notice.text.back() = 0;
    for (const std::weak_ptr<GroupState>& weak : world.groups) {
      const std::shared_ptr<GroupState> group = weak.lock();
      if (!group || group->tag != notice.tag || !group->failure.empty()) continue;
      if (notice.is_waiting != 0) {
        std::memcpy(&group->waits_in[from], notice.text.data(), sizeof(Header));
        continue;
      }
      world.has_failed = true;
      group->failure = notice.text.data();
    }
  }
}

void check_failure(const GroupState& group) {
  if (group.failure.empty()) return;
  throw Error(ErrorKind::io,
              {.where = {}, .what = group.failure, .expected = {}, .got = {}, .fix = {}});
}

void send_notice(World& world, const GroupState& group, const Notice& notice) {
  const auto* const kept = new Notice(notice);  // read until the process ends
  const auto engine = engine_lock(world);
  for (const int rank : group.ranks) {
    if (rank == world.all->rank || world.has_left[static_cast<std::size_t>(rank)]) continue;
    static_cast<void>(world.engine->send(rank, notice_tag, kept, sizeof(*kept)));
  }
}

void break_group(World& world, GroupState& group, const std::string& text) {
  const std::lock_guard lock(world.mutex);
  world.has_failed = true;
  group.failure = text;
  Notice notice = {.tag = group.tag};
  std::copy_n(text.data(), std::min(text.size(), notice.text.size() - 1), notice.text.data());
  send_notice(world, group, notice);
  check_failure(group);
  std::abort();  // it has thrown
}

std::shared_ptr<GroupState> group_with(World& world, int id) {
  const std::lock_guard lock(world.mutex);
  if (id >= 0 && static_cast<std::size_t>(id) < world.groups.size()) {
    if (std::shared_ptr<GroupState> group = world.groups[static_cast<std::size_t>(id)].lock())
      return group;
  }
  throw Error(
      ErrorKind::value,
      {.where = "a collective",
       .what = fmt::format("there is no group number {} any more", id),
       .expected = {},
       .got = {},
       .fix = "Keep the Group for as long as functions that were compiled with it are called."});
}

std::shared_ptr<GroupState> add_group(World& world, std::vector<int> ranks, int tag) {
  auto group = std::make_shared<GroupState>();
  const std::lock_guard lock(world.mutex);
  const auto own = std::ranges::find(ranks, world.all->rank);
  group->id = static_cast<int>(world.groups.size());
  group->tag = tag;
  group->rank = static_cast<int>(own - ranks.begin());
  group->ranks = std::move(ranks);
  world.groups.push_back(group);
  return group;
}

// ---- Group

int Group::rank() const {
  return state_of(*this, "Group::rank").rank;
}

int Group::size() const {
  return state_of(*this, "Group::size").size();
}

std::span<const int> Group::members() const {
  return state_of(*this, "Group::members").ranks;
}

Group Group::split(Integer colour, Integer key) const {
  struct Choice {
    int64_t colour, key, tag;
  };
  GroupState& state = state_of(*this, "Group::split");
  World& world = the_world();
  Choice own = {.colour = colour, .key = key, .tag = 0};
  {
    const std::lock_guard lock(world.mutex);
    own.tag = world.last_tag;
  }
  const std::vector<Choice> all = gathered(state, own, "Group::split");
  // Members of two groups would not know whose a message is that has the tag of both.
  int64_t tag = 0;
  for (const Choice& choice : all) tag = std::max(tag, choice.tag);
  ++tag;
  if (world.engine != nullptr && tag > world.engine->most_tag()) {
    throw Error(ErrorKind::value, {.where = "Group::split",
                                   .what = "too many groups",
                                   .expected = fmt::format("at most {}", world.engine->most_tag()),
                                   .got = {},
                                   .fix = "Make groups once, and keep them."});
  }
  {
    const std::lock_guard lock(world.mutex);
    world.last_tag = static_cast<int>(tag);
  }
  if (own.colour < 0) return {};
  std::vector<int> members;
  for (int rank = 0; rank < state.size(); ++rank)
    if (all[static_cast<std::size_t>(rank)].colour == own.colour) members.push_back(rank);
  std::ranges::stable_sort(members, {},
                           [&](int rank) { return all[static_cast<std::size_t>(rank)].key; });
  for (int& rank : members) rank = state.ranks[static_cast<std::size_t>(rank)];
  auto group = add_group(world, std::move(members), static_cast<int>(tag));
  open_memory(world, *group, "Group::split");
  return group_of(std::move(group));
}

}  // namespace nitinol::dist
