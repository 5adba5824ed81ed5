// Ranks: the processes that fit() trains by, and what they do together besides the steps.
#pragma once

#include "dist/group.h"
#include "nn/data_loader.h"
#include "nn/module.h"

#include <cstdint>
#include <optional>
#include <source_location>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn::fitting {

/// A process that trains alone is a group of one, which sends nothing. All ranks call the same.
class Ranks {
 public:
  Ranks() = default;
  /// Of `group`; if there is none, of world() where dist::init() has been called.
  Ranks(const std::optional<dist::Group>& group, std::source_location place);

  [[nodiscard]] bool are_several() const { return size_ > 1; }
  [[nodiscard]] int64_t size() const { return size_; }
  /// Whether this is rank 0: it writes files, shows what comes, and calls what is called then.
  [[nodiscard]] bool is_first() const { return rank_ == 0; }
  /// Where the user's code calls fit().
  [[nodiscard]] const std::source_location& place() const { return place_; }
  /// What rank 0 says.
  [[nodiscard]] bool first_says(bool own) const;
  /// Whether all say so.
  [[nodiscard]] bool all_say(bool own) const;

  /// Of floating ones of any shape.
  [[nodiscard]] Tensor sum(const Tensor& x) const;
  [[nodiscard]] Tensor mean(const Tensor& x) const;
  /// The rows of all ranks, which may have unequally many of them. Throws Error(value) if one has
  /// none and others have.
  [[nodiscard]] Tensor rows(const std::vector<Tensor>& own) const;

  /// Replaces gradients by their mean over ranks.
  void average_gradients(const std::vector<Variable>& parameters) const;
  /// Gives all ranks what rank 0 has.
  void broadcast(const std::vector<NamedVariable>& variables) const;
  /// Of what is no parameter, such as the running statistics of batch norm: the mean over ranks.
  void average_buffers(const std::vector<NamedVariable>& variables) const;
  /// Until all are here.
  void wait() const;
  /// Warns if all ranks have got the same samples.
  void check_parts(const Batch& batch) const;
  /// load(), which sets the default generator's state to that of rank 0, on each. Ranks that draw
  /// other numbers than rank 0 go on doing so.
  template <class F>
  void load(const Variable& random, const F& load) const {
    const Tensor own = random, of_first = first_state(random);
    load();
    keep_key(random, own, of_first);
  }

 private:
  [[nodiscard]] Tensor first_state(const Variable& random) const;
  void keep_key(const Variable& random, const Tensor& own, const Tensor& of_first) const;

  dist::Group group_;
  int64_t rank_ = 0, size_ = 1;
  std::source_location place_;
};

/// Throws Error(value) if fit() is told another group than that of its optimizer.
void check_group(const std::optional<dist::Group>& told, const dist::Group& of_optimizer);

/// The batches of a pass of which every rank has one: all make equally many steps. Who has more
/// leaves them out.
class Pass {
 public:
  Pass(DataLoader& loader, const Ranks& ranks);
  /// Whether there is one more.
  [[nodiscard]] bool goes_on();
  [[nodiscard]] const Batch& batch() const { return *at_; }
  void advance() { ++at_; }

 private:
  DataLoader& loader_;
  const Ranks& ranks_;
  DataLoader::Iterator at_;
  bool is_even_ = true;  ///< all ranks are known to have equally many
};

}  // namespace nitinol::nn::fitting

#pragma GCC visibility pop
