// CodeStore: generated code on disk, so that another process need not generate it.
#pragma once

#include "core/build_report.h"
#include "core/fork.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace nitinol {

/// Files in one folder: pairs of a key and what was made for it. Keys are compared in full.
/// Processes may use one folder at the same time: a file appears whole or not at all. What is
/// damaged or was written by something else is ignored, with a note, and replaced. Whoever can
/// write to the folder can have code run; so it must be the user's own. What is not there may be in
/// a second folder, which came with the library and is only read. Thread-safe.
class CodeStore {
 public:
  static constexpr uint64_t default_budget = uint64_t{256} << 20;

  /// Uses `folder`, or makes it, for this user alone. `budget`: bytes that its files may take; the
  /// eighth that was not used for longest goes when they take more. Throws Error(io) if the folder
  /// cannot be used: a link, another user's, writable by others. `shipped` may also belong to root,
  /// or to whom the library's file belongs; it is not used, with a warning, if others may write to
  /// it. Either may be empty: there is no such folder, or nothing is kept.
  explicit CodeStore(std::filesystem::path folder, uint64_t budget = default_budget,
                     std::filesystem::path shipped = {});

  /// That of NITINOL_CACHE, else $XDG_CACHE_HOME/nitinol, else ~/.cache/nitinol; if that cannot be
  /// used, which is said once, none; and nitinol/code beside the library. Null if NITINOL_CACHE is
  /// 0, if there is neither, or in a process with other rights than its user's.
  [[nodiscard]] static CodeStore* of_user();

  /// `origin`, unless null, gets in which of the two it is: disk or shipped.
  [[nodiscard]] std::optional<std::vector<std::byte>> find(std::span<const std::byte> key,
                                                           CodeOrigin* origin = nullptr);
  /// Keeps a copy. What fails is noted and otherwise ignored: the code is there without it.
  void keep(std::span<const std::byte> key, std::span<const std::byte> code) noexcept;

  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  struct Counts {
    uint64_t found = 0, missed = 0, kept = 0, rejected = 0;
  };
  [[nodiscard]] Counts counts() const;

 private:
  [[nodiscard]] std::optional<std::vector<std::byte>> find_in(const std::filesystem::path& folder,
                                                              std::span<const std::byte> key);
  void write(const std::filesystem::path& file, std::span<const std::byte> content);
  void make_room();

  const std::filesystem::path folder_;
  const uint64_t budget_;
  const std::filesystem::path shipped_;
  std::atomic<uint64_t> found_ = 0, missed_ = 0, kept_ = 0, rejected_ = 0;
  ForkSafeMutex mutex_;   ///< of what follows
  uint64_t written_ = 0;  ///< bytes since the folder was looked through
  bool has_been_seen_ = false;
};

}  // namespace nitinol
