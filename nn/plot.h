// plot(): a curve as text, for the end of a program that trains.
//
//     fmt::print("{}", nn::plot(losses, {.title = "loss"}));
//
//     loss
//      2.3 ⡇
//          ⠱⡀
//     1.15  ⠈⢢⡀
//             ⠈⠑⠤⣀⡀
//     0.02        ⠈⠉⠉⠒⠒⠤⠤⠤⠤⠤⠤⠤
//          1             400 steps
#pragma once

#include "core/integer.h"
#include "core/tensor.h"

#include <cstdint>
#include <span>
#include <string>

#pragma GCC visibility push(default)

namespace nitinol::nn {

/// What a plot is drawn with.
enum class PlotStyle : uint8_t {
  automatic,  ///< braille where LC_ALL, LC_CTYPE or LANG, the first that is set, says UTF-8
  braille,    ///< eight points a character
  ascii,      ///< two
};

struct PlotOptions {
  std::string title = {};
  Integer width = 60, height = 10;  ///< of the curve, in characters
  std::string unit = "steps";       ///< what the values are of, at the right end of the axis
  PlotStyle style = PlotStyle::automatic;
};

/// A curve through the values, in order, as lines of text that begin with what the greatest, the
/// middle and the least height are. Many values in one place are drawn by their mean; those that
/// are not finite are left out, and counted in the last line. Throws Error(value) for a width or
/// height below 2 or above 1,000.
[[nodiscard]] std::string plot(std::span<const double> values, const PlotOptions& options = {});
/// The same of all elements of a tensor, which is read.
[[nodiscard]] std::string plot(const Tensor& values, const PlotOptions& options = {});

}  // namespace nitinol::nn

#pragma GCC visibility pop
