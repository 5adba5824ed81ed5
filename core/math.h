// Every scalar function of the library, once: templates over lanes (Num, Expr), built only from
// scalar instructions. Never calls libm. docs/accuracy.md tabulates the errors.
#pragma once

// IWYU pragma: begin_exports
#include "core/math/cbrt.h"
#include "core/math/compare.h"
#include "core/math/divide.h"
#include "core/math/erf.h"
#include "core/math/erfc.h"
#include "core/math/erfinv.h"
#include "core/math/exp.h"
#include "core/math/gelu.h"
#include "core/math/half.h"
#include "core/math/hyperbolic.h"
#include "core/math/hypot.h"
#include "core/math/integer_pow.h"
#include "core/math/inverse_hyperbolic.h"
#include "core/math/inverse_trig.h"
#include "core/math/lgamma.h"
#include "core/math/log.h"
#include "core/math/pow.h"
#include "core/math/random.h"
#include "core/math/shift.h"
#include "core/math/sigmoid.h"
#include "core/math/sinh.h"
#include "core/math/trig.h"
// IWYU pragma: end_exports
