// Deferred: one call of a function that looks at data. Host code runs as it is written; its ops are
// matched with what earlier calls did, and run together when somebody looks.
#pragma once

#include "core/function_ref.h"
#include "core/pending.h"
#include "core/short_array.h"
#include "core/small_list.h"
#include "tracer/segments.h"
#include "tracer/transaction.h"

#include <array>
#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <vector>

namespace nitinol::tracer {

using CutProgramTaker = std::function<void(std::shared_ptr<const CutProgram>)>;

/// Makes the program of a trace and gives it to the taker, at once or later on another thread;
/// null: there can be none. May throw instead. (jit)
using CutCompiler = FunctionRef<void(Trace, CutProgramTaker)>;

/// Nothing is predicted: whatever host code does, each op has its operands' values, and what
/// differs from all earlier calls is computed as eager does. What is pending runs at a cut: at a
/// look, at an op that may fail by what is pending (its error is to come from its line; if the
/// elements that decide are there it is checked and goes on), and when the call ends, also by an
/// exception. The values that somebody still holds are what the cut gives; the others never
/// exist. At a look, neither do those that somebody holds but no call has used afterwards, as the
/// temporaries of `if (max(abs(y - x)).item<float>() > tolerance)`: C++ keeps them up to the end
/// of the expression. They stay pending, and are computed if they are used after all.
class Deferred final : public Transaction, public PendingCall {
 public:
  /// `compile` must outlive it.
  Deferred(std::shared_ptr<Segments> segments, CutCompiler compile);
  ~Deferred() override;

  /// The last cut. Afterwards nothing is pending but, perhaps, what commit() assigns: that is
  /// computed by it, so that new values can be stored over the old ones.
  void finish();
  /// Says, before it, that the call returns this tensor.
  void returns(const Tensor& tensor) const { note_use(tensor); }

  [[nodiscard]] bool watches() const override { return true; }
  [[nodiscard]] PendingCall* pending() override { return this; }
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override;
  std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                              std::span<const Spec> specs) override;
  void read(const Tensor& tensor, const ReadSite& site) override;
  void created(const Tensor& tensor) override;

  Tensor match(const Op& op, Inputs inputs, const Attrs& attrs) override;
  Tensor match(const Op& op, Inputs inputs, const Spec& number, uint64_t bits) override;
  Tensor copy(const Tensor& tensor) override;
  [[nodiscard]] bool owns(const TensorData& data) const override { return data.trace == epoch_; }
  void compute(const TensorData& data) override;
  void compute_elsewhere(const TensorData& data) override;

 private:
  /// Held for a few instructions.
  class Lock {
   public:
    explicit Lock(std::atomic_flag& flag) : flag_(flag) {
      while (flag_.test_and_set(std::memory_order_acquire)) std::this_thread::yield();
    }
    ~Lock() { flag_.clear(std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;

   private:
    std::atomic_flag& flag_;
  };

  /// A result of the segment.
  struct Result {
    Tensor tensor;  ///< undefined if it has been computed at once
    const Step* step = nullptr;
    uint32_t first_number = 0;  ///< of its operands, in the segment's numbers
    uint32_t import_count = 0;  ///< so many imports there are up to here
  };
  struct Copy {
    Tensor tensor;
    uint32_t value = 0;
  };
  /// The ops between two cuts: what they have taken and given.
  struct Segment {
    uint32_t number = 0;  ///< 0: of tensors of the call that are in none
    Step* end = nullptr;  ///< once it is over
    std::vector<Result> results;
    std::vector<Tensor> imports;
    std::vector<uint64_t> numbers;
    std::vector<Copy> copies;
  };
  /// The end of a segment that was not known.
  struct End {
    uint32_t segment = 0;
    Step* step = nullptr;
  };
  /// An op's operands, as the segment numbers them.
  struct Operands {
    explicit Operands(Inputs given, const Spec* number_spec = nullptr, uint64_t given_bits = 0)
        : inputs(given), number(number_spec), number_bits(given_bits) {}
    Inputs inputs;  ///< null: the number
    const Spec* number;
    uint64_t number_bits;
    SmallList<OperandCode, 8> codes;
    SmallList<uint64_t, 4> bits;  ///< of the numbers among them
  };

  [[nodiscard]] uint32_t& at_hand(const TensorData& data) {
    return import_at_hand_[reinterpret_cast<uintptr_t>(&data) / sizeof(TensorData) %
                           import_at_hand_.size()];
  }
  [[nodiscard]] bool is_import_at(uint32_t position, const TensorData& data) const {
    return position < now_.imports.size() && &now_.imports[position].internals() == &data;
  }
  [[nodiscard]] OperandCode code_of(const Tensor& tensor);
  OperandCode add_import(const Tensor& tensor);
  void number_operands(Operands& operands);
  void drop_imports() noexcept;
  /// At its end, imports that no step has come to use are none.
  class ImportsOfStep {
   public:
    explicit ImportsOfStep(Deferred& call) : call_(call) {}
    ~ImportsOfStep() {
      if (call_.now_.imports.size() != call_.covered_) call_.drop_imports();
    }
    ImportsOfStep(const ImportsOfStep&) = delete;
    ImportsOfStep& operator=(const ImportsOfStep&) = delete;

   private:
    Deferred& call_;
  };
  [[nodiscard]] bool is_alike(const Step& step, const Op& op, const Attrs& attrs,
                              const Operands& operands) const;
  [[nodiscard]] Step* find(const Op& op, const Attrs& attrs, const Operands& operands);
  Tensor follow(const Op& op, const Attrs& attrs, Operands& operands);
  Tensor explore(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec);
  Step* add_step(const Op& op, Inputs inputs, const Attrs& attrs, const Operands& operands,
                 const Tensor& result);
  /// Operands that no step of the segment has used.
  struct NewImports {
    static constexpr std::size_t most = 3;
    std::array<const Tensor*, most> tensors;
    std::size_t count = 0;
  };
  [[nodiscard]] bool is_same(const Step& step, const Op& op, const Attrs& attrs, Inputs inputs,
                             const Spec* number, uint64_t bits, NewImports& imports) const;
  [[nodiscard]] bool is_new(const Step& step, OperandCode code, const Tensor& tensor,
                            NewImports& imports) const;
  Tensor follow_same(Step& step, Inputs inputs, std::span<const uint64_t> bits,
                     const NewImports& imports);
  Tensor pending_result(Step& step, Inputs inputs, std::span<const uint64_t> bits);
  template <class T>
  void make_room(std::vector<T>& in, std::size_t count);
  void make_room(std::span<const uint64_t> bits);
  void go_to(Step& step, std::span<const uint64_t> bits, Tensor result) noexcept;
  void diverge();
  [[nodiscard]] Tensor own(Tensor tensor, Inputs inputs) const;
  [[nodiscard]] bool is_result(const TensorData& data) const;
  [[nodiscard]] bool is_deferrable(const Op& op, Inputs inputs) const;
  [[nodiscard]] bool ends_segment(const Op& op, Inputs inputs, const Spec& spec) const;

  void cut() { cut(std::nullopt, {}); }
  void cut(std::optional<uint32_t> looked_at, std::span<const NewValue> replaced);
  void note_look(Step& end, const Tensor& tensor, const ReadSite& site);
  [[nodiscard]] ResultSet live_values() const;
  [[nodiscard]] std::shared_ptr<const Cut::Compiled> program_for(
      ResultSet& live, std::optional<uint32_t> looked_at, std::span<const NewValue> replaced);
  void run_cut(const Cut::Compiled* compiled, const ResultSet& live);
  std::shared_ptr<const Cut::Compiled> compile(const Segments::Visit& visit,
                                               std::span<const NewValue> replaced);
  [[nodiscard]] bool run_program(const Cut::Compiled& compiled,
                                 std::span<const Tensor* const> imports,
                                 std::span<const Tensor* const> lent, const ValueOf* value_of);
  [[nodiscard]] std::optional<ValueId> value_id(const Tensor& import) const;
  [[nodiscard]] std::optional<uint32_t> result_of(const Tensor& value) const;
  [[nodiscard]] std::vector<NewValue> replaced_values() const;
  void complete() override;
  void compute_values(ResultSet needed);
  uint64_t compute_apart(const TensorData& data);
  void fill_copies();
  void begin_segment(bool leaves_values = false);

  void note_use(const Tensor& tensor) const;
  void use(Inputs inputs) const;
  void settle(std::size_t most);
  void release(std::list<Segment>& gone);
  [[nodiscard]] Segment* segment_at(uint32_t number);

  const std::shared_ptr<Segments> segments_;
  const CutCompiler compiler_;
  const uint64_t epoch_;
  std::optional<Device> device_;
  Step* at_;
  bool is_following_ = true;
  bool is_crowded_ = false;  ///< up to the next cut ops are computed and not noted
  uint64_t matched_ = 0, computed_ = 0;
  std::size_t covered_ = 0;                       ///< imports that steps have used
  std::array<uint32_t, 64> import_at_hand_ = {};  ///< by address: where it may be among imports
  std::array<End, 16> explored_ = {};             ///< by segment: the latest ones
  std::list<Segment> spare_;                      ///< empty: their memory is for the next ones

  /// The last cut, once finish() has left it to commit().
  std::shared_ptr<const Cut::Compiled> last_;

  /// Guards what follows, which other threads read: they look at what was there when the value that
  /// they ask for was made. So adding to it without moving it needs no lock.
  std::atomic_flag lock_;
  Segment now_;
  /// Those before, the latest last, that have values that are pending, as nobody is known to use
  /// them.
  std::list<Segment> left_;
  bool is_overwriting_ = false;            ///< what is imported
  std::optional<PendingCallEntry> entry_;  ///< once something is pending
};

}  // namespace nitinol::tracer
