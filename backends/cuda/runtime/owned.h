// Owned: an object of one of NVIDIA's libraries, which the library ends.
#pragma once

#include <memory>
#include <type_traits>

namespace nitinol::cuda {

/// Ends an object by a function of the library's table, which `library()` gives.
template <auto library, auto function>
struct End {
  template <class Object>
  void operator()(Object* object) const {
    (library().*function)(object);
  }
};
template <class Object, auto library, auto function>
using Owned = std::unique_ptr<std::remove_pointer_t<Object>, End<library, function>>;

}  // namespace nitinol::cuda
