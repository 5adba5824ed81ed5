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
    (slice(None, None, -1), J), (I, J, slice(None), slice(None, None, -1)), (M3[:2], slice(None, None, -1)),
    (slice(None, None, -1), slice(None), slice(None), np.array([True, False, True, False, True])),
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


JOINS = {"add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}


def joined(name: str, x: np.ndarray, key: Any, value: Any) -> np.ndarray:
    """What x.at[key].name(value) is."""
    y = x.copy()
    if name == "set":
        y[key] = value
    else:
        JOINS[name].at(y, key, value)
    return y


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
def test_at(key: Any) -> None:
    x = nt.asarray(X)
    value = np.arange(X[key].size, dtype=np.float32).reshape(X[key].shape) % 50 + 1
    for name in ("set", *JOINS):
        want = joined(name, X, key, value)
        np.testing.assert_array_equal(getattr(x.at[ours(key)], name)(value), want)
        np.testing.assert_array_equal(x, X)
    v = nt.Variable(x)
    np.testing.assert_array_equal(v.at[key].add(value), joined("add", X, key, value))
    np.testing.assert_array_equal(v.at[key].get(), X[key])
    twice = nt.compile(lambda t: t.at[ours(key)].add(1.0).at[ours(key)].multiply(2.0))
    for _ in range(3):
        np.testing.assert_array_equal(
            twice(x), joined("multiply", joined("add", X, key, np.float32(1)), key, np.float32(2))
        )


def random_key(rng: np.random.Generator, shape: tuple[int, ...]) -> tuple[Any, ...]:
    """Anything that means something for the shape, and now and then what does not."""
    key: list[Any] = []
    common = [(), (1,), (3,), (2, 3), (0,)][rng.integers(5)]
    axis = 0
    while axis < len(shape) and rng.random() < 0.85:
        size = shape[axis]
        kind = rng.integers(7)
        if kind == 0 and size > 0:
            key.append(int(rng.integers(-size, size)))
        elif kind == 1 and size > 0:
            sizes = common if rng.random() < 0.7 else tuple(1 for _ in common)
            key.append(rng.integers(-size, size, sizes))
        elif kind == 2:
            key.append(None)
            continue
        elif kind == 3 and Ellipsis not in [k for k in key if k is Ellipsis]:
            key.append(Ellipsis)
            axis += int(rng.integers(0, len(shape) - axis + 1))
            continue
        elif kind == 4 and not any(isinstance(k, np.ndarray) for k in key):
            key.append(rng.random(shape[axis : axis + int(rng.integers(1, 3))]) < 0.5)
            axis += key[-1].ndim
            continue
        else:
            first, last = (
                None if rng.random() < 0.5 else int(rng.integers(-size - 2, size + 3))
                for _ in range(2)
            )
            key.append(slice(first, last, [None, 1, 2, 3, -1, -2, -3][rng.integers(7)]))
        axis += 1
    return tuple(key)


def test_random_keys() -> None:
    rng = np.random.default_rng(5)
    refused = 0
    for _ in range(1500):
        shape = tuple(
            int(size)
            for size in rng.choice(
                [0, 1, 2, 3, 4, 5], rng.integers(0, 5), p=[0.03, 0.2, 0.2, 0.2, 0.2, 0.17]
            )
        )
        source = rng.integers(-9, 9, shape).astype(np.float32)
        key = random_key(rng, shape)
        x, case = nt.asarray(source), f"{shape}, {key}"
        try:
            want = source[key]
        except IndexError:
            refused += 1
            with pytest.raises(IndexError):
                x[ours(key)]
            continue
        np.testing.assert_array_equal(x[ours(key)], want, case)
        assert x[ours(key)].shape == want.shape, case
        value = rng.integers(-9, 9, want.shape).astype(np.float32)
        if value.ndim > 0 and rng.random() < 0.3:
            value = value[:1]
        name = ["set", *JOINS][rng.integers(5)]
        np.testing.assert_array_equal(
            getattr(x.at[ours(key)], name)(value),
            joined(name, source, key, value),
            f"{name}: {case}",
        )
    assert 0 < refused < 500


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
