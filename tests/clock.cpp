// In the tests no time passes that decides when calls are recorded again, or whether a Plan is
// worth keeping: how many calls it runs then depends on their number alone, however busy the
// machine is.
#include "jit/clock.h"

namespace {

const nitinol::jit::FakeClock still;

}  // namespace
