"""Fixed arguments: which of them are one, and that nothing is kept for their sake."""

import array
import dataclasses
import datetime
import decimal
import fractions
import functools
import gc
import pathlib
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import bits, check_compiled, gradient_of

import nitinol as nt
from nitinol import nn

X = nt.asarray([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])


# ---- which are the same


class ByName:
    """Equal to others that are not the same."""

    def __init__(self, name, factor):
        self.name, self.factor = name, factor

    def __eq__(self, other):
        return isinstance(other, ByName) and self.name == other.name

    def __hash__(self):
        return hash(self.name)

    @nt.compile(check="never")
    def scaled(self, x):
        return x * self.factor


class Scaling(nn.Module):
    def __init__(self, factor):
        self.weight = nt.Variable(nt.full((3,), factor))
        self.calls = nt.Variable(nt.zeros(()))

    def __eq__(self, other):
        return isinstance(other, Scaling)

    def __hash__(self):
        return 1

    def __call__(self, x):
        self.calls.value = self.calls.value + 1
        return x * self.weight


class Tagged(str):
    tag: object


def tagged(text, tag):
    made = Tagged(text)
    made.tag = tag
    return made


class Length(float):
    unit: str

    def __new__(cls, value, unit):
        made = float.__new__(cls, value)
        made.unit = unit
        return made


@dataclasses.dataclass(frozen=True)
class Key:
    n: object


UTC, EAST = datetime.timezone.utc, datetime.timezone(datetime.timedelta(hours=1))

# Equal, but a function can tell them apart: (values, what it sees).
ALIKE: dict[str, tuple[list[Any], Callable[[Any], Any]]] = {
    "elements of a frozenset": ([frozenset({2}), frozenset({2.0})], lambda s: next(iter(s))),
    "deep in a frozenset": ([frozenset({(1,)}), frozenset({(True,)})], lambda s: next(iter(s))[0]),
    "digits of a Decimal": ([decimal.Decimal("1.0"), decimal.Decimal("1.00")], str),
    "zeros of a complex": ([complex(0.0, 1), complex(-0.0, 1)], str),
    "bounds of a range": ([range(0, 0), range(5, 5)], lambda r: r.stop),
    "time zones": ([datetime.datetime(2026, 1, 1, 12, tzinfo=UTC),
                    datetime.datetime(2026, 1, 1, 13, tzinfo=EAST)], lambda d: d.hour),
    "objects of one name": ([ByName("a", 2.0), ByName("a", 3.0)], lambda o: o.factor),
    "objects in a frozenset": ([frozenset({ByName("a", 2.0)}), frozenset({ByName("a", 3.0)})],
                               lambda s: next(iter(s)).factor),
    "fields of a frozen key": ([{Key(1): 1}, {Key(1.0): 1}], lambda d: type(next(iter(d)).n)),
    "keys of a dict": ([{1: 1}, {1.0: 1}, {True: 1}], lambda d: type(next(iter(d)))),
    "zeros as keys": ([{0.0: 1}, {-0.0: 1}], lambda d: str(next(iter(d)))),
    "attributes of a str": ([tagged("a", 1), tagged("a", 2), "a"], lambda s: getattr(s, "tag", 0)),
    "attributes of a float": ([Length(1.5, "m"), Length(1.5, "km")], lambda s: s.unit),
    "classes": ([np.int64(2), np.int32(2), 2], type),
}  # fmt: skip


@pytest.mark.parametrize("check", ["never", "scheduled"])
@pytest.mark.parametrize("what", ALIKE)
def test_what_is_equal_but_not_the_same(what, check):
    values, seen = ALIKE[what]
    f = nt.compile(lambda x, value: (x * 2, str(seen(value))), check=check)
    for _ in range(4):
        for value in values:
            assert f(X, value)[1] == str(seen(value))
    assert len(f.explain()["signatures"]) == len(values)
    check_compiled(f, len(values))


KEPT, TEXT = nn.Linear(2, 2), "text"
# Made anew in each call, and yet the same.
ANEW = {
    "text": lambda: "".join(["a", "b"]),
    "bytes": lambda: bytes([1, 2]),
    "a large int": lambda: 1 << 70,
    "frozenset": lambda: frozenset([1, "a", 2.5]),
    "complex": lambda: complex(1, float("nan")),
    "Decimal": lambda: decimal.Decimal("1.50"),
    "Fraction": lambda: fractions.Fraction(2, 4),
    "datetime": lambda: datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=1))),
    "path": lambda: pathlib.PurePosixPath("a/b"),
    "a type": lambda: list[int],
    "NumPy's int": lambda: np.int64(3),
    "NumPy's dtype": lambda: np.dtype("f4"),
    "device": lambda: nt.Device("cpu"),
    "a method": lambda: KEPT.to,
    "a method of C": lambda: TEXT.upper,
    "keys": lambda: {Key((1, Key(2))): 1, (1, 2.5): 2},
    "a str with attributes": lambda: tagged("a", (1, "b")),
}  # fmt: skip


@pytest.mark.parametrize("what", ANEW)
def test_what_is_made_anew_and_the_same(what):
    f = nt.compile(lambda x, value: x * 2, check="never")
    for _ in range(6):
        assert bits(f(X, ANEW[what]())) == bits(X * 2)
    assert len(f.explain()["signatures"]) == 1
    check_compiled(f, 4)


@pytest.mark.parametrize("check", ["never", "scheduled", "always"])
def test_modules_are_told_apart_whatever_they_say_of_equality(check):
    f = nt.compile(lambda module, x: module(x), check=check)
    a, b = Scaling(1.0), Scaling(5.0)
    for module in (a, b):
        for _ in range(6):
            assert bits(f(module, X)) == bits(X * module.weight)
    assert a.calls.item() == b.calls.item() == 6
    assert len(f.explain()["signatures"]) == 2


def test_methods_of_objects_that_are_equal():
    a, b = ByName("a", 2.0), ByName("a", 3.0)
    for _ in range(5):  # by a Plan, before the other is seen
        assert bits(a.scaled(X)) == bits(X * 2.0)
    for _ in range(5):
        assert bits(b.scaled(X)) == bits(X * 3.0)
    assert bits(a.scaled(X)) == bits(X * 2.0)


def test_the_order_of_equal_frozensets():
    # Both orders of insertion collide in a table of 8.
    a, b = frozenset([0, 8]), frozenset([8, 0])
    assert a == b
    f = nt.compile(lambda x, s: [x * n for n in s], check="never")
    for _ in range(4):
        for s in (a, b):
            assert [bits(y) for y in f(X, s)] == [bits(X * n) for n in s]


def test_aux_of_registered_classes_by_its_parts():
    class Box:
        def __init__(self, value, aux):
            self.value, self.aux = value, aux

    nt.register_pytree(Box, lambda b: ((b.value,), b.aux), lambda aux, c: Box(c[0], aux))
    f = nt.compile(lambda b: (b.value * 2, type(b.aux[0]).__name__), check="never")
    for _ in range(4):
        assert f(Box(X, (1, "a")))[1] == "int"
        assert f(Box(X, (1.0, "a")))[1] == "float"
    assert len(f.explain()["signatures"]) == 2


# ---- what is kept


class Big:
    @nt.compile(check="never")
    def step(self, x):
        return x * 2


def is_gone(reference):
    for _ in range(3):
        gc.collect()
    return reference() is None


def test_objects_with_compiled_methods_are_let_go():
    alive = []
    for _ in range(20):
        big = Big()
        for _ in range(4):
            assert bits(big.step(X)) == bits(X * 2)
        alive.append(weakref.ref(big))
    del big
    assert all(is_gone(one) for one in alive)
    explanation = Big.step.explain()
    assert explanation["signatures"] == [] and explanation["calls"] == 80
    assert "20 signatures were for objects that are gone" in explanation["remarks"][0]


@pytest.mark.parametrize("calls", [1, 2, 5])
def test_functions_that_are_arguments_are_let_go(calls):
    f = nt.compile(lambda x, g: g(x), check="never")
    alive: list[weakref.ref[Any]] = []
    for i in range(10):
        captured = X + i

        def g(x, captured=captured):
            return x * captured

        for _ in range(calls):
            assert bits(f(X, g)) == bits(X * captured)
        alive.append(weakref.ref(g))
        alive.append(weakref.ref(captured))
    del g, captured
    assert all(is_gone(one) for one in alive)


def test_modules_and_their_plans_are_let_go():
    f = nt.compile(lambda module, x: module(x), check="never")
    before = nt.memory_statistics()["in_use"]
    for _ in range(4):
        module = nn.Linear(3, 100_000)
        for _ in range(4):
            f(module, X)
    del module
    gc.collect()
    assert nt.memory_statistics()["in_use"] < before + 400_000


def test_calls_that_run_eagerly_keep_nothing():
    class Value:  # which no weak reference refers to
        __slots__ = ("n",)
        ended = 0

        def __del__(self):
            Value.ended += 1

    f = nt.compile(lambda x, value: x, signature_limit=4)
    for i in range(40):
        f(X, Value())
        f(X, f"text {i}")
        with nt.eager():
            f(X, Value())
    gc.collect()
    assert Value.ended >= 80 - 4


def test_classes_that_are_arguments_are_let_go():
    f = nt.compile(lambda d: d.a * 2)
    made = dataclasses.make_dataclass("Made", ["a"])
    for _ in range(4):
        f(made(X))
    reference = weakref.ref(made)
    del made
    assert is_gone(reference)


def test_an_address_that_is_used_again_is_another_object():
    f = nt.compile(lambda x, g: g(x), check="never")
    for i in range(200):
        assert bits(f(X, lambda x, i=i: x * i)) == bits(X * i)


def test_texts_of_calls_that_run_eagerly_are_not_kept():
    f = nt.compile(lambda x, text: x, signature_limit=2)
    for text in ("a", "b"):
        f(X, text)
    text = "c" * 10_000
    count = sys.getrefcount(text)
    for _ in range(4):
        f(X, text)
    with nt.eager():
        f(X, text)
    assert sys.getrefcount(text) == count


def test_results_keep_what_they_hold():
    f = nt.compile(lambda x: {("a", 1): x * 2, 2.5: Key(x)}, check="never")
    for _ in range(6):
        gc.collect()
        assert list(f(X)) == [("a", 1), 2.5]
    check_compiled(f, 4)


# ---- cycles


class Node:
    value: nt.HostValue
    f: Callable[..., Any]
    p: nt.Variable
    out: nt.Tensor
    loss: nt.Tensor
    pull: Callable[[Any], Any]


def host_value():
    node = Node()
    node.value = nt.HostValue(node)
    return node


def compiled_method():
    node = Node()
    node.f = nt.compile(functools.partial(lambda node, x: x * 2, node))
    for _ in range(4):
        node.f(X)
    return node


def compiled_argument():
    node = Node()
    node.f = nt.compile(lambda node, x: x * 2)
    for _ in range(4):
        node.f(node, X)
    return node


def registered_class():
    node = Node()

    class Class:
        owner = node

        def __init__(self, x):
            self.x = x

    nt.register_pytree(Class, lambda c: ((c.x,), None), lambda _, children: Class(*children))
    node.f = nt.compile(lambda x: Class(x * 2))
    for _ in range(4):
        assert bits(node.f(X).x) == bits(X * 2)
    return node


def module():
    module: Any = nn.Module()
    module.me, module.k = module, 3
    module.f = nt.compile(lambda x: x * module.k)
    for _ in range(4):
        module.f(X)
    return module


def checkpointed():
    node = Node()
    node.p = nt.parameter(X)
    node.out = nt.checkpoint(lambda x: x * 2 + (node is None))(node.p.value)
    return node


def customised():
    node = Node()
    node.p = nt.parameter(X)
    f = nt.custom_gradient(lambda x: (x * 2, lambda g: g * 2 + (node is None)))
    node.out = f(node.p.value)
    return node


def loss_of_both():
    node = Node()
    node.p = nt.parameter(X)
    y = nt.checkpoint(lambda x: x * 2 + (node is None))(node.p.value)
    node.loss = nt.sum(y * y * 2)
    return node


def assigned():
    node = Node()
    node.p = nt.parameter(X)
    node.out = nt.zeros((2, 2, 3))
    node.out[1] = nt.checkpoint(lambda x: x * 2 + (node is None))(node.p.value)
    return node


def pulled():
    node = Node()
    node.out, node.pull = nt.vjp(lambda x: x * 2 + (node is None), X)
    node.pull(X)
    return node


def borrowed():
    # No class statement, as array.array has type arguments from Python 3.12 on.
    Array: Any = type("Array", (array.array,), {})
    made = Array("f", [1, 2, 3])
    made.tensor = nt.asarray(made, copy=False)
    return made


@pytest.mark.parametrize(
    "make",
    [borrowed, host_value, compiled_method, compiled_argument, registered_class, module, checkpointed,
     customised, loss_of_both, assigned, pulled],
)  # fmt: skip
def test_cycles_are_collected(make):
    made = make()
    reference = weakref.ref(made)
    del made
    assert is_gone(reference)


def test_nothing_that_is_used_is_collected():
    p = nt.parameter(X)
    f = nt.checkpoint(lambda x: nt.tanh(x) * 2)
    g = nt.custom_gradient(lambda x: (x * 3, lambda gradient: gradient * 3))
    expected = nt.grad(lambda x: nt.sum(nt.tanh(x) * 2 * 3 * x))(X)
    y = f(p.value)
    views = [y[0], y, y]  # several that share what they were computed from
    gc.collect()
    z = g(y)
    del y
    loss = nt.sum(z * p)
    del z
    for _ in range(3):
        gc.collect()
    loss.backward()
    np.testing.assert_allclose(gradient_of(p).numpy(), expected.numpy(), rtol=1e-6)
    del loss
    gc.collect()
    assert bits(views[0]) == bits(views[1][0])
    read = borrowed().tensor  # which is all that keeps the memory
    parts = [read[1:], read[0]]
    del read
    gc.collect()
    assert [part.tolist() for part in parts] == [[2.0, 3.0], 1.0]


def test_memory_that_the_tape_reads_is_not_collected():
    made = borrowed()
    reference = weakref.ref(made)
    p = nt.parameter(nt.ones(2))
    loss = nt.sum(p * made.tensor[1:])  # whose memory the cycle owns
    del made
    gc.collect()
    assert reference() is not None
    loss.backward()
    assert gradient_of(p).tolist() == [2.0, 3.0]
    del loss
    assert is_gone(reference)


def test_host_values_keep_their_value_alone():
    before, after = "a" * 10_000, "b" * 10_000
    count = sys.getrefcount(before)
    held = nt.HostValue(before)
    held.value = after
    assert sys.getrefcount(before) == count
    f = nt.compile(lambda x: x * len(held.value), check="never")
    for value in (before, after, before, after):
        held.value = value
        for _ in range(3):
            f(X)
    # While a Plan is for it, a value that is set back finds the Plan.
    assert [s["plan_calls"] for s in f.explain()["signatures"]] == [4, 4]
    del f
    gc.collect()
    assert sys.getrefcount(before) == count


def test_attributes_of_modules_keep_their_value_alone():
    before = "a" * 10_000
    count = sys.getrefcount(before)
    module: Any = nn.Module()
    module.text = before
    f = nt.compile(lambda x: x * len(module.text), check="never")
    for _ in range(3):
        f(X)
    module.text = ""
    del f
    gc.collect()
    assert sys.getrefcount(before) == count
