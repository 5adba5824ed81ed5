// A collective of tensors in a GPU's memory: by NCCL, or by way of the host's.
#include "dist/collective.h"

#include "backends/cuda/runtime/gpu.h"
#include "backends/cuda/runtime/ranges.h"
#include "backends/cuda/vendor/communicator.h"
#include "backends/cuda/vendor/executables.h"
#include "backends/cuda/vendor/layout_copy.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/log.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace nitinol::cuda {
namespace {

/// How a group's GPUs exchange.
struct Way {
  int gpu = 0;                                 ///< this rank's
  std::unique_ptr<Communicator> communicator;  ///< null: by way of the host's memory
  std::string text;                            ///< how, and why so
};

/// What a rank tells the others before their first exchange.
struct Own {
  int version = 0;  ///< of its NCCL; 0: it has none
  Driver::Uuid uuid = {};
  Nccl::Id id = {};  ///< the first rank's counts
};

std::string version_text(int version) {
  return fmt::format("{}.{}.{}", version / 10'000, version / 100 % 100, version % 100);
}

/// Why GPUs cannot exchange by NCCL; empty if they can.
std::string obstacle(const std::vector<Own>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank].version == 0) return fmt::format("rank {} has no NCCL", rank);
    if (all[rank].version != all[0].version) {
      return fmt::format("rank 0 has NCCL {}, and rank {} {}", version_text(all[0].version), rank,
                         version_text(all[rank].version));
    }
    for (std::size_t other = 0; other < rank; ++other) {
      if (all[other].uuid == all[rank].uuid)
        return fmt::format("ranks {} and {} share a GPU", other, rank);
    }
  }
  return {};
}

Own own_part(const Gpu& gpu, bool is_first) {
  Own own = {.uuid = gpu.properties().uuid};
  if (!has_nccl() || nccl().ncclGetVersion(&own.version) != 0) return own;
  if (is_first && nccl().ncclGetUniqueId(&own.id) != 0) own.version = 0;
  return own;
}

/// By number of the group. Never destroyed.
struct Ways {
  ForkSafeMutex mutex;
  std::map<int, Way> by_group;

  /// Null before the first exchange.
  [[nodiscard]] Way* find(int group) {
    const std::lock_guard lock(mutex);
    const auto at = by_group.find(group);
    return at == by_group.end() ? nullptr : &at->second;
  }
};

Ways& ways() {
  static auto& all = *new Ways;
  return all;
}

/// A process that ended while others read what it has sent would take that with it.
void finish_all(int status, void* /*unused*/) {
  if (status != 0 || is_forked_off()) return;
  for (auto& [group, way] : ways().by_group)
    if (way.communicator) way.communicator->finish();
}

Way agreed_way(Gpu& gpu, dist::OnDevice& here) {
  here.meet();  // those that are at something else are told so by its name
  const Own own = own_part(gpu, here.rank() == 0);
  const std::vector<std::byte> bytes =
      here.gather(std::as_bytes(std::span(&own, 1)), "the first exchange between GPUs");
  std::vector<Own> all(static_cast<std::size_t>(here.size()));
  std::memcpy(all.data(), bytes.data(), bytes.size());
  Way way = {.gpu = gpu.number(), .communicator = nullptr, .text = obstacle(all)};
  if (way.text.empty()) {
    way.communicator = std::make_unique<Communicator>(gpu, here, all[0].id);
    way.text = "by NCCL " + version_text(own.version);
    static std::once_flag once;
    std::call_once(once, [] { on_exit(finish_all, nullptr); });
  } else {
    way.text = "by way of the host's memory: " + way.text;
  }
  if (here.rank() == 0) log(LogLevel::info, "dist: GPUs exchange " + way.text);
  return way;
}

/// That of a group whose mutex is held; all ranks agree on it at its first exchange.
Way& way_of(Gpu& gpu, int group, dist::OnDevice& here) {
  Way* const known = ways().find(group);
  if (known == nullptr) {
    Way way = agreed_way(gpu, here);
    const std::lock_guard lock(ways().mutex);
    return ways().by_group.emplace(group, std::move(way)).first->second;
  }
  if (known->gpu == gpu.number()) return *known;
  throw Error(ErrorKind::device,
              {.where = here.text(),
               .what = "tensors of two GPUs in one group's exchanges",
               .expected = fmt::format("cuda:{}, as before", known->gpu),
               .got = fmt::format("cuda:{}", gpu.number()),
               .fix = "A group exchanges between one GPU a rank: split() makes another group."});
}

/// Work that other work of the device comes after when it has been waited for.
class Beside final : public Underway {
 public:
  Beside(StorageHandle packed, std::shared_ptr<const Communicator::Exchange> exchange)
      : packed_(std::move(packed)), exchange_(std::move(exchange)) {}
  ~Beside() override {
    try {
      Beside::wait();
    } catch (...) {  // NOLINT(bugprone-empty-catch): the device is lost
    }
  }
  void wait() override {
    if (const auto exchange = std::exchange(exchange_, nullptr)) exchange->be_waited_for();
    packed_ = {};
  }

 private:
  StorageHandle packed_;  ///< what is sent, if that is a copy
  std::shared_ptr<const Communicator::Exchange> exchange_;
};

class Exchanged final : public Executable {
 public:
  Exchanged(Gpu& gpu, const LibraryCall& call) : gpu_(gpu), call_(call) {
    const OperandLayout &x = call.operands[0], &y = call.operands[1];
    in_bytes_ = static_cast<std::size_t>(element_count(x.shape)) * size_of(x.dtype);
    out_bytes_ = static_cast<std::size_t>(element_count(y.shape)) * size_of(y.dtype);
    if (in_bytes_ > 0 && !is_contiguous(x.shape, x.strides))
      packing_ = std::make_unique<LayoutCopy>(gpu, x, strides_of(x.shape));
  }

  [[nodiscard]] std::string describe(std::span<const Launch> /*examples*/) const override {
    const Way* const way = ways().find(call_.collective.group);
    return way != nullptr ? way->text : "by NCCL, or by way of the host's memory";
  }

  void launch(const Launch& launch) const override {
    if (const std::unique_ptr<Underway> underway = begin(launch)) underway->wait();
  }

  [[nodiscard]] std::unique_ptr<Underway> begin(const Launch& launch) const override {
    const NamedRange range(name_of(call_.kind));
    dist::OnDevice here(call_);
    StorageHandle packed;
    const void* from = launch.buffers[0];
    if (packing_) {
      packed = gpu_.memory().allocate(in_bytes_);
      packing_->run(launch.buffers[0], packed->data);
      from = packed->data;
    }
    const dist::Dealings dealings = here.dealings(from, launch.buffers[1]);
    if (here.size() == 1) return by_itself(dealings);
    Way& way = way_of(gpu_, call_.collective.group, here);
    if (!way.communicator) {
      by_host(here, from, launch.buffers[1]);
      return nullptr;
    }
    here.meet();
    if (dealings.bytes == 0 || dealings.others.empty()) return by_itself(dealings);
    return std::make_unique<Beside>(std::move(packed), way.communicator->begin(here, dealings));
  }

 private:
  /// What needs no other rank.
  std::unique_ptr<Underway> by_itself(const dist::Dealings& dealings) const {
    const Entered entered = gpu_.enter();
    copy_kept(gpu_, dealings, gpu_.stream());
    return nullptr;
  }
  void by_host(dist::OnDevice& here, const void* from, void* to) const {
    std::vector<std::byte> in(in_bytes_), out(out_bytes_);
    gpu_.download(from, in.data(), in.size());
    here.run_on_host(in.data(), out.data());
    gpu_.upload(out.data(), to, out.size());
  }

  Gpu& gpu_;
  const LibraryCall call_;
  std::size_t in_bytes_ = 0, out_bytes_ = 0;
  std::unique_ptr<const LayoutCopy> packing_;
};

}  // namespace

std::unique_ptr<Executable> make_collective(Gpu& gpu, const LibraryCall& call) {
  return std::make_unique<Exchanged>(gpu, call);
}

}  // namespace nitinol::cuda
