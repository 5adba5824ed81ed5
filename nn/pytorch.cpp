// Tensors get the names that they have here, each Variable looks for the first of what it may be
// made of (pytorch_names.h), and all is checked and computed before the first of them is set.
//
// Patterns are rows of parts rather than regular expressions: names come from files that are not
// trusted, and the standard library's expressions recurse once for each character.
#include "nn/pytorch.h"

#include "core/error.h"
#include "eager/host_read.h"
#include "eager/ops/ops.h"
#include "nn/pytorch_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace nitinol::nn {
namespace module {
namespace {

// ---- patterns

std::vector<std::string_view> parts_of(std::string_view name) {
  std::vector<std::string_view> found;
  while (true) {
    const std::size_t dot = name.find('.');
    found.push_back(name.substr(0, dot));
    if (dot == std::string_view::npos) return found;
    name.remove_prefix(dot + 1);
  }
}

using Parts = std::span<const std::string_view>;

/// Where the pattern's parts follow each other in the name.
std::optional<std::size_t> place_of(Parts pattern, Parts name) {
  const auto fits = [](std::string_view part, std::string_view one) {
    return one == "*" || one == part;
  };
  const auto at = std::ranges::search(name, pattern, fits);
  if (at.empty()) return {};
  return static_cast<std::size_t>(at.begin() - name.begin());
}

bool has_any(const std::vector<std::string>& patterns, const std::string& name) {
  const auto name_parts = parts_of(name);
  return std::ranges::any_of(patterns, [&](const std::string& pattern) {
    return place_of(parts_of(pattern), name_parts).has_value();
  });
}

std::string renamed(std::string name, const PytorchOptions& options) {
  for (const auto& [from, to] : options.rename) {
    const auto name_parts = parts_of(name);
    const auto pattern = parts_of(from);
    const auto place = place_of(pattern, name_parts);
    if (!place) continue;
    std::vector<std::string_view> caught;
    for (std::size_t i = 0; i < pattern.size(); ++i)
      if (pattern[i] == "*") caught.push_back(name_parts[*place + i]);
    std::vector<std::string_view> made(name_parts.begin(),
                                       name_parts.begin() + static_cast<std::ptrdiff_t>(*place));
    auto next = caught.begin();
    for (const std::string_view part : to.empty() ? std::vector<std::string_view>() : parts_of(to))
      made.push_back(part == "*" && next != caught.end() ? *next++ : part);
    made.insert(made.end(),
                name_parts.begin() + static_cast<std::ptrdiff_t>(*place + pattern.size()),
                name_parts.end());
    name = fmt::format("{}", fmt::join(made, "."));
  }
  return name;
}

[[noreturn]] void fail(ErrorKind kind, std::string what, std::string expected, std::string got,
                       std::string fix) {
  throw Error(kind, {.where = "load_pytorch",
                     .what = std::move(what),
                     .expected = std::move(expected),
                     .got = std::move(got),
                     .fix = std::move(fix)});
}

void check_patterns(const PytorchOptions& options) {
  const auto stars = [](const std::string& text) {
    return std::ranges::count(parts_of(text), "*");
  };
  for (const auto& [from, to] : options.rename) {
    if (!from.empty() && stars(to) <= stars(from)) continue;
    fail(ErrorKind::value, fmt::format("`rename` of \"{}\" to \"{}\"", from, to),
         "parts of a name, and no more `*` than those have",
         from.empty() ? "no parts" : fmt::format("{} for {}", stars(to), stars(from)), "");
  }
}

// ---- the file's tensors, by the names that they have here

struct Given {
  std::string name;  ///< in the file
  Tensor tensor;
  bool is_untransposed = false;
  bool is_used = false;
};

class File {
 public:
  File(std::string source, const std::vector<NamedTensor>& tensors, const PytorchOptions& options)
      : source_(std::move(source)) {
    check_patterns(options);
    for (const auto& [name, tensor] : tensors) {
      if (name.ends_with("num_batches_tracked") || has_any(options.unused, name)) {
        unused_.push_back(name);
        continue;
      }
      const auto [at, is_new] = given_.try_emplace(
          renamed(name, options), Given{name, tensor, has_any(options.untransposed, name)});
      if (is_new) continue;
      fail(ErrorKind::value, fmt::format("{} has two tensors for {}", source_, at->first),
           "one name there for one here", fmt::format("{} and {}", at->second.name, name),
           "Rename them to different names, or name one in `unused`.");
    }
    for (const std::string& pattern : options.untransposed) {
      const bool is_there = std::ranges::any_of(
          tensors, [&](const NamedTensor& one) { return has_any({pattern}, one.first); });
      if (is_there || !options.is_strict) continue;
      fail(ErrorKind::value, fmt::format("`untransposed` has \"{}\"", pattern),
           "parts of a name in " + source_, "none that has them",
           "Names there are meant, before they are renamed.");
    }
  }

  [[nodiscard]] Given* find(const std::string& name) {
    const auto at = given_.find(name);
    return at == given_.end() ? nullptr : &at->second;
  }
  [[nodiscard]] const std::string& source() const { return source_; }
  /// Names there that nobody asked for.
  [[nodiscard]] std::vector<std::string> left_over() const {
    std::vector<std::string> names;
    for (const auto& [here, given] : given_)
      if (!given.is_used) names.push_back(given.name);
    return names;
  }
  [[nodiscard]] const std::vector<std::string>& unused() const { return unused_; }

 private:
  std::string source_;
  std::map<std::string, Given> given_;
  std::vector<std::string> unused_;
};

// ---- one Variable

struct Made {
  Tensor value;
  LoadedTensor report;
};

std::string list_of(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), std::size_t{6});
  std::string text = fmt::format("{}", fmt::join(std::span(names).first(shown), ", "));
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

/// The shape of what tensors give along an axis; nothing if they do not fit each other.
std::optional<Shape> joined_shape(const std::vector<Given*>& given, Joining joining, int axis) {
  Shape shape = given[0]->tensor.shape();
  for (const Given* one : std::span(given).subspan(1)) {
    Shape other = one->tensor.shape();
    if (joining == Joining::side_by_side) {
      if (other.size() != shape.size() || axis >= shape.size()) return {};
      shape[axis] += std::exchange(other[axis], shape[axis]);
      other[axis] = shape[axis];
    }
    if (other != shape) return {};
  }
  return shape;
}

Shape turned(const Shape& shape) {
  return shape.size() == 2 ? Shape{shape[1], shape[0]} : shape;
}

/// Which tensors make the Variable, and how.
struct Work {
  const NamedVariable* variable = nullptr;
  std::vector<Given*> given;
  Joining joining = Joining::one;
  Layout layout = Layout::same;
  bool is_matrix = false;  ///< one that PyTorch has transposed, whatever this file has

  /// Along which tensors stand side by side.
  [[nodiscard]] int axis() const { return is_matrix && layout == Layout::same ? 1 : 0; }
  [[nodiscard]] std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Given* one : given) all.push_back(one->name);
    return all;
  }
  [[nodiscard]] std::string shapes() const {
    std::vector<std::string> all;
    for (const Given* one : given) all.push_back(describe(one->tensor));
    return fmt::format("{}", fmt::join(all, ", "));
  }
  [[nodiscard]] std::string how() const {
    std::string text = joining == Joining::sum ? fmt::format("sum of {}", given.size())
                       : joining == Joining::side_by_side
                           ? fmt::format("{} side by side", given.size())
                           : "";
    if (layout == Layout::transposed) text += text.empty() ? "transposed" : ", transposed";
    if (text.empty()) text = "as it is";
    const DType dtype = given[0]->tensor.dtype();
    if (dtype != variable->variable.spec().dtype) text += fmt::format(", from {}", name_of(dtype));
    return text;
  }
};

void check_fit(const File& file, const Work& work) {
  const Spec& spec = work.variable->variable.spec();
  const std::string what = fmt::format("{}: {} for {}, {}", file.source(), list_of(work.names()),
                                       work.variable->name, work.how());
  for (const Given* one : work.given) {
    const DType dtype = one->tensor.dtype();
    if (dtype == spec.dtype || (is_floating(dtype) && is_floating(spec.dtype))) continue;
    fail(ErrorKind::dtype, what, std::string(name_of(spec.dtype)), std::string(name_of(dtype)),
         "Convert it where it was saved.");
  }
  const std::optional<Shape> shape = joined_shape(work.given, work.joining, work.axis());
  const bool is_turned = work.layout == Layout::transposed;
  if (shape && (!is_turned || shape->size() == 2) &&
      (is_turned ? turned(*shape) : *shape) == spec.shape)
    return;
  const Shape wanted = is_turned ? turned(spec.shape) : spec.shape;
  std::string fix = "Build the module with the sizes that it was trained with.";
  if (work.is_matrix && shape && is_turned && *shape == spec.shape) {
    fix =
        "If it is [in, out] there already, as in GPT-2's Conv1D, name it in `untransposed`, with "
        "all "
        "that are so.";
  } else if (work.is_matrix && shape && !is_turned && turned(*shape) == spec.shape) {
    fix = "It is [out, in] there: take it out of `untransposed`.";
  }
  fail(ErrorKind::shape, what, "together " + to_string(wanted) + " there", work.shapes(),
       std::move(fix));
}

/// Nothing if the file has none of what the Variable may be made of.
std::optional<Work> work_for(File& file, const NamedVariable& variable, const PytorchNames& names) {
  for (const Source& source : names.sources_of(variable.name)) {
    Work work = {.variable = &variable,
                 .given = {},
                 .joining = source.joining,
                 .layout = source.layout,
                 .is_matrix = source.layout == Layout::transposed};
    std::string missing;
    std::size_t untransposed = 0;
    for (const std::string& name : source.names) {
      Given* const given = file.find(name);
      if (given == nullptr) {
        missing = name;
        continue;
      }
      untransposed += given->is_untransposed ? 1 : 0;
      work.given.push_back(given);
    }
    if (work.given.empty()) continue;
    if (!missing.empty()) {
      fail(ErrorKind::value,
           fmt::format("{}: {} is made of {} tensors", file.source(), variable.name,
                       source.names.size()),
           missing, "only " + list_of(work.names()), "");
    }
    if (untransposed == work.given.size()) work.layout = Layout::same;
    for (Given* const given : work.given) given->is_used = true;
    return work;
  }
  return {};
}

Tensor value_of(const Work& work) {
  const Spec& spec = work.variable->variable.spec();
  std::vector<Tensor> all;
  for (const Given* one : work.given) all.push_back(cast(one->tensor, spec.dtype));
  Tensor value = all[0];
  if (work.joining == Joining::side_by_side)
    value = concat(all, work.axis());
  else
    for (std::size_t i = 1; i < all.size(); ++i) value = value + all[i];
  // In row-major order, as layers are made: library calls differ in bits by strides.
  if (work.layout == Layout::transposed) value = copy(transpose(value));
  return value.to(work.variable->variable.device());
}

/// The first of several names, whose layers are those that it has here.
std::string expected_name(const PytorchNames& names, const NamedVariable& variable) {
  const std::vector<Source> sources = names.sources_of(variable.name);
  return fmt::format("{}", fmt::join(sources.front().names, " + "));
}

}  // namespace

SafetensorsFile read_pytorch(const std::filesystem::path& path, std::source_location place) {
  try {
    return load_safetensors(path, place);
  } catch (const Error& error) {
    // Archives begin so, and pickles.
    const int first = std::ifstream(path, std::ios::binary).get();
    if (error.kind() != ErrorKind::io || (first != 'P' && first != 0x80)) throw;
    ErrorReport report = error.report();
    report.where = "load_pytorch";
    report.fix =
        "torch.save() writes pickles, which may run any code when they are read: there, save the "
        "state_dict by safetensors.torch.save_file().";
    throw Error(ErrorKind::io, std::move(report)).with_location(place);
  }
}

LoadReport load_pytorch(const std::string& source, const SafetensorsFile& given,
                        const std::vector<NamedVariable>& variables,
                        const std::vector<Layer>& layers, const PytorchOptions& options,
                        std::source_location place) {
  return eager::located(place, [&] {
    const auto format = given.metadata.find("format");
    if (format != given.metadata.end() && format->second == "nitinol") {
      fail(ErrorKind::value, source + " was written by save()", "a file with PyTorch's layouts",
           "one with ours", "load() reads it.");
    }
    File file(source, given.tensors, options);
    const PytorchNames names(layers);
    LoadReport report;
    std::vector<std::string> missing;
    std::vector<Work> all;
    for (const NamedVariable& variable : variables) {
      const std::optional<Work> work = work_for(file, variable, names);
      if (work) {
        check_fit(file, *work);
        report.tensors.push_back({work->names(), variable.name, work->how()});
        all.push_back(*work);
      } else {
        report.tensors.push_back({{}, variable.name, "missing"});
        missing.push_back(
            fmt::format("{} (for {})", expected_name(names, variable), variable.name));
      }
    }
    const std::vector<std::string> left_over = file.left_over();
    if (options.is_strict && (!missing.empty() || !left_over.empty())) {
      fail(ErrorKind::value, source + " does not fit the module",
           missing.empty() ? "no other names than the module's" : list_of(missing),
           left_over.empty()
               ? "none of them"
               : fmt::format("{} left over: {}", left_over.size(), list_of(left_over)),
           "Say in `rename` what they are called here and in `unused` which are not needed, or do "
           "without being strict.");
    }
    // All that may fail is before the first Variable is set.
    std::vector<Tensor> values;
    for (const Work& work : all) values.push_back(value_of(work));
    for (std::size_t i = 0; i < all.size(); ++i) all[i].variable->variable.set(values[i]);
    for (const auto& names_there : {left_over, file.unused()})
      for (const std::string& name : names_there) report.tensors.push_back({{name}, "", "unused"});
    return report;
  });
}

}  // namespace module

std::string to_string(const LoadReport& report) {
  std::size_t from_width = 0;
  std::size_t to_width = 0;
  std::map<std::string, int64_t> counts;
  std::vector<std::string> froms;
  for (const LoadedTensor& one : report.tensors) {
    froms.push_back(fmt::format("{}", fmt::join(one.from, " + ")));
    from_width = std::max(from_width, froms.back().size());
    to_width = std::max(to_width, one.to.size());
    ++counts[one.how];
  }
  std::string text;
  for (std::size_t i = 0; i < froms.size(); ++i) {
    const LoadedTensor& one = report.tensors[i];
    text += fmt::format("{:<{}}  {:<{}}  {}\n", froms[i], from_width, one.to, to_width, one.how);
  }
  std::vector<std::string> sums;
  for (const auto& [how, count] : counts) sums.push_back(fmt::format("{} {}", count, how));
  return text + fmt::format("{}\n", fmt::join(sums, "; "));
}

std::ostream& operator<<(std::ostream& stream, const LoadReport& report) {
  return stream << to_string(report);
}

}  // namespace nitinol::nn
