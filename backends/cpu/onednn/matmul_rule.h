// Which way of multiplying matrices is the fastest for a shape.
#pragma once

#include "backends/cpu/onednn/onednn.h"

namespace nitinol::cpu {

/// The way to ask oneDNN for this product: a function of its description and of the instruction
/// set, so that whoever asks for the same product gets the same bits.
[[nodiscard]] MatmulWay fastest_way(const MatmulDescription& product);

/// Whether it is faster to pack b once and run `uses` products with it in that form than to run
/// them as fastest_way() says. Whether no bit changes by that is for a trial to tell.
[[nodiscard]] bool pays_to_pack(const MatmulDescription& product, std::size_t uses);

}  // namespace nitinol::cpu
