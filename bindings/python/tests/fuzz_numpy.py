"""Random calls beside NumPy's: any shape, dtype and layout in memory, eagerly and compiled.

    ./dev fuzz numpy --seconds 600
    ./dev fuzz numpy --seed 7 --only reduce,sort

Each call is drawn from its own number, so that `--first N --count 1` makes one again. What is
compared: values with NumPy's (floats with those of float64, by the digits that their dtype has),
shapes, kinds of dtypes, and the bits of compiled calls with those of eager ones, which must come
from a Plan.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import nitinol as nt
import numpy as np

Array = np.ndarray[Any, Any]
DTYPES = ["float32", "float64", "float16", "int32", "int64", "uint8", "int8", "bool"]


class Draw:
    """What is random about one call."""

    def __init__(self, seed: int, number: int) -> None:
        self.rng = np.random.default_rng((seed, number))

    def one_of(self, things: Sequence[Any]) -> Any:
        return things[int(self.rng.integers(len(things)))]

    def number(self, low: int, high: int) -> int:
        """Of low to high."""
        return int(self.rng.integers(low, high + 1))

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def shape(self, least: int = 0, most: int = 4, smallest: int = 0) -> tuple[int, ...]:
        """Mostly small; now and then long, or with many rows that are."""
        rank = self.number(least, most)
        sizes = [max(smallest, self.one_of([0, 1, 2, 3, 4, 5, 7])) for _ in range(rank)]
        if rank > 0 and self.chance(0.3):
            sizes = [max(size, 1) for size in sizes]
            sizes[self.number(0, rank - 1)] = self.one_of([31, 32, 65, 130, 1025, 4100])
            if rank > 1 and self.chance(0.7):
                sizes[self.number(0, rank - 1)] = self.one_of([16, 17, 40, 64])
            while np.prod(sizes) > 60_000:
                sizes[int(np.argmax(sizes))] //= 3
        return tuple(sizes)

    def array(
        self, shape: tuple[int, ...] | None = None, dtypes: Sequence[str] = DTYPES, **limits: int
    ) -> Array:
        """Numbers of -5 to 5, and some with a fraction."""
        if shape is None:
            shape = self.shape(**limits)
        dtype = np.dtype(self.one_of(dtypes))
        values = self.rng.integers(-5, 6, shape)
        if dtype == np.bool_:
            return values > 0
        if dtype.kind == "u":
            return np.abs(values).astype(dtype)
        if dtype.kind == "f" and self.chance(0.7):
            return (values + self.rng.random(shape)).astype(dtype)
        return values.astype(dtype)

    def floats(self, **limits: Any) -> Array:
        return self.array(dtypes=["float32", "float64", "float16"], **limits)

    def numbers(self, **limits: Any) -> Array:
        return self.array(dtypes=DTYPES[:-1], **limits)

    def axis(self, x: Array) -> int:
        return self.number(-x.ndim, x.ndim - 1)

    def axes(self, x: Array) -> tuple[int, ...]:
        chosen = self.rng.permutation(x.ndim)[: self.number(0, x.ndim)]
        return tuple(int(axis) - (x.ndim if self.chance(0.3) else 0) for axis in chosen)

    def tensor(self, x: Array) -> nt.Tensor:
        """x, lying in memory in some way."""
        kind = self.number(0, 9)
        if x.ndim == 0 or kind < 4:
            return nt.asarray(np.array(x))
        axis = self.number(0, x.ndim - 1)
        before = (slice(None),) * axis
        if kind < 7:  # in another order
            order = [int(axis) for axis in self.rng.permutation(x.ndim)]
            if x.ndim == 4 and self.chance(0.5):
                order = [0, 2, 3, 1]
            back = [int(axis) for axis in np.argsort(order)]
            return nt.permute_dims(nt.asarray(np.ascontiguousarray(x.transpose(order))), back)
        if kind == 7:  # backwards
            backwards = (*before, slice(None, None, -1))
            return nt.asarray(np.ascontiguousarray(x[backwards]))[backwards]
        gap = self.number(2, 3)  # with others between
        return nt.asarray(np.repeat(x, gap, axis))[(*before, slice(None, None, gap))]


class Call(NamedTuple):
    """The same by ours and by NumPy's."""

    inputs: Sequence[Array]
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    is_compiled: bool = True  # not if its result's shape depends on elements
    is_inexact: bool = False  # of floats: a formula, not a choice of elements


CASES: dict[str, Callable[[Draw], Call]] = {}


def case(f: Callable[[Draw], Call]) -> Callable[[Draw], Call]:
    CASES[f.__name__] = f
    return f


def both(name: str, *args: Any, **options: Any) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The function of this name, of ours and of NumPy's, with the same options."""
    return (
        lambda *inputs: getattr(nt, name)(*inputs, *args, **options),
        lambda *inputs: getattr(np, name)(*inputs, *args, **options),
    )


# ---- reductions


@case
def reduce(draw: Draw) -> Call:
    name = draw.one_of(["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"])
    x = draw.array(smallest=0 if name in ("sum", "prod", "any", "all") else 1)
    if name in ("mean", "var", "std"):
        x = draw.floats(smallest=1)
    if name == "prod":  # of few others than 1
        x = np.where(draw.rng.random(x.shape) < 3 / max(x.size, 3), x, np.ones((), x.dtype))
    options = {"axis": draw.one_of([None, draw.axes(x)]), "keepdims": draw.chance(0.5)}
    return Call([x], *both(name, **options), is_inexact=True)


@case
def after_arithmetic(draw: Draw) -> Call:
    """Sums of what was computed, of which a Plan makes one kernel."""
    x = draw.array(dtypes=["float32", "float64"], smallest=1, least=1)
    options = {"keepdims": draw.chance(0.5)}
    scale = draw.array(shape=draw.one_of([x.shape, x.shape[-1:], (), (1,) * x.ndim]))
    axes = draw.axes(x)

    def f(lib: Any) -> Callable[..., Any]:
        def of(x: Any, scale: Any) -> Any:
            y = lib.abs(x * scale) + 1
            return lib.sum(y * y, axis=axes, **options) - lib.max(y, axis=axes, **options)

        return of

    return Call([x, scale.astype(x.dtype)], f(nt), f(np), is_inexact=True)


@case
def normalised(draw: Draw) -> Call:
    x = draw.array(dtypes=["float32", "float64"], smallest=1, least=1)
    axes = draw.axes(x) or (-1,)

    def f(lib: Any) -> Callable[..., Any]:
        def of(x: Any) -> Any:
            middle = x - lib.mean(x, axis=axes, keepdims=True)
            return middle / lib.sqrt(lib.mean(middle * middle, axis=axes, keepdims=True) + 0.1)

        return of

    return Call([x], f(nt), f(np), is_inexact=True)


@case
def place_of_extreme(draw: Draw) -> Call:
    x = draw.numbers(least=1, smallest=1)
    name, axis = draw.one_of(["argmax", "argmin"]), draw.axis(x)
    return Call([x], *both(name, axis=axis, keepdims=draw.chance(0.5)))


@case
def softmax(draw: Draw) -> Call:
    x = draw.array(dtypes=["float32", "float64"], least=1, smallest=1)
    axis = draw.axis(x)

    def theirs(x: Array) -> Array:
        powers = np.exp(x - x.max(axis, keepdims=True))
        return np.asarray(powers / powers.sum(axis, keepdims=True))

    return Call([x], lambda x: nt.softmax(x, axis=axis), theirs, is_inexact=True)


@case
def count_nonzero(draw: Draw) -> Call:
    x = draw.array()
    axis = draw.one_of([None, draw.axes(x)])
    return Call([x], *both("count_nonzero", axis=axis, keepdims=draw.chance(0.5)))


@case
def running(draw: Draw) -> Call:
    x = draw.array(dtypes=["float32", "float64", "int32", "int64"], least=1)
    name, axis = draw.one_of(["cumulative_sum", "cumulative_prod"]), draw.axis(x)
    if name == "cumulative_prod":
        x = np.sign(x)
    return Call([x], *both(name, axis=axis), is_inexact=True)


# ---- element by element


@case
def of_one(draw: Draw) -> Call:
    name = draw.one_of(
        ["abs", "negative", "square", "sign", "floor", "ceil", "trunc", "round", "exp", "log1p"]
        + ["sqrt", "sin", "cos", "tanh", "atan", "asinh", "expm1", "logical_not", "reciprocal"]
    )
    x = draw.floats()
    if name in ("log1p", "sqrt", "reciprocal"):
        x = np.abs(x) + np.asarray(0.5, x.dtype)
    return Call([x], *both(name), is_inexact=name in ("exp", "expm1"))


@case
def of_two(draw: Draw) -> Call:
    name = draw.one_of(
        ["add", "subtract", "multiply", "divide", "maximum", "minimum", "hypot", "atan2", "less"]
        + ["equal", "greater_equal", "not_equal", "logaddexp", "copysign", "fmax", "fmin"]
    )
    x = draw.floats()
    sizes = tuple(1 if draw.chance(0.3) else size for size in x.shape)
    y = draw.array(shape=sizes[draw.number(0, len(sizes)) :], dtypes=[x.dtype.name])
    y = np.where(y == 0, np.ones((), y.dtype), y)
    return Call([x, y] if draw.chance(0.5) else [y, x], *both(name), is_inexact=True)


@case
def of_integers(draw: Draw) -> Call:
    name = draw.one_of(
        ["bitwise_and", "bitwise_or", "bitwise_xor", "add", "multiply", "maximum"]
        + ["floor_divide", "remainder", "left_shift", "right_shift"]
    )
    ours = {"left_shift": "bitwise_left_shift", "right_shift": "bitwise_right_shift"}
    x = draw.array(dtypes=["int32", "int64", "uint8", "int8"])
    y = draw.array(shape=x.shape, dtypes=[x.dtype.name])
    y = np.where(y <= 0, np.asarray(3, y.dtype), y)
    return Call([x, y], getattr(nt, ours.get(name, name)), getattr(np, name))


@case
def where(draw: Draw) -> Call:
    x = draw.array()
    return Call([draw.array(shape=x.shape, dtypes=["bool"]), x, np.flip(x)], *both("where"))


@case
def clip(draw: Draw) -> Call:
    return Call([draw.floats()], *both("clip", -1.5, 2.5))


# ---- movement


@case
def moved(draw: Draw) -> Call:
    x = draw.array(least=1)
    axis, other = draw.axis(x), draw.axis(x)
    choices: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("roll", (draw.number(-9, 9),), {"axis": draw.one_of([None, axis])}),
        ("flip", (), {"axis": draw.one_of([None, axis])}),
        ("moveaxis", (axis, other), {}),
        ("expand_dims", (), {"axis": draw.number(-x.ndim - 1, x.ndim)}),
        ("repeat", (draw.number(0, 3),), {"axis": axis}),
        ("tile", (tuple(draw.number(0, 2) for _ in range(draw.number(0, 3))),), {}),
    ]
    name, args, options = draw.one_of(choices)
    return Call([x], *both(name, *args, **options))


@case
def reshaped(draw: Draw) -> Call:
    x = draw.array(least=1)
    sizes = [int(size) for size in draw.rng.permutation(x.shape)]
    if draw.chance(0.5) and x.size > 0:
        sizes[draw.number(0, len(sizes) - 1)] = -1
    return Call([x], *both("reshape", tuple(sizes)))


@case
def padded(draw: Draw) -> Call:
    x = draw.array(least=1, most=3, smallest=4)
    widths = [(draw.number(0, 3), draw.number(0, 3)) for _ in range(x.ndim)]
    theirs = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}
    mode = draw.one_of(list(theirs))
    return Call(
        [x],
        lambda x: nt.pad(x, widths, mode=mode),
        lambda x: np.pad(x, widths, mode=theirs[mode]),  # type: ignore[call-overload]
    )


@case
def triangle(draw: Draw) -> Call:
    return Call([draw.array(least=2)], *both(draw.one_of(["tril", "triu"]), k=draw.number(-4, 4)))


@case
def joined(draw: Draw) -> Call:
    x = draw.array(least=1)
    axis = draw.axis(x)
    inputs = [x, draw.array(shape=x.shape, dtypes=[x.dtype.name]), x[::-1]]
    name = draw.one_of(["concat", "stack"])
    return Call(
        inputs,
        lambda *parts: getattr(nt, name)(list(parts), axis=axis),
        lambda *parts: getattr(np, name)(parts, axis=axis),
    )


@case
def sliced(draw: Draw) -> Call:
    x = draw.array(least=1)
    key = tuple(
        slice(draw.number(-3, 3), draw.one_of([None, draw.number(-2, 5)]), draw.one_of([1, 2, -1]))
        for _ in x.shape
    )
    return Call([x], lambda x: x[key], lambda x: x[key])


# ---- order and choice


@case
def ordered(draw: Draw) -> Call:
    x = draw.numbers(least=1)
    name, axis = draw.one_of(["sort", "argsort"]), draw.axis(x)
    return Call(
        [x],
        lambda x: getattr(nt, name)(x, axis=axis),
        lambda x: getattr(np, name)(x, axis=axis, kind="stable"),
    )


@case
def searched(draw: Draw) -> Call:
    among = np.sort(draw.array(dtypes=["float64"], least=1, most=1))
    wanted = draw.array(dtypes=["float64"])
    return Call([among, wanted], *both("searchsorted", side=draw.one_of(["left", "right"])))


@case
def middle(draw: Draw) -> Call:
    x = draw.array(dtypes=["float32", "float64"], least=1, most=3, smallest=1)
    axis = draw.axis(x)
    if draw.chance(0.5):
        return Call([x], *both("median", axis=axis), is_inexact=True)
    share = draw.one_of([0.0, 0.25, 0.5, 0.9, 1.0])
    return Call([x], *both("quantile", share, axis=axis), is_inexact=True)


@case
def taken(draw: Draw) -> Call:
    x = draw.array(least=1, smallest=1)
    axis = draw.axis(x)
    if draw.chance(0.5):
        indices = draw.rng.integers(0, x.shape[axis], (draw.number(0, 6),))
        return Call([x, indices], *both("take", axis=axis))
    indices = draw.rng.integers(0, x.shape[axis], x.shape)
    return Call([x, indices], *both("take_along_axis", axis=axis))


@case
def chosen(draw: Draw) -> Call:
    x = draw.array()
    mask = draw.array(shape=x.shape[: draw.number(0, x.ndim)], dtypes=["bool"])
    return Call([x, mask], lambda x, m: x[m], lambda x, m: x[m], is_compiled=False)


@case
def unlike(draw: Draw) -> Call:
    """Every value once."""
    return Call([draw.numbers()], nt.unique_values, np.unique, is_compiled=False)


# ---- products


@case
def product(draw: Draw) -> Call:
    m, k, n = (draw.one_of([1, 2, 3, 5, 16, 33]) for _ in range(3))
    dtype = draw.one_of(["float32", "float64", "int32"])
    batch = draw.one_of([(), (2,), (3, 2)])
    x = draw.array(shape=(*batch, m, k), dtypes=[dtype])
    y = draw.array(shape=(*draw.one_of([(), batch]), k, n), dtypes=[dtype])
    return Call([x, y], *both("matmul"), is_inexact=True)


@case
def contracted(draw: Draw) -> Call:
    text = draw.one_of(
        ["ij,jk->ik", "bij,bkj->bik", "ij,ij->", "ii->i", "bhqd,bhkd->bhqk", "ij->ji"]
    )
    sizes = {letter: draw.number(1, 6) for letter in "bhijkqd"}
    parts = text.split("->")[0].split(",")
    dtype = draw.one_of(["float32", "float64"])
    shapes = [tuple(sizes[letter] for letter in part) for part in parts]
    inputs = [draw.array(shape=shape, dtypes=[dtype]) for shape in shapes]
    return Call(
        inputs,
        lambda *inputs: nt.einsum(text, *inputs),
        lambda *inputs: np.einsum(text, *inputs),
        is_inexact=True,
    )


# ---- comparing


def wide(x: Array) -> Array:
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def difference(got: Array, want: Array, call: Call) -> str | None:
    """What is wrong with `got`, if anything is."""
    if got.shape != want.shape:
        return f"has shape {got.shape}, not {want.shape}"
    if got.dtype.kind != want.dtype.kind and {got.dtype.kind, want.dtype.kind} != {"i", "u"}:
        return f"is of {got.dtype}, where NumPy's is of {want.dtype}"
    if got.dtype.kind != "f":
        return None if np.array_equal(got, want) else f"is {got}, not {want}"
    epsilon = float(np.finfo(got.dtype).eps)
    longest = max((x.size for x in call.inputs), default=1)
    digits = (40 if call.is_inexact else 8) * epsilon * max(1.0, np.log2(max(longest, 1)))
    largest = float(np.max(np.abs(want), initial=1.0))
    with np.errstate(invalid="ignore"):
        far = ~np.isclose(wide(got), want, rtol=digits, atol=digits * largest, equal_nan=True)
    if not far.any():
        return None
    place = tuple(int(index) for index in np.unravel_index(int(np.argmax(far)), far.shape))
    return f"is {got[place]!r} at {place}, not {want[place]!r}"


class Report(NamedTuple):
    """What is wrong with a call; nothing if `what` is empty."""

    what: str
    plan_calls: int


def check(name: str, seed: int, number: int) -> Report:
    draw = Draw(seed, number)
    call = CASES[name](draw)
    tensors = [draw.tensor(x) for x in call.inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        want = np.asarray(call.theirs(*(wide(x) for x in call.inputs)))
    eager = call.ours(*tensors)
    wrong = difference(np.asarray(eager), want, call)
    plan_calls = 0
    if wrong is None and call.is_compiled:
        compiled = nt.compile(call.ours, check="never")
        for _ in range(3):
            again = np.asarray(compiled(*tensors))
        if again.tobytes() != np.asarray(eager).tobytes():
            wrong = f"is {again} compiled, and {np.asarray(eager)} eagerly"
        plan_calls = compiled.explain()["plan_calls"]
        if wrong is None and plan_calls == 0:
            wrong = f"was not compiled: {compiled.explain()}"
    if wrong is None:
        return Report("", plan_calls)
    lie = ", ".join(f"{t.dtype}{list(t.shape)} strides {list(t.strides)}" for t in tensors)
    return Report(f"{name} of {lie} {wrong}", plan_calls)


def run(seed: int, numbers: Iterable[int], wanted: Sequence[str], seconds: float = 0) -> list[str]:
    """What was wrong with these calls, or as many as take so long. Kinds follow each other in turn."""
    failures: list[str] = []
    begun = shown = time.monotonic()
    calls = 0
    for number in numbers:
        if seconds and time.monotonic() > begun + seconds:
            break
        name = list(CASES)[number % len(CASES)]
        if name not in wanted:
            continue
        try:
            wrong = check(name, seed, number).what
        except Exception as error:
            wrong = f"{name}: {type(error).__name__}: {error}"
        calls += 1
        if wrong:
            failures.append(f"{wrong}\n  again: --seed {seed} --first {number} --count 1")
            print(failures[-1], flush=True)
        if time.monotonic() > shown + 10:
            shown = time.monotonic()
            print(f"{calls} calls, {len(failures)} wrong", file=sys.stderr, flush=True)
    print(f"{calls} calls, {len(failures)} wrong")
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=int(time.time()), help="of all numbers")
    parser.add_argument("--first", type=int, default=0, help="number of the first call")
    parser.add_argument("--count", type=int, default=2000, help="how many, if not --seconds")
    parser.add_argument("--seconds", type=float, default=0, help="how long")
    parser.add_argument(
        "--only", default=",".join(CASES), help="kinds of calls, such as %(default)s"
    )
    args = parser.parse_args()
    wanted = args.only.split(",")
    if unknown := set(wanted) - set(CASES):
        parser.error(f"--only: there is no {', '.join(sorted(unknown))}")
    print(f"seed {args.seed}")
    numbers: Iterable[int] = itertools.count(args.first)
    if not args.seconds:
        numbers = itertools.islice(numbers, args.count)
    return 1 if run(args.seed, numbers, wanted, args.seconds) else 0


if __name__ == "__main__":
    nt.set_log_level("off")
    sys.exit(main())
