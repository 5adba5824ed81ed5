// Losses, in the inputs' dtype. `reduction` says what becomes of the losses of all elements (of all
// targets, for cross_entropy, nll_loss and those of pairs): their mean, their sum, or themselves.
// Throw Error(shape) for shapes that differ: broadcasting a loss is nearly always a mistake.
#pragma once

#include "core/integer.h"
#include "core/tensor.h"

#include <cstdint>
#include <optional>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// What becomes of the losses of all elements: they stay, or their mean or sum is the loss.
enum class Reduction : uint8_t { none, mean, sum };

// ---- of classes

struct CrossEntropyOptions {
  double label_smoothing = 0;   ///< the share of each target spread evenly over all classes
  int64_t ignore_index = -100;  ///< a target that is left out: padding
  /// One for each class, by which its losses count; in the mean, too.
  std::optional<Tensor> weights = {};
  Reduction reduction = Reduction::mean;
};
/// The mean of -log softmax(logits)[target] over the targets other than ignore_index; NaN if there
/// are none, with gradients of 0. logits: [..., classes]; targets: integers [...], or probabilities
/// of that shape. Throws Error(value) for a target that is neither a class nor ignore_index.
[[nodiscard]] Tensor cross_entropy(const Tensor& logits, const Tensor& targets,
                                   const CrossEntropyOptions& options = {});
struct NllOptions {
  int64_t ignore_index = -100;  ///< a target that is left out
  /// One for each class, by which its losses count; in the mean, too.
  std::optional<Tensor> weights = {};
  Reduction reduction = Reduction::mean;
};
/// The mean of -log_probabilities[target]: cross_entropy() of what log_softmax() gave.
/// log_probabilities: [..., classes]; targets: integers [...].
[[nodiscard]] Tensor nll_loss(const Tensor& log_probabilities, const Tensor& targets,
                              const NllOptions& options = {});

struct BceOptions {
  std::optional<Tensor> weights = {};  ///< by which losses count; broadcast to them
  /// By which those of targets of 1 count; broadcast to the targets.
  std::optional<Tensor> positive_weight = {};
  Reduction reduction = Reduction::mean;
};
/// The mean of -(t log p + (1 - t) log(1 - p)) with p = sigmoid(logits), without overflow.
[[nodiscard]] Tensor bce_with_logits(const Tensor& logits, const Tensor& targets,
                                     const BceOptions& options = {});
/// The mean of -(t log p + (1 - t) log(1 - p)), with logarithms of at least -100.
[[nodiscard]] Tensor bce_loss(const Tensor& probabilities, const Tensor& targets,
                              const BceOptions& options = {});
/// The mean of t (log t - log_probabilities), 0 where t is 0 (S. Kullback, R. Leibler). For the
/// divergence of distributions, sum it and divide by their number. `has_log_targets`: targets are
/// log t.
[[nodiscard]] Tensor kl_div(const Tensor& log_probabilities, const Tensor& targets,
                            bool has_log_targets = false, Reduction reduction = Reduction::mean);

struct CtcOptions {
  int64_t blank = 0;  ///< the class that stands for nothing
  /// 0, with gradients of 0, where no path gives the labels, which else costs infinity.
  bool zeroes_infinity = false;
  Reduction reduction = Reduction::mean;
};
/// How unlikely labels are that are shorter than the steps and lie anywhere among them (A. Graves
/// et al., ICML 2006): -log of the sum over all paths that give them when repetitions and then
/// blanks are dropped. The mean is of losses by the lengths of their labels. log_probabilities:
/// [steps, batch, classes]; labels: integers [batch, most labels], of which the rest beyond
/// `label_lengths` is not looked at; step_lengths, label_lengths: integers [batch]. Throws
/// Error(value) for lengths beyond the axes. One step is computed after the other: a compiled
/// function has a Plan for each number of steps.
[[nodiscard]] Tensor ctc_loss(const Tensor& log_probabilities, const Tensor& labels,
                              const Tensor& step_lengths, const Tensor& label_lengths,
                              const CtcOptions& options = {});

// ---- of numbers

/// The mean of (x - y)^2.
[[nodiscard]] Tensor mse_loss(const Tensor& x, const Tensor& y,
                              Reduction reduction = Reduction::mean);
/// The mean of |x - y|.
[[nodiscard]] Tensor l1_loss(const Tensor& x, const Tensor& y,
                             Reduction reduction = Reduction::mean);
/// The mean of (x - y)^2 / 2 where |x - y| <= delta, else delta (|x - y| - delta / 2) (P. Huber).
[[nodiscard]] Tensor huber_loss(const Tensor& x, const Tensor& y, double delta = 1,
                                Reduction reduction = Reduction::mean);
/// The mean of (x - y)^2 / (2 beta) where |x - y| < beta, else |x - y| - beta / 2; l1_loss() for a
/// beta of 0.
[[nodiscard]] Tensor smooth_l1_loss(const Tensor& x, const Tensor& y, double beta = 1,
                                    Reduction reduction = Reduction::mean);
struct PoissonNllOptions {
  bool has_log = true;   ///< x is the logarithm of the rate
  bool is_full = false;  ///< with Stirling's approximation of log(y!) where y > 1
  double eps = 1e-8;     ///< added to a rate that is no logarithm
  Reduction reduction = Reduction::mean;
};
/// The mean of e^x - y x, up to a constant how unlikely counts y are for a rate of e^x; of x - y
/// log(x + eps) for a rate x.
[[nodiscard]] Tensor poisson_nll_loss(const Tensor& x, const Tensor& y,
                                      const PoissonNllOptions& options = {});
struct GaussianNllOptions {
  bool is_full = false;  ///< with log(2 pi) / 2
  double eps = 1e-6;     ///< the least variance; no gradient passes to a smaller one
  Reduction reduction = Reduction::mean;
};
/// The mean of (log v + (x - y)^2 / v) / 2, v being the variance: up to a constant how unlikely y
/// is for a normal number of mean x. `variance` has the shape of x, or is broadcast to it. Throws
/// Error(value) for an eps of 0.
[[nodiscard]] Tensor gaussian_nll_loss(const Tensor& x, const Tensor& y, const Tensor& variance,
                                       const GaussianNllOptions& options = {});

// ---- of pairs, and of which is larger; y is 1 or -1

/// a b / (|a| |b|) along an axis; norms of less than eps count as eps.
[[nodiscard]] Tensor cosine_similarity(const Tensor& a, const Tensor& b, Integer axis = 1,
                                       double eps = 1e-8);
/// The mean of 1 - cosine_similarity(a, b) along the last axis where y is 1, else of what it
/// exceeds `margin` by. a, b: [..., features]; y: [...].
[[nodiscard]] Tensor cosine_embedding_loss(const Tensor& a, const Tensor& b, const Tensor& y,
                                           double margin = 0,
                                           Reduction reduction = Reduction::mean);
struct TripletMarginOptions {
  double margin = 1, p = 2;  ///< p: of the norm
  double eps = 1e-6;         ///< added to each difference
  bool swaps = false;        ///< takes the distance of positive and negative if that is smaller
  Reduction reduction = Reduction::mean;
};
/// The mean of what |anchor - positive| + margin exceeds |anchor - negative| by (V. Balntas et al.,
/// BMVC 2016). Each: [..., features].
[[nodiscard]] Tensor triplet_margin_loss(const Tensor& anchor, const Tensor& positive,
                                         const Tensor& negative,
                                         const TripletMarginOptions& options = {});
/// The mean of max(0, margin - y (a - b)): 0 where a is larger than b by the margin, if y is 1.
[[nodiscard]] Tensor margin_ranking_loss(const Tensor& a, const Tensor& b, const Tensor& y,
                                         double margin = 0, Reduction reduction = Reduction::mean);
/// The mean of x where y is 1, else of max(0, margin - x).
[[nodiscard]] Tensor hinge_embedding_loss(const Tensor& x, const Tensor& y, double margin = 1,
                                          Reduction reduction = Reduction::mean);
/// The mean of log(1 + e^(-y x)).
[[nodiscard]] Tensor soft_margin_loss(const Tensor& x, const Tensor& y,
                                      Reduction reduction = Reduction::mean);

}  // namespace nitinol::nn

#pragma GCC visibility pop
