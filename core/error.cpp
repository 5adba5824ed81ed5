#include "core/error.h"

#include "core/callable.h"
#include "core/line_tables.h"
#include "core/per_thread.h"
#include "core/place.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <initializer_list>
#include <mutex>
#include <optional>
#include <string_view>
#include <sys/auxv.h>
#include <thread>
#include <unwind.h>
#include <utility>
#include <vector>

namespace nitinol {

namespace {

std::string text_of(const ErrorReport& report) {
  std::string text;
  const auto add = [&text](std::string_view separator, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += separator;
    text += part;
  };
  add("", report.where);
  add(": ", report.what);
  if (!report.expected.empty()) add(": ", "expected " + report.expected);
  if (!report.got.empty()) add(report.expected.empty() ? ": " : ", ", "got " + report.got);
  text += '.';
  add("\n", report.fix);
  return text;
}

std::string demangled(const char* symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> name(
      abi::__cxa_demangle(symbol, nullptr, nullptr, &status), &std::free);
  return status == 0 ? name.get() : symbol;
}

bool starts_with_any(std::string_view text, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [&](auto start) { return text.starts_with(start); });
}

/// True for headers, the standard library's too, whose names have no extension.
bool is_header(std::string_view file) {
  const std::size_t point = file.substr(file.rfind('/') + 1).rfind('.');
  if (point == std::string_view::npos) return true;
  return starts_with_any(file.substr(file.rfind('.')), {".h", ".tcc", ".ipp"});
}

/// Whether a function is a template or inline function of ours, of the standard library or of fmt,
/// so that not it but who called it is the user's. `symbol` is mangled.
bool is_library_function(std::string_view symbol) {
  return starts_with_any(symbol, {"_ZN7nitinol", "_ZNK7nitinol", "_ZZN7nitinol", "_ZZNK7nitinol",
                                  "_ZSt", "_ZNSt", "_ZNKSt", "_ZZNSt", "_ZN9__gnu_cxx", "_ZN3fmt",
                                  "_ZNK3fmt", "_ZZN3fmt", "_ZZNK3fmt"});
}

/// Whether a header lies in one of our folders: what tells where short debug information has a
/// lambda's plain name only, "operator()".
bool is_our_header(std::string_view file) {
  file = file.substr(0, std::min(file.rfind('/'), file.size()));
  const std::string_view folder = file.substr(file.rfind('/') + 1);
  constexpr std::string_view folders[] = {"core",     "math",   "eager", "ops",
                                          "autograd", "tracer", "jit",   "nn"};
  return std::ranges::find(folders, folder) != std::ranges::end(folders);
}

/// What is known of an address: its line, or its function.
struct Place {
  std::string line;
  bool is_users = true;
};

// From the line tables of the program and its libraries; an empty line if they have none. Of
// inlined functions the innermost that is the user's counts.
Place place_of(uintptr_t address) {
  Place found;
  for_each_line(address, [&found](const char* file, int line, const char* function) {
    const std::string_view name = function == nullptr ? "" : function;
    const bool is_library =
        name.starts_with("_Z") ? is_library_function(name) : is_our_header(file);
    found.is_users = !is_header(file) || !is_library;
    if (found.is_users || found.line.empty()) found.line = fmt::format("{}:{}", file, line);
    return found.is_users;
  });
  return found;
}

/// The addresses of the library's code; none if it is part of the program (a static build), whose
/// frames look like the user's.
struct LibraryCode {
  const void* begin = nullptr;
  const void* end = nullptr;
  [[nodiscard]] bool is_known() const { return begin != nullptr; }
  [[nodiscard]] bool contains(const void* address) const {
    return address >= begin && address < end;
  }
};
const LibraryCode& library_code() {
  static const LibraryCode code = [] {
    dl_find_object here = {}, program = {};
    const bool is_known =
        _dl_find_object(reinterpret_cast<void*>(&library_code), &here) == 0 &&
        _dl_find_object(reinterpret_cast<void*>(getauxval(AT_PHDR)), &program) == 0;
    return is_known && here.dlfo_map_start != program.dlfo_map_start
               ? LibraryCode{here.dlfo_map_start, here.dlfo_map_end}
               : LibraryCode{};
  }();
  return code;
}

bool is_runtime_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view start : {"libc.", "libgomp", "libstdc++", "libpthread", "ld-linux"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

// How the user's code came to call the library: return addresses from the innermost outside it on.
// None if the Error was not made by the library, on a worker thread, or if the library's code is
// not known.
std::vector<const void*> calls_from_outside() {
  const LibraryCode& library = library_code();
  if (!library.is_known()) return {};
  constexpr int most_frames = 64;
  constexpr int own_frames = 2;  // this function and the constructor
  void* frames[most_frames];
  const int count = backtrace(frames, most_frames);
  int own = 0;  // a sanitizer's backtrace() lies before
  while (own < count && !library.contains(frames[own])) ++own;
  int i = own + own_frames;
  while (i < count && library.contains(frames[i])) ++i;
  if (i >= count || i == own + own_frames) return {};
  Dl_info object{};
  const bool is_users = dladdr(frames[i], &object) != 0 && object.dli_fname != nullptr &&
                        !is_runtime_library(object.dli_fname);
  return is_users ? std::vector<const void*>(frames + i, frames + count)
                  : std::vector<const void*>();
}

/// The function that a call lies in, its object, or the bare address.
struct CalledFrom {
  std::string text;
  bool is_users = true;
};
CalledFrom function_of(const void* address) {
  const uintptr_t call = reinterpret_cast<uintptr_t>(address) - 1;
  Dl_info info{};
  if (dladdr(static_cast<const std::byte*>(address) - 1, &info) == 0)
    return {fmt::format("{:#x}", call)};
  if (info.dli_sname != nullptr) {
    return {fmt::format("{} + {:#x}", demangled(info.dli_sname),
                        call - reinterpret_cast<uintptr_t>(info.dli_saddr)),
            !is_library_function(info.dli_sname)};
  }
  if (info.dli_fname == nullptr) return {fmt::format("{:#x}", call)};
  return {
      fmt::format("{} + {:#x}", info.dli_fname, call - reinterpret_cast<uintptr_t>(info.dli_fbase)),
      !is_runtime_library(info.dli_fname)};
}

/// The call that returns to `address`.
CalledFrom describe_call(const void* address) {
  // It lies before the address, which may already be the next line.
  const Place place = place_of(reinterpret_cast<uintptr_t>(address) - 1);
  if (!place.line.empty()) return {place.line, place.is_users};
  return function_of(address);
}

/// The innermost of these calls that stands in the user's code and not in a header that the user's
/// code includes: of ours (nn::load) or of the standard library (std::max of two tensors).
std::string describe_calls(const std::vector<const void*>& calls) {
  for (const void* address : calls) {
    CalledFrom call = describe_call(address);
    if (call.is_users) return call.text;
  }
  return calls.empty() ? "" : describe_call(calls.front()).text;
}

}  // namespace

std::string describe_return_address(const void* address) {
  return describe_call(address).text;
}

std::string describe_users_call() {
  return describe_calls(calls_from_outside());
}

namespace {

/// The first calls outside the library, the innermost first. Recordings ask at each operation:
/// unlike calls_from_outside() the walk goes no further than it must.
struct NearestCalls {
  static constexpr std::size_t most = 4;  ///< through templates and inline functions of headers
  std::array<const void*, most> calls = {};
  std::size_t count = 0;
};

/// A walk over the stack. What a loop does asks from the same places in each round: if the walk
/// begins in a frame of the same address, and each return address on its way is where it was, then
/// it would be the same walk. (It is compared from the inside on, so that each is in the frame that
/// has been found to be the same.)
struct Walk {
  struct Return {
    const void* const* slot;
    const void* address;
  };
  static constexpr std::size_t most_returns = 32;
  const void* from = nullptr;  ///< the frame in which it began; null: it is not to be compared
  std::array<Return, most_returns> returns = {};
  std::size_t count = 0;
  bool is_in_walker = true;  ///< its own frame, which is not compared
  bool is_known = true;      ///< where all return addresses are
  NearestCalls nearest;

  [[gnu::noinline, gnu::no_sanitize("address", "thread")]] bool is_same(const void* frame) const {
    if (frame != from) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (*returns[i].slot != returns[i].address) return false;
    }
    return true;
  }

  static _Unwind_Reason_Code visit(_Unwind_Context* context, void* into) {
    auto& walk = *static_cast<Walk*>(into);
    const auto address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
    if (!std::exchange(walk.is_in_walker, false)) walk.note(context, address);
    NearestCalls& nearest = walk.nearest;
    const bool is_inside = library_code().contains(address);
    if (!is_inside) nearest.calls[nearest.count++] = address;
    return nearest.count < NearestCalls::most && (!is_inside || nearest.count == 0)
               ? _URC_NO_REASON
               : _URC_END_OF_STACK;
  }

 private:
  /// Where the call has left its return address: on x86 below what the stack was before.
  [[gnu::no_sanitize("address", "thread")]] void note([[maybe_unused]] _Unwind_Context* context,
                                                      [[maybe_unused]] const void* address) {
#if defined(__x86_64__)
    const auto* const slot =
        reinterpret_cast<const void* const*>(_Unwind_GetCFA(context)) - 1;  // NOLINT
    is_known = is_known && count < most_returns && *slot == address;
    if (is_known) returns[count++] = {slot, address};
#else
    is_known = false;
#endif
  }
};

/// A thread's latest walks: as many as a step of training has places.
struct Walks {
  std::array<Walk, 32> walks;
  std::size_t oldest = 0;
};

[[gnu::noinline]] NearestCalls nearest_calls() {
  Walks* const known = PerThread<Walks>::get();
  const void* const frame = __builtin_frame_address(0);
  if (known != nullptr) {
    for (const Walk& walk : known->walks) {
      if (walk.is_same(frame)) return walk.nearest;
    }
  }
  Walk walk;
  _Unwind_Backtrace(Walk::visit, &walk);
  walk.from = walk.is_known ? frame : nullptr;
  if (known != nullptr) known->walks[known->oldest++ % known->walks.size()] = walk;
  return walk.nearest;
}

/// Of the OnePlaceScope that is open on this thread.
constinit thread_local std::optional<CallSite>* one_place = nullptr;

}  // namespace

OnePlaceScope::OnePlaceScope(std::optional<CallSite>& place)
    : outer_(std::exchange(one_place, &place)) {}

OnePlaceScope::~OnePlaceScope() {
  one_place = outer_;
}

CallSite CallSite::here() {
  if (one_place != nullptr && *one_place) return **one_place;
  CallSite site;
  site.given_ = given_place();
  if (site.given_.empty() && library_code().is_known()) {
    const NearestCalls nearest = nearest_calls();
    site.calls_.assign(nearest.calls.begin(), nearest.calls.begin() + nearest.count);
  }
  if (one_place != nullptr) *one_place = site;
  return site;
}

const CallSite& CallSite::here_or_default(std::optional<CallSite>& own) {
  std::optional<CallSite>& found = one_place != nullptr ? *one_place : own;
  if (&found != &own && found) return *found;
  CallSite site;
  site.given_ = default_place();
  found = site.given_.empty() ? here() : std::move(site);
  return *found;
}

std::string CallSite::text() const {
  return given_.empty() ? describe_calls(calls_) : given_;
}

std::string_view name_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::shape:
      return "shape";
    case ErrorKind::dtype:
      return "dtype";
    case ErrorKind::device:
      return "device";
    case ErrorKind::value:
      return "value";
    case ErrorKind::io:
      return "io";
    case ErrorKind::compile:
      return "compile";
    case ErrorKind::unsupported:
      return "unsupported";
    case ErrorKind::internal:
      return "internal";
  }
  return "unknown";
}

struct Error::State {
  ErrorKind kind{};
  ErrorReport report;
  std::string message;
  std::vector<const void*> calls;                       ///< return addresses, the innermost first
  std::thread::id thread = std::this_thread::get_id();  ///< that made it

  // Filled at the first use, under `once`.
  std::once_flag once;
  std::atomic<bool> is_resolved = false;
  std::string location;
  std::string full_text;

  void resolve() {
    if (is_resolved.load(std::memory_order_acquire)) return;
    // Asked before: others that look meanwhile may hold what the provider waits for.
    std::string given = thread == std::this_thread::get_id() ? given_place() : "";
    std::call_once(once, [&] {
      if (!given.empty()) location = std::move(given);
      if (location.empty()) location = describe_calls(calls);
      full_text = location.empty() ? message : message + "\nat " + location;
      is_resolved.store(true, std::memory_order_release);
    });
  }
};

Error::Error(ErrorKind kind, ErrorReport report) : state_(std::make_shared<State>()) {
  state_->kind = kind;
  state_->message = text_of(report);
  state_->report = std::move(report);
  state_->calls = calls_from_outside();
}

Error::Error(std::shared_ptr<State> state) noexcept : state_(std::move(state)) {}

ErrorKind Error::kind() const noexcept {
  return state_->kind;
}

const ErrorReport& Error::report() const noexcept {
  return state_->report;
}

const std::string& Error::message() const noexcept {
  return state_->message;
}

const std::string& Error::location() const noexcept {
  try {
    state_->resolve();
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory; the message must do
  }
  return state_->location;
}

const char* Error::what() const noexcept {
  try {
    state_->resolve();
    return state_->full_text.c_str();
  } catch (...) {
    return state_->message.c_str();
  }
}

std::shared_ptr<Error::State> Error::copy_of_state() const {
  auto state = std::make_shared<State>();
  state->kind = state_->kind;
  state->report = state_->report;
  state->message = state_->message;
  state->thread = state_->thread;
  return state;
}

Error Error::with_location(std::source_location location) const {
  if (location.line() == 0) return *this;
  auto state = copy_of_state();
  state->location = fmt::format("{}:{}", location.file_name(), location.line());
  return Error(std::move(state));
}

Error Error::with_return_address(const void* address) const {
  auto state = copy_of_state();
  state->calls = state_->calls;
  if (state->calls.empty()) state->calls.push_back(address);
  return Error(std::move(state));
}

void throw_empty_function(const char* where) {
  throw Error(ErrorKind::value, {.where = where,
                                 .what = "the function to call",
                                 .expected = "one that can be called",
                                 .got = "an empty one",
                                 .fix = "Initialise it before it is passed."});
}

void assertion_failed(std::string_view condition, std::string_view reason,
                      std::source_location location) {
  throw Error(ErrorKind::internal,
              {.where = fmt::format("{}:{}", location.file_name(), location.line()),
               .what = std::string(reason),
               .expected = std::string(condition),
               .fix = "This is a bug in Nitinol: please report it with this message."});
}

}  // namespace nitinol
