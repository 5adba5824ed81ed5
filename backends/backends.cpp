// Which devices there are, and which is the default.
#include "backends/cpu/device.h"
#if NITINOL_CUDA
#  include "backends/cuda/device.h"
#endif
#include "backends/host/allocator.h"
#include "backends/reference/device.h"
#include "core/backend.h"
#include "core/deferred_check.h"
#include "core/error.h"
#include "core/profiling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <string>
#include <utility>

namespace nitinol {
namespace {

constexpr std::size_t kind_count = 3;
constexpr std::size_t most_of_kind = 16;

/// Backends that were added, by kind and number.
constinit std::array<std::array<std::atomic<Backend*>, most_of_kind>, kind_count> added = {};

constinit std::atomic<uint16_t> default_bits = std::bit_cast<uint16_t>(Device{});

Backend* added_backend(Device device) {
  const auto kind = static_cast<std::size_t>(device.kind);
  const auto index = static_cast<std::size_t>(device.index);
  if (kind >= kind_count || index >= most_of_kind) return nullptr;
  return added[kind][index].load(std::memory_order_acquire);
}

/// The backend, or null if there is none.
Backend* find(Device device) {
  if (device == Device{}) return &cpu::device();
  if (device == Device{.kind = Device::Kind::reference, .index = 0}) return &reference::device();
#if NITINOL_CUDA
  if (device.kind == Device::Kind::cuda) return cuda::device(device.index);
#endif
  return added_backend(device);
}

/// Why there is no such device.
std::string reason(Device device) {
  const std::string name = describe(device);
  if (device.kind != Device::Kind::cuda) return fmt::format("there is no {} on this machine", name);
#if NITINOL_CUDA
  return fmt::format("{} cannot be used: {}", name, cuda::missing(device.index));
#else
  return fmt::format("{} cannot be used: the library was built without CUDA", name);
#endif
}

DeviceInfo info_of(Backend& backend) {
  return {.device = backend.device(), .description = backend.description(), .missing = {}};
}

std::string names_of_all() {
  std::string names;
  for (const DeviceInfo& info : devices()) {
    if (info.missing.empty())
      names += fmt::format("{}{}", names.empty() ? "" : ", ", describe(info.device));
  }
  return names;
}

}  // namespace

Backend& backend(Device device) {
  if (Backend* const found = find(device)) return *found;
  throw Error(ErrorKind::device,
              {.where = "device",
               .what = reason(device),
               .expected = names_of_all(),
               .got = describe(device),
               .fix = "Use one of those; devices() lists them, with what is missing for others."});
}

void add_backend(Backend& backend) {
  const Device device = backend.device();
  const auto kind = static_cast<std::size_t>(device.kind);
  const auto index = static_cast<std::size_t>(device.index);
  if (find(device) != nullptr || kind >= kind_count || index >= most_of_kind) {
    throw Error(ErrorKind::device, {.where = "add_backend",
                                    .what = describe(device),
                                    .expected = "a device that is not there yet",
                                    .got = names_of_all(),
                                    .fix = "Choose another number."});
  }
  added[kind][index].store(&backend, std::memory_order_release);
}

std::vector<DeviceInfo> devices() {
  std::vector<DeviceInfo> list = {info_of(cpu::device()), info_of(reference::device())};
#if NITINOL_CUDA
  for (DeviceInfo& info : cuda::infos()) list.push_back(std::move(info));
#endif
  for (const auto& of_kind : added) {
    for (const std::atomic<Backend*>& backend : of_kind) {
      if (Backend* const found = backend.load(std::memory_order_acquire))
        list.push_back(info_of(*found));
    }
  }
  std::ranges::stable_sort(list, {}, [](const DeviceInfo& info) { return info.device.kind; });
  return list;
}

Device default_device() {
  return std::bit_cast<Device>(default_bits.load(std::memory_order_relaxed));
}

void set_default_device(Device device) {
  static_cast<void>(backend(device));  // throws if there is none
  default_bits.store(std::bit_cast<uint16_t>(device), std::memory_order_relaxed);
}

void synchronize(Device device) {
  Backend& of = backend(device);
  of.synchronize();
  if (of.is_asynchronous()) DeferredCheck::expect_all(of);
}

// ---- for profiles

namespace {

MemoryStatistics counts_for_profiles(Device device) noexcept {
  if (device == Device{}) return host::memory_counts();
  try {
    return memory_statistics(device);
  } catch (...) {  // there is none
    return {};
  }
}

Backend* later_for_profiles(Device device) noexcept {
  try {
    Backend& of = backend(device);
    return of.is_asynchronous() ? &of : nullptr;
  } catch (...) {
    return nullptr;
  }
}

constinit const profiling::DeviceQuestions questions = {
    .default_device = []() noexcept { return default_device(); },
    .counts = counts_for_profiles,
    .later = later_for_profiles};

[[maybe_unused]] const bool are_answered = [] {
  profiling::device_questions.store(&questions, std::memory_order_release);
  return true;
}();

}  // namespace

}  // namespace nitinol
