// A call is watched by an interpreter above eager's, which computes. What lies in a Variable's
// memory, or was computed from such alone (a weight that is cast or normalised), is a parameter;
// an operation that takes one beside other operands is its module's.
#include "nn/summary.h"

#include "autograd/gradient.h"
#include "core/interpreter.h"
#include "jit/figures.h"
#include "jit/operations.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace nitinol::nn {
namespace summaries {
namespace {

/// Whether what lies at `path` is in the module at `module`.
bool is_in(std::string_view path, std::string_view module) {
  return module.empty() ||
         (path.starts_with(module) && (path.size() == module.size() || path[module.size()] == '.'));
}

/// An operation of the call.
struct Noted {
  std::optional<std::size_t> row;  ///< of whose parameter it is
  std::optional<Spec> output = {};
  double operations = 0;
  std::vector<std::size_t> from = {};  ///< the operations that made its operands
};

class Watch final : public Interpreter {
 public:
  Watch() : below_(current()) {}

  /// What lies in its memory is of this row.
  void add(const Variable& variable, std::size_t row) {
    const Tensor value = variable.get();
    if (const Storage* storage = storage_of(value)) {
      rows_.try_emplace(storage, row);
      kept_.push_back(value);
    }
  }
  [[nodiscard]] const std::vector<Noted>& noted() const { return noted_; }

  Tensor run(const Op& op, Inputs inputs, const Attrs& attrs, const Spec& spec) override {
    Tensor result = below_.run(op, inputs, attrs, spec);
    note(op, inputs, attrs, {&result, 1});
    return result;
  }
  std::vector<Tensor> run_all(const Op& op, Inputs inputs, const Attrs& attrs,
                              std::span<const Spec> specs) override {
    std::vector<Tensor> results = below_.run_all(op, inputs, attrs, specs);
    note(op, inputs, attrs, results);
    return results;
  }
  void read(const Tensor& tensor, const ReadSite& site) override { below_.read(tensor, site); }
  /// What the call has assigned, which nobody else sees.
  Tensor get(const Variable& variable) override {
    const auto found = assigned_.find(&variable.cell());
    return found != assigned_.end() ? found->second.second : below_.get(variable);
  }
  void set(const Variable& variable, const Tensor& value) override {
    assigned_.insert_or_assign(&variable.cell(), std::pair(variable, value));
    const auto maker = makers_.find(storage_of(value));
    if (maker != makers_.end()) give_no_output(maker->second);
  }
  void created(const Tensor& tensor) override { below_.created(tensor); }
  void guard(const HostValueGuard& guard) override { below_.guard(guard); }

 private:
  static const Storage* storage_of(const Tensor& tensor) {
    return tensor.is_defined() ? tensor.internals().storage.get() : nullptr;
  }

  /// Whether `view` has images [n, c, h, w] that were computed as [n, h, w, c], which users do not
  /// see (eager/channels_last.h).
  static bool are_images(const Shape& last, const Tensor& view) {
    return last.size() == 4 && view.rank() == 4 && view.strides()[1] == 1 &&
           view.shape() == Shape{last[0], last[3], last[1], last[2]};
  }

  /// What a module assigns, as a running mean, is not what it gives; nor is what that is made of.
  void give_no_output(std::size_t operation) {
    std::vector<std::size_t> waiting = {operation};
    while (!waiting.empty()) {
      Noted& noted = noted_[waiting.back()];
      waiting.pop_back();
      if (!noted.output || (noted.row && noted.row != noted_[operation].row)) continue;
      noted.output.reset();
      waiting.insert(waiting.end(), noted.from.begin(), noted.from.end());
    }
  }

  void note(const Op& op, Inputs inputs, const Attrs& attrs, std::span<const Tensor> results) {
    std::optional<std::size_t> row;
    bool is_parameter = true;  // is computed from such alone
    std::vector<Spec> operands, made;
    std::vector<std::size_t> from;
    for (const Tensor* input : inputs) {
      operands.push_back(input->spec());
      const auto maker = makers_.find(storage_of(*input));
      if (maker != makers_.end()) from.push_back(maker->second);
      const auto found = rows_.find(storage_of(*input));
      if (found == rows_.end())
        is_parameter = is_parameter && is_anywhere(input->spec());
      else if (!row)
        row = found->second;
    }
    for (const Tensor& result : results) made.push_back(result.spec());
    is_parameter = is_parameter && row.has_value();
    if (is_parameter) {
      for (const Tensor& result : results) {
        const Storage* const storage = storage_of(result);
        if (storage != nullptr && rows_.try_emplace(storage, *row).second) kept_.push_back(result);
      }
    }
    const double operations = jit::operations_of(op, operands, attrs, made);
    if (is_parameter) {
      if (operations > 0) noted_.push_back({.row = row, .operations = operations});
      return;
    }
    for (const Tensor& result : results) {
      if (const Storage* storage = storage_of(result)) makers_[storage] = noted_.size();
    }
    if (op.kind == OpKind::view && !from.empty()) {
      std::optional<Spec>& whole = noted_[from.back()].output;
      if (whole && are_images(whole->shape, results.front())) whole = made.front();
    }
    noted_.push_back({row, made.front(), operations, std::move(from)});
  }

  Interpreter& below_;
  std::unordered_map<const Storage*, std::size_t> rows_;
  std::unordered_map<const Storage*, std::size_t> makers_;  ///< of blocks: the latest operation
  std::vector<Tensor> kept_;  ///< so that no other block lies where these do
  std::unordered_map<const VariableCell*, std::pair<Variable, Tensor>> assigned_;
  std::vector<Noted> noted_;
};

class Rows {
 public:
  explicit Rows(const std::vector<Part>& modules) {
    std::vector<std::size_t> around;  // the rows that the present one is in
    for (const Part& part : modules) {
      while (!around.empty() && !is_in(part.path, all[around.back()].path)) around.pop_back();
      outer_.push_back(around.empty() ? 0 : around.back());
      around.push_back(all.size());
      all.push_back({.path = part.path,
                     .type = part.type,
                     .depth = static_cast<int>(around.size()) - 1,
                     .output = {}});
    }
  }
  /// The innermost module that has this Variable.
  [[nodiscard]] std::size_t of_variable(const std::string& path) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (is_in(path, all[i].path) && all[i].depth >= all[found].depth) found = i;
    }
    return found;
  }
  /// The innermost that both are in.
  [[nodiscard]] std::size_t around_both(std::size_t a, std::size_t b) const {
    while (a != b) {
      std::size_t& inner = all[a].depth > all[b].depth ? a : b;
      inner = outer_[inner];
    }
    return a;
  }
  /// f() of a row and all that it is in.
  template <class F>
  void for_each_around(std::size_t row, const F& f) {
    for (;; row = outer_[row]) {
      f(all[row]);
      if (row == 0) return;
    }
  }

  std::vector<SummaryRow> all;

 private:
  std::vector<std::size_t> outer_;
};

void add_variables(Rows& rows, const std::vector<NamedVariable>& variables) {
  std::unordered_set<const VariableCell*> seen;
  for (const NamedVariable& one : variables) {
    if (!seen.insert(&one.variable.cell()).second) continue;
    const auto bytes =
        static_cast<std::size_t>(one.variable.size()) * size_of(one.variable.dtype());
    rows.for_each_around(rows.of_variable(one.name), [&](SummaryRow& row) {
      (one.variable.tracks_gradient() ? row.parameters : row.others) += one.variable.size();
      row.bytes += bytes;
    });
  }
}

void add_operations(Rows& rows, const std::vector<Noted>& noted) {
  std::vector<std::size_t> next(noted.size() + 1, 0);  // whose the next is that reads a parameter
  for (std::size_t i = noted.size(); i-- > 0;) next[i] = noted[i].row.value_or(next[i + 1]);
  std::size_t before = 0;
  for (std::size_t i = 0; i < noted.size(); ++i) {
    if (noted[i].row) before = *noted[i].row;
    rows.for_each_around(rows.around_both(before, next[i]), [&](SummaryRow& row) {
      row.operations += noted[i].operations;
      if (noted[i].output) row.output = noted[i].output;
    });
  }
}

}  // namespace

Summary of(const std::vector<Part>& modules, const std::vector<NamedVariable>& variables,
           const FunctionRef<Tensor()>* call) {
  Rows rows(modules);
  add_variables(rows, variables);
  if (call == nullptr) return {.rows = std::move(rows.all)};
  Watch watch;
  for (const NamedVariable& one : variables) watch.add(one.variable, rows.of_variable(one.name));
  Tensor result;
  {
    const NoGradients without_tape;
    const InterpreterScope scope(watch);
    result = (*call)();
  }
  add_operations(rows, watch.noted());
  if (result.is_defined()) rows.all[0].output = result.spec();
  return {.rows = std::move(rows.all), .has_call = true};
}

}  // namespace summaries

namespace {

std::string with_commas(int64_t number) {
  std::string text = fmt::format("{}", number);
  for (auto at = static_cast<std::ptrdiff_t>(text.size()) - 3; at > 0; at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

/// "1.82 G".
std::string short_count(double count) {
  for (const auto& [least, letter] : {std::pair(1e12, 'T'), {1e9, 'G'}, {1e6, 'M'}, {1e3, 'k'}}) {
    if (count >= least) return fmt::format("{:.3g} {}", count / least, letter);
  }
  return fmt::format("{:.3g}", count);
}

std::string share(double part, double whole) {
  return whole > 0 ? fmt::format("{:.1f}", 100 * part / whole) : "";
}

/// The path from the module around it on: "blocks.0".
std::string name_of(const std::vector<SummaryRow>& rows, std::size_t row) {
  const SummaryRow& one = rows[row];
  if (one.path.empty()) return one.type;
  std::size_t outer = row;
  while (outer > 0 && rows[outer].depth >= one.depth) --outer;
  const std::string& around = rows[outer].path;
  return around.empty() ? one.path : one.path.substr(around.size() + 1);
}

}  // namespace

std::string to_string(const Summary& summary, Integer depth) {
  if (summary.rows.empty()) return "no modules\n";
  std::vector<std::vector<std::string>> table = {
      {"layer", "type", "output", "parameters", "%", "bytes", "operations", "%"}};
  const SummaryRow& whole = summary.rows.front();
  for (std::size_t i = 0; i < summary.rows.size(); ++i) {
    const SummaryRow& row = summary.rows[i];
    if (row.depth > depth) continue;
    table.push_back(
        {std::string(static_cast<std::size_t>(row.depth) * 2, ' ') + name_of(summary.rows, i),
         row.type, row.output ? describe(*row.output) : "", with_commas(row.parameters),
         share(static_cast<double>(row.parameters), static_cast<double>(whole.parameters)),
         jit::bytes(row.bytes), short_count(row.operations),
         share(row.operations, whole.operations)});
  }
  std::vector<std::size_t> columns = {0, 1, 3, 4, 5};
  if (summary.has_call) columns = {0, 1, 2, 3, 4, 5, 6, 7};
  std::string text;
  for (const std::vector<std::string>& line : table) {
    std::string one;
    for (const std::size_t column : columns) {
      std::size_t width = 0;
      for (const auto& other : table) width = std::max(width, other[column].size());
      one += column < 3 ? fmt::format("{:{}}", line[column], width)
                        : fmt::format("{:>{}}", line[column], width);
      one += "  ";
    }
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  }
  text += fmt::format("{} parameters", with_commas(whole.parameters));
  if (whole.others > 0) text += fmt::format(" and {} other elements", with_commas(whole.others));
  text += fmt::format(", {}", jit::bytes(whole.bytes));
  if (summary.has_call)
    text += fmt::format("; {} operations a call", short_count(whole.operations));
  return text + "\n";
}

}  // namespace nitinol::nn
