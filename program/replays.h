// Replays: runs of a Program as one launch.
//
// What a device has noted (Backend::record()) has the addresses and numbers of one run. A run is a
// replay if everything lies where it lay in an earlier one. So it can read nothing that the run
// does not hold, and store nothing where an earlier run's results are.
//
// Arguments come where they were before, or they do not; results have blocks that come back for
// them (KeptBlocks), and so have temporaries. If something is elsewhere, the
// steps that use it are noted anew.
#pragma once

#include "core/function_ref.h"
#include "core/kept_memory.h"
#include "core/scalar_value.h"
#include "core/sequence.h"
#include "program/kept_blocks.h"
#include "program/program.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

namespace nitinol::program {

/// Of one Program, on a device that can record. Any number of threads.
class Replays {
 public:
  explicit Replays(const Program& program);
  Replays(const Replays&) = delete;
  Replays& operator=(const Replays&) = delete;
  ~Replays();

  struct Taken;
  /// What changes from run to run.
  struct Run {
    std::span<std::byte* const> addresses;  ///< per value
    std::span<const Scalar* const> scalars;
    std::span<const uint64_t> number_bits;  ///< instead of scalars, if there are any
    Status* status = nullptr;
    const Taken* taken = nullptr;
  };
  /// Launches the steps that are launched together with step `first`, which begins them.
  using Launch = FunctionRef<void(std::size_t first, Status* status)>;
  /// Memory for the results of a run, found before it.
  struct Taken {
    std::vector<StorageHandle> storages;  ///< per Program::memory, or empty; null: the allocator's
    std::shared_ptr<KeptBlocks> from;
    StorageHandle temporaries;  ///< or null
    bool is_again = false;      ///< its inputs lie where those of one of the latest runs lay
  };
  /// `addresses`: of inputs, and of what is lent.
  [[nodiscard]] Taken take(std::span<std::byte* const> addresses, std::span<const Tensor> lent);
  /// Runs all steps, or none: then false, and whoever runs the program launches them. `launch`
  /// launches for this run.
  [[nodiscard]] bool run(const Run& run, Launch launch);

  [[nodiscard]] ReplayReport report() const;

 private:
  using Key = std::vector<uint64_t>;
  struct Known {
    Key key;
    std::unique_ptr<Sequence> sequence;
    std::shared_ptr<KeptBlocks> blocks = {};  ///< of its results; or null
    /// Costly parts with what they were noted with, which comes at little cost again.
    std::unordered_set<uint64_t> noted = {};
  };
  using AllKnown = std::vector<std::unique_ptr<Known>>;
  /// A Scalar of a run in the dtype of a slot.
  struct Number {
    int scalar;
    DType dtype;
  };
  /// Eight calls of a function may be on their way, each with results of its own.
  static constexpr std::size_t most_known = 16, remembered = 32;

  void note_reads();
  void note_read(std::size_t word, std::size_t part);
  [[nodiscard]] uint64_t hash_of(std::size_t part, const Key& key) const;
  void note_costly(Known& known, std::size_t part) const;
  void find_key(const Run& run, Key& key) const;
  [[nodiscard]] bool is_seen_again(std::span<std::byte* const> addresses);
  [[nodiscard]] bool fits(const Known& known, std::span<std::byte* const> addresses,
                          std::span<const Tensor> lent) const;
  [[nodiscard]] std::shared_ptr<KeptBlocks> free_blocks(std::span<std::byte* const> addresses,
                                                        std::span<const Tensor> lent);
  [[nodiscard]] std::shared_ptr<KeptBlocks> more_blocks(std::span<const Tensor> lent,
                                                        std::unique_lock<std::mutex>& lock);
  [[nodiscard]] std::shared_ptr<KeptBlocks> make_blocks(std::span<const std::size_t> sizes,
                                                        std::unique_lock<std::mutex>& lock);
  /// What the device is short of: graphs, and memory that no run has now.
  void give_back();
  [[nodiscard]] bool are_addresses_known(const Key& key) const;
  [[nodiscard]] bool may_take_long() const;
  [[nodiscard]] AllKnown::iterator cheapest(const Key& key);
  [[nodiscard]] bool is_cheap(const Known& known, const Key& key) const;
  template <class Visit>
  void for_changed_parts(const Key& from, const Key& to, const Visit& visit) const;
  void replay(Known& known, Status* status);
  [[nodiscard]] bool make(Key key, const Run& run, Launch launch,
                          std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool update(AllKnown::iterator known, Key key, const Run& run, Launch launch,
                            std::unique_lock<std::mutex>& lock);
  Status* word();

  const Program& program_;
  // What a key has: addresses of values, that of all temporaries, numbers.
  std::vector<Value> values_;
  std::vector<std::size_t> inputs_;   ///< of them: those that a run is given
  std::vector<std::size_t> outputs_;  ///< per Program::memory: which of them; or their number
  std::vector<Number> numbers_;
  std::vector<std::size_t> firsts_;              ///< per part: its first step
  std::vector<std::vector<std::size_t>> parts_;  ///< per word of a key: those that use it
  std::vector<std::vector<std::size_t>> words_;  ///< per part: those that it uses

  mutable std::mutex mutex_;                       ///< of what follows
  bool is_noting_ = false;                         ///< a thread works at known_, without the mutex
  AllKnown known_;                                 ///< the one that was used last comes last
  std::vector<std::shared_ptr<KeptBlocks>> kept_;  ///< for results; likewise
  std::shared_ptr<KeptBlocks> temporaries_;
  Key key_;                                     ///< of the present run; a member to keep its memory
  std::array<uint64_t, remembered> seen_ = {};  ///< hashes of where inputs of the latest runs lay
  uint64_t runs_ = 0, replays_ = 0, made_ = 0, updated_ = 0;
  uint64_t long_ones_ = 0;    ///< made, and updated with a library's work
  std::string why_not_;       ///< none is made any more
  Status* status_ = nullptr;  ///< the word that all write: what they leave is copied
  const KeptMemory is_kept_;  ///< the last, so that nobody asks for the rest when it goes
};

}  // namespace nitinol::program
