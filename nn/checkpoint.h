// Saving and loading all Variables of a module by name.
#pragma once

#include "io/safetensors.h"
#include "nn/module.h"

#include <filesystem>
#include <source_location>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

namespace module {

void save(const std::filesystem::path& path, const std::vector<NamedVariable>& variables,
          std::source_location place);
void load(const std::filesystem::path& path, const std::vector<NamedVariable>& variables,
          std::source_location place);

}  // namespace module

/// Writes parameters and buffers to a safetensors file, named by their paths. The file appears
/// complete or not at all. Works for modules, optimizers, and structs of both.
template <class M>
void save(const std::filesystem::path& path, const M& module,
          std::source_location place = std::source_location::current()) {
  module::save(path, named_variables(module), place);
}

/// Sets them from a file. Throws Error(io) if it cannot be read, Error(value) unless it holds just
/// the module's names with their shapes and dtypes; then nothing has changed.
template <class M>
void load(const std::filesystem::path& path, const M& module,
          std::source_location place = std::source_location::current()) {
  module::load(path, named_variables(module), place);
}

}  // namespace nitinol::nn

#pragma GCC visibility pop
