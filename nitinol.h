// Nitinol: tensors that run eagerly, and functions that remember the shapes they have seen.
//
// This header is the whole public interface.
#pragma once

// IWYU pragma: begin_exports
#include "autograd/check.h"
#include "autograd/custom.h"
#include "autograd/gradient.h"
#include "core/error.h"
#include "core/generator.h"
#include "core/host_value.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/place.h"
#include "core/scalar_value.h"
#include "core/tensor.h"
#include "core/thread_settings.h"
#include "core/variable.h"
#include "eager/argument.h"
#include "eager/ops/ops.h"
#include "eager/print.h"
#include "io/npy.h"
#include "io/safetensors.h"
#include "jit/build_info.h"
#include "jit/compile.h"
#include "nn/attention.h"
#include "nn/checkpoint.h"
#include "nn/data_loader.h"
#include "nn/init.h"
#include "nn/layers.h"
#include "nn/losses.h"
#include "nn/module.h"
#include "nn/optimizers.h"
#include "nn/progress.h"
#include "nn/recurrent.h"
#include "nn/sequential.h"
// IWYU pragma: end_exports
