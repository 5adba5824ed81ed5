#include "core/line_tables.h"

#ifdef NITINOL_BACKTRACE
#  include "core/fork.h"

#  include <backtrace.h>
#  include <cstring>
#  include <dlfcn.h>
#  include <link.h>
#  include <mutex>
#  include <string>
#  include <vector>

namespace nitinol {
namespace {

/// Of the objects in memory, the one that libbacktrace is to read; null: all, as it does on its
/// own. That takes a small program 140 ms: this library's tables are read, and libc's where a
/// debugger has had them installed; the program's own are there in one.
const link_map* wanted = nullptr;

void ignore(void* /*data*/, const char* /*message*/, int /*number*/) {}

/// What libbacktrace has read of an object. It stays in memory.
struct Tables {
  const void* begin;
  std::string name;  ///< another object may be opened where one was
  backtrace_state* state;
};

/// The tables of the object that has this address.
backtrace_state* tables_of(uintptr_t address) {
  static auto& mutex = *new ForkSafeMutex;
  static auto& all = *new std::vector<Tables>;
  dl_find_object found = {};
  if (_dl_find_object(reinterpret_cast<void*>(address), &found) != 0) return nullptr;  // NOLINT
  const char* const name = found.dlfo_link_map->l_name;
  const std::lock_guard lock(mutex);
  for (const Tables& one : all) {
    if (one.begin == found.dlfo_map_start && one.name == name) return one.state;
  }
  backtrace_state* const state = backtrace_create_state(nullptr, 1, ignore, nullptr);
  if (state == nullptr) return nullptr;
  all.push_back({found.dlfo_map_start, name, state});
  // They are read when a line is asked for at first.
  wanted = found.dlfo_link_map;
  const auto end = [](void*, uintptr_t, const char*, int, const char*) { return 1; };
  backtrace_pcinfo(state, address, end, ignore, nullptr);
  wanted = nullptr;
  return state;
}

}  // namespace

void for_each_line(uintptr_t address,
                   FunctionRef<bool(const char* file, int line, const char* function)> take) {
  backtrace_state* const state = tables_of(address);
  if (state == nullptr) return;
  backtrace_pcinfo(
      state, address,
      [](void* data, uintptr_t, const char* file, int line, const char* function) {
        if (file == nullptr) return 0;
        return (*static_cast<decltype(&take)>(data))(file, line, function) ? 1 : 0;
      },
      ignore, &take);
}

}  // namespace nitinol

// A shared library of ours is linked so that libbacktrace calls this one (CMakeLists.txt). In a
// static one, which is linked by others, it reads all.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier): the linker's names
using PhdrCallback = int (*)(dl_phdr_info*, std::size_t, void*);
[[gnu::visibility("hidden")]] int __wrap_dl_iterate_phdr(PhdrCallback take, void* data) {
  struct Taking {
    PhdrCallback take;
    void* data;
  } taking = {take, data};
  const auto take_wanted = [](dl_phdr_info* info, std::size_t bytes, void* into) {
    const auto& [inner, its] = *static_cast<Taking*>(into);
    const link_map* const one = nitinol::wanted;
    const bool is_it = one == nullptr || (info->dlpi_addr == one->l_addr &&
                                          std::strcmp(info->dlpi_name, one->l_name) == 0);
    return is_it ? inner(info, bytes, its) : 0;
  };
  // By its address: only where the linker wraps it does it have another name.
  static const auto loaders =
      reinterpret_cast<int (*)(PhdrCallback, void*)>(::dlsym(RTLD_DEFAULT, "dl_iterate_phdr"));
  return loaders(take_wanted, &taking);
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
}

#else

namespace nitinol {
void for_each_line(uintptr_t, FunctionRef<bool(const char*, int, const char*)>) {}
}  // namespace nitinol

#endif
