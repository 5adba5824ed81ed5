"""What dtypes hold and how they meet, beside NumPy and as the Array API writes it."""

from __future__ import annotations

import itertools
from typing import Any

import nitinol as nt
import numpy as np
import pytest

# Nothing is checked of what is wrong on purpose.
untyped: Any = nt
FLOATS = ("float16", "float32", "float64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*UNSIGNED, *SIGNED)
ALL = ("bool", *INTEGERS, *FLOATS)


@pytest.mark.parametrize("name", FLOATS)
def test_floating_limits_are_numpys(name):
    ours, theirs = nt.finfo(name), np.finfo(name)
    assert ours == nt.finfo(getattr(nt, name)) == nt.finfo(nt.zeros(2, dtype=name))
    assert ours.dtype == getattr(nt, name) and ours.bits == theirs.bits
    for field in ("eps", "max", "min", "smallest_normal"):
        value = getattr(ours, field)
        assert type(value) is float and value == float(getattr(theirs, field))
        assert nt.asarray(value, dtype=name).item() == value  # it is one of the dtype's numbers


def test_limits_of_bfloat16():
    info = nt.finfo(nt.bfloat16)
    assert info.bits == 16 and info.eps == 2.0**-7
    for value in (info.max, info.min, info.smallest_normal, 1 + info.eps):
        assert nt.asarray(value, dtype=nt.bfloat16).item() == value
    assert nt.asarray(info.max * 1.01, dtype=nt.bfloat16).item() == np.inf
    assert nt.asarray(1 + info.eps / 2, dtype=nt.bfloat16).item() == 1


@pytest.mark.parametrize("name", INTEGERS)
def test_integer_limits_are_numpys(name):
    ours, theirs = nt.iinfo(name), np.iinfo(name)
    assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)
    assert ours.dtype == getattr(nt, name) == nt.iinfo(nt.Variable(nt.ones(2, dtype=name))).dtype


def test_limits_of_others_are_refused():
    with pytest.raises(
        nt.DTypeError, match="finfo: expected a floating dtype, got int32; see iinfo"
    ):
        nt.finfo(nt.int32)
    with pytest.raises(
        nt.DTypeError, match="iinfo: expected an integer dtype, got bool; see finfo"
    ):
        nt.iinfo("bool")
    for call, text in (
        (lambda: nt.finfo("int7"), "finfo: an argument is a str, 'int7'; expected a dtype"),
        (lambda: untyped.iinfo(3), "iinfo: an argument is an int, 3"),
        (lambda: nt.isdtype(nt.int8, "floats"), "or one of 'bool', 'signed integer'"),
        (lambda: untyped.can_cast("int8", None), "can_cast: an argument is None"),
        (lambda: untyped.result_type([1, 2]), "result_type: an argument is a list"),
    ):
        with pytest.raises(TypeError, match=text):
            call()


def test_kinds():
    kinds = {
        "bool": ("bool",),
        "signed integer": SIGNED,
        "unsigned integer": UNSIGNED,
        "integral": INTEGERS,
        "real floating": (*FLOATS, "bfloat16"),
        "complex floating": (),
        "numeric": (*INTEGERS, *FLOATS, "bfloat16"),
    }
    for (kind, members), name in itertools.product(kinds.items(), (*ALL, "bfloat16")):
        assert nt.isdtype(getattr(nt, name), kind) == (name in members), (kind, name)
    assert nt.isdtype(nt.int8, nt.int8) and not nt.isdtype(nt.int8, nt.int16)
    assert nt.isdtype(nt.int8, ("real floating", "bool", nt.int8))
    assert not nt.isdtype(nt.int8, ())


@pytest.mark.parametrize("a, b", list(itertools.product(ALL, ALL)))
def test_dtypes_meet_as_operands_do(a, b):
    x, y = nt.ones(2, dtype=a), nt.ones(2, dtype=b)
    if "uint64" in (a, b) and (
        a in SIGNED or b in SIGNED
    ):  # the standard's answer; NumPy takes float64
        for name, call in {
            "result_type": lambda: nt.result_type(a, b),
            "promote": lambda: nt.promote(a, b),
            "add": lambda: x + y,
            "multiply": lambda: nt.multiply(x, y),
            "matmul": lambda: x @ y,
            "stack": lambda: nt.stack([x, y]),
        }.items():
            with pytest.raises(nt.DTypeError, match=f"^{name}: no integer dtype holds both"):
                call()
        assert not nt.can_cast(a, b)
        return
    met = nt.where(True, x, y).dtype
    assert nt.result_type(a, b) == nt.result_type(x, y) == nt.result_type(getattr(nt, a), y) == met
    assert nt.can_cast(a, b) == nt.can_cast(x, b) == (met == getattr(nt, b))
    same_kind = nt.isdtype(a, "integral") == nt.isdtype(b, "integral")
    if same_kind and nt.isdtype(a, "bool") == nt.isdtype(
        b, "bool"
    ):  # of others the standard is silent
        assert str(met) == np.result_type(a, b).name


def test_numbers_decide_what_is_open():
    assert nt.result_type(nt.int8, 1) == nt.int8
    assert nt.result_type(nt.float16, 1, 2.0, True) == nt.float16
    assert nt.result_type(nt.int32, 1.5) == (nt.ones(2, dtype=nt.int32) * 1.5).dtype
    assert nt.result_type(nt.ones(2), nt.int64, nt.Scalar(2.0)) == nt.float32
    with pytest.raises(TypeError, match="a tensor or a dtype among the arguments"):
        nt.result_type(1, 2.0)


def test_the_library_says_what_it_can():
    info = nt.__array_namespace_info__()
    assert info.capabilities() == {
        "boolean indexing": True,
        "data-dependent shapes": True,
        "max dimensions": 8,
    }
    nt.ones((1,) * 8)
    with pytest.raises(nt.Error):
        nt.ones((1,) * 9)
    assert info.default_device() == nt.default_device()
    assert info.default_device() in info.devices()
    assert all(nt.ones(2, device=device).device == device for device in info.devices())
    defaults = info.default_dtypes()
    assert defaults["real floating"] == nt.ones(2).dtype
    assert defaults["integral"] == nt.asarray([1]).dtype
    assert defaults["indexing"] == nt.argmax(nt.ones(2)).dtype
    assert info.dtypes() == {name: getattr(nt, name) for name in ALL if name != "float16"}
    assert info.dtypes(kind="unsigned integer") == {name: getattr(nt, name) for name in UNSIGNED}
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert nt.ones(2).__array_namespace__() is nt
