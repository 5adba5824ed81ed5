"""checkpoint() and custom_gradient() beside what they close over, draw, assign and look at: as written, compiled
inside and around. tests/autograd/checkpoint_test.cpp has the same for C++, and more."""

from collections.abc import Callable
from typing import Any

import pytest
from conftest import gradient_of

import nitinol as nt


def bits(tensor):
    return tensor.dtype, tensor.shape, nt.stop_gradient(tensor).tolist()


def tiers(function):
    return [signature["tier"] for signature in function.explain().data["signatures"]]


def reason(function):
    return function.explain().data["signatures"][0]["reason"]


def closes_over(block):
    def loss(x):
        v = x * 2
        return nt.sum(block(lambda t: nt.exp(v) + t * x)(x)) + nt.sum(v)

    return loss


def nested(block):
    def loss(x):
        v = x * 2

        def inner(t):
            w = t * v
            return block(lambda s: nt.exp(s * w) + v)(t)

        return nt.sum(block(inner)(nt.sin(x)))

    return loss


@pytest.mark.parametrize("make", (closes_over, nested))
def test_gradients_flow_through_what_a_checkpoint_closes_over(make):
    x = nt.asarray([0.1, 0.5, 0.7])
    function, plain = make(nt.checkpoint), make(lambda f: f)
    expected = bits(nt.grad(plain)(x))

    def gathered(f):
        p = nt.parameter(x)
        f(p.value).backward()
        return bits(p.grad)

    inside = nt.compile(nt.grad(function), check="never")
    around = nt.compile(function, check="never")
    for _ in range(4):
        assert bits(nt.grad(function)(x)) == expected
        assert bits(inside(x)) == expected
        assert bits(nt.grad(around)(x)) == expected
        assert gathered(around) == gathered(plain) == gathered(function)
    assert tiers(inside) == ["compiled"] and set(tiers(around)) == {"compiled"}


def test_a_residual_that_was_computed_from_a_parameter():
    x, w = nt.ones((2, 3)), nt.parameter(nt.full((3, 3), 0.5))

    def step(x, block):
        w.grad = None
        h = x @ w
        nt.sum(block(lambda t: nt.tanh(t) * h)(h)).backward()
        return w.grad

    expected = bits(step(x, lambda f: f))
    compiled = nt.compile(lambda x: step(x, nt.checkpoint), check="never")
    for _ in range(4):
        assert bits(step(x, nt.checkpoint)) == bits(compiled(x)) == expected
    assert tiers(compiled) == ["compiled"]


@pytest.mark.parametrize("wrap", (lambda f: f, lambda f: nt.compile(f, check="never")))
def test_a_custom_function_draws_and_assigns_once(wrap):
    count, w = nt.Variable(nt.zeros((), dtype="int64")), nt.parameter(nt.ones(8))
    generator = nt.random.Generator(1)

    @nt.custom_gradient
    def drop(x):
        count.value = count.value + 1
        mask = (nt.random.rand((8,), generator=generator) > 0.5).to(x.dtype)
        return x * mask, lambda g: g * mask

    def loss(x):
        dropped = drop(x)
        return nt.sum(nt.checkpoint(lambda t: t * w)(dropped)), nt.stop_gradient(dropped)

    of = nt.value_and_grad(wrap(loss), has_aux=True)
    for i in range(5):
        (_, mask), gradient = of(nt.ones(8))
        assert bits(mask) == bits(gradient)
        assert count.value.item() == i + 1


@pytest.mark.parametrize("by", ("custom_gradient", "checkpoint"))
def test_what_is_differentiated_twice_draws_and_assigns_once(by):
    count, generator = nt.Variable(nt.zeros((), dtype="int64")), nt.random.Generator(1)

    def drop(x):
        count.value = count.value + 1
        mask = (nt.random.rand((8,), generator=generator) > 0.5).to(x.dtype)
        return x * mask if by == "checkpoint" else (x * mask, lambda g: g * mask)

    dropped, seen = getattr(nt, by)(drop), []

    def loss(x):
        y = dropped(x)
        return nt.sum(y * y), y

    def penalty(x):
        (_, y), g = nt.value_and_grad(loss, has_aux=True)(x)
        seen.append((bits(y), bits(g / 2)))
        return nt.sum(g * g)

    nt.grad(penalty)(nt.ones(8))
    ((y, half),) = seen
    assert y == half and set(y[2]) == {0.0, 1.0}
    assert count.value.item() == 1


def test_a_checkpoint_of_a_compiled_function():
    x, w = nt.ones((3, 4)), nt.parameter(nt.full((4, 4), 0.1))
    expected = bits(nt.grad(lambda x: nt.sum(nt.tanh(x @ w)))(x))
    f = nt.compile(lambda x: nt.tanh(x @ w), check="never")
    block = nt.checkpoint(f)
    for _ in range(6):
        assert bits(nt.grad(lambda x: nt.sum(block(x)))(x)) == expected
        assert bits(nt.vjp(block, x)[1](nt.ones((3, 4)))) == expected
        nt.sum(block(x)).backward()
    assert set(tiers(f)) == {"compiled"}


def test_what_a_checkpointed_function_keeps_has_elements():
    w, kept = nt.parameter(nt.ones((4, 4))), []

    @nt.compile
    def f(x):
        def block(t):
            y = nt.tanh(t @ w)
            kept.append(nt.stop_gradient(y))
            return y

        return nt.sum(nt.checkpoint(block)(x))

    x = nt.ones((3, 4))
    for _ in range(4):
        f(x).backward()
    assert kept and all(bits(y) == bits(nt.tanh(x @ w.value)) for y in kept)


def test_what_a_checkpointed_function_assigns_into_has_elements():
    """Elements of a captured tensor that it has used; the tensor lives on outside."""
    w, kept = nt.parameter(nt.ones((4, 4))), []

    def f(x):
        v = x * 2

        def inner(t):
            u = t * v @ w
            v[0] = 3.0
            return u

        y = nt.checkpoint(inner)(x)
        kept.append(nt.stop_gradient(v))
        return nt.sum(y) + nt.sum(v)

    compiled, x = nt.compile(f), nt.ones((3, 4))
    seen = []
    functions: list[Callable[..., Any]] = [f, compiled, compiled, compiled, compiled]
    for function in functions:
        loss = function(x)
        loss.backward()
        seen.append((bits(loss), bits(w.grad), bits(kept[-1])))
        w.clear_grad()
    assert all(call == seen[0] for call in seen)
    assert kept[-1].tolist() == [[3.0] * 4, [2.0] * 4, [2.0] * 4]


def test_what_a_custom_function_keeps_has_elements_or_says_why_not():
    w, kept = nt.parameter(nt.ones((4, 4))), []

    def doubled(t):
        y = t * 2
        kept.append(y)
        return y, lambda g: g * 2

    f = nt.compile(lambda x: nt.sum(nt.custom_gradient(doubled)(x @ w)))
    x, seen = nt.ones((3, 4)), 0
    for _ in range(4):
        f(x).backward()
        for y in kept:
            try:
                assert y.tolist() == [[8.0] * 4] * 3
                seen += 1
            except nt.UnsupportedError as error:
                assert "has no elements" in str(error) and "Return it from the rule" in str(error)
        kept.clear()
    assert seen > 0


def test_rules_with_effects_leave_a_function_without_a_plan_with_the_reason():
    p, norm, kept = nt.parameter(nt.ones(4)), nt.Variable(nt.zeros(())), []

    def assigns(q):
        def pull(g):
            norm.value = nt.sum(g * g)
            return g

        return q * 1, pull

    def keeps(q):
        def pull(g):
            kept.append(g)
            return g

        return q * 1, pull

    f = nt.compile(lambda x: nt.sum(nt.custom_gradient(assigns)(x * p)))
    for _ in range(4):
        norm.value = nt.zeros(())
        loss = f(nt.ones(4))
        assert norm.value.item() == 0
        loss.backward()
        assert norm.value.item() == 4
    assert tiers(f) == ["compiled in segments"] and "assigns a Variable" in reason(f)

    f = nt.compile(lambda x: nt.sum(nt.custom_gradient(keeps)(x * p)))
    f(nt.ones(4))
    (ghost,) = kept
    for look in (repr, nt.Tensor.tolist, bytes, lambda g: g + 1, nt.Variable(nt.ones(4)).__iadd__):
        with pytest.raises(nt.UnsupportedError, match="no elements"):
            look(ghost)
    kept.clear()
    for _ in range(3):
        f(nt.ones(4)).backward()
    assert [g.tolist() for g in kept] == [[1.0] * 4] * 3
    assert tiers(f) == ["compiled in segments"] and "keeps a tensor" in reason(f)


def test_rules_that_look_or_raise_do_so_in_backward():
    p = nt.parameter(nt.ones(4))

    def looks(q):
        return q * 3, lambda g: g * 2 if nt.max(g).item() > 0 else g

    def raises(q):
        def pull(g):
            raise KeyError("in the pull")

        return q * 3, pull

    f = nt.compile(lambda x: nt.sum(nt.custom_gradient(looks)(x * p)))
    for _ in range(4):
        p.grad = None
        f(nt.ones(4)).backward()
        assert gradient_of(p).tolist() == [2.0] * 4
    assert tiers(f) == ["compiled in segments"] and "looks at a tensor's elements" in reason(f)

    f = nt.compile(lambda x: nt.sum(nt.custom_gradient(raises)(x * p)))
    for _ in range(4):
        loss = f(nt.ones(4))
        assert nt.stop_gradient(loss).item() == 12
        with pytest.raises(KeyError, match="in the pull"):
            loss.backward()
    assert tiers(f) == ["compiled in segments"] and "in the pull" in reason(f)


def test_a_checkpointed_function_that_looks():
    p = nt.parameter(nt.ones(4))

    def block(t):
        y = t * p
        return y * 2 if nt.max(y).item() > 0 else y

    f = nt.compile(lambda x: nt.sum(nt.checkpoint(block)(x)))
    for _ in range(4):
        p.grad = None
        f(nt.ones(4)).backward()
        assert gradient_of(p).tolist() == [2.0] * 4
    assert tiers(f) == ["compiled in segments"] and "looks at a tensor's elements" in reason(f)


@pytest.mark.parametrize("layer", (nt.nn.BatchNorm(4), nt.nn.Dropout(0.5), nt.nn.Linear(4, 4)))
def test_layers_compile_in_a_checkpoint(layer):
    w = nt.parameter(nt.ones((4, 4)))
    f = nt.compile(lambda x: nt.sum(nt.checkpoint(lambda t: layer(t))(x) @ w), check="never")
    for _ in range(4):
        f(nt.ones((3, 4)))
    assert tiers(f) == ["compiled"], reason(f)


def test_backward_where_nothing_flows():
    p = nt.parameter(nt.ones(2))
    nt.sum(nt.stop_gradient(p.value)).backward()
    assert p.grad is None
