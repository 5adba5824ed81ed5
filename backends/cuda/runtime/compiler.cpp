#include "backends/cuda/runtime/compiler.h"

#include "backends/cuda/runtime/libraries.h"
#include "backends/cuda/text/prelude.h"
#include "backends/cuda/text/printer.h"
#include "backends/disk/code_store.h"
#include "core/error.h"
#include "core/executables.h"
#include "core/fields.h"
#include "core/function_ref.h"
#include "core/hash.h"
#include "core/kernel.h"
#include "core/once_cache.h"
#include "core/parallel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
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

/// The version from which on NVRTC is known to have the options -minimal and -no-cache.
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
    if (nvrtc_version() >= first_minimal) {
      // Leaves out textures and the like: 4 of 20 ms for a kernel that does next to nothing.
      options.push_back("-minimal");
      // Cubins are kept here, by keys that say all they depend on. NVRTC would ask the driver's
      // cache.
      options.push_back("-no-cache");
    }
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

using Bytes = std::vector<std::byte>;

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
  [[nodiscard]] Bytes take() { return std::move(bytes_); }

 private:
  Bytes bytes_;
};

Bytes key_of(const Request& request) {
  KeyWriter key(request.architecture);
  key.add_text("kernel in a program");
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (key.add(reflection::field<i>(request.schedule)), ...);
  }
  (std::make_index_sequence<reflection::field_count<Schedule>>());
  key.add_bytes(canonical_bytes(*request.kernel));
  return key.take();
}

Bytes key_of(const std::string& text, int architecture) {
  KeyWriter key(architecture);
  key.add_text("text");
  key.add_text(text);
  return key.take();
}

/// Shares kernels out among programs: of up to `most_parts` each, and as many as threads can
/// compile side by side.
std::vector<std::vector<std::size_t>> shared_out(const std::vector<std::size_t>& all) {
  constexpr std::size_t most_parts = 6;
  const auto threads = static_cast<std::size_t>(num_threads());
  const std::size_t rounds = (all.size() + most_parts * threads - 1) / (most_parts * threads);
  std::vector<std::vector<std::size_t>> programs(std::min(all.size(), rounds * threads));
  for (std::size_t i = 0; i < all.size(); ++i) programs[i % programs.size()].push_back(all[i]);
  return programs;
}

std::size_t hash_of(const Bytes& key) {
  return std::hash<std::string_view>()({reinterpret_cast<const char*>(key.data()), key.size()});
}

/// The newest architecture that NVRTC makes code for.
int newest_architecture() {
  static const int newest = [] {
    int count = 0;
    if (nvrtc().nvrtcGetNumSupportedArchs(&count) != 0 || count <= 0)
      return std::numeric_limits<int>::max();
    std::vector<int> all(static_cast<std::size_t>(count));
    if (nvrtc().nvrtcGetSupportedArchs(all.data()) != 0) return std::numeric_limits<int>::max();
    return *std::ranges::max_element(all);
  }();
  return newest;
}

}  // namespace

Cubin compile_text(const std::string& text, int architecture) {
  if (const int newest = newest_architecture(); architecture > newest) {
    // The driver, which is as new as the GPU, makes the rest of PTX.
    const std::string ptx = ptx_of(text, newest);
    Cubin code(ptx.size() + 1);
    std::memcpy(code.data(), ptx.c_str(), code.size());
    return code;
  }
  return Compilation(text, fmt::format("sm_{}", architecture)).cubin();
}

std::string ptx_of(const std::string& text, int architecture) {
  return Compilation(text, fmt::format("compute_{}", architecture)).ptx();
}

std::string function_name(int part, std::size_t number) {
  return part == 0 ? fmt::format("entry{}", number) : fmt::format("part{}_entry{}", part, number);
}

std::string text_of(const Request& request) {
  return fmt::format("{}{}{}", device_words(), common_words(),
                     print(*request.kernel, request.schedule));
}

std::string text_of_all(std::span<const Request> requests) {
  constexpr std::string_view mark = "KERNEL(";
  std::string all = fmt::format("{}{}", device_words(), common_words());
  int part = 0;
  for (const Request& request : requests) {
    std::string text = print(*request.kernel, request.schedule);
    const std::string prefix = fmt::format("part{}_", ++part);
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + 1))
      text.insert(at + mark.size(), prefix);
    all += fmt::format("namespace part{} {{\n{}}}\n", part, text);
  }
  return all;
}

struct CubinCache::State {
  using Cache = OnceCache<Bytes, Code>;

  State(CodeStore* its_store, std::size_t most_bytes) : store(its_store), cache(most_bytes) {}

  CodeStore* store;
  Cache cache;
  std::atomic<uint64_t> on_disk = 0, compiled = 0;

  // Files hold the part, then the cubin.
  [[nodiscard]] std::optional<Cache::Made> find_on_disk(const Bytes& key);
  [[nodiscard]] Cache::Made keep(const Bytes& key, const Code& code);
  /// Compiles claims as one program.
  void make_program(Cache::Claims& claims, std::span<const std::size_t> which,
                    std::span<const Request> requests);

  template <class Compile>
  Code get(const Bytes& key, const Compile& compile) {
    return cache.get(hash_of(key), key, [&] {
      if (auto found = find_on_disk(key)) return *std::move(found);
      return keep(key, {std::make_shared<const Cubin>(compile())});
    });
  }
};

CubinCache::CubinCache(CodeStore* store, std::size_t most_bytes)
    : state_(std::make_unique<State>(store, most_bytes)) {}

CubinCache::~CubinCache() = default;

CubinCache& CubinCache::instance() {
  static CubinCache& cache = *new CubinCache(CodeStore::of_user());
  return cache;
}

std::optional<CubinCache::State::Cache::Made> CubinCache::State::find_on_disk(const Bytes& key) {
  CodeOrigin origin = CodeOrigin::disk;
  auto found = store != nullptr ? store->find(key, &origin) : std::nullopt;
  if (!found || found->empty()) return std::nullopt;
  const auto part = std::to_integer<int>(found->front());
  found->erase(found->begin());
  ++on_disk;
  note_code(origin);
  const std::size_t bytes = found->size();
  return Cache::Made{{std::make_shared<const Cubin>(std::move(*found)), part, origin}, bytes};
}

CubinCache::State::Cache::Made CubinCache::State::keep(const Bytes& key, const Code& code) {
  ++compiled;
  if (store != nullptr) {
    Cubin file = {static_cast<std::byte>(code.part)};
    file.insert(file.end(), code.cubin->begin(), code.cubin->end());
    store->keep(key, file);
  }
  return {code, code.cubin->size()};
}

void CubinCache::State::make_program(Cache::Claims& claims, std::span<const std::size_t> which,
                                     std::span<const Request> requests) {
  std::vector<Request> wanted;
  for (const std::size_t i : which) wanted.push_back(requests[i]);
  const bool is_alone = wanted.size() == 1;
  const auto cubin = std::make_shared<const Cubin>(
      compile_text(is_alone ? text_of(wanted[0]) : text_of_all(wanted), wanted[0].architecture));
  int part = is_alone ? 0 : 1;
  for (const std::size_t i : which) claims.put(i, keep(claims.key(i), {cubin, part++}));
}

Code CubinCache::get(const Request& request) {
  return state_->get(key_of(request),
                     [&] { return compile_text(text_of(request), request.architecture); });
}

Code CubinCache::get_text(const std::string& text, int architecture) {
  return state_->get(key_of(text, architecture), [&] {
    return compile_text(fmt::format("{}{}{}", device_words(), common_words(), text), architecture);
  });
}

void CubinCache::make_all(std::span<const Request> requests) {
  State::Cache::Claims claims(state_->cache);
  std::vector<Request> claimed;
  for (const Request& request : requests) {
    if (request.architecture != requests[0].architecture) continue;  // no program is for two
    const Bytes key = key_of(request);
    if (claims.add(hash_of(key), key)) claimed.push_back(request);
  }
  const auto for_each = [](std::size_t count, FunctionRef<void(std::size_t)> take) {
    parallel_for(0, static_cast<int64_t>(count), 1, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        try {
          take(static_cast<std::size_t>(i));
        } catch (...) {  // NOLINT(bugprone-empty-catch): who gets them one by one is told why
        }
      }
    });
  };
  for_each(claims.size(), [&](std::size_t i) {
    if (const auto found = state_->find_on_disk(claims.key(i))) claims.put(i, *found);
  });
  std::vector<std::size_t> missing;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!claims.is_finished(i)) missing.push_back(i);
  }
  const std::vector<std::vector<std::size_t>> programs = shared_out(missing);
  for_each(programs.size(),
           [&](std::size_t i) { state_->make_program(claims, programs[i], claimed); });
}

std::vector<Code> CubinCache::get_all(std::span<const Request> requests) {
  make_all(requests);
  std::vector<Code> codes;
  for (const Request& request : requests) codes.push_back(get(request));
  return codes;
}

CubinCache::Counts CubinCache::counts() const {
  return {.in_memory = state_->cache.counts().hits,
          .on_disk = state_->on_disk,
          .compiled = state_->compiled};
}

}  // namespace nitinol::cuda
