"""NumPy's functions and operators of Tensors, NumPy's and PyTorch's habits of methods."""

from __future__ import annotations

from typing import Any

import nitinol as nt
import numpy as np
import pytest

# Nothing is checked of what is wrong on purpose.
untyped: Any = np
A = np.array([[1.5, -2.0, 0.25], [4.0, 0.5, -1.0]], np.float32)


def same(ours: object, reference: Any) -> None:
    assert isinstance(ours, nt.Tensor)
    np.testing.assert_allclose(np.asarray(ours), reference, 1e-6)


@pytest.mark.parametrize(
    "name", "sin exp abs absolute negative arctan sign floor rint isnan square deg2rad cbrt".split()
)
def test_universal_functions_of_one_tensor(name: str) -> None:
    function = getattr(np, name)
    same(function(nt.asarray(A)), function(A))


@pytest.mark.parametrize(
    "name", "add subtract multiply divide maximum hypot arctan2 fmod less power logaddexp".split()
)
def test_universal_functions_of_two(name: str) -> None:
    function, b = getattr(np, name), np.abs(A) + 1
    same(function(nt.asarray(A), nt.asarray(b)), function(A, b))
    same(function(A, nt.asarray(b)), function(A, b))
    same(function(nt.asarray(A), b), function(A, b))
    same(function(nt.asarray(A), 2.0), function(A, np.float32(2)))


def test_operators_with_an_array_on_the_left() -> None:
    x = nt.asarray(A)
    for made, want in (
        (A + x, A + A),
        (A * x, A * A),
        (A - x, A - A),
        (A > x, A > A),
        (A == x, A == A),
    ):
        same(made, want)
    array = A.copy()
    array += x
    assert isinstance(array, np.ndarray)
    np.testing.assert_array_equal(array, A + A)
    same(np.float32(2) * x, 2 * A)
    with pytest.raises(TypeError):
        untyped.add(A, x, out=nt.zeros((2, 3)))
    with pytest.raises(TypeError):
        np.add(x, x, where=A > 0)
    with pytest.raises(TypeError):
        np.frexp(x)


def test_reductions_of_numpy() -> None:
    x = nt.asarray(A)
    for function in (np.sum, np.prod, np.max, np.min, np.mean, np.var, np.std):
        same(function(x), function(A))
        same(function(x, axis=1), function(A, axis=1))
    same(np.add.reduce(x), np.add.reduce(A))
    same(np.any(x > 3), True)
    same(x.sum(0, dtype="float64"), A.sum(0))
    method: Any = x.sum  # as NumPy calls it: its `out` is none of our parameters
    same(method(axis=0, dtype=None, out=None), A.sum(0))
    with pytest.raises(TypeError, match="out"):
        method(out=np.zeros(()))


def test_dtypes_are_numpys() -> None:
    assert np.dtype(nt.float32) == np.float32 and np.dtype(nt.bool) == np.bool_
    assert np.zeros(3, nt.asarray(A).dtype).dtype == np.float32


def test_functions_of_numpy_stay_in_the_graph() -> None:
    f = nt.compile(lambda x: np.sin(x) + A * np.maximum(x, 0))
    x = nt.asarray(A)
    for _ in range(3):
        np.testing.assert_allclose(f(x), np.sin(A) + A * np.maximum(A, 0), 1e-6)
    assert f.explain()["plan_calls"] > 0
    same(nt.grad(lambda t: np.sum(np.square(t)))(x), 2 * A)


def test_habits_of_pytorch() -> None:
    x = nt.asarray(A)
    assert x.view(3, 2).shape == x.view((3, -1)).shape == (3, 2)
    assert x.permute(1, 0).shape == x.permute((1, 0)).shape == (3, 2)
    assert x.expand(4, 2, 3).shape == (4, 2, 3)
    assert (x.numel(), x.dim(), x.clone().tolist()) == (6, 2, A.tolist())
    assert [t.dtype for t in (x.float(), x.double(), x.half(), x.int(), x.long(), x.bool())] == [
        nt.float32, nt.float64, nt.float16, nt.int32, nt.int64, nt.bool,
    ]  # fmt: skip
    same(x.contiguous().masked_fill(x > 1, 0), np.where(A > 1, 0, A))
    same(x.topk(2).values, -np.sort(-A)[:, :2])
    same(x.sort(axis=1), np.sort(A))
    same(x.cumsum(1), np.cumsum(A, 1))
    assert [len(part) for part in x.chunk(2)] == [1, 1]


def test_transpose_is_numpys_and_pytorchs() -> None:
    array = np.arange(24).reshape(2, 3, 4)
    x = nt.asarray(array)
    assert x.transpose().tolist() == array.transpose().tolist()
    assert x.transpose(2, 0, 1).tolist() == array.transpose(2, 0, 1).tolist()
    assert x.transpose((2, 0, 1)).tolist() == array.transpose(2, 0, 1).tolist()
    assert x.transpose(0, 2).tolist() == array.swapaxes(0, 2).tolist()
