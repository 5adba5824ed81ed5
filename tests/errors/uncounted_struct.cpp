// Structs whose fields cannot be told: not silently one without any.
#include "core/fields.h"

#include <memory>

namespace {

struct Given {
  explicit Given(int) {}
};
struct Uncounted {
  Given one;
  Given& other;
  std::unique_ptr<int> owned;
};

#define TEN(name)                                                                            \
  name##0 = 0, name##1 = 0, name##2 = 0, name##3 = 0, name##4 = 0, name##5 = 0, name##6 = 0, \
  name##7 = 0, name##8 = 0, name##9 = 0
struct Large {
  int TEN(a), TEN(b), TEN(c), TEN(d), TEN(e), TEN(f), TEN(g), TEN(h), TEN(i), TEN(j), TEN(k);
};

}  // namespace

int main() {
  return static_cast<int>(nitinol::reflection::field_count<Uncounted> +
                          nitinol::reflection::field_count<Large>);
}
