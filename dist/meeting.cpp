#include "dist/meeting.h"

#include "core/dtype.h"
#include "core/error.h"
#include "core/interrupt.h"
#include "core/library.h"
#include "core/shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <thread>
#include <utility>

namespace nitinol::dist {
namespace {

std::string_view call_of(const Header& header) {
  return {header.call.data(), strnlen(header.call.data(), header.call.size())};
}

/// "all_reduce at model.cpp:41": "all_reduce".
std::string_view function_of(const Header& header) {
  const std::string_view call = call_of(header);
  return call.substr(0, call.find(' '));
}

/// "all_reduce number 5 of float32[3] at model.cpp:41".
std::string text_of(const Header& header) {
  const std::string_view call = call_of(header), function = function_of(header);
  Shape shape;
  for (std::size_t i = 0; i < std::min<std::size_t>(header.rank, told_axes); ++i)
    shape.push_back(header.shape[i]);
  const auto kind = static_cast<Collective::Kind>(header.kind);
  std::string partner;
  if (kind == Collective::Kind::broadcast) partner = fmt::format(" from rank {}", header.partner);
  if (kind == Collective::Kind::permute) partner = fmt::format(" by a shift of {}", header.partner);
  if (kind == Collective::Kind::reduce && header.partner != 0) partner = " for its mean";
  return fmt::format("{} number {} of {}{}{}{}{}", function, header.number,
                     name_of(static_cast<DType>(header.dtype)), to_string(shape),
                     header.is_on_device != 0 ? " on a GPU" : "", partner,
                     call.substr(function.size()));
}

bool are_same(const Header& a, const Header& b) {
  const bool is_strict = a.is_strict != 0 && b.is_strict != 0;
  return a.number == b.number && a.bytes == b.bytes && a.kind == b.kind && a.dtype == b.dtype &&
         a.rank == b.rank && a.partner == b.partner && a.shape == b.shape &&
         a.is_on_device == b.is_on_device && function_of(a) == function_of(b) &&
         (!is_strict || call_of(a) == call_of(b));
}

std::string size_text(uint64_t bytes) {
  if (bytes < 10'000) return fmt::format("{} bytes", bytes);
  if (bytes < 10'000'000) return fmt::format("{:.0f} kB", static_cast<double>(bytes) / 1e3);
  return fmt::format("{:.0f} MB", static_cast<double>(bytes) / 1e6);
}

}  // namespace

Meeting::Meeting(World& world, GroupState& group, Header header, const Dealings& dealings,
                 bool continues)
    : world_(world), group_(group), header_(header), bytes_(dealings.bytes) {
  if (!continues) ++group.number;
  header_.number = group.number;
  header_.is_strict = world.is_strict ? 1 : 0;
  if (world.has_failed) {
    const std::lock_guard lock(world.mutex);
    if (!group.failure.empty()) {
      throw Error(ErrorKind::io, {.where = std::string(function_of(header_)),
                                  .what = "the group has failed before: " + group.failure,
                                  .expected = {},
                                  .got = {},
                                  .fix = {}});
    }
  }
  check_usable(world, "a collective");
  group.scratch.resize(2 * first_bytes * dealings.others.size());
  std::byte* scratch = group.scratch.data();
  peers_.reserve(dealings.others.size());
  for (const Dealing& dealing : dealings.others) {
    Peer& peer = peers_.emplace_back(Peer{.dealing = dealing, .out = {}, .in = {}});
    peer.out.message = scratch;
    peer.in.message = scratch + first_bytes;
    scratch += 2 * first_bytes;
  }
  const auto lock = engine_lock(world);
  // What comes has its place before what goes is sent.
  for (Peer& peer : peers_) {
    if (peer.dealing.in == nullptr && !peer.dealing.is_answered) continue;
    peer.in.stage = Stage::first;
    peer.in.first =
        world.engine->receive(group.ranks[static_cast<std::size_t>(peer.dealing.member)], group.tag,
                              peer.in.message, first_bytes);
  }
  for (Peer& peer : peers_) begin(peer);
}

Meeting::~Meeting() {
  if (has_ended_) return;
  const auto lock = engine_lock(world_);
  for (Peer& peer : peers_) {
    if (peer.in.stage == Stage::first) world_.engine->cancel(peer.in.first);
    if (peer.in.stage != Stage::rest) continue;
    for (const Request request : peer.in.rest) world_.engine->cancel(request);
  }
  // What this has begun to send may still be read.
  static_cast<void>(new std::vector<std::byte>(std::move(group_.scratch)));
  group_.scratch = {};
}

void Meeting::begin(Peer& peer) {
  Way& way = peer.out;
  const std::byte* const data = peer.dealing.out;
  if (data == nullptr && !peer.dealing.is_answered) return;
  const int to = group_.ranks[static_cast<std::size_t>(peer.dealing.member)];
  const std::size_t bytes = data != nullptr ? bytes_ : 0;
  const std::size_t inlined = bytes <= inline_bytes ? bytes : 0;
  std::memcpy(way.message, &header_, sizeof(header_));
  if (inlined > 0) std::memcpy(way.message + sizeof(header_), data, inlined);
  way.stage = Stage::first;
  way.first = world_.engine->send(to, group_.tag, way.message, sizeof(header_) + inlined);
  for (std::size_t at = inlined; at < bytes; at += Engine::most_bytes) {
    way.rest.push_back(
        world_.engine->send(to, group_.tag, data + at, std::min(Engine::most_bytes, bytes - at)));
  }
}

/// The first message of a member has come.
void Meeting::read_first(Peer& peer) {
  const auto member = static_cast<std::size_t>(peer.dealing.member);
  group_.last.resize(group_.ranks.size());
  Header& told = group_.last[member];
  std::memcpy(&told, peer.in.message, sizeof(told));
  told.call.back() = 0;
  if (!are_same(told, header_)) {
    peer.in.stage = Stage::done;
    note_mismatch(peer.dealing.member, told);
    return;
  }
  const std::size_t bytes = peer.dealing.in != nullptr ? bytes_ : 0;
  if (bytes <= inline_bytes) {
    if (bytes > 0) std::memcpy(peer.dealing.in, peer.in.message + sizeof(told), bytes);
    peer.in.stage = Stage::done;
    return;
  }
  peer.in.stage = Stage::rest;
  for (std::size_t at = 0; at < bytes; at += Engine::most_bytes) {
    peer.in.rest.push_back(world_.engine->receive(group_.ranks[member], group_.tag,
                                                  peer.dealing.in + at,
                                                  std::min(Engine::most_bytes, bytes - at)));
  }
}

void Meeting::note_mismatch(int member, const Header& told) {
  mismatch_ = fmt::format(
      "{}: the ranks of a group have to do the same, in the same order: rank {} does {}, and {} "
      "does {}",
      function_of(header_), name_of(group_.rank), text_of(header_), name_of(member), text_of(told));
}

/// Where members deal with some of the others alone, each may wait for another that does not send
/// it anything: who has waited long tells all in what.
void Meeting::ask_others(double waited) {
  const auto kind = static_cast<Collective::Kind>(header_.kind);
  if (kind != Collective::Kind::broadcast && kind != Collective::Kind::permute) return;
  const std::lock_guard lock(world_.mutex);
  if (!has_asked_ && waited > asks_after) {
    has_asked_ = true;
    Notice notice = {.tag = group_.tag, .is_waiting = 1};
    std::memcpy(notice.text.data(), &header_, sizeof(header_));
    send_notice(world_, group_, notice);
  }
  for (const auto& [rank, told] : group_.waits_in) {
    if (told.number != header_.number || are_same(told, header_)) continue;
    note_mismatch(static_cast<int>(std::ranges::find(group_.ranks, rank) - group_.ranks.begin()),
                  told);
  }
}

bool Meeting::has_ended(Peer& peer) {
  Engine& engine = *world_.engine;
  const auto is_done = [&](Request& request) {
    if (!engine.is_done(request)) return false;
    ++ended_;
    return true;
  };
  if (peer.in.stage == Stage::first && is_done(peer.in.first)) read_first(peer);
  if (peer.in.stage == Stage::rest) {
    std::erase_if(peer.in.rest, is_done);
    if (peer.in.rest.empty()) peer.in.stage = Stage::done;
  }
  if (peer.out.stage == Stage::first && is_done(peer.out.first)) peer.out.stage = Stage::rest;
  if (peer.out.stage == Stage::rest) {
    std::erase_if(peer.out.rest, is_done);
    if (peer.out.rest.empty()) peer.out.stage = Stage::done;
  }
  return peer.in.stage == Stage::done && peer.out.stage == Stage::done;
}

bool Meeting::poll() {
  const auto lock = engine_lock(world_);
  bool is_all = true;
  for (Peer& peer : peers_) is_all = has_ended(peer) && is_all;
  return is_all;
}

void Meeting::wait(bool is_beside) {
  constexpr int busy_polls = 200, looks_at_others = 64;
  // Beside others that compute: so many polls, as MPI looks at its sockets now and then only, and a
  // pause, which is longer each time while nothing comes. Threads that yield instead share a core
  // in turns.
  constexpr int burst = 8;
  constexpr std::chrono::microseconds shortest(100), longest(1600);
  std::chrono::microseconds pause = shortest;
  uint64_t ended = 0;
  for (int polls = 0; !poll(); ++polls) {
    if (!mismatch_.empty()) break;
    if (polls % looks_at_others == looks_at_others - 1) check_others();
    if (is_beside && !group_.background.is_awaited()) {
      if (polls % burst != burst - 1) continue;
      pause = std::exchange(ended, ended_) != ended_ ? shortest : std::min(2 * pause, longest);
      group_.background.pause(pause);
    } else if (polls >= busy_polls) {  // more ranks than cores wait for each other
      std::this_thread::yield();
    }
  }
  if (!mismatch_.empty()) fail(mismatch_);
  has_ended_ = true;
}

/// Whether they can still come.
void Meeting::check_others() {
  {
    const std::lock_guard lock(world_.mutex);
    take_notices(world_);
    for (const Peer& peer : peers_) {
      const auto member = static_cast<std::size_t>(peer.dealing.member);
      if (peer.in.stage == Stage::first &&
          world_.has_left[static_cast<std::size_t>(group_.ranks[member])]) {
        world_.has_failed = true;
        group_.failure =
            fmt::format("rank {} has come to its end without {}; {}", name_of(peer.dealing.member),
                        text_of(header_), last_of(peer.dealing.member));
      }
    }
    check_failure(group_);
  }
  const auto now = std::chrono::steady_clock::now();
  if (now - asked_ > interrupt_interval) {
    asked_ = now;
    try {
      check_interrupt();
    } catch (...) {
      let_fail(group_.id, fmt::format("{}: rank {} was interrupted in {}", function_of(header_),
                                      name_of(group_.rank), text_of(header_)));
      throw;
    }
  }
  const std::chrono::duration<double> waited = now - began_;
  ask_others(waited.count());
  if (waited.count() <= world_.timeout) return;
  std::string missing;
  for (const Peer& peer : peers_) {
    if (peer.in.stage == Stage::done && peer.out.stage == Stage::done) continue;
    missing += fmt::format("{}rank {} ({})", missing.empty() ? "" : ", ",
                           name_of(peer.dealing.member), last_of(peer.dealing.member));
  }
  fail(fmt::format("{}: rank {} has waited {:.0f} s, in {} ({} for each rank), for {}",
                   function_of(header_), name_of(group_.rank), waited.count(), text_of(header_),
                   size_text(header_.bytes), missing));
}

void Meeting::fail(const std::string& text) {
  break_group(world_, group_, text);
}

/// "3 (host b)".
std::string Meeting::name_of(int member) const {
  const int rank = group_.ranks[static_cast<std::size_t>(member)];
  std::string name =
      fmt::format("{} (host {}", member, world_.hosts[static_cast<std::size_t>(rank)]);
  if (rank != member) name += fmt::format(", rank {} of the world", rank);
  return name + ")";
}

/// What a member was heard to do last.
std::string Meeting::last_of(int member) const {
  const auto i = static_cast<std::size_t>(member);
  if (i >= group_.last.size() || group_.last[i].number == 0)
    return "not heard of in this group before";
  return "last seen in " + text_of(group_.last[i]);
}

}  // namespace nitinol::dist
