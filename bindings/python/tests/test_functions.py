"""Every function of the vocabulary beside NumPy and PyTorch, compiled beside eager.

function_cases.py has the table. A function that is new in the headers has no case there and fails
test_every_function_has_a_case.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import nitinol
import numpy as np
import pytest
from conftest import check_compiled
from function_cases import CASES, Case, Sample, random, torch
from nitinol import _ext

# Nothing is checked of what is wrong on purpose.
untyped: Any = nitinol
EPSILON = {name: float(np.finfo(name).eps) for name in ("float64", "float32", "float16")}
# Whose results are other numbers each time; tested below.
RANDOM = {
    "random.rand": lambda: nitinol.random.rand((70, 130)),
    "random.randn": lambda: nitinol.random.randn((3, 5), "float64"),
    "random.randint": lambda: nitinol.random.randint(-3, 9, (40,)),
    "random.rand_like": lambda: nitinol.random.rand_like(nitinol.ones((3, 4))),
    "random.randn_like": lambda: nitinol.random.randn_like(nitinol.ones((3, 4))),
    "random.uniform": lambda: nitinol.random.uniform((70, 130), -2, 3),
    "random.normal": lambda: nitinol.random.normal((3, 5), 1.0, 2.0, "float16"),
    "random.truncated_normal": lambda: nitinol.random.truncated_normal((70, 130), -1, 2),
    "random.gamma": lambda: nitinol.random.gamma((50,), 0.7, dtype="float64"),
    "random.beta": lambda: nitinol.random.beta((50,), 2.0, 3.0),
    "random.poisson": lambda: nitinol.random.poisson(nitinol.full((40, 30), 8.5)),
    "random.choice": lambda: nitinol.random.choice(9, (20,)),
    "random.exponential": lambda: nitinol.random.exponential((50,), 2.0),
    "random.bernoulli": lambda: nitinol.random.bernoulli(nitinol.full((40, 30), 0.3)),
    "random.permutation": lambda: nitinol.random.permutation(100),
    "random.shuffle": lambda: nitinol.random.shuffle(nitinol.arange(60)),
    "random.categorical": lambda: nitinol.random.categorical(nitinol.ones((4, 9)), 30),
    "random.manual_seed": lambda: nitinol.random.rand(3),
    "manual_seed": lambda: nitinol.random.rand(3),
    "nn.uniform": lambda: nitinol.nn.uniform((50, 40), 0.5),
    "nn.normal": lambda: nitinol.nn.normal((50, 40), 0.5),
    "nn.xavier_uniform": lambda: nitinol.nn.xavier_uniform((50, 40)),
    "nn.xavier_normal": lambda: nitinol.nn.xavier_normal((50, 40), "float64"),
    "nn.kaiming_uniform": lambda: nitinol.nn.kaiming_uniform((50, 40)),
    "nn.kaiming_normal": lambda: nitinol.nn.kaiming_normal((50, 40), slope=0.3),
    "nn.truncated_normal": lambda: nitinol.nn.truncated_normal((50, 40), 0.5),
    "nn.orthogonal": lambda: nitinol.nn.orthogonal((50, 40)),
}
# From random numbers that they read, so that compiled functions run in pieces.
COMPUTED_ON_THE_HOST = {"nn.orthogonal"}


def function_of(name: str) -> Any:
    value: Any = nitinol
    for part in name.split("."):
        value = getattr(value, part)
    return value


def test_every_function_has_a_case() -> None:
    names = {f"{module}.{name}".removeprefix("nitinol.") for module, name, *_ in _ext._functions}
    names -= {"nn.clip_gradient_norm", "nn.clip_gradient_value"}  # of Variables: test_nn.py
    names -= {"nn.average_gradients", "nn.seed_ranks"}  # of several processes: test_dist.py
    names = {name for name in names if not name.startswith("dist.")}
    cases = [case.name for case in CASES] + list(RANDOM)
    assert sorted(cases) == sorted(names)


# ---- arguments: their arrays, and the call with others in their place


def arrays_of(sample: Sample) -> list[np.ndarray]:
    found = []
    for value in (*sample.args, *sample.keywords.values()):
        for one in value if isinstance(value, list) else (value,):
            if isinstance(one, np.ndarray):
                found.append(one)
    return found


def called(function: Callable[..., Any], sample: Sample, arrays: Any) -> list[Any]:
    """function(...) with these in the places of the sample's arrays; its results."""
    given = iter(arrays)

    def replaced(value: Any) -> Any:
        if isinstance(value, list):
            return [replaced(one) for one in value]
        return next(given) if isinstance(value, np.ndarray) else value

    args = [replaced(value) for value in sample.args]
    result = function(*args, **{name: replaced(v) for name, v in sample.keywords.items()})
    return list(result) if isinstance(result, (list, tuple)) else [result]


def is_floating(array: np.ndarray) -> bool:
    return array.dtype.kind == "f"


def as_dtype(arrays: list[np.ndarray], dtype: str) -> list[np.ndarray]:
    return [a.astype(dtype) if is_floating(a) else a for a in arrays]


def tensors_of(arrays: list[np.ndarray]) -> list[Any]:
    return [nitinol.asarray(array) for array in arrays]


def each_sample(cases: Sequence[Case]) -> list[Any]:
    return [
        pytest.param(case, sample, id=f"{case.name}-{i}")
        for case in cases
        for i, sample in enumerate(case.samples)
    ]


def bits_of(tensors: list[Any]) -> list[tuple[Any, Any, bytes]]:
    return [(t.shape, t.dtype, np.asarray(t).tobytes()) for t in tensors]


# ---- beside NumPy


def compare(case: Case, ours: Any, reference: Any, dtype: str) -> None:
    reference = np.asarray(reference)
    assert ours.shape == reference.shape
    found = np.asarray(ours)
    if found.dtype.kind != "f":
        np.testing.assert_array_equal(found, reference)
        return
    # 16-bit floats are rounded once: no sum of theirs is worse than that.
    scale = min(case.scale, 4) if dtype == "float16" else case.scale
    tolerance = 8 * scale * max(EPSILON[dtype], EPSILON[found.dtype.name])
    np.testing.assert_allclose(found.astype(np.float64), reference, tolerance, tolerance)


@pytest.mark.parametrize("case, sample", each_sample(CASES))
def test_eager_gives_what_numpy_gives(case: Case, sample: Sample) -> None:
    arrays = arrays_of(sample)
    for dtype in case.dtypes if any(map(is_floating, arrays)) else ("float64",):
        given = as_dtype(arrays, dtype)
        exact = [a.astype(np.float64) if is_floating(a) else a for a in given]
        with np.errstate(all="ignore"):
            references = called(case.numpy, sample, exact)
        results = called(function_of(case.name), sample, tensors_of(given))
        assert len(results) == len(references)
        for ours, reference in zip(results, references):
            compare(case, ours, reference, dtype if dtype in EPSILON else "float64")
            if not arrays:
                assert str(ours.dtype) == reference.dtype.name
            elif np.asarray(reference).dtype.kind == "f" and dtype in EPSILON:
                if "dtype" not in sample.keywords and case.name not in (
                    "astype",
                    "cast",
                    "one_hot",
                ):
                    assert str(ours.dtype) == dtype


@pytest.mark.parametrize(
    "case",
    [case for case in CASES if callable(getattr(nitinol.Tensor, case.name, None))],
    ids=lambda case: case.name,
)
def test_methods_are_the_functions(case: Case) -> None:
    def method(x: Any, *args: Any, **keywords: Any) -> Any:
        return getattr(x, case.name)(*args, **keywords)

    for sample in case.samples:
        if not isinstance(sample.args[0], np.ndarray):
            continue
        if case.name == "transpose" or (case.name == "reshape" and sample.keywords):
            continue  # test_numpy.py; Tensor's takes the shape alone, also as reshape(2, 3)
        tensors = tensors_of(arrays_of(sample))
        expected = bits_of(called(function_of(case.name), sample, tensors))
        assert bits_of(called(method, sample, tensors)) == expected


# ---- wherever the operands lie


@pytest.mark.parametrize("case, sample", each_sample([c for c in CASES if c.dtypes]))
def test_results_lie_where_the_operands_do(case: Case, sample: Sample) -> None:
    tensors = tensors_of(as_dtype(arrays_of(sample), case.dtypes[0]))
    if not tensors:
        return
    expected = called(function_of(case.name), sample, tensors)
    before = nitinol.default_device()
    nitinol.set_default_device("reference:0")
    try:
        results = called(function_of(case.name), sample, tensors)
    finally:
        nitinol.set_default_device(before)
    assert [r.device for r in results] == [e.device for e in expected]
    assert bits_of(results) == bits_of(expected)


def test_numbers_are_assigned_where_the_tensor_lies() -> None:
    x = nitinol.ones((3, 4))
    before = nitinol.default_device()
    nitinol.set_default_device("reference:0")
    try:
        x[0] = 5
        x[1, ::2] = 2.5
        x[x > 4] = 6
    finally:
        nitinol.set_default_device(before)
    assert x.device == before
    assert x.tolist() == [[6.0] * 4, [2.5, 1.0, 2.5, 1.0], [1.0] * 4]


# ---- whatever the operands' strides are


def backwards(array: np.ndarray) -> Any:
    return nitinol.flip(nitinol.asarray(np.flip(array))) if array.ndim else nitinol.asarray(array)


def transposed(array: np.ndarray) -> Any:
    axes = tuple(reversed(range(array.ndim)))
    return nitinol.permute_dims(nitinol.asarray(array.T.copy()), axes)


def every_second(array: np.ndarray) -> Any:
    if not array.ndim:
        return nitinol.asarray(np.stack([array, array]))[1]
    return nitinol.asarray(np.repeat(array, 2, axis=-1))[..., ::2]


@pytest.mark.parametrize("view", (backwards, transposed, every_second))
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_strides_change_no_bit(case: Case, view: Callable[[np.ndarray], Any]) -> None:
    function = function_of(case.name)
    for sample in case.samples:
        arrays = arrays_of(sample)
        plain = called(function, sample, tensors_of(arrays))
        assert bits_of(called(function, sample, map(view, arrays))) == bits_of(plain)


# ---- compiled


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_compiled_gives_the_bits_of_eager(case: Case) -> None:
    function = function_of(case.name)
    for sample in case.samples:
        arrays = arrays_of(sample)
        dtypes = case.dtypes if any(map(is_floating, arrays)) else case.dtypes[:1]
        for dtype in dtypes:
            compiled = nitinol.compile(lambda tensors, s=sample: called(function, s, tensors))
            tensors = tensors_of(as_dtype(arrays, dtype))
            eager = bits_of(called(function, sample, tensors))
            for _ in range(3):
                assert bits_of(compiled(tensors)) == eager
            explained = compiled.explain()
            if sample.is_looked_at:
                assert {s["tier"] for s in explained["signatures"]} == {"compiled in segments"}
                continue
            # Two calls are recorded and compared, the third runs the Plan.
            assert (explained["plan_calls"], explained["eager_calls"]) == (1, 0)


# ---- gradients


def weighted(results: list[Any], weights: list[np.ndarray], sum_of: Any, tensor_of: Any) -> Any:
    terms = [sum_of(result * tensor_of(weight)) for result, weight in zip(results, weights)]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


@pytest.mark.skipif(torch is None, reason="PyTorch, whose gradients are compared with, is missing")
@pytest.mark.parametrize("case, sample", each_sample([case for case in CASES if case.has_gradient]))
def test_values_and_gradients_are_pytorchs(case: Case, sample: Sample) -> None:
    arrays = arrays_of(sample)
    by = [i for i, array in enumerate(arrays) if is_floating(array)]
    theirs = [torch.tensor(array, requires_grad=is_floating(array)) for array in arrays]
    assert case.torch
    references = called(case.torch, sample, theirs)
    weights = [random.standard_normal(tuple(r.shape)) for r in references]
    function = function_of(case.name)
    for ours, reference in zip(called(function, sample, tensors_of(arrays)), references):
        compare(case, ours, reference.detach().numpy(), "float64")
    if not by or not any(reference.requires_grad for reference in references):
        return
    weighted(references, weights, torch.sum, torch.tensor).backward()

    def loss(*tensors: Any) -> Any:
        results = called(function, sample, tensors)
        return weighted(results, weights, nitinol.sum, nitinol.asarray)

    gradients = nitinol.grad(loss, argnums=by)(*tensors_of(arrays))
    for i, gradient in zip(by, gradients):
        expected = theirs[i].grad
        expected = np.zeros(arrays[i].shape) if expected is None else expected.numpy()
        assert gradient.shape == arrays[i].shape
        assert str(gradient.dtype) == "float64"
        tolerance = 1e-12 * max(case.scale, 10)
        np.testing.assert_allclose(np.asarray(gradient), expected, tolerance, tolerance)


# ---- random numbers


@pytest.mark.parametrize("name", sorted(RANDOM))
def test_a_seed_says_what_is_drawn_eager_or_compiled(name: str) -> None:
    draw = RANDOM[name]
    nitinol.random.manual_seed(5)
    eager = [bits_of([draw()]) for _ in range(4)]
    assert len({drawn[0][2] for drawn in eager}) == 4
    nitinol.manual_seed(5)
    compiled = nitinol.compile(draw, check="never")
    assert [bits_of([compiled()]) for _ in range(4)] == eager
    if name not in COMPUTED_ON_THE_HOST:
        check_compiled(compiled, 2)


def test_generators_are_streams_of_their_own() -> None:
    like = nitinol.ones((2, 3), dtype="float64")
    a, b = nitinol.random.Generator(3), nitinol.random.Generator(3)
    for draw in (nitinol.random.rand_like, nitinol.random.randn_like):
        assert bits_of([draw(like, generator=a)]) == bits_of([draw(like, generator=b)])
    for made in (nitinol.random.rand, nitinol.random.randn):
        assert bits_of([made((4,), generator=a)]) == bits_of([made((4,), generator=b)])


def test_random_numbers_lie_where_they_should() -> None:
    nitinol.random.manual_seed(1)
    uniform = np.asarray(nitinol.random.rand((10_000,), "float64"))
    assert uniform.min() >= 0 and uniform.max() < 1 and abs(uniform.mean() - 0.5) < 0.02
    gaussian = np.asarray(nitinol.random.randn((10_000,)))
    assert gaussian.dtype == np.float32
    assert abs(gaussian.mean()) < 0.05 and abs(gaussian.std() - 1) < 0.05
    whole = np.asarray(nitinol.random.randint(-3, 9, (10_000,), dtype="int16"))
    assert whole.dtype == np.int16 and set(whole.tolist()) == set(range(-3, 9))
    bounded = np.asarray(nitinol.nn.uniform((100, 100), 0.25))
    assert abs(bounded).max() <= 0.25 and abs(bounded.mean()) < 0.01
    assert abs(np.asarray(nitinol.nn.normal((100, 100), 0.25)).std() - 0.25) < 0.02
    for make, variance in (
        (nitinol.nn.xavier_uniform, 2 / 150),
        (nitinol.nn.xavier_normal, 2 / 150),
        (nitinol.nn.kaiming_uniform, 2 / 100),
        (nitinol.nn.kaiming_normal, 2 / 100),
    ):
        deviation = np.asarray(make((100, 50))).std()
        assert abs(deviation - math.sqrt(variance)) < 0.1 * math.sqrt(variance)


def test_choices_are_numpys() -> None:
    x = nitinol.reshape(nitinol.arange(12), (3, 4))
    choice = nitinol.random.choice
    assert choice(x, 5).shape == (5, 4) and choice(x, (2, 3), axis=1).shape == (3, 2, 3)
    assert sorted(choice(6, 6, replaces=False).tolist()) == list(range(6))
    weights = nitinol.asarray(np.array([0.0, 1.0, 0.0]))
    assert choice(3, (4,), weights=weights).tolist() == [1] * 4
    a, b = nitinol.random.Generator(3), nitinol.random.Generator(3)
    assert bits_of([choice(9, 7, replaces=True, weights=None, axis=0, generator=a)]) == bits_of(
        [choice(9, 7, generator=b)]
    )
    with pytest.raises(nitinol.ArgumentError, match="at least 4, got 3"):
        choice(3, 4, replaces=False)


def test_shapes_broadcast_as_numpys() -> None:
    for shapes in ((), ((3, 1), (4,), ()), ((0,), 1), ((2, 1, 5), (7, 1))):
        assert nitinol.broadcast_shapes(*shapes) == np.broadcast_shapes(*shapes)
    with pytest.raises(nitinol.ShapeError):
        nitinol.broadcast_shapes((2,), (3,))


def test_refusals_name_what_was_called() -> None:
    x, u = nitinol.ones((2, 3)), nitinol.ones(2, dtype="uint64")
    vector = nitinol.ones(2, dtype="int64")
    for name, refused in {
        "cumsum: axis is a Tensor, float32[2, 3]; ": lambda: untyped.cumsum(x, x),
        "sum: axis is a Tensor, float32[2, 3]; ": lambda: untyped.sum(x, (x,)),
        "arange: start is a Tensor, ": lambda: untyped.arange(vector),
        "broadcast_shapes: shapes [2] and [3] ": lambda: nitinol.broadcast_shapes(2, 3),
        "broadcast_shapes: a shape is a str": lambda: untyped.broadcast_shapes("ab"),
        "asarray: no integer dtype ": lambda: nitinol.asarray([u, vector]),
        "load_npy: path is a Tensor": lambda: untyped.load_npy(x),
        "save: a Tensor; ": lambda: nitinol.nn.save("no", x),
        "load: a Tensor; ": lambda: nitinol.nn.load("no", x),
    }.items():
        with pytest.raises((nitinol.Error, TypeError), match="^" + re.escape(name)):
            refused()
    with pytest.raises(ValueError):
        nitinol.broadcast_shapes(-1)
    assert nitinol.result_type(u, -1) == nitinol.uint64
    assert nitinol.result_type(nitinol.int8, 300) == nitinol.int8


def test_parts_and_paddings_are_refused_in_words() -> None:
    x = nitinol.ones((2, 5))
    with pytest.raises(nitinol.ArgumentError, match="lengths whose sum is 5"):
        nitinol.split(x, [2, 2], axis=1)
    with pytest.raises(nitinol.ArgumentError, match='"reflect"'):
        nitinol.pad(x, [(1, 1), (0, 0)], mode="mirror")


# ---- promotion


def test_functions_of_floats_take_integers_booleans_and_numbers() -> None:
    whole = nitinol.asarray(np.array([1, 2, 3]))
    for name in ("sqrt", "exp", "sin", "sigmoid", "gelu", "log", "tanh", "reciprocal", "softplus"):
        f = getattr(nitinol, name)
        assert bits_of([f(whole)]) == bits_of([f(whole.to("float32"))])
        assert f(whole > 1).dtype == nitinol.float32
        assert (f(4).dtype, f(4).item()) == (nitinol.float64, f(4.0).item())
        assert (nitinol.ones(2) * f(4)).dtype == nitinol.float32
        compiled = nitinol.compile(lambda x, f=f: f(x) * 1)
        for _ in range(3):
            assert bits_of([compiled(whole)]) == bits_of([f(whole)])
    assert nitinol.sqrt(4).item() == 2
    assert nitinol.copysign(whole, -1).dtype == nitinol.float32
    assert not nitinol.isnan(4).item() and nitinol.isfinite(True).item()


def test_booleans_are_added_and_multiplied_as_numpys() -> None:
    a, b = np.array([False, False, True, True]), np.array([False, True, False, True])
    x, y = nitinol.asarray(a), nitinol.asarray(b)
    for name in ("add", "multiply", "maximum", "minimum"):
        got = getattr(nitinol, name)(x, y)
        assert got.dtype == nitinol.bool
        np.testing.assert_array_equal(got, getattr(np, name)(a, b))
    np.testing.assert_array_equal(x + True, a + True)
    np.testing.assert_array_equal(nitinol.abs(y), np.abs(b))
    for refused in (lambda: x - y, lambda: -x, lambda: x**y, lambda: nitinol.square(x)):
        with pytest.raises(nitinol.DTypeError, match="not defined for bool"):
            refused()


@pytest.mark.parametrize("dtype", ("int8", "uint8", "int32", "int64"))
def test_shifts_by_any_count_are_numpys(dtype: str) -> None:
    a = np.array([1, 5, 127, 0] + ([-1, -128] if dtype != "uint8" else [255]), dtype)
    counts = np.array([0, 1, 7, 8, 31, 63, 64, 100] + ([-1, -8] if dtype != "uint8" else []), dtype)
    x, by = nitinol.asarray(a), nitinol.asarray(counts[:, None])
    np.testing.assert_array_equal(x << by, np.left_shift(a, counts[:, None]))
    np.testing.assert_array_equal(x >> by, np.right_shift(a, counts[:, None]))


# ---- what the standard asks for beyond C++'s functions


def test_dtype_says_in_what_sums_are() -> None:
    x = nitinol.asarray(np.full(300, 100, np.uint8))
    assert nitinol.sum(x).item() == 30_000
    total = nitinol.sum(x, dtype="float64")
    assert (total.dtype, total.item()) == (nitinol.float64, 30_000.0)
    assert nitinol.prod(nitinol.full((3,), 2, dtype="int32"), dtype="int32").dtype == nitinol.int32
    assert nitinol.cumulative_sum(x, dtype="float32").dtype == nitinol.float32


def test_what_cannot_be_done_is_refused() -> None:
    x = nitinol.ones((2, 3))
    with pytest.raises(nitinol.ShapeError, match="axis=0"):
        nitinol.cumulative_sum(x)
    with pytest.raises(nitinol.ArgumentError, match="copy=False"):
        nitinol.reshape(nitinol.transpose(x), (6,), copy=False)
    assert nitinol.reshape(x, (6,), copy=False).shape == (6,)
    for correction in (-1, -0.5, math.nan):
        with pytest.raises(nitinol.ArgumentError):
            nitinol.var(x, correction=correction)
    with pytest.raises(nitinol.ShapeError):
        nitinol.matrix_transpose(nitinol.ones(3))
    with pytest.raises(nitinol.DTypeError):
        nitinol.linspace(0, 1, 3, dtype="int64")


def test_a_bound_that_is_left_out_does_not_limit() -> None:
    x = nitinol.asarray(np.array([-math.inf, -1, math.nan, 1, math.inf]))
    assert bits_of([nitinol.clip(x)]) == bits_of([x])
    np.testing.assert_array_equal(nitinol.clip(x, min=0), [0, 0, math.nan, 1, math.inf])
    np.testing.assert_array_equal(nitinol.clip(x, max=0), [-math.inf, -1, math.nan, 0, 0])
    for bounds in ({"min": 0.0}, {"min": 0.0, "max": 9.0}):
        at = nitinol.asarray(np.array([-1.0, 0.0, 1.0]))
        gradient = nitinol.grad(lambda x, b=bounds: nitinol.sum(nitinol.clip(x, **b)))(at)
        np.testing.assert_array_equal(gradient, [0, 1, 1])
    above = nitinol.grad(lambda x: nitinol.sum(nitinol.clip(x, max=1.0)))(at + 1)
    np.testing.assert_array_equal(above, [1, 1, 0])
    whole = nitinol.asarray(np.array([-(2**63), 0, 2**63 - 1]))
    np.testing.assert_array_equal(nitinol.clip(whole, min=1), [1, 1, 2**63 - 1])
