"""compile(): arguments, results, what is promised, and what is said when something cannot be."""

import collections
import copy
import dataclasses
import enum
import gc
import inspect
import math
import re
import weakref
from typing import Any

import numpy as np
import pytest
from conftest import bits

import nitinol as nt
from nitinol import nn

# Nothing is checked of what is wrong on purpose.
untyped: Any = nt
X = nt.asarray([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])


def signature(f, i=0):
    return f.explain().data["signatures"][i]


def plan_calls(f):
    return f.explain().data["plan_calls"]


def agree(f, *args, **kwargs):
    """Calls f recorded, by its Plan, and eagerly; all results, which must have the same bits."""
    compiled = nt.compile(f, check="never")
    results = [compiled(*args, **kwargs) for _ in range(5)]
    assert plan_calls(compiled) >= 2, compiled.explain()
    with nt.eager():
        results.append(compiled(*args, **kwargs))
    results.append(compiled.eager(*args, **kwargs))
    return results


# ---- wrapping


def test_decorator_with_and_without_options():
    @nt.compile
    def plain(x):
        return x + 1

    @nt.compile(name="called", check="never")
    def named(x):
        """Says so."""
        return x + 1

    for _ in range(3):
        assert bits(plain(X)) == bits(named(X)) == bits(X + 1)
    assert plain.explain().data["name"].endswith("plain")
    assert named.explain().data["name"] == "called"
    assert named.__wrapped__.__doc__ == "Says so."


def test_methods_and_callable_objects():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @nt.compile
        def decorated(self, x):
            return x * self.factor

        def plain(self, x):
            return x * self.factor

        def __call__(self, x):
            return x * self.factor

    two, three = Scale(2.0), Scale(3.0)
    bound, called = nt.compile(two.plain), nt.compile(three)
    for _ in range(4):
        assert bits(two.decorated(X)) == bits(bound(X)) == bits(X * 2)
        assert bits(three.decorated(X)) == bits(called(X)) == bits(X * 3)
    assert signature(bound)["signature"] == "x: float32[2, 3]"
    assert signature(called)["signature"] == "x: float32[2, 3]"


def test_what_a_compiled_method_has_keeps_its_object():
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        @nt.compile
        def scaled(self, x, *, by=1.0):
            return x * self.factor * by

    two, three = Scale(2.0), Scale(3.0)
    kept = two.scaled
    for _ in range(4):
        assert bits(kept.eager(X)) == bits(two.scaled(X)) == bits(X * 2)
        assert bits(three.scaled.eager(X, by=2.0)) == bits(kept.eager(X, by=3.0)) == bits(X * 6)
        assert bits(kept.__wrapped__(X)) == bits(X * 2)
    assert kept.explain()["calls"] == Scale.scaled.explain()["calls"] > 0
    assert str(inspect.signature(kept)) == "(x, *, by=1.0)"
    assert kept.__self__ is two and kept.__func__ is Scale.scaled
    assert kept == two.scaled != three.scaled and hash(kept) == hash(two.scaled)
    assert "Scale.scaled of <" in repr(kept)
    other = copy.deepcopy({"object": two, "method": kept})
    assert other["method"].__self__ is other["object"] is not two
    with pytest.raises(AttributeError, match="no_such"):
        getattr(kept, "no_such")
    compiled = nt.compile(lambda f, x: f(x) + 1)
    for _ in range(6):
        assert bits(compiled(two.scaled, X)) == bits(X * 2 + 1)  # one fixed value
    assert len(compiled.explain()["signatures"]) == 1
    compiled(three.scaled, X)
    assert len(compiled.explain()["signatures"]) == 2


def test_a_compiled_method_is_collected_with_its_object():
    class Held:
        def __init__(self):
            self.method = self.double

        @nt.compile
        def double(self, x):
            return x * 2

    held = Held()
    seen = weakref.ref(held)
    del held
    gc.collect()
    assert seen() is None


def test_wrapping_what_cannot_be_called():
    with pytest.raises(TypeError, match="something that can be called"):
        untyped.compile(3)
    with pytest.raises(ValueError, match="check is 'sometimes'"):
        nt.compile(lambda x: x, check="sometimes")
    with pytest.raises(TypeError, match="@staticmethod"):
        nt.compile(staticmethod(lambda x: x))


def test_keyword_arguments_and_defaults():
    @nt.compile
    def f(x, scale=2.0, *, shift=0.0):
        return x * scale + shift

    for _ in range(3):
        assert bits(f(X)) == bits(X * 2)
        assert bits(f(X, shift=1.0, scale=3.0)) == bits(f(X, scale=3.0, shift=1.0))
    # The order in which names are given is no part of the call.
    assert len(f.explain().data["signatures"]) == 2
    misused: Any = f
    with pytest.raises(TypeError, match="unexpected keyword"):
        misused(X, other=1)


# ---- arguments

Pair = collections.namedtuple("Pair", "left right")


@dataclasses.dataclass
class Layer:
    weight: nt.Tensor
    bias: nt.Tensor
    name: str = "layer"


@dataclasses.dataclass(frozen=True)
class Net:
    first: Layer
    scale: float


class Custom:
    def __init__(self, value, tag):
        self.value, self.tag = value, tag


nt.register_pytree(Custom, lambda c: ((c.value,), c.tag), lambda tag, c: Custom(c[0], tag))


def leaf_of(tree):
    if isinstance(tree, nt.Tensor):
        return tree
    if isinstance(tree, dict):
        return leaf_of(next(iter(tree.values())))
    if isinstance(tree, Net):
        return tree.first.weight * tree.scale
    if isinstance(tree, Layer):
        return tree.weight
    if isinstance(tree, Custom):
        return tree.value
    return leaf_of(tree[0])


TREES = {
    "tuple": (X, 1),
    "list": [X, [X, 2.0]],
    "dict": {"a": X, "b": {"c": X}},
    "ordered": collections.OrderedDict(a=X, b=X),
    "named tuple": Pair(X, X + 1),
    "dataclass": Layer(X, X),
    "frozen": Net(Layer(X, X), 2.0),
    "registered": Custom(X, "tag"),
}


@pytest.mark.parametrize("kind", TREES)
def test_structures_as_arguments(kind):
    tree = TREES[kind]
    expected = bits(leaf_of(tree) + 1)
    for result in agree(lambda t: leaf_of(t) + 1, tree):
        assert bits(result) == expected


@pytest.mark.parametrize("kind", TREES)
def test_structures_as_results(kind):
    def f(tree):
        if isinstance(tree, Net):  # whose float would be a Scalar
            return Layer(tree.first.weight * 2, tree.first.bias, "new")
        return nt.tree_map(lambda x: x * 2, nt.tree_map(lambda x: x, drop(tree)))

    def drop(tree):
        return [tree[0], tree[1][0]] if isinstance(tree, list) else tree

    results = agree(f, TREES[kind])
    for result in results:
        assert type(result) is type(results[0])
        assert bits(leaf_of(result)) == bits(leaf_of(results[0]))
    if kind == "named tuple":
        assert results[2]._fields == ("left", "right")
    if kind == "registered":
        assert results[2].tag == "tag"


def test_floats_never_record_again():
    calls = []

    @nt.compile(check="never")
    def f(x, rate):
        calls.append(rate)
        return x * rate + nt.exp(rate)

    for i in range(50):
        rate = 0.1 * i
        assert bits(f(X, rate)) == bits(X * rate + nt.exp(rate))
    assert len(calls) == 2
    assert signature(f)["signature"] == "x: float32[2, 3], rate: Scalar float64"


class Mode(enum.Enum):
    A = 1
    B = 2


@pytest.mark.parametrize("values", [
    (1, 2, 3), ("a", "b"), (True, False), (Mode.A, Mode.B), (None, 1, True), (1, True),
    (1 << 70, 1 << 71), (-1, 0), (nt.float32, nt.float64), ((1, 2), (2, 1)), (b"x", b"y"),
    (np.int64(1), np.int64(2)), (frozenset([1]), frozenset([2])),
])  # fmt: skip
def test_fixed_arguments_have_plans_of_their_own(values):
    @nt.compile(check="never")
    def f(x, value):
        return x * (values.index(value) + 1)

    for _ in range(4):
        for value in values:
            assert bits(f(X, value)) == bits(X * (values.index(value) + 1))
    assert len(f.explain().data["signatures"]) == len(values)


def test_looking_at_a_float_makes_it_a_part_of_the_signature():
    @nt.compile(check="never")
    def f(x, limit):
        return x * 2 if limit > 0.5 else x * math.sqrt(limit)

    for _ in range(4):
        for limit in (0.25, 1.0):
            expected = X * 2 if limit > 0.5 else X * math.sqrt(limit)
            assert bits(f(X, limit)) == bits(expected)


def test_scalar_of_an_int():
    @nt.compile(check="never")
    def f(x, n):
        return x * n

    for n in range(6):
        assert bits(f(X, nt.Scalar(n))) == bits(X * n)
    assert len(f.explain().data["signatures"]) == 1


def test_arrays_are_tensors_inside():
    seen = []

    @nt.compile(check="never")
    def f(x):
        seen.append(type(x))
        return x + 1

    array = np.arange(4, dtype=np.float32)
    for i in range(4):
        array[0] = i
        assert f(array).tolist() == [i + 1, 2, 3, 4]
    assert set(seen) == {nt.Tensor}


@pytest.mark.parametrize(
    "value, path",
    [
        ([set()], r"p\[0\] is a set"),
        ({"a": [1, bytearray()]}, r"p\['a'\]\[1\] is a bytearray"),
        (Pair(1, {"k": set()}), r"p\.right\['k'\] is a set"),
    ],
)
def test_unhashable_arguments_are_named(value, path):
    f = nt.compile(lambda p: X)
    with pytest.raises(TypeError, match=path):
        f(value)


def test_dict_keys_in_another_order_are_another_signature():
    def f(d):
        total = 0
        for i, value in enumerate(d.values()):
            total = total + value * (i + 1)
        return total

    compiled = nt.compile(f, check="never")
    a, b = {"x": X, "y": X + 1}, {"y": X + 1, "x": X}
    for _ in range(4):
        assert bits(compiled(a)) == bits(f(a))
        assert bits(compiled(b)) == bits(f(b))


def test_signature_limit():
    f = nt.compile(lambda x, n: x * n, signature_limit=4)
    for n in range(20):
        assert bits(f(X, n)) == bits(X * n)
    assert len(f.explain().data["signatures"]) == 4


# ---- results


def test_results_that_are_no_tensors():
    def f(x):
        return {
            "n": 3,
            "f": 2.5,
            "none": None,
            "flag": True,
            "text": "t",
            "x": x * 2,
            "nan": nt.nan,
        }

    for result in agree(f, X):
        assert list(result) == ["n", "f", "none", "flag", "text", "x", "nan"]
        assert result["n"] == 3 and type(result["n"]) is int and result["f"] == 2.5
        assert result["none"] is None and result["flag"] is True and result["text"] == "t"
        assert bits(result["x"]) == bits(X * 2) and math.isnan(result["nan"])


def test_arguments_and_repeated_tensors_as_results():
    def f(x):
        y = x + 1
        return x, y, y

    for x, y, again in agree(f, X):
        assert bits(x) == bits(X) and bits(y) == bits(again) == bits(X + 1)


def test_results_are_containers_of_their_own():
    f = nt.compile(lambda x: [x + 1], check="never")
    results = [f(X) for _ in range(5)]
    results[-1].append(1)
    assert len(f(X)) == 1


class Opaque:
    pass


@pytest.mark.parametrize(
    "make, name",
    [
        (lambda x: Opaque(), "Opaque"),
        (lambda x: (i for i in [x]), "generator"),
        (lambda x: {x.shape}, "set"),
        (lambda x: np.zeros(2), "ndarray"),
        (lambda x: nt.Variable(x), "Variable"),
        (lambda x: nt.Scalar(1.0), "Scalar"),
    ],
)
def test_results_that_cannot_be(make, name):
    f = nt.compile(make)
    for _ in range(3):
        f(X)
    assert signature(f)["tier"] == "compiled in segments"
    assert name in signature(f)["reason"]


def test_a_coroutine_runs_eagerly():
    async def f(x):
        return x + 1

    compiled = nt.compile(f)
    for _ in range(3):
        coroutine = compiled(X)
        try:
            coroutine.send(None)
        except StopIteration as stop:
            assert bits(stop.value) == bits(X + 1)
    assert "coroutine" in signature(compiled)["reason"]


# ---- what the function does to its arguments


def test_assigning_elements_of_an_argument_is_not_seen_outside():
    def f(x):
        x[0] = 7
        return x * 2

    x = X + 0
    results = agree(f, x)
    assert bits(x) == bits(X)
    expected = nt.asarray([[14.0, 14.0, 14.0], [1.0, 0.5, -8.0]])
    assert {bits(r) for r in results} == {bits(expected)}


def test_changing_containers_is_not_seen_outside():
    def f(d, items):
        d["new"] = d.pop("old") + 1
        items.append(d["new"])
        return items[-1] * len(items)

    d, items = {"old": X}, [X]
    results = agree(f, d, items)
    assert list(d) == ["old"] and len(items) == 1
    assert {bits(r) for r in results} == {bits((X + 1) * 2)}


def test_assigning_elements_of_a_captured_tensor_is_an_obstacle():
    buffer = nt.zeros((3,))

    @nt.compile
    def f(x):
        buffer[0] = buffer[0] + 1
        return x

    for _ in range(5):
        f(X)
    assert buffer.tolist() == [5, 0, 0]
    assert "assigns elements of a tensor" in signature(f)["reason"]


def test_variables_are_committed_together_or_not_at_all():
    v, w = nt.Variable(nt.zeros((2,))), nt.Variable(nt.zeros((2,)))

    @nt.compile
    def f(x, fails):
        v.value = v + x
        if fails:
            raise KeyError("half way")
        w.value = w + v
        return v.value

    one = nt.ones((2,))
    for i in range(1, 7):
        f(one, False)
        with pytest.raises(KeyError, match="half way"):
            f(one, True)
        assert v.value.tolist() == [i, i]
        assert w.value.tolist() == [i * (i + 1) / 2] * 2


@pytest.mark.parametrize("call", range(1, 6))
def test_an_exception_in_any_call_passes_through(call):
    count = 0

    @nt.compile(check="always")
    def f(x):
        nonlocal count
        count += 1
        if count == call:
            raise KeyboardInterrupt
        return x + 1

    for i in range(1, 8):
        if i == call:
            with pytest.raises(KeyboardInterrupt):
                f(X)
        else:
            assert bits(f(X)) == bits(X + 1)


def test_errors_are_those_of_eager_code():
    @nt.compile
    def f(x, i):
        return nt.take(x, i)

    for _ in range(4):
        assert f(X, nt.asarray([0, 1])).shape == (2, 3)
    with pytest.raises(nt.ArgumentError) as compiled:
        f(X, nt.asarray([0, 5]))
    with pytest.raises(nt.ArgumentError) as eager:
        nt.take(X, nt.asarray([0, 5]))
    assert str(compiled.value) == str(eager.value)


def test_nesting_and_recursion():
    inner = nt.compile(lambda x: x * 2)

    @nt.compile
    def outer(x, depth):
        return inner(x) if depth == 0 else outer(x + 1, depth - 1)

    for _ in range(4):
        assert bits(outer(X, 3)) == bits((X + 3) * 2)
    assert plan_calls(outer) > 0


def test_a_plan_takes_another_shape_and_dtype():
    f = nt.compile(lambda x: nt.sum(x * 2), check="never")
    for shape in ((3,), (2, 2), (0,), ()):
        for dtype in (nt.float32, nt.float64, nt.int32):
            x = nt.ones(shape, dtype=dtype)
            for _ in range(3):
                assert bits(f(x)) == bits(nt.sum(x * 2))


# ---- state of modules


class Module(nt.nn.Module):
    def __init__(self):
        self.weight = nt.parameter(nt.ones((3,)))
        self.factor = 2
        self.shift = nt.ones((3,))
        self.inner = None

    def __call__(self, x):
        y = x * self.weight * self.factor + self.shift
        return y * 10 if self.training else y


def test_attributes_of_modules_are_watched():
    module = Module()
    f = nt.compile(module, check="never")

    def check():
        for _ in range(4):
            assert bits(f(X)) == bits(module(X))

    check()
    recorded = f.explain().data["recorded_calls"]
    for change in (
        lambda: setattr(module, "factor", 3),
        lambda: setattr(module, "shift", nt.zeros((3,))),
        lambda: module.eval(),  # a default of the class until then
        lambda: setattr(module, "weight", nt.parameter(nt.ones((3,)) * 5)),
        lambda: setattr(module, "weight", module.weight * 2),  # the Variable's value
    ):
        change()
        check()
    assert f.explain().data["recorded_calls"] > recorded
    # What comes back finds its Plan.
    before = f.explain().data["recorded_calls"]
    module.train()
    check()
    module.eval()
    for _ in range(3):
        assert bits(f(X)) == bits(module(X))
    assert f.explain().data["recorded_calls"] <= before + 3


def test_assigning_an_attribute_inside_is_an_obstacle():
    module: Any = Module()

    @nt.compile
    def f(x):
        module.cache = x * 2
        return module.cache

    for _ in range(3):
        f(X)
    assert "self.cache" in signature(f)["reason"]


def test_modules_that_the_function_makes_are_its_own():
    kept: list[Any] = []
    outside: Any = nn.Module()  # which has no attributes yet

    @nt.compile(check="never")
    def f(x):
        layer: Any = nn.LeakyRelu(0.25)
        layer.extra = 2
        if not kept:
            kept.append(layer)
        return layer(x) * layer.extra

    for _ in range(5):
        assert bits(f(X)) == bits(nn.LeakyRelu(0.25)(X) * 2)
    assert plan_calls(f) == 3

    @nt.compile(check="never")
    def g(x):  # of which one that an earlier call has made is watched as any other
        return kept[0](x)

    for slope in (0.25, 0.5, 0.25):
        kept[0].slope = slope
        for _ in range(4):
            assert bits(g(X)) == bits(nn.LeakyRelu(slope)(X))
    assert plan_calls(g) >= 4

    @nt.compile
    def h(x):
        outside.cache = x * 2
        return outside.cache

    for _ in range(3):
        h(X)
    assert "self.cache" in signature(h)["reason"]


def test_a_cache_is_its_variables():
    @nt.compile(check="never")
    def f(cache, x):
        cache.keys = cache.keys + x
        cache.length.value = cache.length + 1
        assert isinstance(cache, nn.KeyValueCache)
        return cache.keys * 2

    x = nt.ones((1, 2, 4, 3))
    for _ in range(4):
        cache = nn.KeyValueCache(1, 2, 4, 3)
        for i in range(3):
            assert bits(f(cache, x)) == bits((x * (i + 1)) * 2)
        assert cache.length.item() == 3 and bits(cache.keys.value) == bits(x * 3)
    assert len(f.explain().data["signatures"]) == 1 and plan_calls(f) >= 9
    longer = nn.KeyValueCache(1, 2, 5, 3)
    assert f(longer, nt.ones((1, 2, 5, 3))).shape == (1, 2, 5, 3)


def test_assigning_a_variable_of_a_module_inside():
    # Any, as no type says that an attribute is a Variable and may be assigned a Tensor.
    module: Any = Module()

    @nt.compile(check="never")
    def f(x):
        module.weight = module.weight * 2
        return x * module.weight

    for i in range(1, 6):
        assert bits(f(X)) == bits(X * 2.0**i)
    assert plan_calls(f) >= 2


def test_host_value():
    flag = nt.HostValue(True)
    f = nt.compile(lambda x: x * 2 if flag else x, check="never")
    for value in (True, False, True, False):
        flag.value = value
        for _ in range(3):
            assert bits(f(X)) == bits(X * 2 if value else X)
    assert len(f.explain().data["signatures"]) == 2


def test_zeros_of_both_signs_are_two_values_of_a_host_value():
    factor = nt.HostValue(0.0, name="factor")
    f = nt.compile(lambda x: x * factor.value, check="never")
    for value in (0.0, -0.0, 0.0, -0.0, float("nan")):
        factor.value = value
        for _ in range(3):
            assert bits(f(X)) == bits(X * value)
    assert f.explain().data["signatures"][1]["cause"] == "factor changed"


# ---- what is said


def test_the_cause_names_the_attribute_that_changed():
    class Net(nt.nn.Module):
        def __init__(self):
            self.factor = 2.0
            self.bias = 1.0

        def __call__(self, x):
            return x * self.factor + self.bias

    net = Net()
    f = nt.compile(net)
    for _ in range(3):
        f(X)
    net.bias = 3.0
    f(X)
    assert f.explain().data["signatures"][1]["cause"] == "Net.bias changed"


def line_of(marker):
    with open(__file__) as file:
        for number, line in enumerate(file, 1):
            if line.rstrip().endswith("# " + marker):
                return number
    raise AssertionError(marker)


def looks_by_if(x):
    return x if nt.sum(x) > 0 else -x  # if


def looks_by_item(x):
    return x * x[0, 0].item()  # item


def looks_by_float(x):
    return x * float(x[0, 0])  # float


def looks_by_numpy(x):
    return x + np.asarray(x).sum()  # numpy


def looks_by_tolist(x):
    return x * len(x.tolist())  # tolist


@pytest.mark.parametrize("word", ["if", "item", "float", "numpy", "tolist", "print", "format"])
def test_a_look_names_the_line_of_python(word):
    f = nt.compile(globals()[f"looks_by_{word}"])
    f(X)
    found = signature(f)
    assert found["tier"] == "compiled in segments"
    assert found["place"].endswith(f"test_compile.py:{line_of(word)}")
    assert f"test_compile.py:{line_of(word)}" in str(f.explain())


def looks_by_print(x):
    print(x)  # print
    return x + 1


def looks_by_format(x):
    return x * len(f"{x[0, 0]:.3f}")  # format


def test_what_is_printed_inside_is_what_eager_prints_at_each_call(capsys):
    weight = nt.Variable(X * 2)

    def f(x):
        total = nt.sum(x)
        print(x, f"{total:.2f}", f"{x}", str(weight), f"{weight}")
        return x + 1

    f(X)
    wanted = capsys.readouterr().out
    g = nt.compile(f)
    for _ in range(4):
        g(X)
    assert capsys.readouterr().out == wanted * 4


def test_repr_inside_does_not_end_the_recording():
    seen = []

    @nt.compile(check="never")
    def f(x):
        seen.append(repr(x + 1))
        return x + 1

    for _ in range(4):
        f(X)
    assert plan_calls(f) == 2
    assert len(seen) == 2 and "being recorded" in seen[0]


def test_explanations():
    def net(params, x, flag=True):
        return x * params["w"] if flag else x

    f = nt.compile(net)
    for _ in range(4):
        f({"w": X}, X, flag=False)
    f({"w": X}, X, flag=True)
    explanation = f.explain()
    text = str(explanation)
    assert "params['w']: float32[2, 3], x: float32[2, 3], flag=False" in text
    assert re.search(r"`flag` (was|is) ", text), text
    assert explanation.data["calls"] == 5 and explanation["calls"] == 5
    assert explanation._repr_html_().startswith("<iframe ")
    assert explanation.to_json().startswith("{")


def test_stances():
    f = nt.compile(lambda x: x + 1)
    for _ in range(4):
        f(X)
    with nt.stance("fail_on_recompile"):
        with pytest.raises(nt.CompileError, match="needs another Plan"):
            f(nt.ones((7,)))
    g = nt.compile(looks_by_item)
    g(X)
    with nt.stance("fail_on_fallback"):  # what lies between looks is compiled
        assert bits(g(X)) == bits(looks_by_item(X))
    with pytest.raises(ValueError, match="stance 'other'"):
        nt.stance("other")
    f.set_stance("eager")
    before = plan_calls(f)
    f(X)
    assert plan_calls(f) == before


@pytest.mark.parametrize(
    "option, value, expected",
    [
        ("check", 1, "'scheduled', 'always' or 'never'"),
        ("check_interval_ms", "soon", "a number of milliseconds"),
        ("signature_limit", 2.5, "a whole number"),
        ("in_background", "yes", "True or False"),
        ("quick_code", "yes", "True or False"),
    ],
)
def test_options_of_another_kind(option, value, expected):
    message = f"compile: {option} is {value!r}; expected {expected}"
    with pytest.raises(TypeError, match=re.escape(message)):
        nt.compile(lambda x: x, **{option: value})


def test_quick_code():
    def f(x):
        return nt.softmax(nt.tanh(nt.cos(x)) * nt.sin(x) - nt.exp(-x))

    x = nt.reshape(nt.arange(0, 60, 1, dtype=nt.float32), (5, 12))
    g = nt.compile(f, quick_code=True)
    for _ in range(5):
        assert bits(g(x)) == bits(f(x))
    assert "quickly generated" in str(g.explain())


def test_in_background():
    import time

    f = nt.compile(lambda x: nt.tanh(x) * 2, in_background=True)
    deadline = time.monotonic() + 30
    while plan_calls(f) == 0 and time.monotonic() < deadline:
        assert bits(f(X)) == bits(nt.tanh(X) * 2)
    assert plan_calls(f) > 0


def test_captured_state_is_compared():
    state = {"k": 2.0}
    f = nt.compile(lambda x: x * state["k"], check="always")
    for _ in range(3):
        f(X)
    state["k"] = 3.0
    assert bits(f(X)) == bits(X * 3)


def test_a_tensor_given_twice_is_two_values():
    @nt.compile
    def f(x, y):
        x[0] = 7.0
        return y * 1

    for _ in range(6):
        x = nt.ones((2, 3))
        assert bits(f(x, x)) == bits(nt.ones((2, 3)))
        assert x[0, 0] == 1
    with nt.eager():
        assert bits(f(x, x)) == bits(x)
