// The optimizers. Each is a rule for one parameter; see nn/optimizer.h for what they share.
#pragma once

#include "core/function_ref.h"
#include "nn/optimizer.h"

#include <cstdint>
#include <vector>

#pragma GCC visibility push(default)

namespace nitinol::nn {

struct SgdOptions {
  double rate = 1e-2, momentum = 0, weight_decay = 0;
  bool is_nesterov = false;
  double dampening = 0;        ///< of gradients that join the momentum, from the second step on
  bool is_maximizing = false;  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// Stochastic gradient descent, with momentum as in PyTorch: v = momentum v + g; p -= rate v.
class Sgd final : public Optimizer {
 public:
  using Options = SgdOptions;
  explicit Sgd(std::vector<Variable> parameters, const SgdOptions& options = {});
  void add(std::vector<Variable> parameters, const SgdOptions& options);
};

struct AdamOptions {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool is_amsgrad = false;     ///< divides by the largest average there was (S. Reddi et al., 2018)
  bool is_maximizing = false;  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// D. Kingma, J. Ba, arXiv:1412.6980; weight decay is added to the gradient.
class Adam : public Optimizer {
 public:
  using Options = AdamOptions;
  explicit Adam(std::vector<Variable> parameters, const AdamOptions& options = {});
  void add(std::vector<Variable> parameters, const AdamOptions& options);

 protected:
  /// `is_decoupled`: weight decay is not added to the gradient.
  Adam(std::vector<Variable> parameters, const AdamOptions& options, bool is_decoupled);

 private:
  bool is_decoupled_;
};

/// AdamOptions with a decay: one that is not given is no other than AdamW's own.
struct AdamWOptions {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 1e-2;
  bool is_amsgrad = false;     ///< divides by the largest average there was (S. Reddi et al., 2018)
  bool is_maximizing = false;  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// I. Loshchilov, F. Hutter, arXiv:1711.05101: weight decay is apart from the gradient.
class AdamW final : public Adam {
 public:
  using Options = AdamWOptions;
  explicit AdamW(std::vector<Variable> parameters, const AdamWOptions& options = {});
  void add(std::vector<Variable> parameters, const AdamWOptions& options);
};

struct AdamaxOptions {
  double rate = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool is_maximizing = false;                  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// Adam by the largest gradient rather than by their squares (D. Kingma, J. Ba, arXiv:1412.6980,
/// section 7.1).
class Adamax final : public Optimizer {
 public:
  using Options = AdamaxOptions;
  explicit Adamax(std::vector<Variable> parameters, const AdamaxOptions& options = {});
  void add(std::vector<Variable> parameters, const AdamaxOptions& options);
};

struct NAdamOptions {
  double rate = 2e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  double momentum_decay = 4e-3;                ///< how fast beta1 rises from its half to itself
  bool is_decoupled = false;                   ///< weight decay is apart from the gradient
  bool is_maximizing = false;                  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// Adam with Nesterov's momentum (T. Dozat, 2016), as in PyTorch.
class NAdam final : public Optimizer {
 public:
  using Options = NAdamOptions;
  explicit NAdam(std::vector<Variable> parameters, const NAdamOptions& options = {});
  void add(std::vector<Variable> parameters, const NAdamOptions& options);
};

struct RAdamOptions {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  bool is_decoupled = false;                   ///< weight decay is apart from the gradient
  bool is_maximizing = false;                  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// Adam that divides by squares only when it has seen enough of them (L. Liu et al.,
/// arXiv:1908.03265), as in PyTorch.
class RAdam final : public Optimizer {
 public:
  using Options = RAdamOptions;
  explicit RAdam(std::vector<Variable> parameters, const RAdamOptions& options = {});
  void add(std::vector<Variable> parameters, const RAdamOptions& options);
};

struct RmsPropOptions {
  double rate = 1e-2, decay = 0.99, eps = 1e-8, momentum = 0, weight_decay = 0;
  bool is_centered = false;    ///< divides by the deviation, not by the root of the mean square
  bool is_maximizing = false;  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// T. Tieleman, G. Hinton, lecture 6.5 (2012), as in PyTorch.
class RmsProp final : public Optimizer {
 public:
  using Options = RmsPropOptions;
  explicit RmsProp(std::vector<Variable> parameters, const RmsPropOptions& options = {});
  void add(std::vector<Variable> parameters, const RmsPropOptions& options);
};

struct AdagradOptions {
  double rate = 1e-2, eps = 1e-10, weight_decay = 0;
  double rate_decay = 0;       ///< the rate of step n is rate / (1 + (n - 1) rate_decay)
  double initial = 0;          ///< of the sums of squares
  bool is_maximizing = false;  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// Divides by the root of the sum of all squares (J. Duchi et al., 2011), as in PyTorch.
class Adagrad final : public Optimizer {
 public:
  using Options = AdagradOptions;
  explicit Adagrad(std::vector<Variable> parameters, const AdagradOptions& options = {});
  void add(std::vector<Variable> parameters, const AdagradOptions& options);
};

struct AdadeltaOptions {
  double rate = 1, decay = 0.9, eps = 1e-6, weight_decay = 0;
  bool is_maximizing = false;                  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// M. Zeiler, arXiv:1212.5701.
class Adadelta final : public Optimizer {
 public:
  using Options = AdadeltaOptions;
  explicit Adadelta(std::vector<Variable> parameters, const AdadeltaOptions& options = {});
  void add(std::vector<Variable> parameters, const AdadeltaOptions& options);
};

struct AdafactorOptions {
  double rate = 1e-2;  ///< at most; of step n it is at most 1 / sqrt(n)
  double decay = 0.8;  ///< step n has the weight n^-decay in the averages
  double eps1 = 0;     ///< averages of squares are eps1^2 at least; 0: the dtype's epsilon
  double eps2 =
      1e-3;  ///< the rate is relative to the parameter, whose size counts as this at least
  double clipping = 1;  ///< the most that the root of a move's mean square may be, before the rate
  double weight_decay = 0;                     ///< is apart from the gradient
  bool is_maximizing = false;                  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// Keeps averages of squares of rows and columns, not of elements (N. Shazeer, M. Stern,
/// arXiv:1804.04235), as in PyTorch: along the last two axes; of parameters with one axis, all.
class Adafactor final : public Optimizer {
 public:
  explicit Adafactor(std::vector<Variable> parameters, const AdafactorOptions& options = {});
  void add(std::vector<Variable> parameters, const AdafactorOptions& options);
};

struct LionOptions {
  double rate = 1e-4, beta1 = 0.9, beta2 = 0.99, weight_decay = 0;
  bool is_maximizing = false;                  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// Moves by the signs of averages (X. Chen et al., arXiv:2302.06675); weight decay is apart from
/// the gradient.
class Lion final : public Optimizer {
 public:
  using Options = LionOptions;
  explicit Lion(std::vector<Variable> parameters, const LionOptions& options = {});
  void add(std::vector<Variable> parameters, const LionOptions& options);
};

struct LambOptions {
  double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-6, weight_decay = 0;
  bool is_maximizing = false;                  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// Adam whose moves, weight decay included, are as long as `rate` times the parameter (Y. You et
/// al., arXiv:1904.00962): for large batches.
class Lamb final : public Optimizer {
 public:
  explicit Lamb(std::vector<Variable> parameters, const LambOptions& options = {});
  void add(std::vector<Variable> parameters, const LambOptions& options);
};

struct LbfgsOptions {
  double rate = 1;
  int64_t history = 10;  ///< so many steps are remembered, each as large as all parameters twice
  bool is_maximizing = false;                  ///< moves along gradients, not against them
  [[no_unique_address]] LearningRate lr = {};  ///< is called rate
};
/// When Lbfgs::minimize() ends.
struct MinimizeOptions {
  int64_t iterations = 20;
  int64_t evaluations = 25;          ///< of the loss in one iteration, at most
  double gradient_tolerance = 1e-7;  ///< no element of a gradient is larger
  double change_tolerance = 1e-9;  ///< neither the loss nor an element of a parameter changed more
};
/// What a minimization came to.
struct Minimum {
  double loss = 0;
  int64_t iterations = 0;     ///< steps made
  int64_t evaluations = 0;    ///< calls of the loss
  bool is_converged = false;  ///< it ended by a tolerance
};
/// Newton's method with second derivatives guessed from the last steps (D. Liu, J. Nocedal, 1989):
/// for gradients of all data. Each group has its own guess.
///
/// step() takes its length from the rate, near a minimum 1: it is called as of the others, with one
/// loss for each step; so many steps are PyTorch's one of max_iter = so many without its
/// tolerances. minimize() searches the length of each step.
class Lbfgs final : public Optimizer {
 public:
  explicit Lbfgs(std::vector<Variable> parameters, const LbfgsOptions& options = {});
  void add(std::vector<Variable> parameters, const LbfgsOptions& options);

  /// Steps whose lengths a line search finds, by the strong Wolfe conditions. `loss` computes the
  /// loss of the present parameters, calls backward() and returns it, one number; gradients are
  /// cleared before. It may be compiled; minimize() itself reads loss and slope on the host after
  /// each call. The parameters end where the loss is what is returned, or, if `loss` throws, where
  /// the last iteration began. Throws Error(value) for a first loss that is not finite, and for
  /// options that make no sense.
  Minimum minimize(FunctionRef<Tensor()> loss, const MinimizeOptions& options = {}) const;
};

}  // namespace nitinol::nn

#pragma GCC visibility pop
