// What is seldom asked of a run.
#include "program/running.h"

namespace nitinol::program {

void Running::allocate_rest() {
  Replays::Taken& taken = rare().taken;
  taken = program_.replays->take(addresses_.span(), made_.span());
  std::vector<StorageHandle>& storages = taken.storages;
  storages.resize(program_.memory.size());
  if (program_.arena_bytes > 0) {
    arena_ = taken.temporaries ? std::move(taken.temporaries)
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
                                .taken = &rare().taken},
                               launch);
}

void Running::note_memory() {
  if (arena_) memory_notes::note_temporaries(program_.described, *arena_);
  std::size_t group = 0;
  for (std::size_t s = 0; s < program_.steps.size(); s += program_.steps[s].together, ++group) {
    for (std::size_t k = s; k < s + program_.steps[s].together; ++k) {
      for (const Value written : program_.steps[k].writes) note_output(written, group);
    }
  }
}

void Running::note_output(Value written, std::size_t group) {
  const Place& place = program_.places[written];
  if (place.kind != Place::Kind::output) return;
  const Tensor& made = made_[static_cast<std::size_t>(place.index)];
  if (made.is_defined() && made.internals().storage)
    memory_notes::note_step(program_.described, group, *made.internals().storage);
}

}  // namespace nitinol::program
