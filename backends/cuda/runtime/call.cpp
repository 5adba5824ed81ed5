#include "backends/cuda/runtime/call.h"

#include "backends/cuda/text/arguments.h"
#include "backends/cuda/text/grid.h"
#include "backends/cuda/text/launch_loops.h"
#include "backends/cuda/text/parts.h"
#include "backends/cuda/text/shapes.h"
#include "core/error.h"
#include "core/kernel.h"
#include "core/round_up.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <string>

namespace nitinol::cuda {
namespace {

constexpr std::size_t alignment = 16;
/// Where things lie in the workspace.
struct Layout {
  std::size_t parts = 0, bytes = 0;
  std::vector<std::size_t> scratch;  ///< per operand, of scratch with memory of its own
};

Layout layout_of(const Kernel& kernel, const Schedule& schedule, const LaunchLoops& loops) {
  Layout layout;
  const auto take = [&](int64_t bytes) {
    const std::size_t at = layout.bytes;
    layout.bytes = round_up(layout.bytes + static_cast<std::size_t>(bytes), alignment);
    return at;
  };
  if (schedule.is_split) {
    take(static_cast<int64_t>(kernel.reductions.size() + kernel.row_values.size()) * 8 *
         loops.rows());
    std::size_t most = 0;
    for (const Stage& stage : kernel.stages) most = std::max(most, reductions_of(stage).size());
    const Grid grid = grid_of(kernel, schedule, loops);
    layout.parts = take(static_cast<int64_t>(most) * grid.tiles * grid.groups *
                        teams_of(schedule).columns * 8 * joined_words);
  }
  for (const Operand& operand : kernel.operands) {
    const bool is_own = operand.role == Role::scratch && operand.alias < 0 && schedule.chunks == 0;
    layout.scratch.push_back(
        is_own ? take(loops.points() * static_cast<int64_t>(size_of(operand.dtype))) : 0);
  }
  return layout;
}

constexpr int64_t most_blocks = std::numeric_limits<int32_t>::max();

[[noreturn]] void fail_too_large(const std::string& got) {
  throw Error(ErrorKind::unsupported, {.where = "launch",
                                       .what = "a kernel over more points than a GPU takes at once",
                                       .expected = fmt::format("at most {} blocks of {} threads",
                                                               most_blocks, block_threads),
                                       .got = got,
                                       .fix = "Split the tensor."});
}

class Arguments {
 public:
  Arguments(const Kernel& kernel, const Schedule& schedule, const Launch& launch,
            const Places& places)
      : kernel_(kernel),
        schedule_(schedule),
        launch_(launch),
        places_(places),
        loops_(kernel, launch),
        grid_(grid_of(kernel, schedule, loops_)),
        layout_(layout_of(kernel, schedule, loops_)) {}

  [[nodiscard]] std::vector<std::byte> bytes() {
    for (const Field& field : fields_of(kernel_, schedule_)) add(field);
    while (bytes_.size() % 8 != 0) bytes_.push_back({});
    return std::move(bytes_);
  }

  [[nodiscard]] std::vector<uint32_t> blocks() const {
    std::vector<uint32_t> counts;
    if (!schedule_.is_split) return {checked(grid_.tiles)};
    for (const std::size_t s : launched_stages(kernel_))
      counts.push_back(checked(kernel_.stages[s].level == Stage::Level::row
                                   ? ceil_div(loops_.rows(), block_threads)
                                   : grid_.tiles * grid_.groups));
    return counts;
  }

 private:
  [[nodiscard]] uint32_t checked(int64_t blocks) const {
    if (blocks <= most_blocks && grid_.rounds >> schedule_.levels == 0)
      return static_cast<uint32_t>(blocks);
    fail_too_large(fmt::format("{} blocks: {} rows of {}", blocks, loops_.rows(), loops_.length()));
  }

  template <class T>
  void put(T value) {
    const auto* const from = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), from, from + sizeof(T));
  }
  void put_index(int64_t value) {
    if (schedule_.is_wide)
      put(value);
    else
      put(static_cast<int32_t>(value));
  }

  [[nodiscard]] std::byte* workspace(std::size_t offset) const {
    return static_cast<std::byte*>(places_.workspace) + offset;
  }
  [[nodiscard]] const void* memory(std::size_t k) const {
    const Operand& operand = kernel_.operands[k];
    if (operand.role != Role::scratch) return launch_.buffers[k];
    if (schedule_.chunks > 0) return nullptr;
    if (operand.alias >= 0) return launch_.buffers[static_cast<std::size_t>(operand.alias)];
    return workspace(layout_.scratch[k]);
  }

  void add(const Field& field) {
    const std::size_t k = field.operand;
    switch (field.kind) {
      case Field::Kind::gate:
        return put(places_.gate);
      case Field::Kind::status:
        return put(places_.status);
      case Field::Kind::counters:
        return put(places_.counters);
      case Field::Kind::workspace:
        return put(workspace(layout_.parts));
      case Field::Kind::results:
        return put(workspace(0));
      case Field::Kind::memory:
        return put(memory(k));
      case Field::Kind::scalar:
        return put(launch_.scalars[k]);
      case Field::Kind::offset:
        return put(launch_.offsets.empty() ? int64_t{0} : launch_.offsets[k]);
      case Field::Kind::step:
        return put(loops_.stride(k, field.loop));
      case Field::Kind::rows:
        return put_index(loops_.rows());
      case Field::Kind::size:
        return put_index(loops_.sizes[field.loop]);
      case Field::Kind::stride:
        return put_index(loops_.stride(k, field.loop));
      case Field::Kind::groups:
        return put(static_cast<uint32_t>(grid_.groups));
      case Field::Kind::group_size:
        return put(static_cast<uint32_t>(grid_.group_size));
    }
  }

  const Kernel& kernel_;
  const Schedule& schedule_;
  const Launch& launch_;
  const Places& places_;
  const LaunchLoops loops_;
  const Grid grid_;
  const Layout layout_;
  std::vector<std::byte> bytes_;
};

}  // namespace

bool is_empty(const Kernel& kernel, const Launch& launch) {
  const std::size_t rows = launch.sizes.size() - (kernel.order == Order::none ? 0 : 1);
  return std::ranges::count(launch.sizes.first(rows), 0) > 0;
}

int enqueue(Driver::Function function, uint32_t blocks, uint32_t threads,
            std::span<const std::byte> arguments, Driver::Stream stream) {
  void* parameter = const_cast<std::byte*>(arguments.data());  // the one that all kernels have
  return driver().cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, &parameter,
                                 nullptr);
}

Workspace workspace_of(const Kernel& kernel, const Schedule& schedule, const Launch& launch) {
  const LaunchLoops loops(kernel, launch);
  const auto tiles = static_cast<std::size_t>(grid_of(kernel, schedule, loops).tiles);
  return {.bytes = layout_of(kernel, schedule, loops).bytes,
          .counters = schedule.is_split ? tiles : 0};
}

Call call_of(const Kernel& kernel, const Schedule& schedule, const Launch& launch,
             const Places& places) {
  Arguments arguments(kernel, schedule, launch, places);
  return {.arguments = arguments.bytes(),
          .blocks = arguments.blocks(),
          .threads = static_cast<uint32_t>(schedule.warps * warp_threads)};
}

Call call_of_all(const Kernel& kernel, const Schedule& schedule,
                 std::span<const Launch* const> launches, std::span<const Places> places) {
  std::vector<uint32_t> ends;
  std::vector<std::byte> parts;
  int64_t blocks = 0;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const Call one = call_of(kernel, schedule, *launches[i], places[i]);
    blocks += one.blocks[0];
    if (blocks > most_blocks)
      fail_too_large(fmt::format("{} blocks in {} launches", blocks, launches.size()));
    ends.push_back(static_cast<uint32_t>(blocks));
    parts.insert(parts.end(), one.arguments.begin(), one.arguments.end());
  }
  ends.resize(ends_of(schedule.parts), ends.back());
  Call call = {.arguments = {}, .blocks = {ends.back()}};
  const auto* const first = reinterpret_cast<const std::byte*>(ends.data());
  call.arguments.assign(first, first + ends.size() * sizeof ends[0]);
  call.arguments.insert(call.arguments.end(), parts.begin(), parts.end());
  call.arguments.resize(argument_bytes(fields_of(kernel, schedule), schedule, schedule.parts));
  return call;
}

}  // namespace nitinol::cuda
