#include "tests/hostile_files.h"

#include "backends/cpu/code/elf_loader.h"
#include "core/backend.h"
#include "core/error.h"
#include "core/host_access.h"
#include "io/csv.h"
#include "io/idx.h"
#include "io/image.h"
#include "io/npy.h"
#include "io/npz.h"
#include "io/safetensors.h"

#include <fmt/format.h>

#include <stdexcept>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace nitinol::test {
namespace {

/// A file in memory: faster than a disk, and gone with this object.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> bytes) : descriptor_(memfd_create("hostile", 0)) {
    while (descriptor_ >= 0 && !bytes.empty()) {
      const ssize_t count = ::write(descriptor_, bytes.data(), bytes.size());
      if (count <= 0) throw std::runtime_error("a file in memory cannot be written");
      bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    if (descriptor_ < 0) throw std::runtime_error("a file in memory cannot be made");
  }
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  [[nodiscard]] std::filesystem::path path() const {
    return fmt::format("/proc/self/fd/{}", descriptor_);
  }

 private:
  int descriptor_;
};

/// Limits what tensors may take while it lives.
class Budget {
 public:
  explicit Budget(std::size_t bytes) {
    // What is cached counts, too.
    const MemoryStatistics now = memory_statistics();
    backend(Device{}).set_memory_budget(now.in_use + now.cached + bytes);
  }
  ~Budget() { backend(Device{}).set_memory_budget(0); }
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;
};

/// Reads the first and last byte, so that a sanitizer sees memory that is not there.
void look_at(const Tensor& tensor) {
  if (tensor.size() == 0) return;
  const HostElements elements(tensor.internals());
  const auto* const bytes = reinterpret_cast<const volatile uint8_t*>(elements.first());
  const std::size_t count = static_cast<std::size_t>(tensor.size()) * size_of(tensor.dtype());
  static_cast<void>(bytes[0]);
  static_cast<void>(bytes[count - 1]);
}

}  // namespace

bool reads(Reader reader, std::span<const uint8_t> bytes, std::size_t times) {
  const MemoryFile file(bytes);
  // A tensor of one byte takes a block of two lines. A file in Fortran order is copied.
  const Budget budget(times * bytes.size() + (std::size_t{1} << 20));
  try {
    reader(file.path());
    return true;
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::io || error.kind() == ErrorKind::unsupported) return false;
    throw std::logic_error(error.message());
  }
}

bool loads(std::span<const uint8_t> object) {
  // Bytes of their own, lest something be read that lies behind them.
  const std::vector<uint8_t> copy(object.begin(), object.end());
  try {
    const cpu::LoadedObject loaded = cpu::load_object(std::as_bytes(std::span(copy)));
    for (const auto& [name, code] : loaded.functions) {
      static_cast<void>(*reinterpret_cast<const volatile std::byte*>(&code.front()));
      static_cast<void>(*reinterpret_cast<const volatile std::byte*>(&code.back()));
    }
    return true;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::compile) throw;
    return false;
  }
}

void read_safetensors(const std::filesystem::path& path) {
  for (const auto& [name, tensor] : load_safetensors(path).tensors) look_at(tensor);
}

void read_npy(const std::filesystem::path& path) {
  look_at(load_npy(path));
}

void read_npz(const std::filesystem::path& path) {
  for (const auto& [name, tensor] : load_npz(path)) look_at(tensor);
}

void read_image(const std::filesystem::path& path) {
  constexpr int64_t few = 1 << 18;  // a megabyte, which every file is given
  for (int64_t channels = 0; channels <= 4; ++channels)
    look_at(load_image(path, {.channels = channels, .most_pixels = few}));
}

void read_idx(const std::filesystem::path& path) {
  look_at(load_idx(path));
}

void read_csv(const std::filesystem::path& path) {
  look_at(load_csv(path, {.has_header = true, .dtype = f64}).values);
}

}  // namespace nitinol::test
