#include "nn/plateau.h"

#include "nn/checks.h"

#include <algorithm>
#include <limits>

namespace nitinol::nn {

Plateau::Plateau(double rate, const PlateauOptions& options)
    : rate_(rate),
      options_(options),
      best_(std::numeric_limits<double>::infinity() * (options.is_maximizing ? -1 : 1)) {
  check_setting("Plateau", "rate", rate, Interval::not_negative);
  check_setting("Plateau", "factor", options.factor, Interval::below_one);
  check_at_least("Plateau", "patience", options.patience, 0);
  check_setting("Plateau", "threshold", options.threshold, Interval::not_negative);
  check_at_least("Plateau", "cooldown", options.cooldown, 0);
  check_setting("Plateau", "last", options.last, Interval::not_negative);
}

double Plateau::operator()(double metric) {
  const double sign = options_.is_maximizing ? 1 : -1;
  const double bound = options_.is_absolute ? best_ + sign * options_.threshold
                                            : best_ * (1 + sign * options_.threshold);
  if (options_.is_maximizing ? metric > bound : metric < bound) {
    best_ = metric;
    worse_ = 0;
  } else {
    ++worse_;
  }
  if (cooling_ > 0) {
    --cooling_;
    worse_ = 0;
  }
  if (worse_ > options_.patience) {
    rate_ = std::min(rate_, std::max(rate_ * options_.factor, options_.last));
    cooling_ = options_.cooldown;
    worse_ = 0;
  }
  return rate_;
}

}  // namespace nitinol::nn
