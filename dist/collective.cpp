#include "dist/collective.h"

#include "core/error.h"
#include "core/round_up.h"
#include "core/strided.h"
#include "dist/add_rows.h"
#include "dist/calls.h"
#include "dist/meeting.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace nitinol::dist {
namespace {

/// The elements of an operand in row-major order.
class Dense {
 public:
  Dense(const OperandLayout& layout, const void* address)
      : data_(static_cast<const std::byte*>(address)) {
    const int64_t count = element_count(layout.shape);
    if (count == 0 || is_contiguous(layout.shape, layout.strides)) return;
    copy_.resize(static_cast<std::size_t>(count) * size_of(layout.dtype));
    copy_elements(layout.shape, layout.strides, size_of(layout.dtype), data_, copy_.data());
    data_ = copy_.data();
  }
  [[nodiscard]] const std::byte* data() const { return data_; }

 private:
  std::vector<std::byte> copy_;
  const std::byte* data_;
};

Header header_of(const LibraryCall& call, uint64_t bytes) {
  const Shape& shape = call.collective.shape;
  Header header = {.bytes = bytes,
                   .kind = static_cast<uint8_t>(call.collective.kind),
                   .dtype = static_cast<uint8_t>(call.operands.front().dtype),
                   .rank = static_cast<uint8_t>(shape.size()),
                   .partner = call.collective.partner};
  for (int i = 0; i < std::min<int>(shape.size(), told_axes); ++i)
    header.shape[static_cast<std::size_t>(i)] = shape[i];
  const std::string& text = call_text(call.collective.call);
  std::copy_n(text.data(), std::min(text.size(), header.call.size() - 1), header.call.data());
  return header;
}

/// What goes from a member to another.
std::size_t block_bytes(const LibraryCall& call, const GroupState& group) {
  const OperandLayout& x = call.operands[0];
  const auto bytes = static_cast<std::size_t>(element_count(x.shape)) * size_of(x.dtype);
  return call.collective.kind == Collective::Kind::exchange
             ? bytes / static_cast<std::size_t>(group.size())
             : bytes;
}

Dealings dealings_of(const Collective& collective, const GroupState& group, std::size_t block,
                     const std::byte* from, std::byte* to) {
  using Kind = Collective::Kind;
  const int size = group.size(), rank = group.rank;
  const Kind kind = collective.kind;
  Dealings all = {.others = {}, .bytes = block};
  const auto block_at = [block](int member) { return block * static_cast<std::size_t>(member); };
  const auto keep = [&](std::size_t from_at, std::size_t to_at) {
    if (block == 0) return;
    all.kept = from + from_at;
    all.kept_to = to + to_at;
  };
  static constinit const std::byte nothing[1] = {};
  static std::byte nowhere[1];  // where no bytes come
  const auto source = [&](std::size_t at) { return block > 0 ? from + at : nothing; };
  const auto place = [&](std::size_t at) { return block > 0 ? to + at : nowhere; };

  auto& dealings = all.others;
  if (kind == Kind::exchange || kind == Kind::gather) {
    // Each begins with the one after it, so that not all send to the same.
    for (int step = 1; step < size; ++step) {
      const int other = (rank + step) % size;
      const bool is_own = kind == Kind::exchange;
      dealings.push_back({.member = other,
                          .out = source(is_own ? block_at(other) : 0),
                          .in = place(block_at(other)),
                          .in_part = is_own ? size - step - 1 : 0});
    }
    all.parts = kind == Kind::exchange ? size - 1 : 1;
    keep(kind == Kind::exchange ? block_at(rank) : 0, block_at(rank));
  } else if (kind == Kind::broadcast) {
    const int root = collective.partner;
    for (int other = 0; other < size; ++other) {
      if (rank == root && other != root)
        dealings.push_back({.member = other, .out = source(0), .in = nullptr, .is_answered = true});
    }
    if (rank == root)
      keep(0, 0);
    else
      dealings.push_back({.member = root, .out = nullptr, .in = place(0), .is_answered = true});
  } else if (kind == Kind::reduce) {
    keep(0, 0);  // of a group of one
  } else {       // to the one `partner` after this
    const int shift = collective.partner;
    const int next = (rank + shift) % size, before = (rank + size - shift) % size;
    if (next == rank) {
      keep(0, 0);
    } else if (next == before) {
      dealings.push_back({.member = next, .out = source(0), .in = place(0)});
    } else {
      dealings.push_back({.member = next, .out = source(0), .in = nullptr, .is_answered = true});
      dealings.push_back({.member = before, .out = nullptr, .in = place(0), .is_answered = true});
    }
  }
  return all;
}

void keep(const Dealings& dealings) {
  if (dealings.kept != nullptr) std::memcpy(dealings.kept_to, dealings.kept, dealings.bytes);
}

void run_by_messages(World& world, GroupState& group, const Header& header,
                     const Dealings& dealings, bool is_beside) {
  if (dealings.others.empty()) return keep(dealings);
  Meeting meeting(world, group, header, dealings);
  keep(dealings);  // while what was sent is on its way
  meeting.wait(is_beside);
}

std::vector<std::byte> gather_bytes(World& world, GroupState& group, std::span<const std::byte> own,
                                    std::string_view function) {
  std::vector<std::byte> all(group.ranks.size() * own.size());
  const Collective gather = {.kind = Collective::Kind::gather, .group = group.id};
  Header header = {.bytes = own.size(),
                   .kind = static_cast<uint8_t>(gather.kind),
                   .dtype = static_cast<uint8_t>(u8),
                   .rank = 1,
                   .shape = {static_cast<int64_t>(own.size())}};
  std::ranges::copy(function.substr(0, header.call.size() - 1), header.call.begin());
  run_by_messages(world, group, header,
                  dealings_of(gather, group, own.size(), own.data(), all.data()), false);
  return all;
}

/// The same without data.
Dealings headers_of(Dealings dealings) {
  dealings.bytes = 0;
  return dealings;
}

/// By the members' slots.
void run_by_memory(World& world, GroupState& group, const Header& header, const Dealings& dealings,
                   bool is_beside) {
  SharedMemory& memory = *group.memory;
  const auto place_of = [&](int part) { return dealings.bytes * static_cast<std::size_t>(part); };
  memory.begin_round();
  for (int part = 0; part < dealings.parts; ++part) {
    const Dealing& dealing = dealings.others[static_cast<std::size_t>(part)];
    memory.put(place_of(part), dealing.out, dealings.bytes);
  }
  Meeting meeting(world, group, header, headers_of(dealings));
  keep(dealings);
  meeting.wait(is_beside);
  for (const Dealing& dealing : dealings.others)
    std::memcpy(dealing.in, memory.slot(dealing.member) + place_of(dealing.in_part),
                dealings.bytes);
}

/// Sums or means of all members' elements: each member forms those of its part, in the order of
/// members, and gives them to the others, by the slots.
void reduce_by_memory(World& world, GroupState& group, const LibraryCall& call,
                      const std::byte* from, std::byte* to, bool is_beside) {
  constexpr std::size_t line = 64;
  SharedMemory& memory = *group.memory;
  const auto rank = static_cast<std::size_t>(group.rank), size = group.ranks.size();
  const std::size_t bytes = block_bytes(call, group);
  const Header header = header_of(call, bytes);
  const Dealings headers =
      dealings_of({.kind = Collective::Kind::gather}, group, 0, nullptr, nullptr);
  const auto meet = [&](bool continues) {
    Meeting(world, group, header, headers, continues).wait(is_beside);
  };
  // A slot holds each member's part, and a part of sums.
  const std::size_t most = (SharedMemory::slot_bytes / (size + 1) - line) * size;
  const std::size_t rounds = (bytes + most - 1) / most;
  const std::size_t part = round_up((bytes + rounds * size - 1) / (rounds * size), line);
  std::vector<const std::byte*> rows(size);
  for (std::size_t begin = 0; begin < bytes; begin += part * size) {
    const auto at = [&](std::size_t member) { return std::min(bytes, begin + member * part); };
    const auto length = [&](std::size_t member) { return at(member + 1) - at(member); };
    memory.begin_round();
    for (std::size_t other = 0; other < size; ++other)
      if (other != rank) memory.put(other * part, from + at(other), length(other));
    meet(begin > 0);
    for (std::size_t member = 0; member < size; ++member) {
      rows[member] =
          member == rank ? from + at(rank) : memory.slot(static_cast<int>(member)) + rank * part;
    }
    add_rows(call.operands[0].dtype, rows, length(rank), call.collective.partner != 0,
             to + at(rank));
    memory.put(size * part, to + at(rank), length(rank));
    meet(true);
    for (std::size_t other = 0; other < size; ++other) {
      if (other == rank) continue;
      std::memcpy(to + at(other), memory.slot(static_cast<int>(other)) + size * part,
                  length(other));
    }
  }
}

/// Waits for the other members of `group`, whose mutex is held.
void run(World& world, GroupState& group, const Header& header, const Dealings& dealings,
         bool is_beside = false) {
  const std::size_t given = dealings.bytes * static_cast<std::size_t>(dealings.parts);
  const bool may_share =
      dealings.bytes > Meeting::inline_bytes && given > 0 && given <= SharedMemory::most_copied;
  if (may_share && group.memory != nullptr)
    run_by_memory(world, group, header, dealings, is_beside);
  else
    run_by_messages(world, group, header, dealings, is_beside);
}

void run_on_host(World& world, GroupState& group, const LibraryCall& call,
                 std::span<void* const> buffers, bool is_beside) {
  const Dense dense(call.operands[0], buffers[0]);
  const std::lock_guard lock(group.mutex);
  const std::size_t bytes = block_bytes(call, group);
  if (call.collective.kind == Collective::Kind::reduce && group.size() > 1) {
    return reduce_by_memory(world, group, call, dense.data(), static_cast<std::byte*>(buffers[1]),
                            is_beside);
  }
  run(world, group, header_of(call, bytes),
      dealings_of(call.collective, group, bytes, dense.data(), static_cast<std::byte*>(buffers[1])),
      is_beside);
}

/// For what the calling thread does itself, after what goes on beside.
std::unique_lock<std::mutex> turn_of(GroupState& group) {
  group.background.wait_until_idle();
  return std::unique_lock(group.mutex);
}

class Beside final : public Underway {
 public:
  Beside(std::shared_ptr<GroupState> group, std::shared_ptr<Background::Job> job)
      : group_(std::move(group)), job_(std::move(job)) {}
  ~Beside() override {
    try {
      Beside::wait();
    } catch (...) {  // whoever has not asked is leaving by another exception
    }
  }
  void wait() override {
    if (!job_) return;
    const std::shared_ptr<Background::Job> job = std::exchange(job_, nullptr);
    group_->background.wait_for(*job, [this] {
      let_fail(group_->id, fmt::format("a collective: rank {} was interrupted", group_->rank));
    });
  }

 private:
  std::shared_ptr<GroupState> group_;
  std::shared_ptr<Background::Job> job_;
};

}  // namespace

void run_collective(const LibraryCall& call, const Launch& launch) {
  World& world = the_world();
  const std::shared_ptr<GroupState> group = group_with(world, call.collective.group);
  group->background.wait_until_idle();
  run_on_host(world, *group, call, launch.buffers, false);
}

std::unique_ptr<Underway> begin_collective(const LibraryCall& call, const Launch& launch) {
  World& world = the_world();
  std::shared_ptr<GroupState> group = group_with(world, call.collective.group);
  if (group->size() == 1 || world.engine->is_of_one_thread()) {
    run_on_host(world, *group, call, launch.buffers, false);
    return nullptr;
  }
  check_usable(world, "a collective");  // here: a forked process has no such thread
  const std::array<void*, 2> buffers = {launch.buffers[0], launch.buffers[1]};
  std::shared_ptr<Background::Job> job = group->background.add(
      [&world, group, &call, buffers] { run_on_host(world, *group, call, buffers, true); });
  return std::make_unique<Beside>(std::move(group), std::move(job));
}

std::vector<std::byte> gather_bytes(GroupState& group, std::span<const std::byte> own,
                                    std::string_view function) {
  const auto lock = turn_of(group);
  return gather_bytes(the_world(), group, own, function);
}

// ---- OnDevice

OnDevice::OnDevice(const LibraryCall& call)
    : call_(call),
      group_(group_with(the_world(), call.collective.group)),
      lock_(turn_of(*group_)) {}

int OnDevice::rank() const {
  return group_->rank;
}

int OnDevice::size() const {
  return group_->size();
}

const std::string& OnDevice::text() const {
  return call_text(call_.collective.call);
}

std::vector<std::byte> OnDevice::gather(std::span<const std::byte> own, std::string_view function) {
  return gather_bytes(the_world(), *group_, own, function);
}

void OnDevice::meet() {
  Header header = header_of(call_, block_bytes(call_, *group_));
  header.is_on_device = 1;
  run(the_world(), *group_, header, dealings_of(call_.collective, *group_, 0, nullptr, nullptr));
}

void OnDevice::run_on_host(const void* from, void* to) {
  Header header = header_of(call_, block_bytes(call_, *group_));
  header.is_on_device = 1;
  run(the_world(), *group_, header, dealings(from, to));
}

Dealings OnDevice::dealings(const void* from, void* to) const {
  return dealings_of(call_.collective, *group_, block_bytes(call_, *group_),
                     static_cast<const std::byte*>(from), static_cast<std::byte*>(to));
}

std::string failure_of(int number) {
  World& world = the_world();
  const std::lock_guard lock(world.mutex);
  const bool may_ask = world.engine->is_open() && (!world.engine->is_of_one_thread() ||
                                                   world.thread == std::this_thread::get_id());
  if (may_ask) take_notices(world);
  // Held no longer than the mutex: a group that its user lets go has to be gone for others.
  const auto group = world.groups[static_cast<std::size_t>(number)].lock();
  return group ? group->failure : "";
}

void let_fail(int number, const std::string& why) {
  if (!failure_of(number).empty()) return;
  try {
    World& world = the_world();
    break_group(world, *group_with(world, number), why);
  } catch (const Error&) {  // it says so by throwing, and that there is no such group
  }
}

double patience() {
  return the_world().timeout;
}

}  // namespace nitinol::dist
