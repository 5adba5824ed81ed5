"""What Python calls the functions of the headers, where the headers do not say it.

Tables that generate.py reads. Nothing is here for most functions: their names and parameters are
C++'s.
"""

STANDARD = "bindings/python/src/standard.h"
HEADERS = (
    STANDARD,
    *(
        f"eager/ops/{name}.h"
        for name in (
            "arithmetic", "batch_norm", "cast", "compare", "conv", "create", "index", "join",
            "matmul", "pool", "random", "reduce", "statistics", "transfer", "unary", "view",
        )
    ),
    "nn/losses.h",
    "nn/init.h",
    "nn/layers.h",
)  # fmt: skip

# Headers of ops.h without functions to bind.
NOT_READ = {
    "eager/ops/all_ops.h": "the list of ops; _all_ops",
    "eager/ops/axes.h": "types",
    "eager/ops/indexing.h": "x[...] of Python",
}

# Also methods of Tensor: NumPy's, and the functions of one tensor that chains are made of.
# (`transpose` is not: NumPy's takes a permutation, PyTorch's two axes.)
METHODS = {
    "abs", "all", "any", "argmax", "argmin", "astype", "ceil", "clip", "cos", "cumulative_sum", "erf",
    "exp", "expand_dims", "flatten", "floor", "gelu", "isfinite", "isinf", "isnan", "log",
    "log_softmax", "logsumexp", "max", "mean", "min", "permute_dims", "prod", "relu", "round",
    "rsqrt", "sigmoid", "sign", "silu", "sin", "softmax", "sqrt", "square", "squeeze", "std",
    "sum", "take", "tanh", "var",
}  # fmt: skip

# ---- what is not bound, and why

NOT_BOUND = {
    "tensor": "asarray makes tensors of numbers, lists and arrays",
    "from_bytes": "asarray and Tensor's pickles",
    "from_span": "asarray",
    "borrow": "asarray(..., copy=False) and from_dlpack",
    "borrow_bytes": "asarray(..., copy=False) and from_dlpack",
    "cast_weak": "for promotion: weak numbers are Python's own numbers here",
    "resolve": "slices are Python's",
}
# Of these headers only what is named; the rest are factories of layers, which are Python classes.
ONLY = {"nn/layers.h": {"attention"}}

# ---- names

# Also in `nitinol` itself.
ALSO = {"manual_seed"}
# C++'s name: the standard's. The former is kept as another name.
NAMES = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "neg": "negative",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "bitwise_not": "bitwise_invert",
    "left_shift": "bitwise_left_shift",
    "right_shift": "bitwise_right_shift",
    "permute": "permute_dims",
    "expand": "broadcast_to",
    "stddev": "std",
}
# C++'s function: the one of standard.h that does all it does. Those of equal names are understood.
REPLACED = {"clamp": "clip", "unsqueeze": "expand_dims"}
# Of all functions, by type and name; and of single ones.
PARAMETERS = {
    ("const Argument&", "a"): "x1",
    ("const Argument&", "b"): "x2",
    ("const Argument&", "c"): "x3",
    ("const Tensor&", "a"): "x1",
    ("const Tensor&", "b"): "x2",
    ("const Tensor&", "like"): "x",
    ("const Axes&", "axes"): "axis",
    ("KeepDims", "keep"): "keepdims",
}
PARAMETERS_OF = {
    "full": {"value": "fill_value"},
    "eye": {"rows": "n_rows", "columns": "n_cols", "diagonal": "k"},
    "transpose": {"a": "axis1", "b": "axis2"},
    "stack": {"tensors": "arrays"},
}
# Leading operands of other names may be given by name: conv2d(x, weight=w).
BY_POSITION = {"x", "x1", "x2", "x3", "condition", "arrays", "indices"}
# C++'s names of those that the standard takes by name only.
BY_NAME_ONLY = {"correction", "diagonal"}
# What the headers leave to a comment above several.
DOCS = {
    "eq": "Whether x1 == x2.",
    "ne": "Whether x1 != x2.",
    "lt": "Whether x1 < x2.",
    "le": "Whether x1 <= x2.",
    "gt": "Whether x1 > x2.",
    "ge": "Whether x1 >= x2.",
    "logical_and": "Whether both are true; operands of other dtypes count as x != 0.",
    "logical_or": "Whether either is true; operands of other dtypes count as x != 0.",
    "logical_xor": "Whether one is true and not both; operands of other dtypes count as x != 0.",
    "bitwise_and": "Bits of both; integers and booleans.",
    "bitwise_or": "Bits of either; integers and booleans.",
    "bitwise_xor": "Bits of one but not both; integers and booleans.",
    "where": "x1 where the condition holds, else x2. The condition counts as x != 0; x1 and x2 "
    "meet in their common dtype.",
    "zeros": "Zeros; float32 unless another dtype is given.",
    "ones": "Ones; float32 unless another dtype is given.",
    "xavier_normal": "Normal; otherwise as xavier_uniform.",
    "kaiming_uniform": "Uniform, of variance 2 / in, for relu (K. He et al., arXiv:1502.01852).",
    "kaiming_normal": "Normal, of variance 2 / in, for relu (K. He et al., arXiv:1502.01852).",
    "rand_like": "As rand, of the shape, dtype and device of x.",
    "randn_like": "As randn, of the shape, dtype and device of x.",
}
# Headers whose comment at the top is about other things.
WITHOUT_NOTES = {"nn/layers.h"}
# Long also for few elements: Python's lock is always given away.
LONG = {"matmul", "conv2d", "max_pool2d", "avg_pool2d", "attention", "batch_norm"}
# Nothing is computed, so that it is not given away at all.
VIEWS = {"permute", "transpose", "matrix_transpose", "expand", "squeeze", "unsqueeze",
         "expand_dims", "flip", "slice", "split", "window"}  # fmt: skip
