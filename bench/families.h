// The rows of the benchmark by family; names, formulas, shapes and inputs are those of the peers
// harness.
#pragma once

#include "bench/timer.h"

namespace nitinol::bench {

void elementwise_rows(Timer& timer);  ///< W1: chains of 3 to 30 operations
void result_rows(Timer& timer);       ///< results: several of the same arrays
void power_rows(Timer& timer);        ///< pow: exponents beside the products they are
void reduction_rows(Timer& timer);    ///< W2: over [4096, 1024]
void axis_rows(Timer& timer);         ///< axis: reductions along either axis, of several dtypes
void image_rows(Timer& timer);        ///< images: reductions of images, channels first and last
void short_rows(Timer& timer);        ///< short: along few elements, and the same across
void scan_rows(Timer& timer);         ///< scan: running sums over [4096, 1024]
void gradient_rows(Timer& timer);     ///< grad: of what normalises
void lookup_rows(Timer& timer);       ///< index: rows and elements that indices name
void bin_rows(Timer& timer);          ///< order.bincount: values added up in few bins
void order_rows(Timer& timer);        ///< order, index.set, einsum, random: of the vocabulary
void piece_rows(Timer& timer);        ///< pieces: concat and stack of what is computed
void slice_rows(Timer& timer);        ///< grad.slices: gradients of x[t] in a loop, and of split
void small_rows(Timer& timer);        ///< W3: four elements, so that only the overhead is left
void model_rows(Timer& timer);        ///< W4: steps of training, and inference
void zoo_rows(Timer& timer);          ///< W4v, W4vi, W4.vit and others: models of the literature
void matmul_rows(Timer& timer);       ///< W5
void shape_rows(Timer& timer);        ///< W7.shapes: 32 lengths in turn
void branch_rows(Timer& timer);       ///< W7.branch, W8: functions that look at data
void length_rows(Timer& timer);       ///< lengths: many in turn; ported: loops of small steps
void large_rows(Timer& timer);        ///< large: what a GPU is for; copies: beside its work
void plan_rows(Timer& timer);         ///< plan: making Plans, by kind and size of the graph

}  // namespace nitinol::bench
