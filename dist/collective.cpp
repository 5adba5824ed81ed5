#include "dist/collective.h"

#include "core/strided.h"
#include "dist/calls.h"
#include "dist/meeting.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <span>
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

/// Waits for the other members of `group`.
void run(World& world, GroupState& group, const LibraryCall& call, std::span<void* const> buffers,
         bool is_beside) {
  using Kind = Collective::Kind;
  const int size = group.size(), rank = group.rank;
  const OperandLayout& x = call.operands[0];
  const auto in_bytes = static_cast<std::size_t>(element_count(x.shape)) * size_of(x.dtype);
  const Dense dense(x, buffers[0]);
  const std::byte* const from = dense.data();
  auto* const to = static_cast<std::byte*>(buffers[1]);
  const Kind kind = call.collective.kind;
  // What each member gets of another.
  const std::size_t block =
      kind == Kind::exchange ? in_bytes / static_cast<std::size_t>(size) : in_bytes;
  const auto block_at = [block](int member) { return block * static_cast<std::size_t>(member); };
  const auto keep = [&](std::size_t from_at, std::size_t to_at) {
    if (block > 0) std::memcpy(to + to_at, from + from_at, block);
  };
  static constinit const std::byte nothing[1] = {};
  static std::byte nowhere[1];  // where no bytes come
  const auto source = [&](std::size_t at) { return block > 0 ? from + at : nothing; };
  const auto place = [&](std::size_t at) { return block > 0 ? to + at : nowhere; };

  const std::lock_guard lock(group.mutex);
  std::vector<Dealing> dealings;
  if (kind == Kind::exchange || kind == Kind::gather) {
    // Each begins with the one after it, so that not all send to the same.
    for (int step = 1; step < size; ++step) {
      const int other = (rank + step) % size;
      dealings.push_back({.member = other,
                          .out = source(kind == Kind::exchange ? block_at(other) : 0),
                          .in = place(block_at(other))});
    }
    keep(kind == Kind::exchange ? block_at(rank) : 0, block_at(rank));
  } else if (kind == Kind::broadcast) {
    const int root = call.collective.partner;
    for (int other = 0; other < size; ++other) {
      if (rank == root && other != root)
        dealings.push_back({.member = other, .out = source(0), .in = nullptr});
    }
    if (rank == root)
      keep(0, 0);
    else
      dealings.push_back({.member = root, .out = nullptr, .in = place(0)});
  } else {  // to the one `partner` after this
    const int shift = call.collective.partner;
    const int next = (rank + shift) % size, before = (rank + size - shift) % size;
    if (next == rank) {
      keep(0, 0);
    } else if (next == before) {
      dealings.push_back({.member = next, .out = source(0), .in = place(0)});
    } else {
      dealings.push_back({.member = next, .out = source(0), .in = nullptr});
      dealings.push_back({.member = before, .out = nullptr, .in = place(0)});
    }
  }
  if (dealings.empty()) return;
  Meeting meeting(world, group, header_of(call, block), dealings);
  meeting.wait(is_beside);
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
    if (job_) group_->background.wait_for(*std::exchange(job_, nullptr));
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
  run(world, *group, call, launch.buffers, false);
}

std::unique_ptr<Underway> begin_collective(const LibraryCall& call, const Launch& launch) {
  World& world = the_world();
  std::shared_ptr<GroupState> group = group_with(world, call.collective.group);
  if (group->size() == 1 || world.engine->is_of_one_thread()) {
    run(world, *group, call, launch.buffers, false);
    return nullptr;
  }
  check_usable(world, "a collective");  // here: a forked process has no such thread
  const std::array<void*, 2> buffers = {launch.buffers[0], launch.buffers[1]};
  std::shared_ptr<Background::Job> job = group->background.add(
      [&world, group, &call, buffers] { run(world, *group, call, buffers, true); });
  return std::make_unique<Beside>(std::move(group), std::move(job));
}

}  // namespace nitinol::dist
