"""What programs do that nobody planned for: an exception, or the right result; never a crash."""

import collections
import gc
import threading
from typing import Any

import numpy as np
import pytest
from conftest import bits

import nitinol as nt

# Nothing is checked of what is wrong on purpose.
untyped: Any = nt
X = nt.asarray([1.0, 2.0, 3.0])


class Text(str):
    pass


class Number(int):
    pass


class Real(float):
    pass


@pytest.mark.parametrize("values", [
    (Text("a"), "a"), (Number(1), 1, True), (np.bool_(True), True), (np.int64(1), np.int32(1), 1),
    (np.float32(1.5), np.float32(2.5)), (Real(1.5), Real(2.5), 1.5), (nt.nan, -nt.nan, nt.inf),
    (np.float64(1.5), 2.5),
])  # fmt: skip
def test_relatives_of_pythons_numbers(values):
    seen = []

    @nt.compile(check="never")
    def f(x, value):
        seen.append(type(value))
        return x if isinstance(value, str) else x * value

    for _ in range(5):
        for value in values:
            expected = X if isinstance(value, str) else X * value
            assert bits(f(X, value)) == bits(expected), value
    # Floats, of whatever class, compile nothing; a str is one of its own class only.
    if isinstance(values[0], float):
        assert len(f.explain().data["signatures"]) == 1


def test_nan_is_one_number():
    f = nt.compile(lambda x, n: x + n, check="never")
    for _ in range(20):
        f(X, float("nan"))
    assert len(f.explain().data["signatures"]) == 1


def test_a_result_that_is_the_function_itself():
    @nt.compile
    def f(x):
        return f

    for _ in range(3):
        assert f(X) is f
    assert "Compiled" in f.explain().data["signatures"][0]["reason"]


def test_a_closure_over_a_tensor_of_the_trace():
    @nt.compile
    def f(x):
        y = x * 2
        return lambda: y + 1

    for _ in range(4):
        assert bits(f(X)()) == bits(X * 2 + 1)


def test_a_tensor_that_leaves_by_the_side_door():
    held = []

    @nt.compile
    def f(x):
        y = x * 2
        held.append(y)
        return y + (held[-2] if len(held) > 1 else 0)

    for i in range(6):
        x = X + i
        before = held[-1] if held else None
        expected = x * 2 + (before if before is not None else 0)
        assert bits(f(x)) == bits(expected)
    assert bits(held[0]) == bits(X * 2)


def test_a_scalar_that_leaves_by_the_side_door():
    held = []

    @nt.compile(check="always")
    def f(x, rate):
        held.append(rate)
        return x * rate

    for rate in (0.5, 1.5, 2.5):
        f(X, rate)
    assert [float(s) for s in held] == [0.5, 1.5, 2.5]
    assert bits(X * held[1]) == bits(X * 1.5)


@pytest.mark.parametrize("error", [SystemExit, MemoryError, GeneratorExit, StopIteration])
def test_unusual_exceptions(error):
    @nt.compile(check="always")
    def f(x, fails):
        if fails:
            raise error("deliberate")
        return x + 1

    for _ in range(3):
        f(X, False)
        with pytest.raises(error, match="deliberate"):
            f(X, True)
    assert bits(f(X, False)) == bits(X + 1)


def test_exceptions_of_what_it_is_given():
    class Broken:
        def __hash__(self):
            raise RuntimeError("no hash")

        def __eq__(self, other):
            raise RuntimeError("no comparison")

    class Odd(int):
        def __reduce_ex__(self, protocol):
            raise RuntimeError("no parts")

    class Shy:
        def __repr__(self):
            raise RuntimeError("no text")

    f = nt.compile(lambda x, k: x)
    told_apart = [Broken(), Odd(3)]
    for given in told_apart:  # by what they are: they are asked for nothing
        for _ in range(4):
            f(X, given)
    assert [s["tier"] for s in f.explain()["signatures"]] == ["compiled", "compiled"]
    with pytest.raises(RuntimeError, match="no text"):
        f(X, Shy())
    with pytest.raises(TypeError):
        untyped.exp(Shy())
    assert bits(f(X, 1)) == bits(X)


def test_registered_classes_that_lie():
    class Bad:
        pass

    for flatten, error in (
        (lambda b: 3, TypeError),
        (lambda b: ((), []), TypeError),
        (lambda b: (3, None), TypeError),
        (lambda b: 1 / 0, ZeroDivisionError),
    ):
        untyped.register_pytree(Bad, flatten, lambda aux, children: Bad())
        with pytest.raises(error):
            nt.compile(lambda b: X)(Bad())
    with pytest.raises(TypeError):
        untyped.register_pytree(3, None, None)


def test_structures_that_change_while_they_are_taken_apart():
    class Growing(list[Any]):
        def __len__(self):
            return super().__len__()

    items = Growing([X])

    @nt.compile
    def f(xs):
        items.append(X)
        return xs[0] + len(xs)

    for i in range(4):
        assert bits(f(items)) == bits(X + (i + 1))


def test_threads_started_inside():
    @nt.compile
    def f(x):
        found = []
        thread = threading.Thread(target=lambda: found.append(x * 2))
        thread.start()
        thread.join()
        return found[0] + 1

    for _ in range(4):
        assert bits(f(X)) == bits(X * 2 + 1)
    assert f.explain().data["plan_calls"] == 0


def test_numpy_inside():
    @nt.compile
    def f(x):
        return nt.asarray(np.sort(np.asarray(-x)))

    for _ in range(3):
        assert f(X).tolist() == [-3, -2, -1]


def test_sizes_beyond_memory():
    for call in (
        lambda: nt.zeros((1 << 40, 1 << 40)),
        lambda: nt.zeros((1 << 62,)),
        lambda: nt.zeros((-1,)),
        lambda: nt.arange(0, 1e30),
        lambda: nt.eye(1 << 40),
        lambda: nt.broadcast_to(X, (1 << 62, 1 << 62, 3)),
    ):
        with pytest.raises((ValueError, MemoryError, OverflowError)):
            call()
    assert X.tolist() == [1, 2, 3]


@pytest.mark.parametrize("call", [
    lambda: nt.sum(X, axis=True), lambda: untyped.sum(X, axis=1.0), lambda: untyped.sum(X, axis=((),)),
    lambda: nt.sum(X, axis=3), lambda: nt.reshape(X, (2, -1)), lambda: untyped.reshape(X, "3"),
    lambda: nt.zeros((1 << 70,)), lambda: untyped.zeros("3"), lambda: untyped.zeros((1.5,)),
    lambda: nt.concat([]), lambda: untyped.concat(X), lambda: untyped.concat([X, "a"]),
    lambda: nt.take(X, X), lambda: untyped.clip(X, "a"), lambda: untyped.full((2,), "a"),
    lambda: nt.random.randint(3, 1, (2,)), lambda: nt.Device("gpu"), lambda: nt.Device("cuda:99x"),
    lambda: nt.asarray(X, device="cuda:99"), lambda: X.to("nowhere"), lambda: untyped.Variable("a"),
    lambda: nt.Variable(X).set(nt.ones((2,))), lambda: nt.parameter(nt.asarray([1])),
    lambda: nt.random.Generator(-1), lambda: nt.set_num_threads(0), lambda: untyped.Scalar("1"),
    lambda: nt.set_log_level("loud"), lambda: nt.nn.warm_up(-1, nt.nn.cosine_decay(1.0, 1)),
    lambda: nt.conv2d(X, X), lambda: nt.permute_dims(X, (1,)), lambda: untyped.where(X, X),
])  # fmt: skip
def test_arguments_that_make_no_sense(call):
    with pytest.raises((ValueError, TypeError, OverflowError, RuntimeError, IndexError)) as raised:
        call()
    assert str(raised.value)


def test_objects_made_without_their_constructors():
    kind: Any
    for kind in (
        nt.Tensor,
        nt.Variable,
        nt.Scalar,
        nt.Device,
        nt.Compiled,
        nt.random.Generator,
        nt.HostValue,
        nt.nn.Adam,
        nt.nn.DataLoader,
    ):
        try:
            made = kind.__new__(kind)
        except TypeError:
            continue
        use: Any
        for use in (
            repr,
            hash,
            lambda m: m + 1,
            lambda m: m(X),
            lambda m: m.shape,
            iter,
            lambda m: nt.exp(m),
            lambda m: nt.compile(lambda x: X)(m),
            lambda m: m[0],
        ):
            try:
                use(made)
            except Exception:
                pass
        del made
    gc.collect()


def test_lists_without_an_end():
    endless: list[Any] = []
    endless.append(endless)
    with_tensor: list[Any] = [X]
    with_tensor.append(with_tensor)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for given in (endless, with_tensor, deep):
        for call in (nt.asarray, nt.Tensor, lambda x: X[x], nt.compile(lambda x: X)):
            with pytest.raises((RecursionError, TypeError, ValueError, IndexError)):
                call(given)


class Counts(dict[str, Any]):
    factor: float


class Names(list[Any]):
    pass


class Trio(tuple[Any, ...]):
    pass


def moved(a, b):
    made = collections.OrderedDict(a=a, b=b)
    made.move_to_end("a")
    return made


def test_the_order_of_ordered_dicts():
    made = nt.compile(lambda x: moved(x, x + 1))
    for _ in range(6):
        result = made(X)
        assert type(result) is collections.OrderedDict and list(result) == ["b", "a"]
        assert bits(result["a"]) == bits(X) and bits(result["b"]) == bits(X + 1)
    assert made.explain().data["plan_calls"] > 0
    f = nt.compile(lambda d: [(key, x * 1) for key, x in d.items()])
    for _ in range(6):
        assert [key for key, _ in f(collections.OrderedDict(a=X, b=X + 1))] == ["a", "b"]
        (first, x), (second, y) = f(moved(X, X + 1))
        assert (first, second) == ("b", "a")
        assert bits(x) == bits(X + 1) and bits(y) == bits(X)
    mapped = nt.tree_map(lambda x: x * 2, moved(X, X + 1))
    assert list(mapped) == ["b", "a"] and bits(mapped["a"]) == bits(X * 2)


def test_the_class_of_a_dict_is_part_of_its_structure():
    f = nt.compile(lambda d: type(d).__name__, check="never")
    for _ in range(5):
        for given in (
            {"a": X},
            collections.OrderedDict(a=X),
            Counts(a=X),
            collections.defaultdict[str, Any](list, a=X),
        ):
            assert f(given) == type(given).__name__


def test_what_a_dict_has_beside_its_items():
    f = nt.compile(lambda d: d["a"] * d["b"], check="never")
    for _ in range(4):
        for number in (2.0, 3.0):
            d = collections.defaultdict({2.0: two, 3.0: three}[number], a=X)
            assert bits(f(d)) == bits(X * number)
            assert list(d) == ["a"]
    g = nt.compile(lambda d: d["a"] * d.factor, check="never")
    for _ in range(4):
        for factor in (2, 2.5, 0.0, -0.0, True):
            counts = Counts(a=X)
            counts.factor = factor
            assert bits(g(counts)) == bits(X * factor)
    causes = [each["cause"] for each in g.explain().data["signatures"]]
    assert causes[1] == "`d.factor` is 2.5, was 2"
    assert "`d.default_factory` is" in f.explain().data["signatures"][1]["cause"]


def two():
    return 2.0


def three():
    return 3.0


@pytest.mark.parametrize("made", [
    lambda x: Counts(a=x), lambda x: Names([x]), lambda x: Trio([x]),
    lambda x: collections.defaultdict(list, a=x),
])  # fmt: skip
def test_subclasses_of_containers_as_results(made):
    f = nt.compile(lambda x: {"within": made(x * 2)})
    for _ in range(5):
        result = f(X)["within"]
        assert type(result) is type(made(X))
        assert bits(next(iter(getattr(result, "values", lambda: result)()))) == bits(X * 2)
    assert type(made(X)).__name__ in f.explain().data["signatures"][0]["reason"]
