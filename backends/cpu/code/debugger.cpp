// The interface is a list at a known name, and a function without effect that is called when the
// list changes: a debugger stops there. Both are found by their names, so the library exports
// them. They are weak, because a program that links LLVM too has both; and protected, so that
// this list stays our own where another library has one: ours has our lock.

#include "backends/cpu/code/debugger.h"

#include "backends/cpu/code/debug_object.h"

#include <cstdint>
#include <mutex>
#include <utility>

// Names and layouts are the interface's.
extern "C" {
// NOLINTBEGIN(readability-identifier-naming,bugprone-reserved-identifier)
struct jit_code_entry {
  jit_code_entry* next_entry = nullptr;
  jit_code_entry* prev_entry = nullptr;
  const char* symfile_addr = nullptr;
  uint64_t symfile_size = 0;
};

struct jit_descriptor {
  uint32_t version;
  uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};

[[gnu::weak, gnu::visibility("protected"),
  gnu::used]] constinit jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};

[[gnu::weak, gnu::visibility("protected"), gnu::used, gnu::noinline]] void
__jit_debug_register_code() {
  asm volatile("" ::: "memory");  // no call of it is left out
}
// NOLINTEND(readability-identifier-naming,bugprone-reserved-identifier)
}

namespace nitinol::cpu {
namespace {

enum class DebuggerAction : uint8_t { none, add, remove };

constinit std::mutex list_mutex;
constinit std::size_t list_size = 0;

/// With `list_mutex` locked.
void tell_debugger(DebuggerAction action, jit_code_entry* entry) {
  __jit_debug_descriptor.relevant_entry = entry;
  __jit_debug_descriptor.action_flag = static_cast<uint32_t>(action);
  __jit_debug_register_code();
  __jit_debug_descriptor.relevant_entry = nullptr;
  __jit_debug_descriptor.action_flag = static_cast<uint32_t>(DebuggerAction::none);
}

}  // namespace

struct DebuggerEntry::Entry : jit_code_entry {
  std::vector<std::byte> object;
};

DebuggerEntry::DebuggerEntry(const CodeSymbols& symbols) {
  auto made = std::make_unique<Entry>();
  made->object = debug_object(symbols);
  made->symfile_addr = reinterpret_cast<const char*>(made->object.data());
  made->symfile_size = made->object.size();
  const std::lock_guard lock(list_mutex);
  made->next_entry = __jit_debug_descriptor.first_entry;
  if (made->next_entry != nullptr) made->next_entry->prev_entry = made.get();
  __jit_debug_descriptor.first_entry = made.get();
  ++list_size;
  tell_debugger(DebuggerAction::add, made.get());
  entry_.reset(made.release());
}

void DebuggerEntry::Remove::operator()(Entry* entry) const noexcept {
  const std::unique_ptr<Entry> removed(entry);
  const std::lock_guard lock(list_mutex);
  (entry->prev_entry != nullptr ? entry->prev_entry->next_entry
                                : __jit_debug_descriptor.first_entry) = entry->next_entry;
  if (entry->next_entry != nullptr) entry->next_entry->prev_entry = entry->prev_entry;
  --list_size;
  tell_debugger(DebuggerAction::remove, entry);
}

std::size_t DebuggerEntry::count() {
  const std::lock_guard lock(list_mutex);
  return list_size;
}

}  // namespace nitinol::cpu
