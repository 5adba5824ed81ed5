#include "nn/checkpoint.h"

#include "core/error.h"
#include "eager/host_read.h"

#include <fmt/format.h>

#include <map>
#include <string>
#include <utility>

namespace nitinol::nn::module {
namespace {

[[noreturn]] void throw_misfit(const std::filesystem::path& path, std::string what,
                               std::string expected, std::string got) {
  throw Error(ErrorKind::value,
              {.where = "load",
               .what = fmt::format("\"{}\" does not fit the module: {}", path.string(), what),
               .expected = std::move(expected),
               .got = std::move(got),
               .fix = "Build the module with the settings that it was saved with."});
}

/// Throws unless the file holds just the module's names with their shapes and dtypes.
void check_fit(const std::filesystem::path& path, const std::vector<NamedVariable>& variables,
               const std::map<std::string, Tensor>& found) {
  for (const NamedVariable& named : variables) {
    const auto at = found.find(named.name);
    const Spec& spec = named.variable.spec();
    if (at == found.end()) throw_misfit(path, named.name, describe(spec), "nothing of that name");
    if (at->second.shape() != spec.shape || at->second.dtype() != spec.dtype) {
      throw_misfit(path, named.name, describe(spec), describe(at->second));
    }
  }
  if (found.size() > variables.size()) {
    for (const auto& [name, tensor] : found) {
      bool is_known = false;
      for (const NamedVariable& named : variables) is_known |= named.name == name;
      if (!is_known) throw_misfit(path, name, "only names of the module", describe(tensor));
    }
  }
}

}  // namespace

void save(const std::filesystem::path& path, const std::vector<NamedVariable>& variables,
          std::source_location place) {
  std::vector<NamedTensor> tensors;
  for (const NamedVariable& named : variables) {
    tensors.emplace_back(named.name, named.variable.get());
  }
  save_safetensors(path, tensors, {{"format", "nitinol"}}, place);
}

void load(const std::filesystem::path& path, const std::vector<NamedVariable>& variables,
          std::source_location place) {
  std::map<std::string, Tensor> found;
  for (auto& [name, tensor] : load_safetensors(path, place).tensors) found.emplace(name, tensor);
  eager::located(place, [&] { check_fit(path, variables, found); });
  for (const NamedVariable& named : variables) {
    named.variable.set(found.at(named.name).to(named.variable.device()));
  }
}

}  // namespace nitinol::nn::module
