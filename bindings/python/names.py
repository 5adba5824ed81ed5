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
            "arithmetic", "batch_norm", "cast", "compare", "conv", "create", "distributions", "einsum", "elementary",
            "index", "join", "masks", "matmul", "order", "pool", "products", "random", "rearrange",
            "reduce", "resample", "scatter", "sets", "statistics", "transfer", "unary", "view",
        )
    ),
    "nn/losses.h",
    "nn/init.h",
    "nn/layers.h",
    "nn/attention.h",
    "nn/convolutions.h",
    "nn/recurrent.h",
    "nn/optimizer.h",
    "nn/optimizers.h",
    "nn/schedules.h",
    "nn/average.h",
)  # fmt: skip

# Headers of ops.h without functions to bind.
NOT_READ = {
    "eager/all_ops.h": "the list of ops; _all_ops",
    "eager/ops/axes.h": "types",
    "eager/ops/indexing.h": "x[...] of Python",
}

# Also methods of Tensor: NumPy's, and the functions of one tensor that chains are made of. Those
# that PyTorch alone has are in src/tensor.cpp.
METHODS = {
    "abs", "all", "any", "argmax", "argmin", "argsort", "astype", "ceil", "chunk", "clip", "cos",
    "count_nonzero", "cumprod", "cumsum", "cumulative_prod", "cumulative_sum", "diagonal", "erf",
    "exp", "expand_dims", "flatten", "floor", "gelu", "isfinite", "isinf", "isnan", "log", "log1p",
    "log_softmax", "logsumexp", "masked_fill", "max", "mean", "median", "min", "moveaxis", "nonzero",
    "permute_dims", "pow", "prod", "quantile", "relu", "repeat", "roll", "round", "rsqrt", "sigmoid",
    "sign", "silu", "sin", "softmax", "sort", "split", "sqrt", "square", "squeeze", "std", "sum",
    "swapaxes", "take", "tan", "tanh", "topk", "trace", "tril", "triu", "unstack", "var",
}  # fmt: skip

# ---- what is not bound, and why

NOT_BOUND = {
    "tensor": "asarray makes tensors of numbers, lists and arrays",
    "from_bytes": "asarray and Tensor's pickles",
    "from_span": "asarray",
    "borrow": "asarray(..., copy=False) and from_dlpack",
    "borrow_bytes": "asarray(..., copy=False) and from_dlpack",
    "resolve": "slices are Python's",
    "broadcast_shapes": "takes no Tensors; nitinol/_variadic.py",
}
# Of these headers only what is named; the rest are layers, optimizers and schedules (layers.py), and
# what src/nn.cpp binds.
ONLY: dict[str, set[str]] = {
    "nn/attention.h": {"attention", "rotary", "sinusoidal_positions"},
    "nn/average.h": set(),
    "nn/convolutions.h": set(),
    "nn/layers.h": set(),
    "nn/optimizer.h": {"clip_gradient_norm", "clip_gradient_value"},
    "nn/optimizers.h": set(),
    "nn/recurrent.h": set(),
    "nn/schedules.h": set(),
}

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
REPLACED = {"clamp": "clip", "unsqueeze": "expand_dims", "scatter_along": "put_along_axis"}
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
    "eye": {"rows": "n_rows", "columns": "n_cols", "diagonal": "k"},
    "stack": {"tensors": "arrays"},
    "broadcast_arrays": {"tensors": "arrays"},
    "vector_norm": {"p": "ord"},
}
# Leading operands of other names may be given by name: conv2d(x, weight=w).
BY_POSITION = {"x", "x1", "x2", "x3", "condition", "arrays", "indices"}
# C++'s names of those that the standard takes by name only.
BY_NAME_ONLY = {"correction", "diagonal"}
# What the headers leave to a comment above several.
DOCS = {
    "where": "x1 where the condition holds, else x2. The condition counts as x != 0; x1 and x2 "
    "meet in their common dtype.",
    "kaiming_uniform": "Uniform, of variance 2 / in, for relu (K. He et al., arXiv:1502.01852).",
    "kaiming_normal": "Normal, of variance 2 / in, for relu (K. He et al., arXiv:1502.01852).",
    "rand_like": "As rand, of the shape, dtype and device of x.",
    "randn_like": "As randn, of the shape, dtype and device of x.",
}
# Of layers and optimizers: PyTorch's, where C++ has shorter ones or asks.
LAYER_PARAMETERS = {
    "in": "in_features",
    "out": "out_features",
    "kernel": "kernel_size",
    "has_bias": "bias",
    "is_amsgrad": "amsgrad",
    "is_centered": "centered",
    "is_decoupled": "decoupled_weight_decay",
    "is_maximizing": "maximize",
    "is_nesterov": "nesterov",
    "is_norm_first": "norm_first",
    "is_affine": "affine",
    "is_bidirectional": "bidirectional",
    "is_batch_first": "batch_first",
}
LAYER_PARAMETERS_OF = dict.fromkeys(
    ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"),
    {"in": "in_channels", "out": "out_channels"},
)
# What is bound by hand and has the comments of the headers.
COMMENTS = {
    "nn/autocast.h": ("Autocast",),
    "nn/average.h": ("Average",),
    "nn/loss_scale.h": ("LossScale",),
    "nn/optimizer.h": ("Optimizer",),
    "nn/plateau.h": ("Plateau",),
    "nn/schedules.h": ("Schedule",),
    "nn/progress.h": ("Progress",),
}
# Headers of layers.
LAYERS = ("nn/layers.h", "nn/attention.h", "nn/convolutions.h", "nn/recurrent.h")
# Headers whose comment at the top is about other things.
WITHOUT_NOTES = {*LAYERS, "nn/optimizer.h", "nn/optimizers.h"}
# Long also for few elements: Python's lock is always given away.
LONG = {"matmul", "einsum", "conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d",
        "conv_transpose3d", "max_pool1d", "max_pool2d", "max_pool3d",
        "max_pool2d_with_indices", "avg_pool1d", "avg_pool2d", "avg_pool3d", "attention", "batch_norm"}  # fmt: skip
# Nothing is computed, so that it is not given away at all.
VIEWS = {"permute", "transpose", "matrix_transpose", "expand", "squeeze", "unsqueeze",
         "expand_dims", "flip", "slice", "split", "window", "moveaxis", "unstack", "unbind", "atleast_1d",
         "atleast_2d", "atleast_3d", "swapaxes", "rot90", "chunk",
         "broadcast_arrays"}  # fmt: skip

# Take a list here; those of Python, in nitinol/_variadic.py, take any number of tensors.
VARIADIC = {"broadcast_arrays", "einsum", "matrix_norm", "meshgrid", "tensordot", "where"}
# Give a tuple of tensors, as the standard has it; others a list.
TUPLES = {"nonzero", "unbind", "unstack"}

# ---- what other libraries call it, for errors to say what it is called here

ELSEWHERE = {
    "nitinol": {
        "absolute": "nitinol.abs",
        "amax": "nitinol.max",
        "amin": "nitinol.min",
        "arccos": "nitinol.acos",
        "arccosh": "nitinol.acosh",
        "arcsin": "nitinol.asin",
        "arcsinh": "nitinol.asinh",
        "arctan": "nitinol.atan",
        "arctan2": "nitinol.atan2",
        "arctanh": "nitinol.atanh",
        "array": "nitinol.asarray",
        "as_tensor": "nitinol.asarray",
        "bmm": "nitinol.matmul",
        "cat": "nitinol.concat",
        "concatenate": "nitinol.concat",
        "degrees": "nitinol.rad2deg",
        "device": "nitinol.Device",
        "dot": "nitinol.matmul",
        "flatnonzero": "nitinol.nonzero(nitinol.flatten(x))",
        "double": "nitinol.float64",
        "dtype": "nitinol.DType",
        "diagflat": "nitinol.diag",
        "digitize": "nitinol.bucketize",
        "unique": "nitinol.unique_values",
        "float": "nitinol.float32",
        "from_numpy": "nitinol.asarray",
        "half": "nitinol.float16",
        "int": "nitinol.int64",
        "jit": "nitinol.compile",
        "load": "nitinol.nn.load",
        "long": "nitinol.int64",
        "mm": "nitinol.matmul",
        "mod": "nitinol.remainder",
        "no_grad": "nitinol.no_gradients",
        "power": "nitinol.pow",
        "radians": "nitinol.deg2rad",
        "rand": "nitinol.random.rand",
        "randint": "nitinol.random.randint",
        "randn": "nitinol.random.randn",
        "remat": "nitinol.checkpoint",
        "save": "nitinol.nn.save",
        "norm": "nitinol.linalg.vector_norm",
        "tensor": "nitinol.asarray",
        "true_divide": "nitinol.divide",
    },
    "nitinol.nn": {
        "AveragedModel": "nitinol.nn.Average",
        "Autocast": "nitinol.nn.autocast",
        "BCELoss": "nitinol.nn.bce_loss",
        "BCEWithLogitsLoss": "nitinol.nn.bce_with_logits",
        "BatchNorm1d": "nitinol.nn.BatchNorm",
        "BatchNorm2d": "nitinol.nn.BatchNorm",
        "BatchNorm3d": "nitinol.nn.BatchNorm",
        "CELU": "nitinol.nn.Celu",
        "CTCLoss": "nitinol.nn.ctc_loss",
        "ConstantLR": "nitinol.nn.constant_rate",
        "Conv2D": "nitinol.nn.Conv2d",
        "CosineAnnealingLR": "nitinol.nn.cosine_decay",
        "CosineAnnealingWarmRestarts": "nitinol.nn.cosine_restarts",
        "CosineDecay": "nitinol.nn.cosine_decay",
        "CosineDecayRestarts": "nitinol.nn.cosine_restarts",
        "CrossEntropyLoss": "nitinol.nn.cross_entropy",
        "Dense": "nitinol.nn.Linear",
        "DistributedSampler": "nitinol.nn.DataLoader(..., shard=(rank, ranks))",
        "ELU": "nitinol.nn.Elu",
        "ExponentialDecay": "nitinol.nn.exponential_decay",
        "ExponentialLR": "nitinol.nn.exponential_decay",
        "ExponentialMovingAverage": "nitinol.nn.Average",
        "GELU": "nitinol.gelu",
        "GradScaler": "nitinol.nn.LossScale",
        "GLU": "nitinol.nn.Glu",
        "GaussianNLLLoss": "nitinol.nn.gaussian_nll_loss",
        "GlorotNormal": "nitinol.nn.xavier_normal",
        "GlorotUniform": "nitinol.nn.xavier_uniform",
        "Hardsigmoid": "nitinol.hardsigmoid",
        "Hardswish": "nitinol.hardswish",
        "Hardtanh": "nitinol.hardtanh",
        "HeNormal": "nitinol.nn.kaiming_normal",
        "HeUniform": "nitinol.nn.kaiming_uniform",
        "HuberLoss": "nitinol.nn.huber_loss",
        "KLDivLoss": "nitinol.nn.kl_div",
        "L1Loss": "nitinol.nn.l1_loss",
        "LAMB": "nitinol.nn.Lamb",
        "LBFGS": "nitinol.nn.Lbfgs",
        "LeakyReLU": "nitinol.nn.LeakyRelu",
        "LinearLR": "nitinol.nn.linear_decay",
        "LogSigmoid": "nitinol.log_sigmoid",
        "LogSoftmax": "nitinol.log_softmax",
        "AdaptiveAvgPool1d": "nitinol.adaptive_avg_pool",
        "AdaptiveAvgPool2d": "nitinol.adaptive_avg_pool",
        "AdaptiveMaxPool2d": "nitinol.adaptive_max_pool",
        "Dropout1d": "nitinol.nn.FeatureDropout",
        "Dropout2d": "nitinol.nn.FeatureDropout",
        "Dropout3d": "nitinol.nn.FeatureDropout",
        "GRU": "nitinol.nn.Gru",
        "GRUCell": "nitinol.nn.GruCell",
        "InstanceNorm1d": "nitinol.nn.InstanceNorm",
        "InstanceNorm2d": "nitinol.nn.InstanceNorm",
        "InstanceNorm3d": "nitinol.nn.InstanceNorm",
        "LSTM": "nitinol.nn.Lstm",
        "LSTMCell": "nitinol.nn.LstmCell",
        "MSELoss": "nitinol.nn.mse_loss",
        "MarginRankingLoss": "nitinol.nn.margin_ranking_loss",
        "Mish": "nitinol.mish",
        "ModuleDict": "a dict",
        "ModuleList": "a list",
        "MaxUnpool2d": "nitinol.max_unpool2d",
        "MultiStepLR": "nitinol.nn.multi_step_decay",
        "MultiheadAttention": "nitinol.nn.MultiHeadAttention",
        "NLLLoss": "nitinol.nn.nll_loss",
        "Nadam": "nitinol.nn.NAdam",
        "OneCycleLR": "nitinol.nn.one_cycle",
        "PReLU": "nitinol.nn.PRelu",
        "PixelShuffle": "nitinol.pixel_shuffle",
        "PixelUnshuffle": "nitinol.pixel_unshuffle",
        "Parameter": "nitinol.parameter",
        "PiecewiseConstantDecay": "nitinol.nn.multi_step_decay",
        "PoissonNLLLoss": "nitinol.nn.poisson_nll_loss",
        "PolynomialDecay": "nitinol.nn.polynomial_decay",
        "PolynomialLR": "nitinol.nn.polynomial_decay",
        "RMSNorm": "nitinol.nn.RmsNorm",
        "RNN": "nitinol.nn.Rnn",
        "RNNCell": "nitinol.nn.RnnCell",
        "RMSprop": "nitinol.nn.RmsProp",
        "ReLU": "nitinol.relu",
        "ReLU6": "nitinol.relu6",
        "ReduceLROnPlateau": "nitinol.nn.Plateau",
        "SELU": "nitinol.selu",
        "SGD": "nitinol.nn.Sgd",
        "SequentialLR": "nitinol.nn.joined",
        "SiLU": "nitinol.silu",
        "Sigmoid": "nitinol.sigmoid",
        "SmoothL1Loss": "nitinol.nn.smooth_l1_loss",
        "Softplus": "nitinol.softplus",
        "Softsign": "nitinol.softsign",
        "StepLR": "nitinol.nn.step_decay",
        "Tanh": "nitinol.tanh",
        "Transformer": "nitinol.nn.TransformerEncoderLayer and TransformerDecoderLayer",
        "TransformerDecoder": "a list of nitinol.nn.TransformerDecoderLayer",
        "TransformerEncoder": "a list of nitinol.nn.TransformerEncoderLayer",
        "TripletMarginLoss": "nitinol.nn.triplet_margin_loss",
        "Upsample": "nitinol.interpolate",
        "WeightedRandomSampler": "nitinol.nn.weighted",
        "adaptive_avg_pool2d": "nitinol.adaptive_avg_pool",
        "adaptive_max_pool2d": "nitinol.adaptive_max_pool",
        "binary_cross_entropy": "nitinol.nn.bce_loss",
        "scaled_dot_product_attention": "nitinol.nn.attention",
        "binary_cross_entropy_with_logits": "nitinol.nn.bce_with_logits",
        "spectral_norm": "nitinol.nn.SpectralNorm",
        "weight_norm": "nitinol.nn.WeightNorm",
        "clip_grad_norm_": "nitinol.nn.clip_gradient_norm",
        "clip_grad_value_": "nitinol.nn.clip_gradient_value",
        "constant": "nitinol.full",
        "constant_": "nitinol.full",
        "dirac_": "nitinol.nn.dirac",
        "eye_": "nitinol.eye",
        "kaiming_normal_": "nitinol.nn.kaiming_normal",
        "kaiming_uniform_": "nitinol.nn.kaiming_uniform",
        "normal_": "nitinol.nn.normal",
        "ones_": "nitinol.ones",
        "orthogonal_": "nitinol.nn.orthogonal",
        "trunc_normal": "nitinol.nn.truncated_normal",
        "trunc_normal_": "nitinol.nn.truncated_normal",
        "uniform_": "nitinol.nn.uniform",
        "xavier_normal_": "nitinol.nn.xavier_normal",
        "xavier_uniform_": "nitinol.nn.xavier_uniform",
        "zeros_": "nitinol.zeros",
    },
    "nitinol.random": {
        "PRNGKey": "nitinol.random.Generator",
        "default_rng": "nitinol.random.Generator",
        "key": "nitinol.random.Generator",
        "multinomial": "nitinol.random.categorical",
        "trunc_normal_": "nitinol.random.truncated_normal",
        "random": "nitinol.random.rand",
        "seed": "nitinol.random.manual_seed",
        "standard_normal": "nitinol.random.randn",
    },
}
# Ours, and what others have for it: said of functions that have ours.
PARAMETERS_ELSEWHERE = {
    "absolute": "threshold_mode",
    "affine": "elementwise_affine",
    "aligns_corners": "align_corners",
    "axes": "dim dims axis perm",
    "axis": "dim dims axes",
    "axis1": "dim0",
    "axis2": "dim1",
    "batch": "batch_size",
    "beta1": "betas beta_1",
    "beta2": "beta_2",
    "border": "padding_mode",
    "bound": "lambd",
    "clipping": "d clip_threshold",
    "correction": "ddof unbiased",
    "count": "num_embeddings num_parameters",
    "counts_outputs": "mode",
    "decay": "alpha rho beta2_decay decay_rate",
    "deviation": "std stddev",
    "eps": "epsilon",
    "eps1": "epsilon_1",
    "eps2": "epsilon_2",
    "every": "step_size",
    "factor": "gamma upscale_factor downscale_factor",
    "features": "num_features normalized_shape num_channels",
    "first_axis": "start_dim",
    "first_divisor": "div_factor",
    "groups": "num_groups",
    "growth": "T_mult t_mul",
    "has_log": "log_input",
    "has_log_targets": "log_target",
    "heads": "num_heads nhead",
    "hidden": "hidden_size dim_feedforward",
    "history": "history_size",
    "in_features": "input_size",
    "initial": "init initial_accumulator_value",
    "is_causal": "causal",
    "is_ceil": "ceil_mode",
    "is_full": "full",
    "keepdims": "keepdim",
    "kernel": "kernel_size",
    "kernel_size": "kernel pool_size",
    "key_heads": "num_kv_heads",
    "label_lengths": "target_lengths",
    "last": "eta_min min_lr end_learning_rate alpha",
    "last_axis": "end_dim",
    "last_divisor": "final_div_factor",
    "layers": "num_layers",
    "length": "split_size_or_sections",
    "mask": "attn_mask attention_mask",
    "maximize": "mode",
    "out_channels": "filters",
    "out_features": "units",
    "padding": "padding_idx",
    "positive_weight": "pos_weight",
    "rate": "lr learning_rate p",
    "rate_decay": "lr_decay",
    "rise": "pct_start",
    "shape": "size newshape",
    "shares_heads": "enable_gqa",
    "size": "scale_factor output_size",
    "slope": "negative_slope a nonlinearity",
    "starts": "milestones",
    "step_lengths": "input_lengths",
    "steps": "milestones T_max total_steps total_iters T_0 decay_steps boundaries",
    "stride": "strides",
    "swaps": "swap",
    "weights": "weight",
    "width": "embedding_dim embed_dim d_model",
    "zeroes_infinity": "zero_infinity",
}
