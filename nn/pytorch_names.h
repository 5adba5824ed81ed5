// What PyTorch may call a Variable: the names that the layers around it have there.
#pragma once

#include "nn/pytorch.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace nitinol::nn::module {

/// Of a matrix there: as ours, or the other way round.
enum class Layout { same, transposed };
/// What several tensors there become.
enum class Joining { one, sum, side_by_side };

/// What a Variable may be made of.
struct Source {
  std::vector<std::string> names;  ///< of tensors there
  Layout layout = Layout::same;
  Joining joining = Joining::one;
};

/// The layers of a module, and all that their paths may be there.
class PytorchNames {
 public:
  /// `layers`: outer ones before those in them.
  explicit PytorchNames(const std::vector<Layer>& layers);

  /// For a Variable's path, from what is likeliest on; last what has the same name there.
  [[nodiscard]] std::vector<Source> sources_of(const std::string& path) const;

 private:
  struct Known {
    std::string type;
    std::vector<std::string> prefixes;
  };
  /// f(layer, rest of the path) for layers from the nearest to the module itself.
  template <class F>
  void for_each_around(const std::string& path, const F& f) const;
  [[nodiscard]] Known known_of(const Layer& layer) const;

  std::map<std::string, Known> known_;
};

}  // namespace nitinol::nn::module
