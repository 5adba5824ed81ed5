// summary(): what a model consists of, and where its arithmetic is.
//
//     fmt::print("{}", to_string(nn::summary(model, zeros({32, 64}))));
//
//     layer      type    output            parameters      %     bytes  operations      %
//     Mlp        Mlp     float32[32, 10]        9,610  100.0   38.4 kB      614 k   100.0
//       hidden   Linear  float32[32, 128]       8,320   86.6   33.3 kB      528 k    86.1
//       out      Linear  float32[32, 10]        1,290   13.4   5.16 kB     82.2 k    13.4
#pragma once

#include "core/function_ref.h"
#include "core/integer.h"
#include "core/tensor.h"
#include "nn/module.h"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// A module, with all that is in it.
struct SummaryRow {
  std::string path;  ///< "blocks.0.norm"; of the model itself empty
  std::string type;  ///< "LayerNorm"
  int depth = 0;     ///< in how many other modules it is
  std::optional<Spec>
      output;               ///< of the last operation that is its own or of a module in it, unless
                            ///< that only makes what is assigned; of a module that has none empty
  int64_t parameters = 0;   ///< elements of Variables that learn, each Variable in one place
  int64_t others = 0;       ///< of those that do not: running means, counts
  std::size_t bytes = 0;    ///< of both
  double operations = 0;    ///< arithmetic ones of a call; two for a multiply-add
  int64_t shared = 0;       ///< elements of Variables that are in an earlier module, too, and count
                            ///< there alone, as do the operations that read them
  std::string shared_with;  ///< the path of that module; of several the first
};

/// A model as data.
struct Summary {
  /// The model, then the modules in it, in their order. What is in a module all of whose Variables
  /// are shared has none.
  std::vector<SummaryRow> rows;
  bool has_call = false;  ///< outputs and operations are known
};

/// A table of modules in at most so many others: by default all of them.
[[nodiscard]] std::string to_string(const Summary& summary, Integer depth = 1000);

namespace summaries {

struct Part {
  std::string path, type;
};

/// Collects a model's modules and Variables.
struct Parts {
  std::vector<Part> modules;
  std::vector<NamedVariable> variables;
  void variable(const std::string& path, const Variable& variable) {
    variables.push_back({path, variable});
  }
  void training(const Training&) {}
  template <class T>
  void module(const std::string& path, const T&) {
    modules.push_back({path, module::type_name<T>()});
  }
};

/// `call`, if there is one, calls the model; its result is undefined if it is no tensor.
[[nodiscard]] Summary of(const std::vector<Part>& modules,
                         const std::vector<NamedVariable>& variables,
                         const FunctionRef<Tensor()>* call);

template <class M>
Parts parts_of(const M& module) {
  Parts parts;
  module::visit(module, "", parts);
  if (parts.modules.empty() || !parts.modules.front().path.empty())
    parts.modules.insert(parts.modules.begin(), Part{"", module::type_name<M>()});
  return parts;
}

}  // namespace summaries

/// The modules of a model with their parameters. A Variable that several modules share counts in
/// the first.
template <class M>
[[nodiscard]] Summary summary(const M& model) {
  const summaries::Parts parts = summaries::parts_of(model);
  return summaries::of(parts.modules, parts.variables, nullptr);
}

/// The same, with what happens when the model is called with these inputs, once, eagerly, in the
/// mode that it is in. Nothing that the call assigns is kept: no running mean, no state of a random
/// generator.
///
/// Whose an operation is follows from the parameters that it reads. One that reads none belongs to
/// the module that holds both the module of the operation before which does and that of the next:
/// a relu between two layers to what holds these.
///
/// Throws what the call throws.
template <class M, class... Inputs>
requires(sizeof...(Inputs) > 0) [[nodiscard]] Summary
    summary(const M& model, const Inputs&... inputs) {
  const summaries::Parts parts = summaries::parts_of(model);
  const auto call = [&]() -> Tensor {
    using Result = decltype(model(inputs...));
    if constexpr (std::convertible_to<Result, Tensor>) {
      return model(inputs...);
    } else {
      static_cast<void>(model(inputs...));
      return {};
    }
  };
  const FunctionRef<Tensor()> wanted = call;
  return summaries::of(parts.modules, parts.variables, &wanted);
}

}  // namespace nitinol::nn

#pragma GCC visibility pop
