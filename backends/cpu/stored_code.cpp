#include "backends/cpu/stored_code.h"

#include "backends/cpu/generator_id.h"
#include "backends/cpu/jit_loader.h"
#include "backends/disk/code_store.h"
#include "core/environment.h"
#include "core/error.h"
#include "core/kernel.h"
#include "core/log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::cpu {
namespace {

std::optional<StageCodes> found(CodeStore& store, const std::vector<std::byte>& key,
                                const Kernel& kernel) {
  CodeOrigin origin = CodeOrigin::disk;
  std::optional<std::vector<std::byte>> bytes = store.find(key, &origin);
  if (!bytes) return std::nullopt;
  try {
    return load_stages({.bytes = std::move(*bytes), .report = {.origin = origin}}, kernel);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::compile) throw;
    log(LogLevel::warning, fmt::format("code on disk, in {}, is made anew: {}",
                                       store.folder().string(), error.report().what));
    return std::nullopt;
  }
}

/// NITINOL_KEEP_FOR: levels whose code is kept, too.
const std::vector<Isa>& kept_levels() {
  static const std::vector<Isa> levels = [] {
    constexpr std::array<Isa, 3> all = {Isa::baseline, Isa::avx2, Isa::avx512};
    std::array<std::string_view, all.size()> names;
    std::ranges::transform(all, names.begin(), [](Isa isa) { return name_of(isa); });
    const std::vector<std::string> named = environment_list("NITINOL_KEEP_FOR", names);
    std::vector<Isa> wanted;
    for (const Isa isa : all) {
      if (std::ranges::find(named, name_of(isa)) != named.end()) wanted.push_back(isa);
    }
    return wanted;
  }();
  return levels;
}

/// Whether what the generator writes on the way is to be printed.
bool is_dumped() {
  static const bool is_asked = [] {
    const std::string list = "," + environment_text("NITINOL_DUMP") + ",";
    return list.find(",llvm,") != std::string::npos || list.find(",asm,") != std::string::npos;
  }();
  return is_asked;
}

}  // namespace

std::vector<std::byte> code_key(const Kernel& kernel, Isa isa) {
#if defined(__x86_64__)
  constexpr const char* machine = "x86_64";
#else
  constexpr const char* machine = "aarch64";
#endif
  const std::string head =
      fmt::format("cpu 1 {} {} {}", machine, name_of(isa), NITINOL_GENERATOR_ID);
  std::vector<std::byte> key(head.size() + 1);
  std::ranges::transform(head, key.begin(), [](char c) { return static_cast<std::byte>(c); });
  const std::vector<std::byte> rest = canonical_bytes(kernel);
  key.insert(key.end(), rest.begin(), rest.end());
  return key;
}

void keep_code(const Kernel& kernel, std::span<const Isa> levels, CodeStore& store) {
  for (const Isa isa : levels) {
    const std::vector<std::byte> key = code_key(kernel, isa);
    JitPlugin* const plugin = store.find(key) ? nullptr : jit_plugin();
    if (plugin != nullptr) store.keep(key, plugin->generate(kernel, isa, Effort::full).bytes);
  }
}

std::optional<StageCodes> code_of(const Kernel& kernel, Isa isa, CodeStore* store, Effort effort) {
  if (is_dumped()) store = nullptr;
  std::vector<std::byte> key;
  if (store != nullptr) {
    keep_code(kernel, kept_levels(), *store);
    key = code_key(kernel, isa);
    if (std::optional<StageCodes> codes = found(*store, key, kernel)) return codes;
  }
  JitPlugin* const plugin = jit_plugin();
  if (plugin == nullptr) return std::nullopt;
  const GeneratedObject object = plugin->generate(kernel, isa, effort);
  std::optional<StageCodes> codes = load_stages(object, kernel);
  if (store != nullptr && effort == Effort::full) store->keep(key, object.bytes);
  return codes;
}

}  // namespace nitinol::cpu
