"""Arguments that mean something at the edges: no axes, new axes, numbers beyond int64, NumPy's text,
paths, what tools ask of every object."""

import os
import pathlib

import numpy as np
import pytest
from conftest import bits, gradient_of

import nitinol as nt

nt.set_log_level("off")
X = nt.reshape(nt.arange(24.0), (2, 3, 4)) - 7
REDUCTIONS = ["sum", "prod", "max", "min", "any", "all", "mean", "var", "std"]


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("empty", [(), []])
def test_no_axes(name, empty):
    ours, theirs = getattr(nt, name), getattr(np, name)
    for x in (X, X.astype(nt.int32), X > 0, nt.asarray(2.5)):
        if name in ("mean", "var", "std", "max", "min") and x.dtype == nt.bool:
            continue
        expected = theirs(np.asarray(x), axis=())
        for made in (ours(x, axis=empty), ours(x, axis=empty, keepdims=True)):
            assert made.shape == x.shape and made.dtype == ours(x, axis=None).dtype
            np.testing.assert_allclose(made.numpy(), expected, rtol=1e-6)
    f = nt.compile(lambda x: ours(x, axis=empty) * 1)
    for _ in range(4):
        assert bits(f(X)) == bits(ours(X, axis=empty) * 1)
    assert getattr(X, name)(axis=empty).shape == X.shape


def test_no_axes_of_other_functions():
    assert nt.squeeze(X[:1], axis=()).shape == (1, 3, 4)
    assert bits(nt.flip(X, axis=())) == bits(X)
    assert bits(nt.logsumexp(X, axis=())) == bits(nt.logsumexp(X[..., None], axis=-1))
    assert nt.grad(lambda x: nt.sum(nt.sum(x * x, axis=())))(X).tolist() == (X * 2).tolist()


def test_new_axes():
    for axis in range(-4, 4):
        assert nt.expand_dims(X, axis=axis).shape == np.expand_dims(np.zeros(X.shape), axis).shape
    for axis in (4, -5, 100):
        with pytest.raises(IndexError, match=rf"expand_dims: axis {axis} .*\[2, 3, 4\].* -4 to 3"):
            nt.expand_dims(X, axis=axis)
        with pytest.raises(nt.ShapeError):
            nt.expand_dims(X, axis=axis)
    with pytest.raises(IndexError, match="-3 to 2"):
        nt.expand_dims(nt.ones((100, 100)), axis=3)


def test_transpose_takes_all_axes():
    a = np.asarray(X)
    for axes in ((2, 0, 1), [0, 2, 1], (-1, 0, 1)):
        assert nt.transpose(X, axes).tolist() == a.transpose(axes).tolist()
    assert nt.transpose(X).shape == (2, 4, 3) and nt.transpose(X, 0).shape == (4, 3, 2)
    assert nt.transpose(X, 0, 1).shape == nt.transpose(X, axis1=0, axis2=1).shape == (3, 2, 4)
    assert nt.transpose(X[0], (1, 0)).tolist() == X[0].T.tolist()
    with pytest.raises(ValueError, match="all 3 axes"):
        nt.transpose(X, (1, 0))
    with pytest.raises(ValueError, match="both"):
        nt.transpose(X, (1, 0, 2), 1)


def test_integers_beyond_int64():
    for number in (2**64, -(2**63) - 1, 10**30):
        assert nt.asarray(number, dtype=nt.float64).item() == float(number)
        assert nt.asarray([number, 1], dtype=nt.float64).tolist() == [float(number), 1.0]
        assert nt.full((2,), number, dtype=nt.float64).tolist() == [float(number)] * 2
        assert nt.full_like(nt.ones((2,), dtype=nt.float64), number)[0].item() == float(number)
        for refused in (
            lambda: nt.asarray(number),
            lambda: nt.asarray([number, 1]),
            lambda: nt.asarray([number, 1.5]),
            lambda: nt.asarray(number, dtype=nt.int64),
            lambda: nt.full((2,), number),
            lambda: nt.full((2,), number, dtype=nt.int64),
            lambda: nt.full_like(nt.asarray([1, 2]), number),
        ):
            with pytest.raises(
                (OverflowError, ValueError), match=r"beyond int64|-2\*\*63 to 2\*\*64"
            ):
                refused()
    for refused in (
        lambda: nt.asarray(10**400, dtype=nt.float64),
        lambda: nt.full((2,), 10**400, dtype=nt.float64),
    ):
        with pytest.raises(OverflowError):
            refused()
    assert nt.asarray(2**63 - 1).item() == 2**63 - 1
    assert [nt.full((), v).dtype for v in (1, True, 1.0)] == [nt.int64, nt.bool, nt.float32]


def test_text_of_numpy_is_fixed():
    f = nt.compile(lambda x, k: (x * 1, str(type(k).__name__))[1])
    for value in (np.str_("a"), np.bytes_(b"a"), "a", b"a"):
        for _ in range(4):
            assert f(X, value) == type(value).__name__
    assert len(f.explain().data["signatures"]) == 4
    for use in (nt.asarray, nt.exp, lambda a: X + a):
        for value in (np.str_("a"), np.bytes_(b"a")):
            with pytest.raises(TypeError):
                use(value)


def test_a_path_with_a_nul_character(tmp_path):
    path = str(tmp_path / "a\0b")
    v = nt.nn.Linear(2, 2)
    for write in (
        lambda p: nt.save_npy(p, X),
        lambda p: nt.save_safetensors(p, {"x": X}),
        lambda p: nt.save_npz(p, {"x": X}),
        lambda p: nt.save_image(p, nt.zeros((2, 2), dtype=nt.uint8)),
        lambda p: nt.nn.save(p, v),
    ):
        for given in (path, os.fsencode(path), pathlib.Path(path)):
            with pytest.raises(ValueError, match="NUL"):
                write(given)
    assert not list(tmp_path.iterdir())
    nt.save_npy(tmp_path / "a", X)
    for read in (
        nt.load_npy,
        nt.load_idx,
        nt.load_csv,
        nt.load_safetensors,
        nt.load_npz,
        nt.load_image,
        lambda p: nt.nn.load(p, v),
    ):
        with pytest.raises(ValueError, match="NUL"):
            read(path)


def test_a_variable_without_a_gradient_has_none():
    v, p = nt.Variable(X), nt.parameter(X)
    assert hasattr(v, "grad") and v.grad is None and p.grad is None
    nt.sum(p * p).backward()
    assert gradient_of(p).tolist() == (X * 2).tolist()
    with pytest.raises(nt.ArgumentError):
        v.grad = X
    for name in dir(v):
        assert hasattr(v, name)
