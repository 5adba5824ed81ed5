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
#include <set>
#include <span>
#include <string_view>
#include <unordered_map>
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
  bool is_assigned = false;            ///< what it gives is a Variable's new value
};

class Watch final : public Interpreter {
 public:
  Watch() : below_(current()) {}

  /// What lies in its memory is of this row.
  void add(const Variable& variable, std::size_t row) {
    const Tensor value = variable.get();
    cells_.try_emplace(&variable.cell(), row);
    if (const Storage* storage = storage_of(value)) {
      rows_.try_emplace(storage, row);
      kept_.push_back(value);
    }
  }
  /// The operations of a call that gave `result`, which may be undefined. What only makes the next
  /// value of a Variable, as of a running mean, has no output.
  std::vector<Noted> finish(const Tensor& result) {
    std::vector<bool> is_wanted(noted_.size()), is_read(noted_.size());
    for (const Noted& noted : noted_) {
      for (const std::size_t i : noted.from) is_read[i] = true;
    }
    const auto maker = makers_.find(storage_of(result));
    for (std::size_t i = noted_.size(); i-- > 0;) {
      const bool is_result =
          maker != makers_.end() ? maker->second == i : !is_read[i] && !noted_[i].is_assigned;
      is_wanted[i] = is_wanted[i] || is_result;
      if (!is_wanted[i]) {
        noted_[i].output.reset();
        continue;
      }
      for (const std::size_t from : noted_[i].from) is_wanted[from] = true;
    }
    return std::move(noted_);
  }

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
    if (maker == makers_.end()) return;
    noted_[maker->second].is_assigned = true;
    // Who reads it now is the Variable's module, unless others have made it.
    const auto row = cells_.find(&variable.cell());
    if (row == cells_.end() || noted_[maker->second].row.value_or(row->second) != row->second)
      return;
    states_.insert_or_assign(storage_of(value), row->second);
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

  void note(const Op& op, Inputs inputs, const Attrs& attrs, std::span<const Tensor> results) {
    std::optional<std::size_t> row;
    std::optional<std::size_t> of_state;  // whose state it reads, if no parameter
    bool is_parameter = true;             // is computed from such alone
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
      const auto state = states_.find(storage_of(*input));
      if (state != states_.end() && !of_state) of_state = state->second;
    }
    for (const Tensor& result : results) made.push_back(result.spec());
    is_parameter = is_parameter && row.has_value();
    if (!row) row = of_state;
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
      const Storage* const storage = storage_of(result);
      if (storage == nullptr) continue;
      makers_[storage] = noted_.size();
      if (op.kind != OpKind::view) states_.erase(storage);
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
  std::unordered_map<const Storage*, std::size_t> states_;  ///< rows of what was assigned
  std::unordered_map<const VariableCell*, std::size_t> cells_;
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
                     .output = {},
                     .shared_with = {}});
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

/// Each Variable counts in the first module that has it.
void add_variables(Rows& rows, const std::vector<NamedVariable>& variables) {
  std::unordered_map<const VariableCell*, std::size_t> first;
  std::set<std::pair<const VariableCell*, const SummaryRow*>> shared;
  for (const NamedVariable& one : variables) {
    const VariableCell* const cell = &one.variable.cell();
    const int64_t size = one.variable.size();
    const std::size_t row = rows.of_variable(one.name);
    const auto [known, is_new] = first.try_emplace(cell, row);
    const std::size_t counted = known->second;
    rows.for_each_around(row, [&](SummaryRow& around) {
      if (is_new) {
        (one.variable.tracks_gradient() ? around.parameters : around.others) += size;
        around.bytes += static_cast<std::size_t>(size) * size_of(one.variable.dtype());
      } else if (!is_in(rows.all[counted].path, around.path) &&
                 shared.emplace(cell, &around).second) {
        if (around.shared == 0) around.shared_with = rows.all[counted].path;
        around.shared += size;
      }
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

/// Without those in a module that is shared as a whole: the first has them.
std::vector<SummaryRow> without_repeated(std::vector<SummaryRow> all) {
  std::vector<SummaryRow> rows;
  const SummaryRow* whole = nullptr;
  for (SummaryRow& row : all) {
    if (whole != nullptr && is_in(row.path, whole->path)) continue;
    whole = row.shared > 0 && row.parameters + row.others == 0 ? &row : nullptr;
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

Summary of(const std::vector<Part>& modules, const std::vector<NamedVariable>& variables,
           const FunctionRef<Tensor()>* call) {
  Rows rows(modules);
  add_variables(rows, variables);
  if (call == nullptr) return {.rows = without_repeated(std::move(rows.all))};
  Watch watch;
  for (const NamedVariable& one : variables) watch.add(one.variable, rows.of_variable(one.name));
  Tensor result;
  {
    const NoGradients without_tape;
    const InterpreterScope scope(watch);
    result = (*call)();
  }
  add_operations(rows, watch.finish(result));
  if (result.is_defined()) rows.all[0].output = result.spec();
  return {.rows = without_repeated(std::move(rows.all)), .has_call = true};
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

/// These columns, names and what describes them on the left, numbers on the right.
std::string aligned(const std::vector<std::vector<std::string>>& table,
                    const std::vector<std::size_t>& columns) {
  std::string text;
  for (const std::vector<std::string>& line : table) {
    std::string one;
    for (const std::size_t column : columns) {
      std::size_t width = 0;
      for (const auto& other : table) width = std::max(width, other[column].size());
      const bool is_text = column < 3 || column == line.size() - 1;
      one += is_text ? fmt::format("{:{}}", line[column], width)
                     : fmt::format("{:>{}}", line[column], width);
      one += "  ";
    }
    text += one.substr(0, one.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

}  // namespace

std::string to_string(const Summary& summary, Integer depth) {
  if (summary.rows.empty()) return "no modules\n";
  std::vector<std::vector<std::string>> table = {{"layer", "type", "output", "parameters", "%",
                                                  "buffers", "bytes", "operations", "%", "shared"}};
  constexpr std::string_view unknown = "?";
  const SummaryRow& whole = summary.rows.front();
  bool is_some_shared = false, is_some_unknown = false;
  for (std::size_t i = 0; i < summary.rows.size(); ++i) {
    const SummaryRow& row = summary.rows[i];
    if (row.depth > depth) continue;
    is_some_shared = is_some_shared || row.shared > 0;
    is_some_unknown = is_some_unknown || !row.output;
    const std::string& with = row.shared_with.empty() ? whole.type : row.shared_with;
    table.push_back(
        {std::string(static_cast<std::size_t>(row.depth) * 2, ' ') + name_of(summary.rows, i),
         row.type, row.output ? describe(*row.output) : std::string(unknown),
         with_commas(row.parameters),
         share(static_cast<double>(row.parameters), static_cast<double>(whole.parameters)),
         row.others > 0 ? with_commas(row.others) : "", jit::bytes(row.bytes),
         short_count(row.operations), share(row.operations, whole.operations),
         row.shared > 0 ? fmt::format("{} with {}", with_commas(row.shared), with) : ""});
  }
  std::vector<std::size_t> columns = {0, 1};
  if (summary.has_call) columns.push_back(2);
  columns.insert(columns.end(), {3, 4});
  if (whole.others > 0) columns.push_back(5);
  columns.push_back(6);
  if (summary.has_call) columns.insert(columns.end(), {7, 8});
  if (is_some_shared) columns.push_back(9);
  std::string text = aligned(table, columns);
  text += fmt::format("{} parameters", with_commas(whole.parameters));
  if (whole.others > 0) text += fmt::format(", {} in buffers", with_commas(whole.others));
  text += fmt::format(", {}", jit::bytes(whole.bytes));
  if (summary.has_call)
    text += fmt::format("; {} operations a call", short_count(whole.operations));
  text += '\n';
  if (is_some_shared) text += "what is shared counts once, in the first\n";
  if (summary.has_call && is_some_unknown)
    text += "? of modules whose Variables no operation of the result has read\n";
  return text;
}

}  // namespace nitinol::nn
