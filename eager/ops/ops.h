// Every public operation.
#pragma once

// IWYU pragma: begin_exports
#include "eager/ops/all_ops.h"
#include "eager/ops/arithmetic.h"
#include "eager/ops/axes.h"
#include "eager/ops/cast.h"
#include "eager/ops/create.h"
#include "eager/ops/matmul.h"
#include "eager/ops/reduce.h"
#include "eager/ops/unary.h"
#include "eager/ops/view.h"
// IWYU pragma: end_exports
