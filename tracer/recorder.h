// Recorder: computes each op through the interpreter below it and appends it to a Graph.
#pragma once

#include "tracer/trace.h"
#include "tracer/transaction.h"

#include <span>
#include <unordered_map>
#include <unordered_set>

#pragma GCC visibility push(default)

namespace nitinol::tracer {

/// Records one call of a function on real tensors. Never throws through user code on its own
/// account: what prevents a trace is noted as its obstacle, and the call goes on and returns
/// eager's results.
class Recorder final : public Transaction {
 public:
  enum class Places : uint8_t { ignored, noted };
  /// Tensors made from now on belong to this call. To note where the user's code applies each
  /// operation takes one or two microseconds.
  explicit Recorder(Places places = Places::ignored);
  ~Recorder() override;

  /// Declares the call's arguments, before the function runs: what stands for its tensor leaves,
  /// its Variables, and 0-d tensors for its Scalars. The tensors must outlive the recording.
  void declare_arguments(std::span<const Tensor> tensors,
                         std::span<const Variable* const> variables,
                         std::span<const Tensor> scalars);
  /// After the function: what is applied from now on is how gradients of these results go back. It
  /// is noted, not computed: tensors have shapes but no elements (but see ComputingScope).
  void begin_backward(std::span<const Tensor* const> results);
  /// What was applied since has been let go of. Such a tensor that lives on is out of reach of the
  /// trace, and an obstacle.
  void end_backward();
  /// The gradient of result number `result`.
  [[nodiscard]] Tensor add_seed(std::size_t result, const Spec& spec);
  /// A gradient of argument tensor `leaf`, or of a Variable.
  void add_part(int leaf, const Tensor& gradient);
  void add_part(const Variable& variable, const Tensor& gradient);
  [[nodiscard]] bool is_obstructed() const { return trace_.obstacle.has_value(); }
  /// Notes why the trace cannot be used, unless a reason is known already.
  void obstruct(std::string reason, const ReadSite* site = nullptr);

  /// Ends the recording: `results` are the call's tensor leaves. Assignments are in the trace,
  /// uncommitted.
  [[nodiscard]] Trace finish(std::span<const Tensor* const> results);

  [[nodiscard]] bool watches() const override { return true; }
  [[nodiscard]] PendingCall* pending() override { return nullptr; }
  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override;
  std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                              std::span<const Spec> specs) override;
  void read(const Tensor& tensor, const ReadSite& site) override;
  Tensor get(const Variable& variable) override;
  void set(const Variable& variable, const Tensor& value) override;
  void created(const Tensor& tensor) override;
  void guard(const HostValueGuard& guard) override;

 private:
  [[nodiscard]] bool computes() const;
  Tensor compute(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec);
  std::vector<Tensor> compute_all(const Op& op, Inputs inputs, const Attrs& attrs,
                                  std::span<const Spec> specs);
  bool is_too_long();
  Node application(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec);
  Value add_node(Node node);
  uint32_t note_place();
  Value add_input(const Tensor& tensor, TraceInput origin);
  Value value_of(const Tensor& tensor);
  TraceInput origin_of(const Variable& variable) const;
  void guard_presence(const Variable& variable, bool is_there);
  bool guard_numbers(Value value, const ReadSite& site);
  void note_local(const Variable& variable);
  void check_locals();
  void check_device();
  void check_effects();
  void obstruct_rule(const char* does, const Variable& variable);

  Trace trace_;                         ///< but for its places
  std::vector<CallSite> found_places_;  ///< by Node::origin
  const Places places_;
  Handle<TensorSlot> shape_only_;  ///< after begin_backward: of tensors without elements
  int outer_scopes_ = 0;           ///< ComputingScopes that were open then
  uint64_t epoch_;
  std::unordered_map<const TensorData*, Value> foreign_;  ///< captured tensors
  std::vector<Tensor> kept_;                              ///< keeps the keys of foreign_ alive
  std::vector<const TensorData*> tensor_arguments_;
  std::vector<const Variable*> variable_arguments_;
  std::vector<uint64_t> number_bits_;  ///< of the Scalar arguments
  std::unordered_set<Value> guarded_;  ///< values that guards of Scalars cover
  std::vector<Variable> locals_;       ///< made by this call, and read or assigned
  std::unordered_map<const VariableCell*, Tensor> variable_reads_;
};

/// While it lives, a Recorder on this thread computes what it notes also after begin_backward():
/// for functions of the user's that are run again, whose values may be kept anywhere.
class ComputingScope {
 public:
  ComputingScope();
  ~ComputingScope();
  ComputingScope(const ComputingScope&) = delete;
  ComputingScope& operator=(const ComputingScope&) = delete;
};

/// While it lives, a Recorder on this thread notes that things are computed again (see
/// Node::repetition).
class RepetitionScope {
 public:
  RepetitionScope();
  ~RepetitionScope();
  RepetitionScope(const RepetitionScope&) = delete;
  RepetitionScope& operator=(const RepetitionScope&) = delete;

 private:
  uint32_t before_;
};

/// While it lives, what a Recorder on this thread notes comes from where value `value` of the trace
/// of `epoch` comes from: the rules by which gradients go back through it.
class OriginScope {
 public:
  OriginScope(uint64_t epoch, Value value);
  ~OriginScope();
  OriginScope(const OriginScope&) = delete;
  OriginScope& operator=(const OriginScope&) = delete;

 private:
  uint64_t epoch_before_;
  Value value_before_;
};

/// True while a Recorder is at work on this thread: compiled functions then run inline.
[[nodiscard]] bool is_recording();

}  // namespace nitinol::tracer

#pragma GCC visibility pop
