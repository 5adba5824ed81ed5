"""Arguments and results are what they are in plain Python: floats, keywords, dataclasses."""

import dataclasses
import functools
import json
import math
import numbers
from collections.abc import Callable
from typing import Any

import pytest
from conftest import bits, check_compiled

import nitinol as nt

X = nt.asarray([1.0, 2.0, 3.0])


# ---- floats, which are Scalars inside


@functools.singledispatch
def kind(value):
    return "other"


@kind.register
def _(value: float) -> str:
    return "float"


# What compares an expression of a float inside with the float's.
LOOKS: dict[str, Callable[[Any], Any]] = {
    "str": str,
    "repr in a list": lambda s: str([str(s)]),
    "percent s": lambda s: "%s" % s,
    "percent f": lambda s: "%.3f" % s,
    "f-string": lambda s: f"{s} {s:8.3f} {s!s}",
    "join": lambda s: ",".join(map(str, [s, s])),
    "round": round,
    "round to digits": lambda s: round(s, 1),
    "int": int,
    "float": float,
    "floor": math.floor,
    "ceil": math.ceil,
    "trunc": lambda s: math.trunc(float(s)),
    "hash": lambda s: hash(s),
    "key": lambda s: {2.75: "found", -3.5: "other"}.get(s),
    "is_integer": lambda s: s.is_integer(),
    "hex": lambda s: s.hex(),
    "ratio": lambda s: s.as_integer_ratio(),
    "compared": lambda s: bool(s > 2),
    "truth": bool,
    "json": lambda s: json.dumps(float(s)),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_a_float_is_a_guard(look):
    see = LOOKS[look]
    seen = []

    @nt.compile(check="never")
    def f(x, s):
        seen.append(see(s))
        return {str(see(s)): x * s}

    for _ in range(4):
        for s in (2.75, -3.5):
            ((found, y),) = f(X, s).items()
            assert found == str(see(s)) == list(f.eager(X, s))[0]
            assert bits(y) == bits(X * s)
    assert len(f.explain()["signatures"]) == 2
    check_compiled(f, 4)


def test_a_look_names_what_it_was():
    f = nt.compile(lambda x, scale: {f"{scale}": x * scale}, check="never")
    for scale in (0.5, 0.5, 2.0):
        f(X, scale)
    cause = f.explain()["signatures"][1]["cause"]
    assert "`scale` is 2, was 0.5" in cause and "by format()" in cause and __file__[-20:] in cause


# What needs no look, and so holds for all floats.
UNLOOKED = {
    "isinstance": lambda s: isinstance(s, float) and not isinstance(s, int),
    "isinstance of a tuple": lambda s: isinstance(s, (int, float)),
    "a number": lambda s: isinstance(s, numbers.Real),
    "dispatch": lambda s: kind(s) == "float",
    "a Scalar": lambda s: isinstance(s, (nt.Scalar, float)),
}


@pytest.mark.parametrize("ask", UNLOOKED)
def test_what_a_float_is(ask):
    f = nt.compile(lambda x, s: (x * s, UNLOOKED[ask](s)), check="never")
    for s in (0.5, 1.5, 2.5, 3.5):
        y, is_so = f(X, s)
        assert is_so is UNLOOKED[ask](s) is True
        assert bits(y) == bits(X * s)
    assert len(f.explain()["signatures"]) == 1
    assert type(nt.Scalar(2.5)) is nt.Scalar and isinstance(nt.Scalar(2.5), nt.Scalar)
    assert not isinstance(nt.Scalar(2), float)


def test_divmod():
    f = nt.compile(lambda x, s: divmod(x * 4, s), check="never")
    g = nt.compile(lambda x, s: x * divmod(s, 2)[1], check="never")
    for s in (1.5, 2.5, -0.75, 4.0):
        quotient, rest = f(X, s)
        assert bits(quotient) == bits(X * 4 // s) and bits(rest) == bits(X * 4 % s)
        assert bits(g(X, s)) == bits(X * (s % 2))
    assert len(f.explain()["signatures"]) == len(g.explain()["signatures"]) == 1
    assert [int(n) for n in divmod(nt.asarray(17), 5)] == [3, 2]
    assert [int(n) for n in divmod(17, nt.Variable(nt.asarray(5)))] == [3, 2]
    untyped: Any = "a"
    with pytest.raises(TypeError):
        divmod(X, untyped)


def test_what_a_scalar_has_not():
    for number in (nt.Scalar(2.5), nt.Scalar(2)):
        with pytest.raises(AttributeError, match="'Scalar' object has no attribute 'unheard'"):
            number.unheard
    assert not hasattr(nt.Scalar(2), "is_integer")
    assert repr(nt.Scalar(2.5)) == "Scalar(2.5)" and str(nt.Scalar(2.5)) == "2.5"
    assert str(nt.Scalar(True)) == "True" and hash(nt.Scalar(3)) == hash(3)


# ---- keywords


def test_keywords_keep_the_callers_order():
    f = nt.compile(lambda **named: (list(named), nt.concat(list(named.values()))), check="never")
    for _ in range(4):
        for given in ({"b": X, "a": X + 1}, {"a": X, "b": X + 1}, {"c": X}):
            names, joined = f(**given)
            assert names == list(given)
            assert bits(joined) == bits(nt.concat(list(given.values())))
    assert len(f.explain()["signatures"]) == 3
    check_compiled(f, 6)


class Caller:
    def __call__(self, x, **named):
        return list(named)


def wrapped(function):
    @functools.wraps(function)
    def wrapper(*args, **named):
        return function(*args, **named)

    return wrapper


@pytest.mark.parametrize(
    "function",
    [
        Caller(),
        Caller().__call__,
        functools.partial(Caller().__call__, X),
        wrapped(lambda x, **named: list(named)),
    ],
)
def test_who_has_keywords_sees_their_order(function):
    f = nt.compile(function, check="never")
    arguments = () if isinstance(function, functools.partial) else (X,)
    for _ in range(3):
        assert f(*arguments, b=X, a=X) == ["b", "a"]
        assert f(*arguments, a=X, b=X) == ["a", "b"]


def test_who_has_none_does_not():
    f = nt.compile(lambda x, a, b=1.0: x * a + b, check="never")
    for _ in range(3):
        assert bits(f(X, b=2.0, a=3.0)) == bits(f(X, a=3.0, b=2.0)) == bits(X * 3.0 + 2.0)
    assert len(f.explain()["signatures"]) == 1


# ---- dataclasses


@dataclasses.dataclass
class Layer:
    weight: Any
    rate: float = 2.0
    is_on: dataclasses.InitVar[bool] = True

    def __post_init__(self, is_on):
        self.half = self.rate / 2
        self.double = self.weight * 2
        self.mode = "on" if is_on else "off"

    @functools.cached_property
    def triple(self):
        return self.weight * 3


@dataclasses.dataclass(frozen=True)
class Frozen:
    weight: Any

    def __post_init__(self):
        object.__setattr__(self, "double", self.weight * 2)


@dataclasses.dataclass(slots=True)
class Slots:
    weight: Any


def test_attributes_that_are_no_fields_are_arguments():
    f = nt.compile(lambda l: l.double * l.half if l.mode == "on" else l.double, check="never")
    for i in range(4):
        on, off = Layer(X + i, 3.0 + i), Layer(X + i, is_on=False)
        assert bits(f(on)) == bits((X + i) * 2 * (1.5 + i / 2))
        assert bits(f(off)) == bits((X + i) * 2)
    assert len(f.explain()["signatures"]) == 2  # the mode is fixed, tensors and floats are not
    check_compiled(f, 4)
    signature = f.explain()["signatures"][0]["signature"]
    assert "l.half: Scalar" in signature and "l.double: float32[3]" in signature
    assert "l.mode='on'" in signature


def test_attributes_that_are_no_fields_are_results():
    f = nt.compile(lambda x: [Layer(x, 3.0), Frozen(x), Slots(x)], check="never")
    for i in range(5):
        results: list[Any] = f(X + i)
        layer, frozen, slots = results
        assert vars(layer).keys() == vars(Layer(X)).keys()
        assert (layer.half, layer.mode) == (1.5, "on")
        for made in (layer, frozen):
            assert bits(made.double) == bits((X + i) * 2)
        assert bits(slots.weight) == bits(X + i)
    check_compiled(f, 3)


def test_other_attributes_are_another_signature():
    f = nt.compile(lambda l: l.triple + 1, check="never")
    for _ in range(4):
        fresh, cached = Layer(X), Layer(X)
        cached.triple
        assert bits(f(fresh)) == bits(f(cached)) == bits(X * 3 + 1)
        assert "triple" not in vars(fresh)
    assert len(f.explain()["signatures"]) == 2


def test_a_dataclass_returned_as_it_came():
    f = nt.compile(lambda d: d, check="never")
    for i in range(5):
        given: Any = Frozen(X + i)
        returned = f(given)
        assert bits(returned.weight) == bits(given.weight)
        assert bits(returned.double) == bits(given.double)
    check_compiled(f, 3)


def test_mapped_dataclasses_keep_their_attributes():
    mapped = nt.tree_map(lambda x: x + 1, Layer(X))
    assert bits(mapped.weight) == bits(X + 1) and bits(mapped.double) == bits(X * 2 + 1)
    assert mapped.half == 1.0 and mapped.mode == "on"


def test_an_attribute_that_cannot_be_is_named():
    layer: Any = Layer(X)
    layer.seen = {1}
    with pytest.raises(TypeError, match=r"l\.seen is a set"):
        nt.compile(lambda l: l.weight)(layer)


# ---- what is said to who writes Python


def test_the_advice_is_pythons():
    f = nt.compile(lambda x, n, g: g(x) * n)
    keep = [lambda x, i=i: x + i for i in range(4)]
    for i in range(4):
        f(X, i, keep[i])
    numbers_, objects = f.explain()["remarks"]
    assert numbers_.startswith("`n` has had 4 different values")
    assert "given as a float or as nitinol.Scalar(n)" in numbers_
    assert objects.startswith("`g` has had 4 different values")
    assert "give the same one in each call" in objects
    causes = [s["cause"] for s in f.explain()["signatures"]]
    assert causes[1] == "`n` is 1, was 0"
    h = nt.compile(lambda module, x: module(x))
    modules = [nt.nn.Linear(3, 2), nt.nn.Linear(3, 2)]
    for module in modules:
        h(module, X)
    assert h.explain()["signatures"][1]["cause"] == "`module` is another object, Linear"
    g = nt.compile(lambda x, n: x * n)
    for i in range(4):
        g(X, nt.Scalar(i))  # which is what a user can do
    assert g.explain()["remarks"] == [] and len(g.explain()["signatures"]) == 1


def test_a_truth_that_raises():
    class Doubtful:
        def __bool__(self):
            raise KeyError("no truth")

    with pytest.raises(KeyError, match="no truth"):
        bool(nt.HostValue(Doubtful()))
    assert bool(nt.HostValue([1])) and not bool(nt.HostValue([]))
