// Which way of multiplying matrices is the fastest for a shape.
#pragma once

#include "backends/cpu/onednn.h"

namespace nitinol::cpu {

/// The way to ask oneDNN for this product: a function of its description and of the instruction
/// set, so that whoever asks for the same product gets the same bits.
[[nodiscard]] MatmulWay fastest_way(const MatmulDescription& product);

}  // namespace nitinol::cpu
