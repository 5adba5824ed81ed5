// Every public operation.
#pragma once

// IWYU pragma: begin_exports
#include "eager/all_ops.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/axes.h"
#include "eager/ops/batch_norm.h"
#include "eager/ops/cast.h"
#include "eager/ops/compare.h"
#include "eager/ops/conv.h"
#include "eager/ops/create.h"
#include "eager/ops/elementary.h"
#include "eager/ops/index.h"
#include "eager/ops/indexing.h"
#include "eager/ops/join.h"
#include "eager/ops/matmul.h"
#include "eager/ops/pool.h"
#include "eager/ops/random.h"
#include "eager/ops/rearrange.h"
#include "eager/ops/reduce.h"
#include "eager/ops/statistics.h"
#include "eager/ops/transfer.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"
// IWYU pragma: end_exports
