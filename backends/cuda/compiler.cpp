#include "backends/cuda/compiler.h"

#include "backends/code_store.h"
#include "backends/cuda/libraries.h"
#include "backends/cuda/prelude.h"
#include "backends/cuda/printer.h"
#include "core/error.h"
#include "core/fields.h"
#include "core/hash.h"
#include "core/kernel.h"
#include "core/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <list>
#include <mutex>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace nitinol::cuda {
namespace {

constexpr const char* file_name = "kernel.cu";

/// The lines that a log of NVRTC mentions, with their neighbours and numbers.
std::string mentioned_lines(const std::string& text, const std::string& log) {
  std::set<int> wanted;
  const std::string mark = std::string(file_name) + "(";
  for (std::size_t at = log.find(mark); at != std::string::npos; at = log.find(mark, at + 1)) {
    const int line = std::atoi(log.c_str() + at + mark.size());
    for (int near = line - 1; near <= line + 1 && wanted.size() < 30; ++near) wanted.insert(near);
  }
  std::string lines;
  std::size_t begin = 0;
  for (int number = 1; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (wanted.contains(number))
      lines += fmt::format("\n  {:4} {}", number, text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

/// The version from which on NVRTC is known to have the option -minimal.
constexpr int first_minimal = 12'090;

/// A program of NVRTC's, compiled.
class Compilation {
 public:
  Compilation(const std::string& text, const std::string& architecture) {
    if (library_.nvrtcCreateProgram(&program_, text.c_str(), file_name, 0, nullptr, nullptr) != 0)
      throw Error(ErrorKind::compile, {.where = "NVRTC", .what = "no program could be made"});
    const std::string arch = "-arch=" + architecture;
    std::vector<const char*> options = {arch.c_str(), "-fmad=false", "-std=c++17",
                                        "-default-device", "--no-source-include"};
    // Leaves out textures and the like: 4 of 20 ms for a kernel that does next to nothing.
    if (nvrtc_version() >= first_minimal) options.push_back("-minimal");
    const int result =
        library_.nvrtcCompileProgram(program_, static_cast<int>(options.size()), options.data());
    if (result == 0) return;
    const std::string log = said();
    const std::string why = library_.nvrtcGetErrorString(result);
    library_.nvrtcDestroyProgram(&program_);
    throw Error(ErrorKind::compile, {.where = "NVRTC",
                                     .what = fmt::format("{} for {}:\n{}{}", why, architecture, log,
                                                         mentioned_lines(text, log))});
  }
  Compilation(const Compilation&) = delete;
  Compilation& operator=(const Compilation&) = delete;
  ~Compilation() { library_.nvrtcDestroyProgram(&program_); }

  [[nodiscard]] Cubin cubin() const {
    std::size_t bytes = 0;
    expect_success(library_.nvrtcGetCUBINSize(program_, &bytes));
    Cubin cubin(bytes);
    expect_success(library_.nvrtcGetCUBIN(program_, reinterpret_cast<char*>(cubin.data())));
    return cubin;
  }
  [[nodiscard]] std::string ptx() const {
    std::size_t bytes = 0;
    expect_success(library_.nvrtcGetPTXSize(program_, &bytes));
    std::string text(bytes, '\0');
    expect_success(library_.nvrtcGetPTX(program_, text.data()));
    return text;
  }

 private:
  void expect_success(int result) const {
    if (result == 0) return;
    throw Error(ErrorKind::compile,
                {.where = "NVRTC", .what = library_.nvrtcGetErrorString(result)});
  }
  /// The compiler's messages, as far as it gives them out.
  [[nodiscard]] std::string said() const {
    std::size_t bytes = 0;
    if (library_.nvrtcGetProgramLogSize(program_, &bytes) != 0) return {};
    std::string log(bytes, '\0');
    if (library_.nvrtcGetProgramLog(program_, log.data()) != 0) return {};
    return log.c_str();
  }

  const Nvrtc& library_ = nvrtc();
  Nvrtc::Program program_ = nullptr;
};

/// A key in the making: what all begin with is what all depend on.
class KeyWriter {
 public:
  explicit KeyWriter(int architecture) {
    add_text("cuda");
    add(int32_t{printer_version});
    add_text(nvrtc_identity());
    add(int32_t{architecture});
    // The words are part of what is compiled; so a change of theirs needs no new number.
    add_text(device_words());
    add_text(common_words());
  }
  template <class T>
  void add(const T& value) {
    bytes_.resize(bytes_.size() + sizeof value);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof value, &value, sizeof value);
  }
  void add_text(std::string_view text) {
    add(static_cast<uint64_t>(text.size()));
    for (const char c : text) bytes_.push_back(static_cast<std::byte>(c));
  }
  void add_bytes(const std::vector<std::byte>& bytes) {
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  }
  [[nodiscard]] std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

std::vector<std::byte> key_of(const Request& request) {
  KeyWriter key(request.architecture);
  key.add_text("kernel");
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (key.add(reflection::field<i>(request.schedule)), ...);
  }
  (std::make_index_sequence<reflection::field_count<Schedule>>());
  key.add_bytes(canonical_bytes(*request.kernel));
  return key.take();
}

std::vector<std::byte> key_of(const std::string& text, int architecture) {
  KeyWriter key(architecture);
  key.add_text("text");
  key.add_text(text);
  return key.take();
}

struct HashOfKey {
  std::size_t operator()(const std::vector<std::byte>& key) const {
    return std::hash<std::string_view>()({reinterpret_cast<const char*>(key.data()), key.size()});
  }
};

}  // namespace

Cubin compile_text(const std::string& text, int architecture) {
  return Compilation(text, fmt::format("sm_{}", architecture)).cubin();
}

std::string ptx_of(const std::string& text, int architecture) {
  return Compilation(text, fmt::format("compute_{}", architecture)).ptx();
}

std::string text_of(const Request& request) {
  return fmt::format("{}{}{}", device_words(), common_words(),
                     print(*request.kernel, request.schedule));
}

struct CubinCache::State {
  using Key = std::vector<std::byte>;
  using Maker = std::function<Cubin()>;
  struct Entry {
    std::shared_ptr<const Cubin> cubin;  ///< null while it is being made
    std::list<const Key*>::iterator use;
    bool is_used = false;  ///< `use` is valid
  };

  CodeStore* store;
  std::size_t most_bytes;
  std::mutex mutex;
  std::condition_variable made;
  std::unordered_map<Key, Entry, HashOfKey> entries;
  std::list<const Key*> uses;  ///< the latest first
  std::size_t bytes = 0;
  Counts counts;

  void note_use(Entry& entry) { uses.splice(uses.begin(), uses, entry.use); }

  void make_room() {
    while (bytes > most_bytes && uses.size() > 1) {
      const auto oldest = entries.find(*uses.back());
      bytes -= oldest->second.cubin->size();
      uses.pop_back();
      entries.erase(oldest);
    }
  }

  /// From disk, or compiled; without the lock.
  std::shared_ptr<const Cubin> make(const Key& key, const Maker& maker, bool& is_from_disk) {
    if (store != nullptr) {
      if (auto found = store->find(key)) {
        is_from_disk = true;
        return std::make_shared<const Cubin>(std::move(*found));
      }
    }
    auto cubin = std::make_shared<const Cubin>(maker());
    if (store != nullptr) store->keep(key, *cubin);
    return cubin;
  }

  /// From memory, or made by one of those who ask for it.
  std::shared_ptr<const Cubin> get(const Key& key, const Maker& maker);
};

CubinCache::CubinCache(CodeStore* store, std::size_t most_bytes)
    : state_(std::make_unique<State>()) {
  state_->store = store;
  state_->most_bytes = most_bytes;
}

CubinCache::~CubinCache() = default;

CubinCache& CubinCache::instance() {
  static CubinCache& cache = *new CubinCache(CodeStore::of_user());
  return cache;
}

std::shared_ptr<const Cubin> CubinCache::State::get(const Key& key, const Maker& maker) {
  std::unique_lock lock(mutex);
  for (;;) {
    const auto found = entries.find(key);
    if (found == entries.end()) break;
    if (found->second.cubin != nullptr) {
      ++counts.in_memory;
      note_use(found->second);
      return found->second.cubin;
    }
    made.wait(lock);  // and look again: it may have failed, or gone
  }
  entries.try_emplace(key);
  lock.unlock();
  std::shared_ptr<const Cubin> cubin;
  bool is_from_disk = false;
  try {
    cubin = make(key, maker, is_from_disk);
  } catch (...) {
    lock.lock();
    entries.erase(key);
    made.notify_all();
    throw;
  }
  lock.lock();
  ++(is_from_disk ? counts.on_disk : counts.compiled);
  const auto entry = entries.find(key);
  entry->second.cubin = cubin;
  entry->second.use = uses.insert(uses.begin(), &entry->first);
  bytes += cubin->size();
  make_room();
  made.notify_all();
  return cubin;
}

std::shared_ptr<const Cubin> CubinCache::get(const Request& request) {
  return state_->get(key_of(request),
                     [&] { return compile_text(text_of(request), request.architecture); });
}

std::shared_ptr<const Cubin> CubinCache::get_text(const std::string& text, int architecture) {
  return state_->get(key_of(text, architecture), [&] {
    return compile_text(fmt::format("{}{}{}", device_words(), common_words(), text), architecture);
  });
}

std::vector<std::shared_ptr<const Cubin>> CubinCache::get_all(std::span<const Request> requests) {
  std::vector<std::shared_ptr<const Cubin>> cubins(requests.size());
  std::vector<std::exception_ptr> failures(requests.size());
  parallel_for(0, static_cast<int64_t>(requests.size()), 1, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const auto at = static_cast<std::size_t>(i);
      try {
        cubins[at] = get(requests[at]);
      } catch (...) {
        failures[at] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  return cubins;
}

CubinCache::Counts CubinCache::counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

}  // namespace nitinol::cuda
