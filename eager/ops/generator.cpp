#include "core/generator.h"

#include "core/fork.h"
#include "core/interpreter.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/create.h"
#include "eager/ops/random.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

namespace nitinol {
namespace {

Tensor start_of(uint64_t seed, Device device) {
  return tensor({static_cast<int64_t>(seed), int64_t{0}}, i64, device);
}

/// Made one by one as devices are drawn on; never destroyed: others may draw while the process
/// ends.
struct DefaultGenerators {
  ForkSafeMutex mutex;
  uint64_t seed = 0;  ///< of those to come
  std::map<std::pair<Device::Kind, int8_t>, Generator> by_device;
};

DefaultGenerators& default_generators() {
  static auto& generators = *new DefaultGenerators;
  return generators;
}

}  // namespace

Generator::Generator(uint64_t seed, Device device) : state_(start_of(seed, device)) {}

void Generator::manual_seed(uint64_t seed) const {
  state_.set(start_of(seed, device()));
}

Tensor Generator::draw(int64_t count) const {
  Tensor drawn;
  state_.update([&](const Tensor& state) {
    drawn = state;
    return state + tensor({int64_t{0}, count}, i64, device());
  });
  return drawn;
}

const Generator& default_generator(Device device) {
  const std::pair key = {device.kind, device.index};
  DefaultGenerators& generators = default_generators();
  const std::lock_guard lock(generators.mutex);
  const auto found = generators.by_device.find(key);
  if (found != generators.by_device.end()) return found->second;
  // The first use may be inside a recorded call, of which making it is no part.
  const InterpreterScope scope(base_interpreter());
  const Generator made(generators.seed, device);
  // Older than the call that draws first, which else would take the state for one of its own, and
  // not wait for other calls that draw.
  made.state().cell().id = generators.by_device.size() + 1;
  return generators.by_device.emplace(key, made).first->second;
}

void manual_seed(uint64_t seed) {
  static_cast<void>(default_generator());  // there is one at least
  std::vector<Generator> all;
  {
    DefaultGenerators& generators = default_generators();
    const std::lock_guard lock(generators.mutex);
    generators.seed = seed;
    for (const auto& [device, generator] : generators.by_device) all.push_back(generator);
  }
  for (const Generator& generator : all) generator.manual_seed(seed);
}

}  // namespace nitinol
