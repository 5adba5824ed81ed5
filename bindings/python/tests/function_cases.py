"""What each function of the vocabulary is called with, and what NumPy and PyTorch say it gives.

One Case for each function; a Sample is the arguments of one call, arrays standing for Tensors. Of
what NumPy does not have, the reference is written out here, as its definition reads.
"""

from __future__ import annotations

import dataclasses
import functools
import importlib
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

torch: Any = None
F: Any = None
try:
    torch = importlib.import_module("torch")
    F = importlib.import_module("torch.nn.functional")
except ImportError:
    pass

FLOATS = ("float64", "float32", "float16")
INTEGERS = ("int64", "int32", "int16", "int8", "uint8", "uint16", "uint32", "uint64")
NUMBERS = FLOATS + INTEGERS
Places = tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Sample:
    args: tuple[Any, ...]
    keywords: dict[str, Any] = dataclasses.field(default_factory=dict)
    is_looked_at: bool = False  # its data decide the result's size: it runs in segments


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    samples: Sequence[Sample]
    numpy: Callable[..., Any]
    torch: Callable[..., Any] | None = None  # with the same arguments
    dtypes: tuple[str, ...] = FLOATS  # that its floating operands are given in
    has_gradient: bool = False  # compared with PyTorch's
    scale: float = 1  # of the tolerances


random: np.random.Generator = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape)


def between(low: float, high: float, *shape: int) -> np.ndarray:
    return random.uniform(low, high, shape)


def integers(low: int, high: int, *shape: int) -> np.ndarray:
    return random.integers(low, high, shape)


def small(*shape: int) -> np.ndarray:
    """Whole numbers that every dtype holds, and sums and products of some of them."""
    return random.integers(0, 5, shape).astype(np.float64)


def one(*args: Any, **keywords: Any) -> Sample:
    return Sample(args, keywords)


def looked_at(*args: Any, **keywords: Any) -> Sample:
    return Sample(args, keywords, is_looked_at=True)


# 0-d, empty, one element, axes of size 1, and one long enough for other threads of Python to run.
SHAPES = [(), (0,), (0, 3), (1,), (7,), (1, 5), (3, 4), (2, 3, 4), (70, 130)]
PAIRS = [
    ((), ()), ((3, 4), ()), ((), (3, 4)), ((7,), (7,)), ((3, 4), (4,)), ((3, 1), (1, 4)),
    ((2, 1, 4), (3, 1)), ((0, 3), (3,)), ((0,), ()), ((70, 130), (130,)),
]  # fmt: skip


def t(name: str) -> Callable[..., Any] | None:
    """PyTorch's function of that name."""
    return getattr(torch, name) if torch is not None else None


def f(name: str) -> Callable[..., Any] | None:
    return getattr(F, name) if torch is not None else None


def unary(
    name: str, numpy: Any, pytorch: Any = None, low: float = -3, high: float = 3, **more: Any
) -> Case:
    samples = [one(between(low, high, *shape)) for shape in SHAPES]
    return Case(name, samples, numpy, pytorch, has_gradient=pytorch is not None, **more)


def binary(
    name: str, numpy: Any, pytorch: Any = None, low: float = -3, high: float = 3, **more: Any
) -> Case:
    samples = [one(between(low, high, *a), between(low, high, *b)) for a, b in PAIRS]
    samples += [one(between(low, high, 3, 4), 2.0), one(2.0, between(low, high, 3, 4))]
    more.setdefault("has_gradient", pytorch is not None)
    return Case(name, samples, numpy, pytorch, **more)


def whole(name: str, numpy: Any, low: int = 1, high: int = 6, **more: Any) -> Case:
    """Of two operands that are whole numbers, so that all dtypes agree."""
    samples = [one(integers(low, high, *a) * 1.0, integers(low, high, *b) * 1.0) for a, b in PAIRS]
    samples += [one(integers(low, high, 3, 4) * 1.0, 2), one(2, integers(low, high, 3, 4) * 1.0)]
    more.setdefault("dtypes", NUMBERS)
    return Case(name, samples, numpy, **more)


def bits(name: str, numpy: Any, low: int = 0, high: int = 100) -> Case:
    samples = [one(integers(low, high, *a), integers(low, high, *b)) for a, b in PAIRS]
    samples += [one(integers(0, 100, 3, 4).astype(np.uint8), integers(0, 7, 4).astype(np.uint8))]
    return Case(name, samples, numpy)


def along(
    shapes: Sequence[tuple[int, ...]] = ((7,), (3, 4), (2, 3, 4), (70, 130)),
) -> list[tuple[tuple[int, ...], dict[str, Any]]]:
    """(shape, keywords) of reductions."""
    found = []
    for shape in shapes:
        rank = len(shape)
        axes: list[Any] = [None, -1, 0]
        axes += [tuple(pair) for pair in itertools.combinations(range(rank), 2)][:2]
        for axis in axes:
            for keepdims in (False, True):
                found.append((shape, {"axis": axis, "keepdims": keepdims}))
    return found


def torch_axes(reduce: Any) -> Any:
    """PyTorch's reduction with the arguments of the standard."""

    def reduced(x: Any, axis: Any = None, keepdims: bool = False, **more: Any) -> Any:
        axes = tuple(range(x.ndim)) if axis is None else axis
        return reduce(x, dim=axes, keepdim=keepdims, **more)

    return reduced


def reduction(name: str, numpy: Any, pytorch: Any = None, make: Any = normal, **more: Any) -> Case:
    samples = [one(make(*shape), **keywords) for shape, keywords in along()]
    samples += [one(make()), one(make(3, 4), 1)]
    if more.pop("takes_empty", True):
        samples += [one(make(0)), one(make(0, 3), axis=0), one(make(3, 0), axis=1)]
    more.setdefault("has_gradient", pytorch is not None)
    return Case(name, samples, numpy, torch_axes(pytorch) if pytorch else None, **more)


# ---- what NumPy does not have

erf = np.vectorize(math.erf, otypes=[np.float64])
erfc = np.vectorize(math.erfc, otypes=[np.float64])
lgamma = np.vectorize(math.lgamma, otypes=[np.float64])


@functools.partial(np.vectorize, otypes=[np.float64])
def erfinv(x: float) -> float:
    y = math.sqrt(-math.log1p(-x * x)) * 0.88
    for _ in range(30):
        rest = abs(x) - math.erf(y) if abs(x) < 0.5 else math.erfc(y) - (1 - abs(x))
        y += rest * math.sqrt(math.pi) / 2 * math.exp(y * y)
    return math.copysign(y, x)


@functools.partial(np.vectorize, otypes=[np.float64])
def digamma(x: float) -> float:
    steps = max(0, math.ceil(20 - x))
    y = x + steps
    series = 1 / 12 - 1 / 120 / y**2 + 1 / 252 / y**4 - 1 / 240 / y**6
    return math.log(y) - 1 / (2 * y) - series / y**2 - math.fsum(1 / (x + k) for k in range(steps))


def over_axes(position: Any, x: Any, axis: Any, keepdims: bool) -> Any:
    """NumPy's argmax takes one axis."""
    if not isinstance(axis, tuple):
        return position(x, axis=axis, keepdims=keepdims)
    axes = sorted(i % x.ndim for i in axis)
    moved = np.moveaxis(x, axes, range(-len(axes), 0))
    found = position(moved.reshape(*moved.shape[: -len(axes)], -1), axis=-1)
    return np.expand_dims(found, axes) if keepdims else found


def np_xlogy(x: Any, y: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.where((np.asarray(x) == 0) & ~np.isnan(y), 0, x * np.log(y))


def np_sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def np_softmax(x: Any, axis: int = -1) -> Any:
    e = np.exp(x - x.max(axis=axis, keepdims=True, initial=-np.inf))
    return e / e.sum(axis=axis, keepdims=True)


def np_logsumexp(x: Any, axis: Any = None, keepdims: bool = False) -> Any:
    return np.log(np.sum(np.exp(x), axis=axis, keepdims=keepdims))


def np_layer_norm(
    x: Any, weight: Any = None, bias: Any = None, normalized_axes: int = 1, eps: float = 1e-5
) -> Any:
    axes = tuple(range(x.ndim - normalized_axes, x.ndim))
    y = x - x.mean(axis=axes, keepdims=True)
    y = y / np.sqrt((y * y).mean(axis=axes, keepdims=True) + eps)
    y = y if weight is None else y * weight
    return y if bias is None else y + bias


def np_rms_norm(x: Any, weight: Any = None, normalized_axes: int = 1, eps: float = 1e-6) -> Any:
    axes = tuple(range(x.ndim - normalized_axes, x.ndim))
    y = x / np.sqrt((x * x).mean(axis=axes, keepdims=True) + eps)
    return y if weight is None else y * weight


def np_group_norm(
    x: Any, groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> Any:
    y = np_layer_norm(x.reshape(x.shape[0], groups, -1), eps=eps).reshape(x.shape)
    wide = (slice(None), *(None for _ in range(2, x.ndim)))
    y = y if weight is None else y * weight[wide]
    return y if bias is None else y + bias[wide]


def np_batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any = None, variance: Any = None, eps: float = 1e-5
) -> Any:
    axes = (0, *range(2, x.ndim))
    wide = (slice(None), *(None for _ in range(2, x.ndim)))
    is_given = mean is not None
    if not is_given:
        mean, variance = x.mean(axis=axes), x.var(axis=axes)
    y = (x - mean[wide]) / np.sqrt(variance[wide] + eps) * weight[wide] + bias[wide]
    return y if is_given else (y, mean, variance)


def torch_batch_norm(
    x: Any, weight: Any, bias: Any, mean: Any = None, variance: Any = None, eps: float = 1e-5
) -> Any:
    axes = (0, *range(2, x.ndim))
    if mean is None:  # F.batch_norm does not say what it has found
        y = F.batch_norm(x, None, None, weight, bias, True, 0.1, eps)
        return y, x.mean(axes), x.var(axes, correction=0)
    wide = (slice(None), *(None for _ in range(2, x.ndim)))  # nor has it gradients of those
    y = (x - mean[wide]) / torch.sqrt(variance[wide] + eps)
    return y * weight[wide] + bias[wide]


def pair(value: Any) -> tuple[int, int]:
    return value if isinstance(value, tuple) else (value, value)


def windows(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, value: float) -> Any:
    """[n, c, oh, ow, kh, kw] of images [n, c, h, w]."""
    (kh, kw), (sh, sw), (ph, pw), (dh, dw) = map(pair, (kernel, stride, padding, dilation))
    x = np.pad(x, ((0, 0), (0, 0), (ph, ph), (pw, pw)), constant_values=value)
    size = (dh * (kh - 1) + 1, dw * (kw - 1) + 1)
    all_of_them = np.lib.stride_tricks.sliding_window_view(x, size, (2, 3))
    return all_of_them[:, :, ::sh, ::sw, ::dh, ::dw]


def np_conv2d(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1,
) -> Any:  # fmt: skip
    seen = windows(x, weight.shape[2:], stride, padding, dilation, 0)
    parts = [
        np.einsum("nchwab,ocab->nohw", of_x, of_weight)
        for of_x, of_weight in zip(np.split(seen, groups, 1), np.split(weight, groups, 0))
    ]
    y = np.concatenate(parts, axis=1)
    return y if bias is None else y + bias[:, None, None]


def np_max_pool2d(x: Any, kernel: Any, stride: Any = None, padding: Any = 0) -> Any:
    return windows(x, kernel, stride or kernel, padding, 1, -np.inf).max(axis=(-2, -1))


def np_avg_pool2d(
    x: Any, kernel: Any, stride: Any = None, padding: Any = 0, counts_padding: bool = True
) -> Any:
    sums = windows(x, kernel, stride or kernel, padding, 1, 0).sum(axis=(-2, -1))
    ones = np.ones_like(x)
    inside = windows(ones, kernel, stride or kernel, padding, 1, 0).sum(axis=(-2, -1))
    return sums / (math.prod(pair(kernel)) if counts_padding else inside)


def np_scatter_add(values: Any, indices: Any, rows: int) -> Any:
    result = np.zeros((rows, *values.shape[indices.ndim :]))
    np.add.at(result, indices, values)
    return result


def np_scatter_add_along(values: Any, axis: int, indices: Any, size: int) -> Any:
    values, indices = np.broadcast_arrays(values, indices)
    shape = list(values.shape)
    shape[axis] = size
    result = np.zeros(shape)
    places = list(np.indices(values.shape))
    places[axis] = indices
    np.add.at(result, tuple(places), values)
    return result


def np_one_hot(indices: Any, classes: int, dtype: Any = None) -> Any:
    return (indices[..., None] == np.arange(classes)).astype(dtype or np.float32)


def np_window(x: Any, starts: Places, sizes: Places, steps: Places) -> Any:
    places = [a + np.arange(n) * s for a, n, s in zip(starts, sizes, steps)]
    return x[np.ix_(*places)]


def np_place(base: Any, piece: Any, starts: Places, sizes: Places, steps: Places) -> Any:
    places = [a + np.arange(n) * s for a, n, s in zip(starts, sizes, steps)]
    result = base.copy()
    result[np.ix_(*places)] = piece
    return result


def np_split(x: Any, length: Any, axis: int = 0) -> Any:
    if not isinstance(length, int):
        return np.split(x, np.cumsum(length)[:-1], axis)
    return np.split(x, range(length, x.shape[axis], length), axis)


def np_huber_loss(x: Any, y: Any, delta: float = 1) -> Any:
    far = np.abs(x - y)
    return np.where(far <= delta, far * far / 2, delta * (far - delta / 2)).mean()


def np_pad(x: Any, pads: Any, value: float = 0, mode: Any = "constant") -> Any:
    if mode == "constant":
        return np.pad(x, pads, constant_values=value)
    return np.pad(x, pads, {"replicate": "edge", "circular": "wrap"}.get(mode, mode))


def np_attention(
    q: Any, k: Any, v: Any, mask: Any = None, is_causal: bool = False, scale: Any = None,
    block: int = 0, shares_heads: bool = False,
) -> Any:  # fmt: skip
    if q.ndim > 2 and k.shape[-3] != q.shape[-3]:
        k, v = (np.repeat(x, q.shape[-3] // x.shape[-3], -3) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if is_causal:
        queries, keys = scores.shape[-2:]
        scores = np.where(np.tri(queries, keys, keys - queries, dtype=np.bool_), scores, -np.inf)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf) if mask.dtype == np.bool_ else scores + mask
    with np.errstate(invalid="ignore"):  # a row of -inf: 0
        return np.nan_to_num(np_softmax(scores)) @ v


def np_rotary(x: Any, positions: Any, base: float = 10000, is_interleaved: bool = False) -> Any:
    width = x.shape[-1]
    angles = positions[:, None] * base ** (-np.arange(0, width, 2) / width)
    lines = x.reshape(*x.shape[:-1], -1, 2) if is_interleaved else x.reshape(*x.shape[:-1], 2, -1)
    pair = (
        (lines[..., 0] + 1j * lines[..., 1])
        if is_interleaved
        else (lines[..., 0, :] + 1j * lines[..., 1, :])
    )
    turned = pair * np.exp(1j * angles)
    return np.stack([turned.real, turned.imag], -1 if is_interleaved else -2).reshape(x.shape)


def np_sinusoidal(
    positions: Any, width: int, base: float = 10000, is_interleaved: bool = True
) -> Any:
    angles = positions[..., None] * base ** (-np.arange(0, width, 2) / width)
    parts = np.stack([np.sin(angles), np.cos(angles)], -1 if is_interleaved else -2)
    return parts.reshape(*positions.shape, width).astype(
        positions.dtype if positions.dtype.kind == "f" else np.float32
    )


def np_cumulative_sum(
    x: Any, axis: Any = None, dtype: Any = None, include_initial: bool = False
) -> Any:
    sums = np.cumsum(x, axis=axis, dtype=dtype)
    if not include_initial:
        return sums
    return np.concatenate([np.zeros_like(np.take(sums, [0], axis or 0)), sums], axis or 0)


def np_arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    is_whole = all(isinstance(v, int) for v in (start, stop or 0, step))
    low, high = (0, start) if stop is None else (start, stop)
    return np.arange(low, high, step, dtype=dtype or (np.int64 if is_whole else np.float32))


# ---- the cases

COS, SIN, AXES4 = normal(2, 3, 5), normal(2, 5, 4), normal(2, 3, 8, 9)
HOT: np.ndarray = integers(0, 5, 4, 6)
INDICES = integers(-3, 3, 2, 5)
POOLED = random.permutation(2 * 3 * 8 * 9).reshape(2, 3, 8, 9) / 100 - 2  # no equal numbers

UNARY = [
    unary("abs", np.abs, t("abs"), dtypes=FLOATS + ("int64", "int8")),
    unary("negative", np.negative, t("neg"), dtypes=FLOATS + ("int64", "int8")),
    unary("sign", np.sign, t("sign"), dtypes=FLOATS + ("int64", "int8")),
    unary("square", np.square, t("square"), dtypes=FLOATS + ("int64", "int8")),
    unary("floor", np.floor, t("floor"), dtypes=FLOATS + ("int64", "int8")),
    unary("ceil", np.ceil, t("ceil"), dtypes=FLOATS + ("int64", "int8")),
    unary("round", np.round, t("round"), dtypes=FLOATS + ("int64", "int8")),
    unary("trunc", np.trunc, t("trunc"), dtypes=FLOATS + ("int64", "int8")),
    unary("relu", lambda x: np.maximum(x, 0), t("relu"), dtypes=FLOATS + ("int64", "int8")),
    unary("sqrt", np.sqrt, t("sqrt"), low=0.1),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), t("rsqrt"), low=0.1),
    unary("reciprocal", lambda x: 1 / x, t("reciprocal"), low=0.1),
    unary("exp", np.exp, t("exp")),
    unary("exp2", np.exp2, t("exp2")),
    unary("expm1", np.expm1, t("expm1")),
    unary("log", np.log, t("log"), low=0.1),
    unary("log1p", np.log1p, t("log1p"), low=-0.9),
    unary("log2", np.log2, t("log2"), low=0.1),
    unary("log10", np.log10, t("log10"), low=0.1),
    unary("sin", np.sin, t("sin"), low=-50, high=50),
    unary("cos", np.cos, t("cos"), low=-50, high=50),
    unary("tan", np.tan, t("tan"), low=-1, high=1),
    unary("tanh", np.tanh, t("tanh")),
    unary("erf", erf, t("erf")),
    unary("sigmoid", np_sigmoid, t("sigmoid")),
    unary("gelu", lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, f("gelu")),
    unary(
        "gelu_tanh",
        lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
        (lambda x: F.gelu(x, approximate="tanh")) if torch else None,
    ),
    unary("silu", lambda x: x * np_sigmoid(x), f("silu")),
    unary("softplus", lambda x: np.log1p(np.exp(x)), f("softplus")),
    unary("cbrt", np.cbrt),
    unary("asin", np.arcsin, t("asin"), low=-0.99, high=0.99),
    unary("acos", np.arccos, t("acos"), low=-0.99, high=0.99),
    unary("atan", np.arctan, t("atan"), low=-9, high=9),
    unary("sinh", np.sinh, t("sinh")),
    unary("cosh", np.cosh, t("cosh")),
    unary("asinh", np.arcsinh, t("asinh"), low=-9, high=9),
    unary("acosh", np.arccosh, t("acosh"), low=1.1, high=9),
    unary("atanh", np.arctanh, t("atanh"), low=-0.9, high=0.9),
    unary("erfc", erfc, t("erfc")),
    unary("erfinv", erfinv, t("erfinv"), low=-0.99, high=0.99),
    unary("lgamma", lgamma, t("lgamma"), low=0.1, high=20),
    unary("digamma", digamma, t("digamma"), low=0.1, high=20),
    unary("log_sigmoid", lambda x: -np.log1p(np.exp(-x)), f("logsigmoid")),
    unary("conj", np.conj, t("conj_physical"), dtypes=FLOATS + ("int64", "uint16")),
    unary("real", np.real, dtypes=FLOATS + ("int64",)),
    unary("imag", np.imag, dtypes=FLOATS + ("int64",)),
    unary("positive", np.positive, t("positive"), dtypes=FLOATS + ("int64", "int8")),
    unary("frac", lambda x: x - np.trunc(x), t("frac")),
    unary("deg2rad", np.deg2rad, t("deg2rad"), low=-400, high=400),
    unary("rad2deg", np.rad2deg, t("rad2deg")),
    Case(
        "nan_to_num",
        [
            one(np.array([0.5, np.nan]), nan=2.0),
            one(normal(3, 4)),
            one(np.array([np.inf, 1, -np.inf, np.nan]), posinf=7.0, neginf=-7.0),
        ],
        np.nan_to_num,
        t("nan_to_num"),
    ),
    *(
        Case(
            name,
            [one(np.array([0.0, -0.0, np.inf, -np.inf, 1, -2])), one(np.array([1, -2]))],
            numpy,
        )
        for name, numpy in (
            ("signbit", np.signbit),
            ("isposinf", np.isposinf),
            ("isneginf", np.isneginf),
        )
    ),
    unary("copy", lambda x: x, t("clone")),
    unary("row_major", lambda x: x),
    *(
        Case(name, [one(np.array([0.0, np.nan, np.inf, -np.inf, 1])), one(np.array([1, 2]))], numpy)
        for name, numpy in (("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite))
    ),
    Case("logical_not", [one(small(3, 4)), one(small(3) > 2)], np.logical_not, dtypes=NUMBERS),
    Case("bitwise_invert", [one(integers(-9, 9, 7)), one(small(7) > 2)], np.invert),
    Case("check_nonzero", [one(integers(1, 9, 7)), one(np.array([True]))], lambda x: x),
]

BINARY = [
    binary("add", np.add, t("add")),
    binary("subtract", np.subtract, t("sub")),
    binary("multiply", np.multiply, t("mul")),
    binary("divide", np.divide, t("div"), low=0.5),
    binary("floor_divide", np.floor_divide, low=0.5),
    binary("remainder", np.remainder, low=0.5),
    binary("fmod", np.fmod, low=0.5),
    binary("atan2", np.arctan2, t("atan2")),
    binary("hypot", np.hypot, t("hypot")),
    binary("logaddexp", np.logaddexp, t("logaddexp")),
    binary("fmax", np.fmax, t("fmax"), has_gradient=False),
    binary("fmin", np.fmin, t("fmin"), has_gradient=False),
    binary("xlogy", np_xlogy, t("xlogy"), low=0.1),
    Case(
        "heaviside",
        [one(np.array([-2, 0, -0.0, 3]), 0.5), one(normal(3, 4), normal(4))],
        np.heaviside,
    ),
    Case(
        "lerp",
        [one(normal(3, 4), normal(4), 0.25), one(normal(7), normal(7), between(-1, 2, 7))],
        lambda a, b, weight: a + weight * (b - a),
        t("lerp"),
    ),
    Case(
        "nextafter",
        [one(normal(3, 4), normal(4)), one(np.array([0.0, -0.0, 1.0]), np.array([-1.0, 1.0, 1.0]))],
        np.nextafter,
        dtypes=("float64", "float32", "float16"),
    ),
    binary("pow", np.power, t("pow"), low=0.5),
    binary("maximum", np.maximum, t("maximum"), has_gradient=False),
    binary("minimum", np.minimum, t("minimum"), has_gradient=False),
    binary("copysign", np.copysign, t("copysign"), has_gradient=False),
    *(
        whole(name, getattr(np, name))
        for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    ),
    *(whole(f"logical_{word}", getattr(np, f"logical_{word}"), 0, 2) for word in ("and", "or", "xor")),
    *(bits(f"bitwise_{word}", getattr(np, f"bitwise_{word}")) for word in ("and", "or", "xor")),
    bits("bitwise_left_shift", np.left_shift, 0, 7),
    bits("bitwise_right_shift", np.right_shift, 0, 7),
    Case(
        "clip",
        [
            one(normal(3, 4), -0.5, 0.5), one(normal(7), min=0.0), one(normal(7), max=normal(7)),
            one(normal(3, 4)), one(normal(), normal(3, 1) - 2, normal(4) + 2),
        ],
        lambda x, min=None, max=None: np.clip(x, min, max) if min is not None or max is not None else x,
        (lambda x, min=None, max=None: x if min is None and max is None
         else torch.clamp(x, min, max)) if torch else None,
    ),
    Case(
        "fma",
        [one(normal(3, 4), normal(4), normal(3, 1)), one(normal(7), 2.0, 1.0), one(normal(0), 1.0, 2.0)],
        lambda a, b, c: a * b + c,
        lambda a, b, c: a * b + c,
        has_gradient=True,
    ),
    Case(
        "where",
        [
            one(normal(3, 4) > 0, normal(3, 4), normal(4)), one(normal(7) > 0, normal(7), 1.0),
            one(np.array(True), normal(3), normal(3)), one(normal(0) > 0, normal(0), 2.0),
        ],
        np.where,
        t("where"),
        has_gradient=True,
    ),
]  # fmt: skip

CONVERTED = [
    Case(
        name,
        [
            one(normal(3, 4) * 100, dtype)
            for dtype in ("float64", "float32", "int64", "int16", "bool")
        ]
        + [one(integers(-500, 500, 7), "int8"), one(normal(0, 3), "int32")],
        lambda x, dtype, **more: x.astype(dtype),
        dtypes=("float64",),
    )
    for name in ("astype", "cast")
] + [
    Case("to", [one(normal(3, 4), "cpu")], lambda x, device: x),
]

REDUCED = [
    reduction("sum", np.sum, t("sum"), scale=50),
    reduction("prod", np.prod, None, lambda *s: between(0.9, 1.1, *s), dtypes=FLOATS[:1], scale=1000),
    reduction("max", np.max, t("amax"), takes_empty=False, dtypes=NUMBERS[:5]),
    reduction("min", np.min, t("amin"), takes_empty=False, dtypes=NUMBERS[:5]),
    reduction("any", np.any, None, small),
    reduction("all", np.all, None, small),
    reduction("mean", np.mean, t("mean"), takes_empty=False, scale=10),
    reduction("logsumexp", np_logsumexp, t("logsumexp"), takes_empty=False, scale=10),
    *(
        Case(
            name,
            [one(normal(*shape), **more) for shape, more in along()]
            + [one(normal(3, 4), axis=1, correction=1), one(normal(9), correction=0.5)],
            lambda x, axis=None, correction=0, keepdims=False, f=numpy:
                f(x, axis=axis, ddof=correction, keepdims=keepdims),
            torch_axes(lambda x, dim, keepdim, correction=0, f=pytorch:
                f(x, dim, correction=correction, keepdim=keepdim)),
            has_gradient=torch is not None,
            scale=10,
        )
        for name, numpy, pytorch in (("var", np.var, t("var")), ("std", np.std, t("std")))
    ),
    *(
        Case(
            name,
            [
                one(POOLED[0, 0], axis=axis, keepdims=keep)
                for axis in (None, 0, 1, -1)
                for keep in (False, True)
            ] + [one(POOLED), one(POOLED, axis=(2, 0)), one(POOLED, axis=(1, 2, 3), keepdims=True)],
            lambda x, axis=None, keepdims=False, numpy=numpy: over_axes(numpy, x, axis, keepdims),
            dtypes=("float64", "float32"),
        )
        for name, numpy in (("argmax", np.argmax), ("argmin", np.argmin))
    ),
    Case("cumsum", [one(normal(7), 0), one(normal(3, 40), axis=-1), one(normal(0, 3), 0)], np.cumsum,
         (lambda x, axis: torch.cumsum(x, axis)) if torch else None, has_gradient=True, scale=20),
    Case(
        "cumulative_sum",
        [
            one(normal(7)), one(normal(3, 4), axis=1), one(normal(3, 4), axis=0, include_initial=True),
            one(integers(0, 9, 5), dtype="float64"), one(normal(5), include_initial=True),
        ],
        np_cumulative_sum,
        scale=20,
    ),
    Case("softmax", [one(normal(3, 4)), one(normal(2, 3, 4), axis=1), one(normal(70, 130)), one(normal(7), 0)],
         np_softmax, (lambda x, axis=-1: torch.softmax(x, axis)) if torch else None, has_gradient=True),
    Case("log_softmax", [one(normal(3, 4)), one(normal(2, 3, 4), axis=1), one(normal(7), 0)],
         lambda x, axis=-1: np.log(np_softmax(x, axis)),
         (lambda x, axis=-1: torch.log_softmax(x, axis)) if torch else None, has_gradient=True, scale=10),
    Case(
        "layer_norm",
        [
            one(normal(3, 8)), one(normal(2, 3, 8), weight=normal(8), bias=normal(8)),
            one(normal(2, 3, 8), weight=normal(3, 8), normalized_axes=2, eps=1e-3),
        ],
        np_layer_norm,
        (lambda x, weight=None, bias=None, normalized_axes=1, eps=1e-5:
            F.layer_norm(x, x.shape[-normalized_axes:], weight, bias, eps)) if torch else None,
        has_gradient=True,
        scale=100,
    ),
    Case(
        "rms_norm",
        [
            one(normal(3, 8)), one(normal(2, 3, 8), weight=normal(8)),
            one(normal(2, 3, 8), weight=normal(3, 8), normalized_axes=2, eps=1e-3),
        ],
        np_rms_norm,
        (lambda x, weight=None, normalized_axes=1, eps=1e-6:
            F.rms_norm(x, x.shape[-normalized_axes:], weight, eps)) if torch else None,
        has_gradient=True,
        scale=100,
    ),
    Case(
        "group_norm",
        [
            one(normal(3, 8), 2), one(normal(2, 6, 5), 3, weight=normal(6), bias=normal(6)),
            one(normal(2, 4, 5, 3), 4, weight=normal(4), eps=1e-3),
        ],
        np_group_norm,
        (lambda x, groups, weight=None, bias=None, eps=1e-5:
            F.group_norm(x, groups, weight, bias, eps)) if torch else None,
        has_gradient=True,
        scale=100,
    ),
    Case(
        "batch_norm",
        [
            one(normal(4, 3), weight=normal(3), bias=normal(3)),
            one(normal(4, 3, 5, 6), weight=normal(3), bias=normal(3), eps=1e-3),
            one(normal(4, 3, 5), weight=normal(3), bias=normal(3), mean=normal(3),
                variance=between(0.5, 2, 3)),
        ],
        np_batch_norm,
        torch_batch_norm if torch else None,
        has_gradient=True,
        scale=100,
        dtypes=("float64", "float32"),
    ),
]  # fmt: skip

SHAPED = [
    Case("reshape", [one(normal(3, 4), (2, 6)), one(normal(3, 4), (-1,)), one(normal(), (1, 1)),
                     one(normal(0, 3), (3, 0)), one(normal(3, 4), 12, copy=True)],
         lambda x, shape, copy=None: x.reshape(shape), t("reshape")),
    Case("flatten", [one(normal(2, 3, 4)), one(normal(2, 3, 4), 1), one(normal()), one(normal(2, 3, 4), 0, 1),
                     one(normal(2, 3, 4, 5), first_axis=1, last_axis=-2), one(normal(0, 3), 1)],
         lambda x, first_axis=0, last_axis=-1: x.reshape(
             *x.shape[:first_axis], math.prod(x.shape[first_axis : x.ndim + last_axis + 1 if last_axis < 0 else last_axis + 1]),
             *(x.shape[x.ndim + last_axis + 1 :] if last_axis < 0 else x.shape[last_axis + 1 :])),
         (lambda x, first_axis=0, last_axis=-1: torch.flatten(x, first_axis, last_axis)) if torch else None, has_gradient=True),
    *(Case(name, [one(normal()), one(normal(3)), one(normal(3, 4)), one(normal(0)), one(normal(2, 3, 4, 2))],
           getattr(np, name), t(name), has_gradient=True) for name in ("atleast_1d", "atleast_2d", "atleast_3d")),
    Case("diag", [one(normal(3)), one(normal(3), 2), one(normal(2), k=-1), one(normal(3, 4)), one(normal(3, 4), 1), one(normal(0), 2)],
         lambda x, k=0: np.diag(x, k), (lambda x, k=0: torch.diag(x, k)) if torch else None, has_gradient=True),
    Case("permute_dims", [one(normal(2, 3, 4), (2, 0, 1)), one(normal(), ()), one(normal(3, 4), (-1, 0))],
         np.transpose, t("permute"), has_gradient=True),
    Case("transpose", [one(normal(2, 3, 4)), one(normal(2, 3, 4), 0, 2), one(normal(3, 4), axis1=1, axis2=0)],
         lambda x, axis1=-2, axis2=-1: x.swapaxes(axis1, axis2)),
    Case("matrix_transpose", [one(normal(2, 3, 4)), one(normal(0, 3))], lambda x: x.swapaxes(-1, -2)),
    Case("broadcast_to", [one(normal(3, 1), (2, 3, 4)), one(normal(), (0, 3)), one(normal(4), shape=(3, 4))],
         np.broadcast_to, lambda x, shape: x.expand(shape), has_gradient=True),
    Case("squeeze", [one(normal(1, 3, 1), 0), one(normal(1, 3, 1), axis=(0, 2)), one(normal(1, 3, 1))],
         np.squeeze),
    Case("expand_dims", [one(normal(3, 4)), one(normal(3, 4), -1), one(normal(), axis=0)],
         lambda x, axis=0: np.expand_dims(x, axis)),
    Case("flip", [one(normal(3, 4)), one(normal(3, 4), 1), one(normal(2, 3, 4), axis=(0, -1)), one(normal(0))],
         np.flip),
    Case("slice", [one(normal(7, 4), 0, slice(1, 6, 2)), one(normal(3, 4), -1, (1, 3)),
                   one(normal(7), 0, slice(None, None, -2))],
         lambda x, axis, range: np.take(
             x, np.arange(x.shape[axis])[range if isinstance(range, slice) else slice(*range)], axis)),
    Case("split", [one(normal(7, 4), 3), one(normal(3, 4), 2, axis=1), one(normal(7, 4), (2, 0, 5)), one(normal(3, 4), (1, 3), axis=-1)],
         np_split, (lambda x, length, axis=0: torch.split(x, length if isinstance(length, int) else list(length), axis))
         if torch else None, has_gradient=True),
    Case("window", [one(normal(5, 6), (1, 5), (3, 2), (1, -2))], np_window),
    Case("concat", [one([normal(3, 4), normal(2, 4)]), one([normal(3, 4), normal(3, 1)], axis=1),
                    one([normal(3, 4), normal(5)], axis=None), one([normal(0, 4), normal(2, 4)], 0)],
         np.concatenate, (lambda x, axis=0: torch.cat([y.flatten() for y in x]) if axis is None
                          else torch.cat(x, axis)) if torch else None, has_gradient=True),
    Case("stack", [one([normal(3, 4), normal(3, 4)]), one([normal(3), normal(3)], axis=-1), one([normal()])],
         np.stack, (lambda x, axis=0: torch.stack(x, axis)) if torch else None, has_gradient=True),
    Case("pad", [one(normal(3, 4), [(1, 0), (2, 3)]), one(normal(4), [(1, 1)], 2.5), one(normal(0), [(2, 0)])]
         + [one(normal(3, 4), [(1, 5), (0, 3)], mode=mode) for mode in ("reflect", "replicate", "edge", "circular", "wrap")],
         np_pad),
    Case("moveaxis", [one(normal(2, 3, 4), 0, -1), one(normal(2, 3, 4), (0, 1), (2, 0)), one(normal(3), 0, 0)],
         np.moveaxis, t("moveaxis"), has_gradient=True),
    Case("roll", [one(normal(7), 2), one(normal(3, 4), -5), one(normal(3, 4), 1, axis=-1),
                  one(normal(3, 4, 2), (1, -1), axis=(0, 2)), one(normal(3, 4), 4, axis=1), one(normal(0, 3), 1, axis=0),
                  one(normal(70, 130), 33, axis=1)],
         np.roll, (lambda x, shift, axis=None: torch.roll(x, shift, axis)) if torch else None, has_gradient=True),
    Case("repeat", [one(normal(3, 4), 2), one(normal(3, 4), 3, axis=0), one(normal(3, 4), 0, axis=1), one(normal(), 2),
                    looked_at(normal(3, 4), np.array([2, 0, 1]), axis=0), looked_at(normal(4), np.array([3]))],
         np.repeat),
    Case("tile", [one(normal(3), (2,)), one(normal(3, 4), (2, 3)), one(normal(3), (2, 1, 2)), one(normal(2, 3, 4), (2,)),
                  one(normal(), (3,)), one(normal(3, 4), (0, 2))],
         np.tile, t("tile"), has_gradient=True),
    *(Case(name, [one(normal(3, 4)), one(normal(3, 4), axis=-1), one(normal(0, 4))],
           lambda x, axis=0: list(np.moveaxis(x, axis, 0))) for name in ("unstack", "unbind")),
    Case("tril", [one(normal(3, 4)), one(normal(2, 4, 3), 1), one(normal(3, 4), k=-2), one(normal(0, 3))],
         np.tril, (lambda x, k=0: torch.tril(x, k)) if torch else None, has_gradient=True),
    Case("triu", [one(normal(3, 4)), one(normal(2, 4, 3), 1), one(normal(3, 4), k=-2), one(normal(0, 3))],
         np.triu, (lambda x, k=0: torch.triu(x, k)) if torch else None, has_gradient=True),
    Case("diagonal", [one(normal(3, 4)), one(normal(2, 4, 3), 1), one(normal(3, 4), offset=-2), one(normal(3, 4), 4),
                      one(normal(3, 4), -3), one(normal(0, 3))],
         lambda x, offset=0: np.diagonal(x, offset, -2, -1),
         (lambda x, offset=0: torch.diagonal(x, offset, -2, -1)) if torch else None, has_gradient=True),
    Case("trace", [one(small(3, 4)), one(small(2, 4, 3), 1), one(small(3, 4), offset=-2), one(small(3, 3), 3)],
         lambda x, offset=0: np.trace(x, offset, -2, -1)),
    Case("diff", [one(normal(7)), one(normal(3, 4), axis=0), one(normal(3, 6), n=3), one(normal(3), n=5), one(normal(3, 4), n=0),
                  one(normal(3, 4), prepend=normal(3, 1), append=normal(3, 2)), one(normal(1))],
         np.diff, (lambda x, axis=-1, n=1, prepend=None, append=None: torch.diff(x, n, axis, prepend, append))
         if torch else None, has_gradient=True),
    Case("place", [one(normal(5, 6), normal(3, 2), (1, 0), (3, 2), (1, 3)),
                   one(normal(4), normal(), (3,), (2,), (-2,))], np_place),
]  # fmt: skip

INDEXED = [
    Case("take", [one(normal(7, 4), INDICES), one(normal(3, 4), INDICES[0], axis=1), one(normal(7), np.array(2)),
                  one(normal(3, 4), integers(0, 3, 0))],
         lambda x, i, axis=0: np.take(x, i, axis),
         (lambda x, i, axis=0: torch.index_select(x, axis, (i % x.shape[axis]).flatten())
          .unflatten(axis, i.shape) if i.ndim and i.numel() else x.select(axis, int(i)) if not i.ndim
          else torch.index_select(x, axis, i)) if torch else None, has_gradient=True),
    Case("take_along_axis", [one(normal(4, 6), integers(0, 6, 4, 3)), one(normal(4, 6), integers(0, 4, 2, 6), axis=0)],
         lambda x, i, axis=-1: np.take_along_axis(x, i, axis),
         (lambda x, i, axis=-1: torch.take_along_dim(x, i, axis)) if torch else None, has_gradient=True),
    Case("gather", [one(normal(4, 6), 1, integers(0, 6, 4, 3)), one(normal(4, 6), 0, integers(0, 4, 1, 6))],
         lambda x, axis, i: np.take_along_axis(x, i, axis),
         (lambda x, axis, i: torch.take_along_dim(x, i, axis)) if torch else None, has_gradient=True),
    Case("scatter_add", [one(normal(2, 5, 3), INDICES, 4), one(normal(6), integers(0, 4, 6), rows=4)],
         np_scatter_add, scale=4),
    Case("scatter_add_along", [one(normal(4, 3), 1, integers(0, 6, 4, 3), 6), one(np.ones((1, 1)), 1, HOT, 5)],
         np_scatter_add_along, scale=4),
    Case("one_hot", [one(HOT, 5), one(np.array([-1, 9, 0]), 3, "int64")],
         lambda i, classes, dtype=None: np_one_hot(i, classes, dtype)),
]  # fmt: skip

LIBRARY = [
    Case("matmul", [one(normal(3, 4), normal(4, 5)), one(normal(4), normal(4)), one(normal(2, 1, 3, 4), normal(5, 4, 2)),
                    one(normal(4), normal(2, 4, 3)), one(normal(3, 0), normal(0, 4)), one(normal(64, 70), normal(70, 65)),
                    one(integers(-9, 9, 3, 4), integers(-9, 9, 4, 2))],
         np.matmul, t("matmul"), has_gradient=True, scale=50),
    Case("conv2d", [one(AXES4, normal(4, 3, 3, 3)), one(AXES4, normal(4, 3, 3, 2), normal(4), stride=(2, 1), padding=1),
                    one(AXES4, normal(6, 1, 2, 2), bias=normal(6), groups=3, dilation=(1, 2))],
         np_conv2d, f("conv2d"), has_gradient=True, scale=50),
    Case("max_pool2d", [one(POOLED, 2), one(POOLED, (3, 2), stride=1, padding=1), one(POOLED, 3, stride=(2, 3))],
         np_max_pool2d, f("max_pool2d"), has_gradient=True),
    Case("avg_pool2d", [one(AXES4, 2), one(AXES4, (3, 2), stride=1, padding=1),
                        one(AXES4, 3, stride=2, padding=1, counts_padding=False)],
         np_avg_pool2d, (lambda x, kernel, stride=None, padding=0, counts_padding=True:
                         F.avg_pool2d(x, kernel, stride, padding, count_include_pad=counts_padding))
         if torch else None, has_gradient=True, scale=4),
]  # fmt: skip

CREATED = [
    Case("zeros", [one((3, 4)), one((), dtype="int8"), one(5, "bool"), one((0, 2))],
         lambda shape, dtype="float32": np.zeros(shape, dtype)),
    Case("ones", [one((3, 4)), one((), dtype="int8"), one(5, "bool"), one((70, 130))],
         lambda shape, dtype="float32": np.ones(shape, dtype)),
    Case("full", [one((3, 4), 2.5), one((2,), 7), one((2,), True), one((), 3, dtype="float64"),
                  one((2, 2), normal(), dtype="float64")],
         lambda shape, fill_value, dtype=None: np.full(
             shape, fill_value, dtype or (np.float32 if isinstance(fill_value, float) else None)), dtypes=("float64",)),
    Case("zeros_like", [one(normal(3, 4)), one(normal(2), dtype="int64")],
         lambda x, dtype=None: np.zeros_like(x, dtype=dtype), dtypes=("float64",)),
    Case("ones_like", [one(normal(3, 4)), one(normal(2), dtype="int64")],
         lambda x, dtype=None: np.ones_like(x, dtype=dtype), dtypes=("float64",)),
    Case("full_like", [one(normal(3, 4), 2.5), one(normal(2), 3, dtype="int64", device="cpu")],
         lambda x, fill_value, dtype=None, device=None: np.full_like(x, fill_value, dtype=dtype), dtypes=("float64",)),
    Case("arange", [one(5), one(2, 9, 3), one(9, 2, -2), one(0.0, 1.0, 0.125), one(3, dtype="float64"),
                    one(0, 0), one(2.5)], np_arange),
    Case("linspace", [one(0.0, 1.0, 5), one(2, 3, num=7, endpoint=False), one(0.0, 1.0, 1), one(0.0, 1.0, 0),
                      one(0.0, 1.0, 0, endpoint=False), one(-1.0, 1.0, 9, dtype="float64")],
         lambda start, stop, num, dtype="float32", endpoint=True:
             np.linspace(start, stop, num, dtype=dtype, endpoint=endpoint)),
    Case("eye", [one(3), one(2, 4), one(3, k=1), one(4, 2, k=-1, dtype="int64"), one(0)],
         lambda rows, columns=None, k=0, dtype="float32": np.eye(rows, columns, k, dtype)),
]  # fmt: skip

LOSSES = [
    Case("nn.huber_loss", [one(normal(30), normal(30)), one(normal(30), normal(30), 0.3), one(normal(9), y=normal(9), delta=2)],
         np_huber_loss, (lambda x, y, delta=1.0: F.huber_loss(x, y, delta=delta)) if torch else None, has_gradient=True),
    Case("nn.attention", [one(COS, COS, normal(2, 3, 4)), one(COS, k=COS, v=COS, is_causal=True),
                          one(COS, COS, COS, mask=np.array([[True, False, True]] * 2 + [[False] * 3])),
                          one(COS, COS, COS, mask=normal(3, 3), scale=0.7),
                          one(normal(1, 4, 3, 2), normal(1, 2, 3, 2), normal(1, 2, 3, 2), is_causal=True,
                              shares_heads=True)],
         np_attention,
         (lambda q, k, v, mask=None, shares_heads=False, **given: F.scaled_dot_product_attention(
             q, k, v, attn_mask=mask, enable_gqa=shares_heads, **given))
         if torch else None, has_gradient=True, scale=20),
    Case("nn.rotary", [one(normal(3, 6), np.arange(3)), one(normal(2, 3, 4), np.array([0, 7, 1000])),
                       one(normal(2, 3, 4), np.array([0.5, 7, 9]), base=100, is_interleaved=True)], np_rotary, scale=20),
    Case("nn.sinusoidal_positions", [one(between(0, 1000, 7, 2), 4, is_interleaved=False),
                                     one(between(0, 9, 5), width=2, base=100)], np_sinusoidal, scale=20),
]  # fmt: skip

from nn_cases import NN_CASES  # noqa: E402  (made of the words above)
from order_cases import ORDER_CASES  # noqa: E402
from resample_cases import RESAMPLE_CASES  # noqa: E402

CASES = (
    UNARY + BINARY + CONVERTED + REDUCED + SHAPED + INDEXED + LIBRARY + CREATED + LOSSES + NN_CASES + ORDER_CASES
    + RESAMPLE_CASES
)  # fmt: skip
