// LLVM is built without exceptions: where it gets no memory it aborts, and an exception thrown
// through it leaves its locks held and its objects half built. So it never learns of it. The linker
// (--wrap, CMakeLists.txt) directs all allocations of the module to the functions below, which ask
// the program's operator new, or malloc, and take what these refuse from a region of address space
// set aside when the module was opened. The compilation runs to its end, its result is thrown away,
// and the caller gets std::bad_alloc. Freed blocks at the end of the region are used again, so it
// is empty after each compilation but for what LLVM keeps for good.

#include "backends/cpu/jit/reserve.h"

#if defined(NITINOL_LLVM_RESERVE)

#  include <algorithm>
#  include <cerrno>
#  include <cstdint>
#  include <cstring>
#  include <malloc.h>
#  include <mutex>
#  include <new>
#  include <string>
#  include <sys/mman.h>

// libstdc++'s own instance would allocate behind our back.
template class std::basic_string<char>;

namespace nitinol::cpu {
namespace {

/// Compiling a kernel of 100 operations takes 3 MB. Pages are touched when used.
constexpr std::size_t region_size = std::size_t{256} << 20;
constexpr std::size_t least_alignment = 16;

[[gnu::tls_model("initial-exec")]] constinit thread_local bool is_open = false;
[[gnu::tls_model("initial-exec")]] constinit thread_local bool is_used = false;

class Reserve {
 public:
  bool map() {
    const std::lock_guard lock(mutex_);
    if (begin_ != nullptr) return true;
    void* const memory = mmap(nullptr, region_size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return false;
    begin_ = static_cast<std::byte*>(memory);
    top_ = begin_;
    return true;
  }

  void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
    if (!is_open) return nullptr;
    is_used = true;
    const std::lock_guard lock(mutex_);
    const auto first = reinterpret_cast<std::uintptr_t>(top_) + sizeof(Block);
    const std::size_t padding = -first % std::max(alignment, least_alignment);
    const auto left = static_cast<std::size_t>(begin_ + region_size - top_);
    if (bytes > region_size || padding + sizeof(Block) + bytes > left) return nullptr;
    std::byte* const data = top_ + sizeof(Block) + padding;
    last_ = new (data - sizeof(Block)) Block{.before = last_, .start = top_, .bytes = bytes};
    top_ = data + bytes;
    top_ += -reinterpret_cast<std::uintptr_t>(top_) % alignof(Block);
    return data;
  }

  [[nodiscard]] bool has(const void* data) const noexcept {
    const auto* const at = static_cast<const std::byte*>(data);
    return begin_ != nullptr && at >= begin_ && at < begin_ + region_size;
  }

  [[nodiscard]] std::size_t size_of(void* data) const noexcept { return block_of(data)->bytes; }

  void free(void* data) noexcept {
    const std::lock_guard lock(mutex_);
    block_of(data)->is_free = true;
    while (last_ != nullptr && last_->is_free) {
      top_ = last_->start;
      last_ = last_->before;
    }
  }

 private:
  struct Block {
    Block* before;
    std::byte* start;  ///< where the region ended before it
    std::size_t bytes;
    bool is_free = false;
  };
  static Block* block_of(void* data) noexcept { return static_cast<Block*>(data) - 1; }

  std::mutex mutex_;
  std::byte* begin_ = nullptr;
  std::byte* top_ = nullptr;
  Block* last_ = nullptr;
};

/// Never destroyed: a static's destructor may free what lies in it.
constinit union Holder {
  Reserve reserve;
  constexpr Holder() : reserve() {}
  ~Holder() {}  // NOLINT(modernize-use-equals-default): would be deleted
} holder;

Reserve& reserve() {
  return holder.reserve;
}

}  // namespace

namespace {

/// Before the constructors of LLVM's static objects.
[[gnu::constructor(101)]] void begin_opening() {
  is_open = reserve().map();
}

}  // namespace

void end_opening() {
  is_open = false;
}

ReserveScope::ReserveScope() {
  if (!reserve().map()) throw std::bad_alloc();
  is_used = false;
  is_open = true;
}

ReserveScope::~ReserveScope() {
  is_open = false;
}

bool ReserveScope::was_used() {
  return is_used;
}

WithoutReserve::WithoutReserve() : before_(is_open) {
  is_open = false;
}

WithoutReserve::~WithoutReserve() {
  is_open = before_;
}

}  // namespace nitinol::cpu

// ---- what the linker puts in the place of malloc, operator new and their like

// NOLINTBEGIN(readability-identifier-naming, bugprone-reserved-identifier): the linker's names
using nitinol::cpu::reserve;

extern "C" {
void* __real_malloc(std::size_t);
void* __real_calloc(std::size_t, std::size_t);
void* __real_realloc(void*, std::size_t);
void __real_free(void*);
void* __real__Znwm(std::size_t);
void* __real__ZnwmSt11align_val_t(std::size_t, std::align_val_t);
void __real__ZdlPv(void*);
void __real__ZdlPvSt11align_val_t(void*, std::align_val_t);
void* __real__Znam(std::size_t);
void __real__ZdaPv(void*);

void* __wrap_malloc(std::size_t bytes) {
  void* const data = __real_malloc(bytes);
  return data != nullptr || bytes == 0 ? data : reserve().allocate(bytes, 0);
}

void __wrap_free(void* data) {
  reserve().has(data) ? reserve().free(data) : __real_free(data);
}

void* __wrap_calloc(std::size_t count, std::size_t size) {
  void* data = __real_calloc(count, size);
  std::size_t bytes = 0;
  if (data != nullptr || __builtin_mul_overflow(count, size, &bytes) || bytes == 0) return data;
  data = reserve().allocate(bytes, 0);
  return data == nullptr ? nullptr : std::memset(data, 0, bytes);
}

void* __wrap_realloc(void* before, std::size_t bytes) {
  if (!reserve().has(before)) {
    void* const data = __real_realloc(before, bytes);
    if (data != nullptr || bytes == 0) return data;
  }
  void* const data = reserve().allocate(bytes, 0);
  if (data == nullptr) return nullptr;
  if (before == nullptr) return data;
  const std::size_t size =
      reserve().has(before) ? reserve().size_of(before) : malloc_usable_size(before);
  std::memcpy(data, before, std::min(size, bytes));
  __wrap_free(before);
  return data;
}

char* __wrap_strdup(const char* text) {
  const std::size_t bytes = std::strlen(text) + 1;
  void* const data = __wrap_malloc(bytes);
  return data == nullptr ? nullptr : static_cast<char*>(std::memcpy(data, text, bytes));
}

void* __wrap__Znwm(std::size_t bytes) {
  try {
    return __real__Znwm(bytes);
  } catch (const std::bad_alloc&) {
    if (void* const data = reserve().allocate(bytes, 0)) return data;
    throw;
  }
}

void* __wrap__ZnwmSt11align_val_t(std::size_t bytes, std::align_val_t alignment) {
  try {
    return __real__ZnwmSt11align_val_t(bytes, alignment);
  } catch (const std::bad_alloc&) {
    if (void* const data = reserve().allocate(bytes, static_cast<std::size_t>(alignment)))
      return data;
    throw;
  }
}

void* __wrap__Znam(std::size_t bytes) {
  try {
    return __real__Znam(bytes);
  } catch (const std::bad_alloc&) {
    if (void* const data = reserve().allocate(bytes, 0)) return data;
    throw;
  }
}

void* __wrap__ZnwmRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return __wrap__Znwm(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void* __wrap__ZnamRKSt9nothrow_t(std::size_t bytes, const std::nothrow_t&) noexcept {
  try {
    return __wrap__Znam(bytes);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void __wrap__ZdlPv(void* data) {
  reserve().has(data) ? reserve().free(data) : __real__ZdlPv(data);
}
void __wrap__ZdlPvm(void* data, std::size_t) {
  __wrap__ZdlPv(data);
}
void __wrap__ZdlPvSt11align_val_t(void* data, std::align_val_t alignment) {
  reserve().has(data) ? reserve().free(data) : __real__ZdlPvSt11align_val_t(data, alignment);
}
void __wrap__ZdlPvmSt11align_val_t(void* data, std::size_t, std::align_val_t alignment) {
  __wrap__ZdlPvSt11align_val_t(data, alignment);
}
void __wrap__ZdaPv(void* data) {
  reserve().has(data) ? reserve().free(data) : __real__ZdaPv(data);
}
void __wrap__ZdaPvm(void* data, std::size_t) {
  __wrap__ZdaPv(data);
}

// Static objects of the module are never destroyed: other threads may compile until the process is
// gone, and static objects of the program may compile in their destructors.
int __wrap___cxa_atexit(void (*)(void*), void*, void*) {
  return 0;
}
}
// NOLINTEND(readability-identifier-naming, bugprone-reserved-identifier)

#else

namespace nitinol::cpu {

void end_opening() {}
ReserveScope::ReserveScope() = default;
ReserveScope::~ReserveScope() = default;
bool ReserveScope::was_used() {
  return false;
}
WithoutReserve::WithoutReserve() : before_(false) {}
WithoutReserve::~WithoutReserve() = default;

}  // namespace nitinol::cpu

#endif
