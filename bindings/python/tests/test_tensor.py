"""Tensor: what it is made of, operators, indexing and text, beside NumPy."""

import copy
import itertools
import operator
import pickle
import sys
from typing import Any

import numpy as np
import pytest
from conftest import bits

import nitinol as nt

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
DTYPES += ["float16", "float32", "float64"]


def same(tensor, array):
    array = np.asarray(array)
    assert isinstance(tensor, nt.Tensor)
    assert tensor.shape == array.shape
    assert str(tensor.dtype) == array.dtype.name
    np.testing.assert_array_equal(tensor.numpy(), array)


# ---- made of numbers


@pytest.mark.parametrize("value, dtype, shape", [
    (1.5, "float32", ()), (3, "int64", ()), (True, "bool", ()), ([], "float32", (0,)),
    ([1, 2], "int64", (2,)), ([1, 2.0], "float32", (2,)), ([[True], [False]], "bool", (2, 1)),
    ([True, 2], "int64", (2,)), ([[], []], "float32", (2, 0)), (((1,), (2,)), "int64", (2, 1)),
    (range(3), "int64", (3,)),
])  # fmt: skip
def test_asarray_of_numbers(value, dtype, shape):
    if isinstance(value, range):
        value = list(value)
    x = nt.asarray(value)
    assert str(x.dtype) == dtype and x.shape == shape
    assert x.tolist() == np.asarray(value).tolist()


def test_asarray_with_dtype_and_device():
    assert nt.asarray([1.7, -1.2], dtype=nt.int32).tolist() == [1, -1]
    assert nt.asarray([1, 0], dtype="bool").tolist() == [True, False]
    assert nt.asarray([1], dtype=np.float64).dtype == nt.float64
    assert nt.asarray([1], dtype=np.dtype("int16")).dtype == nt.int16
    assert nt.asarray([1], dtype=float).dtype == nt.float32
    assert nt.asarray([1], device="cpu").device == nt.Device("cpu:0") == "cpu"
    x = nt.asarray([1.0])
    assert nt.asarray(x).tolist() == [1.0]


def test_asarray_of_tensors():
    rows = [nt.asarray([1.0, 2.0]), np.asarray([3.0, 4.0], np.float32)]
    assert nt.asarray(rows).tolist() == [[1, 2], [3, 4]]
    assert nt.asarray([[nt.asarray(1), 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize(
    "value, error, text",
    [
        ([[1, 2], [3]], nt.ShapeError, "differ in length"),
        ([1, [2]], nt.ShapeError, "mixes|differ"),
        ([[1], 2], nt.ShapeError, "mixes"),
        (1 << 70, OverflowError, r"an int, 11805.*from -2\*\*63 to 2\*\*64 - 1.*\n.*float"),
        ([1, 1 << 64], OverflowError, r"to 2\*\*64 - 1"),
        ([10**5000], OverflowError, "is an int; expected"),
        ("text", TypeError, "a str"),
        (None, TypeError, "None"),
        (object(), TypeError, "object"),
        ([1, "2"], TypeError, "a str"),
        (1 + 2j, TypeError, "complex"),
        ({1, 2}, TypeError, "set"),
    ],
)
def test_asarray_refuses(value, error, text):
    with pytest.raises(error, match=text):
        nt.asarray(value)


def test_asarray_refuses_what_the_dtype_does_not_hold():
    with pytest.raises(nt.ArgumentError, match="300"):
        nt.asarray([1, 300], dtype=nt.uint8)
    with pytest.raises(TypeError, match="a dtype"):
        nt.asarray([1], dtype="complex64")


# ---- operators

BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv,
          operator.mod, operator.lt, operator.le, operator.eq, operator.ne, operator.gt,
          operator.ge]  # fmt: skip
BITWISE = [operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift]
A = np.asarray([[5, 3, 7], [1, 2, 6]])
B = np.asarray([[2], [3]])


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_binary_operators(op, dtype):
    a, b = A.astype(dtype), B.astype(dtype)
    x, y = nt.asarray(a), nt.asarray(b)
    expected = op(a, b)
    if op is operator.truediv and dtype.startswith("int"):
        expected = a.astype("float32") / b.astype("float32")
    same(op(x, y), expected)
    # Arrays and numbers on either side; a number takes the tensor's dtype.
    same(op(x, b), expected)
    same(op(a, y), expected)
    for number in (2, 3):
        wide = expected.dtype
        same(
            op(x, number),
            op(a, a.dtype.type(number)).astype(
                wide if op is operator.truediv else op(a, a.dtype.type(number)).dtype
            ),
        )
        reflected = op(a.dtype.type(number), a)
        same(
            op(number, y),
            op(b.dtype.type(number), b).astype(wide if op is operator.truediv else reflected.dtype),
        )


@pytest.mark.parametrize("op", BITWISE, ids=lambda op: op.__name__)
def test_bitwise_operators(op):
    same(op(nt.asarray(A), nt.asarray(B)), op(A, B))
    same(op(nt.asarray(A), 2), op(A, 2))
    same(op(6, nt.asarray(B)), op(6, B))


def test_unary_operators_and_power():
    a = np.asarray([-1.5, 0.0, 2.0], np.float32)
    x = nt.asarray(a)
    same(-x, -a)
    same(+x, +a)
    same(abs(x), abs(a))
    same(~nt.asarray(A), ~A)
    same(~nt.asarray([True, False]), [False, True])
    same(x**2, a**2)
    same(2 ** nt.asarray([1.0, 2.0]), np.asarray([2, 4], np.float32))
    np.testing.assert_allclose((x @ x).numpy(), a @ a)
    np.testing.assert_allclose(
        (nt.asarray(A).to(nt.float64) @ nt.asarray(A.T.astype(float))).numpy(), A @ A.T
    )
    untyped: Any = 3
    with pytest.raises(TypeError):
        pow(x, 2, untyped)


@pytest.mark.parametrize("number, dtype, result", [
    (1, "float32", "float32"), (1.0, "float32", "float32"), (1.0, "float64", "float64"),
    (1.0, "int32", "float32"), (1, "uint8", "uint8"), (True, "int8", "int8"), (1, "bool", "int64"),
    (1.5, "bool", "float32"), (1, "float16", "float16"),
])  # fmt: skip
def test_numbers_are_weak(number, dtype, result):
    x = nt.ones((2,), dtype=dtype)
    assert str((x + number).dtype) == result and str((number + x).dtype) == result


def test_numbers_of_numpy():
    x = nt.ones((2,))
    assert str((x + np.float64(2)).dtype) == "float32"  # which is a float of Python
    assert str((x + np.float32(2)).dtype) == "float32"
    assert isinstance(np.float32(2) * x, nt.Tensor)
    assert isinstance(np.float64(2) * x, nt.Tensor)
    assert isinstance(np.ones(2) * x, nt.Tensor)
    assert x[np.int64(1)].item() == 1.0


def test_what_is_no_operand():
    x = nt.ones((2,))
    for op in (operator.add, operator.lt, operator.matmul, operator.pow):
        other: Any
        for other in ("1", None, [1, 2], {}):
            with pytest.raises(TypeError):
                op(x, other)
    assert (x == "1") is False and (x != None) is True  # noqa: E711

    class Reflected:
        def __radd__(self, other):
            return "reflected"

    assert x + Reflected() == "reflected"


def test_shapes_that_do_not_fit():
    with pytest.raises(nt.ShapeError, match=r"\[2, 3\] and \[4\]"):
        nt.ones((2, 3)) + nt.ones((4,))


# ---- numbers and iteration


def test_as_numbers_of_python():
    assert (
        float(nt.asarray(2.5)) == 2.5 and int(nt.asarray(2.5)) == 2 and int(nt.asarray(-2.5)) == -2
    )
    assert bool(nt.asarray(0.0)) is False and bool(nt.asarray([[1]])) is True
    assert [1, 2, 3][nt.asarray(1)] == 2 and list(range(nt.asarray(2))) == [0, 1]
    assert nt.asarray(True).item() is True and type(nt.asarray(3).item()) is int
    assert nt.asarray(9007199254740993).item() == 9007199254740993
    with pytest.raises(ValueError):
        bool(nt.ones((2,)))
    with pytest.raises(ValueError):
        float(nt.ones((2,)))
    with pytest.raises(TypeError):
        [1, 2, 3][nt.asarray(1.0)]
    with pytest.raises((ValueError, OverflowError)):
        int(nt.asarray(nt.inf))


def test_in():
    x = nt.asarray([[1.0, 2.0], [3.0, 4.0]])
    assert 3.0 in x and 5 not in x and 1 in x[0] and nt.asarray(2.0) in x
    assert np.array([3.0, 7.0], np.float32) in x  # as NumPy's: any element is equal
    assert None not in x and "a" not in x and 1 not in nt.zeros((0, 2))


def test_iteration_ends():
    x = nt.asarray([[1, 2], [3, 4]])
    assert [row.tolist() for row in x] == [[1, 2], [3, 4]] and len(x) == 2
    assert [y.item() for y in x[0]] == [1, 2]
    a, b = x
    assert b.tolist() == [3, 4]
    for broken in (len, iter, list):
        with pytest.raises(TypeError):
            broken(nt.asarray(1))


def test_attributes():
    x = nt.ones((2, 3), dtype=nt.float64)
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3), 2, 6, 8, 48)
    assert x.T.shape == (3, 2) and x.mT.shape == (3, 2) and x.strides == (3, 1)
    assert x[None].mT.shape == (1, 3, 2) and x[None].T.shape == (3, 2, 1)
    with pytest.raises(nt.ShapeError):
        nt.ones((2,)).mT
    assert not x.tracks_gradient
    untyped: Any = x
    with pytest.raises(AttributeError):
        untyped.shape = (3, 2)
    assert repr(nt.float32) == "nitinol.float32" and nt.float32.itemsize == 4
    assert nt.float32.is_floating and nt.int8.is_integer and not nt.bool_.is_integer


def test_methods_are_the_functions():
    x = nt.asarray([[1.0, -2.0], [3.0, 0.5]])
    assert bits(x.sum(0)) == bits(nt.sum(x, axis=0))
    assert bits(x.max(axis=1, keepdims=True)) == bits(nt.max(x, axis=1, keepdims=True))
    assert bits(x.reshape(4)) == bits(x.reshape((4,))) == bits(x.reshape(-1)) == bits(x.flatten())
    assert bits(x.astype(nt.int32)) == bits(x.to("int32")) == bits(x.to(nt.int32))
    assert x.std(correction=1).item() == nt.std(x, correction=1).item()
    assert bits(x.abs().sqrt().clip(0, 1)) == bits(nt.clip(nt.sqrt(nt.abs(x)), 0, 1))
    untyped: Any = x
    with pytest.raises(TypeError, match="sum"):
        untyped.sum(0, 1, 2, 3)


# ---- indexing

ARRAY = np.arange(2 * 3 * 4, dtype=np.float32).reshape(2, 3, 4)
PARTS = [0, -1, slice(None), slice(1, None), slice(None, None, -1), slice(-2, 3), None, Ellipsis,
         slice(2, 0, -1), slice(5, 9)]  # fmt: skip


def keys():
    yield ()
    yield from PARTS
    for count in (2, 3, 4):
        for key in itertools.product(PARTS, repeat=count):
            takes = sum(part is not None and part is not Ellipsis for part in key)
            if takes <= 3 and key.count(Ellipsis) <= 1 and hash(str(key)) % (4 ** (count - 1)) == 0:
                yield key


def test_basic_indexing():
    x = nt.asarray(ARRAY)
    count = 0
    for key in keys():
        same(x[key], ARRAY[key])
        count += 1
    assert count > 50


INDICES = [[0, 1], [[1, 0], [0, 1]], [-1], 1, []]


def test_indexing_by_one_array_of_integers():
    x = nt.asarray(ARRAY)
    for indices in INDICES:
        array = np.asarray(indices, dtype=np.int64)
        for given in (array, nt.asarray(array), nt.asarray(array, dtype="int32")):
            for key, beside in (
                ((given,), (array,)),
                ((slice(None), given), (slice(None), array)),
                ((..., given), (..., array)),
                ((given, slice(1, 3)), (array, slice(1, 3))),
                ((0, given), (0, array)),
                ((given, 0), (array, 0)),
                ((0, slice(None), given), (0, slice(None), array)),
                ((given, slice(None), 0), (array, slice(None), 0)),
                ((slice(None), given, 0), (slice(None), array, 0)),
                ((None, given), (None, array)),
                ((given, None, ..., 1), (array, None, ..., 1)),
            ):
                same(x[key], ARRAY[beside])
    same(x[[1, 0]], ARRAY[[1, 0]])


@pytest.mark.parametrize(
    "key",
    [
        2,
        -3,
        (0, 3),
        (0, 0, 0, 0),
        (0, 0, 0, slice(None)),
        "a",
        1.5,
        (..., ...),
        nt.asarray([5]),
        nt.asarray([0.5]),
        [7],
    ],
)
def test_indices_that_do_not_exist(key):
    with pytest.raises((IndexError, TypeError)):
        nt.asarray(ARRAY)[key]


def test_integers_have_no_negative_powers():
    x, wanted = nt.asarray([1, 2, 3]), "pow: an integer to the power of a negative integer"
    power = nt.compile(lambda a, b: a**b)
    for _ in range(4):
        assert power(x, x).tolist() == [1, 4, 27]
    for call in (
        lambda: x**-1,
        lambda: 2 ** nt.asarray([-1]),
        lambda: nt.pow(x, nt.asarray([0, -1, 0])),
        lambda: np.asarray([1, 2, 3]) ** nt.asarray(-1),
        lambda: power(x, nt.asarray([0, 0, -1])),
        lambda: power(x, -1),
    ):
        with pytest.raises(ValueError, match=wanted):
            call()
    assert (x**-1.0).tolist() == (x.float() ** -1).tolist() == [1, 0.5, pytest.approx(1 / 3)]


def test_rows_from_the_last_one_to_the_first():
    x = nt.asarray(ARRAY)
    for value in (x, nt.Variable(x)):
        rows = list(reversed(value))
        assert [row.tolist() for row in rows] == ARRAY[::-1].tolist()
    assert list(reversed(nt.zeros((0, 2)))) == []
    with pytest.raises(TypeError, match="0-d"):
        reversed(nt.asarray(1.0))


def test_assignment_gives_the_object_another_value():
    for key in keys():
        array, x = ARRAY.copy(), nt.asarray(ARRAY)
        other, view = x + 0, x[0]
        alias = copy.copy(x)
        array[key] = -1
        x[key] = -1
        same(x, array)
        for kept, expected in ((other, ARRAY), (view, ARRAY[0]), (alias, ARRAY)):
            same(kept, expected)
    x = nt.asarray(ARRAY)
    x[0, :, 1] = nt.asarray([7, 8, 9])
    assert x[0, :, 1].tolist() == [7, 8, 9] and x.dtype == nt.float32
    x[x > 8] = 0
    assert nt.max(x).item() == 8.0
    x[...] = np.ones((3, 4))
    assert nt.sum(x).item() == 24
    with pytest.raises(nt.ShapeError):
        x[0] = nt.ones((5,))
    with pytest.raises(IndexError):
        x[5] = 1
    untyped: Any = x
    with pytest.raises(TypeError):
        del untyped[0]


def test_augmented_assignment_rebinds_the_name():
    x = nt.asarray([1.0, 2.0])
    y = x
    x += 1
    assert x.tolist() == [2, 3] and y.tolist() == [1, 2]


# ---- text, copies, pickles


def test_text():
    x = nt.asarray([[1.0, 2.5]])
    assert repr(x) == str(x) == f"{x}" == "tensor([[1. , 2.5]], float32[1, 2])"
    assert f"{nt.asarray(2.5):.3f}" == "2.500" and f"{nt.asarray(3):04d}" == "0003"
    assert f"{nt.Variable(nt.asarray(2.5)):.1f}" == "2.5"
    with pytest.raises(TypeError, match=r"the format '\.3f' of float32\[2\]: expected one element"):
        f"{nt.zeros(2):.3f}"
    assert repr(nt.Variable(x)).startswith("Variable(tensor(")
    assert repr(nt.parameter(x)).startswith("parameter(tensor(")
    assert repr(nt.Device("cpu")) == "Device('cpu:0')" and repr(nt.Scalar(2)) == "Scalar(2)"
    assert "..." in repr(nt.zeros((2000,)))


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_pickles(protocol):
    def again(value):
        return pickle.loads(pickle.dumps(value, protocol))

    for dtype in [*DTYPES, "bfloat16"]:
        x = nt.asarray([[1, 0], [3, 2]]).to(dtype)
        assert again(x).tolist() == x.tolist() and again(x).dtype == x.dtype
    for x in (nt.asarray(ARRAY).T, nt.ones(()), nt.ones((0, 3)), nt.asarray(ARRAY)[:, ::-2]):
        assert bits(again(x)) == bits(x)
    assert again(nt.float32) is nt.float32
    assert again(nt.Device("cpu")) == "cpu"
    assert again(nt.Scalar(3)).item() == 3
    parameter = again(nt.parameter(nt.ones((2,))))
    assert parameter.tracks_gradient and parameter.tolist() == [1, 1]
    assert not again(nt.Variable(nt.ones((2,)))).tracks_gradient
    assert again(nt.exp) is nt.exp and again(nt.asarray) is nt.asarray


def test_damaged_pickles():
    make = nt._ext._tensor_of_bytes
    with pytest.raises(ValueError, match="bytes"):
        make(nt.float32, (3,), b"1234")
    with pytest.raises(ValueError):
        make(nt.float32, (-1,), b"")
    with pytest.raises((ValueError, NotImplementedError)):
        make(nt.float32, (1 << 40, 1 << 40), b"")


def test_copies():
    x = nt.asarray([1.0, 2.0])
    for made in (copy.copy(x), copy.deepcopy(x), copy.deepcopy([x])[0]):
        made[0] = 5
        assert x.tolist() == [1, 2]
    v = nt.Variable(x)
    shared, own = copy.copy(v), copy.deepcopy(v)
    v.value = x * 2
    assert shared.tolist() == [2, 4] and own.tolist() == [1, 2]
    pair = copy.deepcopy((v, v))
    assert pair[0] is pair[1]


def test_a_variable_is_transposed_as_its_value():
    x = nt.random.randn((2, 3, 4))
    v = nt.parameter(x)
    assert v.T.shape == (4, 3, 2) and bits(v.T) == bits(x.T) and bits(v.mT) == bits(x.mT)
    nt.sum(v.T * 2).backward()
    assert v.grad is not None and set(v.grad.numpy().ravel()) == {2.0}


def test_hashes():
    x = nt.ones((2,))
    assert x in {x} and (x + 0) not in {x}
    v = nt.Variable(x)
    assert hash(v) == hash(copy.copy(v))


def test_no_reference_is_lost_or_kept():
    array = np.ones((4, 4), np.float32)
    x = nt.ones((4, 4))
    before = sys.getrefcount(array), sys.getrefcount(x), sys.getrefcount(None)
    for _ in range(200):
        y = (x + array) @ x
        y[0] = array[0]
        y[nt.asarray([0])]
        nt.sum(y, axis=0, keepdims=True).tolist()
        np.asarray(y)
        memoryview(y)
        nt.from_dlpack(array)
        nt.clip(x, None, 1)
        try:
            x + nt.ones((3,))
        except ValueError:
            pass
    after = sys.getrefcount(array), sys.getrefcount(x), sys.getrefcount(None)
    assert abs(after[0] - before[0]) <= 1 and after[1] == before[1]
    assert abs(after[2] - before[2]) < 20


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float32", "float64"])
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70, -(2**70)])
def test_comparison_with_integers_beyond_int64(dtype, number):
    array = np.asarray([0, 1], dtype)
    if dtype == "int64":
        array = np.asarray([np.iinfo(dtype).min, -1, np.iinfo(dtype).max])
    if dtype.startswith("float"):
        array = np.asarray([0.0, number, np.inf, -np.inf, np.nan], dtype)
    x = nt.asarray(array)
    for compare in (operator.lt, operator.le, operator.eq, operator.ne, operator.gt, operator.ge):
        near = float(number) if dtype.startswith("float") else number
        assert compare(x, number).tolist() == [compare(v, near) for v in array.tolist()]
        assert compare(number, x).tolist() == [compare(near, v) for v in array.tolist()]
    if dtype.startswith("float") and number == 2**63:  # which uint64 holds
        assert (x + number).tolist()[:3] == (array + np.asarray(number, dtype)).tolist()[:3]
    else:
        with pytest.raises((OverflowError, ValueError)):
            x + number


def test_uint64_beyond_int64():
    high = 2**64 - 1
    x = nt.asarray([1, high])
    assert x.dtype == nt.uint64 and x.tolist() == [1, high] and int(x[1]) == high == x[1].item()
    assert nt.asarray(high).dtype == nt.uint64 and nt.full((2,), high).tolist() == [high] * 2
    assert (x + 1).tolist() == [2, 0] and (x // 2).tolist() == [0, high // 2]
    assert (x >> 63).tolist() == [0, 1] and x.to(nt.float64).tolist() == [1.0, 2.0**64]
    assert nt.sort(nt.asarray([high, 0, 2**63])).tolist() == [0, 2**63, high]
    assert nt.max(x).item() == high and nt.argmin(x).item() == 0 and nt.sum(x).item() == 0
    assert nt.asarray([1e30, -1.0, np.nan]).to(nt.uint64).tolist() == [high, 0, 0]
    assert np.asarray(x).tolist() == [
        1,
        high,
    ] and f"{x}" == f"tensor({[1, high]}, uint64[2])".replace("[1, ", "[                   1, ")
    for number in (-1, 0, high, 2**63 - 1, 2**64, -(2**70)):
        for compare in (
            operator.lt,
            operator.le,
            operator.eq,
            operator.ne,
            operator.gt,
            operator.ge,
        ):
            expected = [compare(v, number) for v in (1, high)]
            assert compare(x, number).tolist() == expected, (compare, number)
            if -(2**63) <= number < 2**63:  # known only when the Plan runs
                compiled = nt.compile(lambda t, n, c=compare: (c(t, n), c(n, t)))
                for _ in range(4):
                    left, right = compiled(x, nt.Scalar(number))
                    assert left.tolist() == expected
                    assert right.tolist() == [compare(number, v) for v in (1, high)]
                assert compiled.explain()["plan_calls"] > 0
    for name, refused in (
        ("add", lambda: x + -1),
        ("asarray", lambda: nt.asarray([-1, high])),
        ("asarray", lambda: nt.asarray([300], dtype="uint8")),
        ("full", lambda: nt.full((2,), 300, dtype="uint8")),
        (r"x\[\.\.\.\]", lambda: x.__setitem__(0, -1)),
    ):
        with pytest.raises(nt.ArgumentError, match=rf"^{name}: u?int\d+ does not hold the number"):
            refused()
    table = nt.arange(5)
    assert nt.take(table, nt.asarray([4, 0], dtype="uint64")).tolist() == [4, 0]
    with pytest.raises(
        nt.ArgumentError, match="^take: int64 does not hold"
    ):  # not the last element
        nt.take(table, x)
