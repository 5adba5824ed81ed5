#include "core/error.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdlib>
#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <mutex>
#include <string_view>
#include <sys/auxv.h>
#include <utility>
#ifdef NITINOL_BACKTRACE
#  include <backtrace.h>
#endif

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

#ifdef NITINOL_BACKTRACE
// Reads the line tables of the program and its libraries; empty if they have none.
std::string line_of(uintptr_t address) {
  static backtrace_state* const state = backtrace_create_state(
      nullptr, 1, [](void*, const char*, int) {}, nullptr);
  if (state == nullptr) return {};
  std::string found;
  backtrace_pcinfo(
      state, address,
      [](void* result, uintptr_t, const char* file, int line, const char*) {
        if (file == nullptr) return 0;
        *static_cast<std::string*>(result) = fmt::format("{}:{}", file, line);
        return 1;  // the innermost inlined function
      },
      [](void*, const char*, int) {}, &found);
  return found;
}
#else
std::string line_of(uintptr_t) {
  return {};
}
#endif

Dl_info object_with(const void* address) {
  Dl_info info{};
  return dladdr(address, &info) != 0 ? info : Dl_info{};
}

bool is_runtime_library(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view start : {"libc.", "libgomp", "libstdc++", "libpthread", "ld-linux"}) {
    if (name.starts_with(start)) return true;
  }
  return false;
}

// Where the user's code called the library: the innermost return address outside it. Nothing if the
// Error was not made by the library, on a worker thread, or if the library is part of the program
// (a static build), whose frames look like the user's.
const void* call_from_outside() {
  static const void* const library =
      object_with(reinterpret_cast<const void*>(&call_from_outside)).dli_fbase;
  static const void* const program =
      object_with(reinterpret_cast<const void*>(getauxval(AT_PHDR))).dli_fbase;
  if (library == nullptr || library == program) return nullptr;
  constexpr int most_frames = 64;
  constexpr int own_frames = 2;  // this function and the constructor
  void* frames[most_frames];
  const int count = backtrace(frames, most_frames);
  int own = 0;  // a sanitizer's backtrace() lies before
  while (own < count && object_with(frames[own]).dli_fbase != library) ++own;
  for (int i = own + own_frames; i < count; ++i) {
    const Dl_info object = object_with(frames[i]);
    if (object.dli_fbase == library) continue;
    const bool is_users = i > own + own_frames && object.dli_fname != nullptr &&
                          !is_runtime_library(object.dli_fname);
    return is_users ? frames[i] : nullptr;
  }
  return nullptr;
}

}  // namespace

std::string describe_return_address(const void* address) {
  // The call lies before the address it returns to, which may already be the next line.
  const auto call = reinterpret_cast<uintptr_t>(address) - 1;
  std::string line = line_of(call);
  if (!line.empty()) return line;
  Dl_info info{};
  const void* in_call = static_cast<const std::byte*>(address) - 1;
  if (dladdr(in_call, &info) != 0) {
    if (info.dli_sname != nullptr) {
      return fmt::format("{} + {:#x}", demangled(info.dli_sname),
                         call - reinterpret_cast<uintptr_t>(info.dli_saddr));
    }
    if (info.dli_fname != nullptr) {
      return fmt::format("{} + {:#x}", info.dli_fname,
                         call - reinterpret_cast<uintptr_t>(info.dli_fbase));
    }
  }
  return fmt::format("{:#x}", call);
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
  const void* return_address = nullptr;

  // Filled at the first use, under `once`.
  std::once_flag once;
  std::string location;
  std::string full_text;

  void resolve() {
    std::call_once(once, [this] {
      if (return_address != nullptr) location = describe_return_address(return_address);
      full_text = location.empty() ? message : message + "\nat " + location;
    });
  }
};

Error::Error(ErrorKind kind, ErrorReport report) : state_(std::make_shared<State>()) {
  state_->kind = kind;
  state_->message = text_of(report);
  state_->report = std::move(report);
  state_->return_address = call_from_outside();
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
  return state;
}

Error Error::with_location(std::source_location location) const {
  auto state = copy_of_state();
  state->location = fmt::format("{}:{}", location.file_name(), location.line());
  return Error(std::move(state));
}

Error Error::with_return_address(const void* address) const {
  auto state = copy_of_state();
  state->return_address = address;
  return Error(std::move(state));
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
