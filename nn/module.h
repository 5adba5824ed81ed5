// Modules: plain structs of Variables and other modules.
//
//     struct Mlp {
//       nn::Linear hidden = nn::linear(64, 128);
//       nn::Linear out = nn::linear(128, 10);
//       Tensor operator()(const Tensor& x) const { return out(relu(hidden(x))); }
//     };
//
// There is no base class and nothing to register: fields are found by reflection, and named by
// their path ("hidden.weight"). Copies share their Variables. A class that is no aggregate (it has
// private fields or constructors) says what it holds, and under which names:
//
//     template <class V>
//     void fields(V&& visit) { visit("hidden", hidden_), visit("out", out_); }
//
// and the same with `const`, for what only looks. Fields that it leaves out are neither trained nor
// saved. What is known only when the program runs is a std::vector<nn::NamedVariable>, a module
// itself or a field of one: its Variables have the names that they are given.
#pragma once

#include "core/field_names.h"
#include "core/host_value.h"
#include "core/reflect.h"
#include "core/variable.h"
#include "eager/ops/cast.h"

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// A module's flag: whether it trains. See train() and eval().
using Training = HostValue<bool>;

/// A Variable of a module and its path.
struct NamedVariable {
  std::string name;
  Variable variable;
};

namespace module {

template <class T>
concept HasFields = requires(T& module) {
  module.fields([](const char*, auto&) {});
};

inline std::string joined(const std::string& path, std::string_view name) {
  return path.empty() ? std::string(name) : path + "." + std::string(name);
}

/// Calls leaf(path, field) for every Variable and Training flag in `value`, depth first in the
/// order of declaration, and enter(path, type) for every struct.
template <class T, class Visitor>
void visit(T& value, const std::string& path, Visitor& visitor) {
  using Plain = std::remove_cv_t<T>;
  if constexpr (std::same_as<Plain, Variable>) {
    if (value.is_defined()) visitor.variable(path, value);
  } else if constexpr (std::same_as<Plain, NamedVariable>) {
    visit(value.variable, joined(path, value.name), visitor);
  } else if constexpr (std::same_as<Plain, Training>) {
    visitor.training(value);
  } else if constexpr (reflection::is_optional<Plain>) {
    if (value) visit(*value, path, visitor);
  } else if constexpr (reflection::Text<Plain> || std::is_scalar_v<Plain>) {
    return;
  } else if constexpr (reflection::is_sequence<Plain>) {
    constexpr bool is_named = std::same_as<Plain, std::vector<NamedVariable>>;
    std::size_t i = 0;
    for (auto& element : value)
      visit(element, is_named ? path : joined(path, std::to_string(i++)), visitor);
  } else if constexpr (reflection::is_tuple<Plain>) {
    // One that can be called is a Sequential.
    if constexpr (std::is_invocable_v<T&, const Tensor&>) visitor.module(path, value);
    std::size_t i = 0;
    std::apply(
        [&](auto&... element) {
          (visit(element, joined(path, std::to_string(i++)), visitor), ...);
        },
        value);
  } else if constexpr (HasFields<T>) {
    visitor.module(path, value);
    value.fields([&](const char* name, auto& field) { visit(field, joined(path, name), visitor); });
  } else if constexpr (HasFields<Plain>) {
    static_assert(reflection::never<T>,
                  "nn: this class has fields() without const only; parameters(), save() and eval() "
                  "look at const modules. Add the same with const.");
  } else if constexpr (std::is_aggregate_v<Plain>) {
    visitor.module(path, value);
    reflection::for_each_named_field(value, [&](std::string_view name, auto& field) {
      visit(field, joined(path, name), visitor);
    });
  }
}

struct Collector {
  std::vector<NamedVariable> found;
  void variable(const std::string& path, const Variable& variable) {
    for (const NamedVariable& before : found) {
      if (before.variable == variable) return;  // shared: by its first name
    }
    found.push_back({path, variable});
  }
  void training(const Training&) {}
  template <class T>
  void module(const std::string&, const T&) {}
};

struct TrainingSetter {
  bool value;
  void variable(const std::string&, const Variable&) {}
  /// A flag is shared by the module's copies, so it may be const, as a Variable may.
  void training(const Training& flag) const {
    Training shared = flag;
    shared = value;
  }
  template <class T>
  void module(const std::string&, const T&) {}
};

/// Replaces Variables by ones of another floating dtype or device.
struct Replacer {
  std::optional<DType> dtype;
  std::optional<Device> device;
  std::vector<std::pair<Variable, Variable>> done;  ///< so that what was shared stays shared
  void variable(const std::string& path, Variable& variable);
  void training(const Training&) {}
  template <class T>
  void module(const std::string&, const T&) {}
};

/// The last part of a type's name, without template arguments.
template <class T>
std::string type_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("T = ") + 4);
  text = text.substr(0, text.find_first_of(";]"));
  text = text.substr(0, text.find('<'));
  return std::string(text.substr(text.find_last_of(':') + 1));
}

struct Line {
  std::string path, type;
  Variable variable;  ///< undefined: a module
};

struct Printer {
  std::vector<Line> lines;
  void variable(const std::string& path, const Variable& variable) {
    lines.push_back({path, "", variable});
  }
  void training(const Training&) {}
  template <class T>
  void module(const std::string& path, const T&) {
    lines.push_back({path, type_name<T>(), {}});
  }
};
[[nodiscard]] std::string to_text(const std::vector<Line>& lines);

}  // namespace module

/// All Variables of a module, each once, in the order of declaration.
template <class M>
[[nodiscard]] std::vector<NamedVariable> named_variables(const M& module) {
  module::Collector collector;
  module::visit(module, "", collector);
  return std::move(collector.found);
}

/// Those that gradients flow to.
template <class M>
[[nodiscard]] std::vector<NamedVariable> named_parameters(const M& module) {
  std::vector<NamedVariable> found = named_variables(module);
  std::erase_if(found, [](const NamedVariable& v) { return !v.variable.tracks_gradient(); });
  return found;
}
/// The same without their names, for optimizers.
template <class M>
[[nodiscard]] std::vector<Variable> parameters(const M& module) {
  std::vector<Variable> found;
  for (const NamedVariable& named : named_parameters(module)) found.push_back(named.variable);
  return found;
}

/// The others: running means, counts.
template <class M>
[[nodiscard]] std::vector<NamedVariable> buffers(const M& module) {
  std::vector<NamedVariable> found = named_variables(module);
  std::erase_if(found, [](const NamedVariable& v) { return v.variable.tracks_gradient(); });
  return found;
}

/// Switches dropout and running statistics on, in a const module too. A compiled function sees the
/// change: it has a Plan for each mode.
template <class M>
void train(const M& module, bool value = true) {
  module::TrainingSetter setter{value};
  module::visit(module, "", setter);
}
/// Switches them off.
template <class M>
void eval(const M& module) {
  train(module, false);
}

/// The same module with new Variables of another floating dtype; call it before optimizers are
/// made. Integer Variables stay as they are.
template <class M>
[[nodiscard]] M to(M module, DType dtype) {
  module::Replacer replacer{dtype, {}, {}};
  module::visit(module, "", replacer);
  return module;
}

/// The same module with new Variables on another device; call it before optimizers are made. Throws
/// Error(device), with the reason, if the device cannot be used.
template <class M>
[[nodiscard]] M to(M module, Device device) {
  module::Replacer replacer{{}, device, {}};
  module::visit(module, "", replacer);
  return module;
}

/// A tree of the module's structs and Variables with shapes and numbers of elements.
template <class M>
requires(std::is_class_v<M> && !std::convertible_to<const M&, Tensor>) [[nodiscard]] std::string
    to_string(const M& module) {
  module::Printer printer;
  module::visit(module, "", printer);
  return module::to_text(printer.lines);
}

}  // namespace nitinol::nn

#pragma GCC visibility pop
