// What of a run is for replays, and no user of a processor waits for.
#include "program/running.h"

namespace nitinol::program {

void Running::allocate_rest() {
  taken_ =
      std::make_unique<Replays::Taken>(program_.replays->take(addresses_.span(), made_.span()));
  std::vector<StorageHandle>& storages = taken_->storages;
  storages.resize(program_.memory.size());
  if (program_.arena_bytes > 0) {
    arena_ = taken_->temporaries ? std::move(taken_->temporaries)
                                 : program_.device->allocate(program_.arena_bytes);
    for (const Value v : program_.temporaries)
      addresses_[v] = static_cast<std::byte*>(arena_->data) + program_.places[v].offset;
  }
  for (std::size_t i = 0; i < program_.memory.size(); ++i) {
    if (made_[i].is_defined()) continue;
    const OutputMemory& memory = program_.memory[i];
    StorageHandle storage =
        storages[i] ? std::move(storages[i]) : program_.device->allocate(memory.bytes);
    made_[i] = make_tensor(memory.spec, memory.strides, 0, std::move(storage));
    addresses_[memory.value] = static_cast<std::byte*>(made_[i].internals().unsettled_address());
  }
}

bool Running::replay(Given given, bool is_gated) {
  if (is_noted()) return false;
  const auto launch = [&](std::size_t s, Status* status) {
    given.status = status;
    given.is_gated = is_gated && s >= program_.safe_steps;
    launch_step(s, given);
  };
  return program_.replays->run({.addresses = addresses_.span(),
                                .scalars = given.scalars,
                                .number_bits = given.number_bits,
                                .status = given.status,
                                .taken = taken_.get()},
                               launch);
}

}  // namespace nitinol::program
