"""x[...] and x[...] = y beside NumPy: every kind of index, alone and mixed, eager and compiled."""

from __future__ import annotations

from typing import Any

import nitinol as nt
import numpy as np
import pytest

X = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
I, J, K = np.array([1, 0]), np.array([[2], [0], [-1]]), np.array([3, -4])
M3 = np.array([True, False, True])
M23 = X[..., 0, 0] > 20
FULL = X % 3 == 0
KEYS = [
    I, (I, 0), (slice(None), J), (I, I), (I, J), (I, J, K), (slice(None), I, K), (I, slice(None), K),
    (0, slice(None), K), (slice(None), 1, K), (Ellipsis, K), (None, I, slice(1, 3)), (I, None, np.array([2, -3])),
    (I, Ellipsis, J), (slice(None, None, -1), J, slice(1, 4, 2)), (np.array(1), 2), ([0, 1], [2, 0]),
    M23, (slice(None), M3), (M23, 1), (M23, slice(1, 3)), FULL, (1, M3), (1, M3, Ellipsis, -1),
    (0, slice(None), M3[:1].repeat(4)), (I, slice(None), M3[:1].repeat(4).cumsum() < 3),
    (slice(None), slice(None), [True, False, True, True]), np.array([], np.int64), np.zeros(2, bool),
    (slice(0, 0), J), True, False, (0, True), (slice(None), False, 1), (0, slice(None), True), (Ellipsis, True),
    (True, False), (None, True, slice(1, 2)), (True, Ellipsis, 0), (I, True), (True, slice(None), I), (M23, True),
    (0, 0, 0, 0, True), np.array(True), np.array(False), (np.array(True), I), (1, np.array(False)),
]  # fmt: skip


def ours(key: Any) -> Any:
    """The key with our arrays, but for lists."""
    if isinstance(key, tuple):
        return tuple(ours(part) for part in key)
    return nt.asarray(key) if isinstance(key, np.ndarray) else key


def has_mask(key: Any) -> bool:
    parts = key if isinstance(key, tuple) else (key,)
    kinds = [np.asarray(p).dtype.kind for p in parts if isinstance(p, (np.ndarray, list))]
    return "b" in kinds


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_reading(key: Any) -> None:
    want = X[key]
    x = nt.asarray(X)
    np.testing.assert_array_equal(x[ours(key)], want)
    np.testing.assert_array_equal(x[key], want)  # NumPy's arrays, too
    read = nt.compile(lambda t: t[ours(key)] * 2)
    for _ in range(3):
        np.testing.assert_array_equal(read(x), want * 2)
    assert (read.explain()["plan_calls"] > 0) == (not has_mask(key))


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_writing(key: Any) -> None:
    shape = X[key].shape
    for value in (7.0, np.arange(np.prod(shape), dtype=np.float32).reshape(shape) + 1):
        want = X.copy()
        want[key] = value
        x = nt.asarray(X)
        before = x[:]
        x[ours(key)] = value
        np.testing.assert_array_equal(x, want)
        np.testing.assert_array_equal(before, X)  # no other tensor changes

        @nt.compile
        def write(t: nt.Tensor, v: Any = value) -> nt.Tensor:
            t = t + 0
            t[ours(key)] = v
            return t

        for _ in range(3):
            np.testing.assert_array_equal(write(nt.asarray(X)), want)


@pytest.mark.parametrize("key", [I, (I, J), (I, slice(None), K), (slice(None), J, 0)])
def test_adding_where_places_occur_twice(key: Any) -> None:
    x = nt.zeros((2, 3, 4, 5))
    want = np.zeros((2, 3, 4, 5), np.float32)
    want[key] += 1
    x[ours(key)] += 1  # reads, adds and writes, as in NumPy
    np.testing.assert_array_equal(x, want)


def test_gradients_of_what_is_chosen() -> None:
    def f(x: nt.Tensor) -> nt.Tensor:
        return (x[nt.asarray([0, 0, 2])] * nt.asarray([1.0, 2.0, 4.0])).sum() + x[x > 1].sum()

    x = nt.asarray([0.5, 7.0, 3.0])
    np.testing.assert_array_equal(nt.grad(f)(x), [3, 1, 5])


@pytest.mark.parametrize(
    "key, says",
    [
        (np.array([2]), "index 2 for an axis of 2"),
        ((I, np.array([3, 0])), "index 3 for an axis of 3"),
        (np.array([0.5]), "expected integers or booleans"),
        (np.array([True]), "a mask of [1] from axis 0"),
        ((0, 0, 0, 0, I), "5 indices"),
        ((I, np.array([0, 1, 2])), "broadcast"),
        ((True, 0, 0, 0, 0, 0), "indices for"),
        ((Ellipsis, True, Ellipsis), "one ellipsis"),
        ("a", "are indices"),
    ],
)
def test_wrong_indices_are_index_errors(key: Any, says: str) -> None:
    x = nt.asarray(X)
    with pytest.raises(IndexError) as raised:
        x[ours(key)]
    assert says in str(raised.value)
    with pytest.raises(IndexError):
        x[ours(key)] = 1.0


def test_values_that_do_not_fit() -> None:
    x = nt.asarray(X)
    with pytest.raises(ValueError, match="more or fewer"):
        x[nt.asarray(M23)] = np.zeros((9, 4, 5), np.float32)
    with pytest.raises(ValueError):
        x[nt.asarray(I)] = np.zeros((3, 3, 4, 5), np.float32)
    np.testing.assert_array_equal(x, X)
    with pytest.raises(ValueError):
        x[False] = np.zeros((2, 2), np.float32)
    np.testing.assert_array_equal(x, X)
