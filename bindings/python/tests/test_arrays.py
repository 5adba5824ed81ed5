"""Memory in and out: NumPy, DLPack, Python's buffers; hostile arrays are refused, never a crash."""

import array as arrays
import base64
import ctypes
import hashlib
import io
import multiprocessing
import struct
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nitinol as nt

DTYPES = ["bool", "uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"]
DTYPES += ["float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (0, 3), (2, 1, 3, 1, 2, 1, 1, 2)])
def test_there_and_back(dtype, shape):
    # Any, as NumPy does not say before Python 3.12 that its arrays are buffers.
    a: Any = (np.arange(int(np.prod(shape))).reshape(shape) % 3).astype(dtype)
    for x in (
        nt.asarray(a),
        nt.from_dlpack(a),
        nt.asarray(a, copy=False),
        nt.asarray(memoryview(a)),
    ):
        assert x.shape == shape and str(x.dtype) == dtype
        for back in (np.asarray(x), x.numpy(), np.from_dlpack(x), np.asarray(memoryview(x))):
            assert back.dtype == a.dtype and back.shape == a.shape
            np.testing.assert_array_equal(back, a)
        for back in (np.asarray(x), x.numpy(), np.asarray(memoryview(x))):
            assert not back.flags.writeable
    assert np.array(nt.asarray(a)).flags.writeable


LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "transposed": lambda a: a.T,
    "every second": lambda a: a[:, ::2],
    "backwards": lambda a: a[::-1, ::-1],
    "repeated": lambda a: np.broadcast_to(a[0], (5, 4)),
    "one column": lambda a: a[:, 1],
    "fortran": np.asfortranarray,
    "of zero steps": lambda a: np.lib.stride_tricks.as_strided(a, (3, 3), (0, 0)),
    "read-only": lambda a: (a.setflags(write=False), a)[1],
}


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float32", "int16", "bool"])
def test_layouts(name, dtype):
    a = LAYOUTS[name](np.arange(16).reshape(4, 4).astype(dtype))
    for copy in (None, True, False):
        x = nt.asarray(a, copy=copy)
        np.testing.assert_array_equal(x.numpy(), a)
        np.testing.assert_array_equal(
            (x & x if dtype == "bool" else x + x).numpy(), a if dtype == "bool" else a + a
        )
    y = nt.asarray(np.arange(16).reshape(4, 4).astype(dtype))
    np.testing.assert_array_equal(np.from_dlpack(y.T), np.asarray(y).T)


def test_copies_are_not_written_through():
    a = np.zeros(4, np.float32)
    copied, borrowed = nt.asarray(a), nt.asarray(a, copy=False)
    again = nt.from_dlpack(a), nt.from_dlpack(a, copy=False)
    a[0] = 5
    assert copied[0].item() == 0 and borrowed[0].item() == 5
    assert again[0][0].item() == 0 and again[1][0].item() == 5
    assert borrowed.numpy().ctypes.data == a.ctypes.data


def test_memory_stays_as_long_as_it_is_read():
    x = nt.asarray(np.arange(100_000, dtype=np.float32), copy=False)
    y = np.asarray(nt.asarray([1.0, 2.0, 3.0]) * 2)
    view = memoryview(nt.ones((3,)) * 4)
    for _ in range(5):
        np.zeros(100_000)
    assert x[-1].item() == 99_999 and y.tolist() == [2, 4, 6] and view.tolist() == [4, 4, 4]


def test_misaligned_memory():
    raw = np.zeros(4 * 5 + 1, np.uint8)[1:]
    a = raw.view(np.float32)
    a[:] = [1, 2, 3, 4, 5]
    assert nt.asarray(a).tolist() == [1, 2, 3, 4, 5]
    assert nt.asarray(a[::2]).tolist() == [1, 3, 5]
    assert (nt.ones((5,)) + a).tolist() == [2, 3, 4, 5, 6]
    with pytest.raises(TypeError, match="aligned"):
        nt.asarray(a, copy=False)


def test_fields_of_structures():
    records = np.zeros(3, dtype=[("tag", "i1"), ("x", "f4")])
    records["x"] = [1, 2, 3]
    assert nt.asarray(records["x"]).tolist() == [1, 2, 3]
    with pytest.raises(TypeError):
        nt.asarray(records["x"], copy=False)
    with pytest.raises(TypeError):
        nt.asarray(records)


def test_another_byte_order():
    for letters in ("f2", "f4", "f8", "i2", "i4", "i8", "u2", "u4", "u8"):
        a: Any = np.arange(6).reshape(2, 3).astype(f">{letters}")
        for given in (a, a.T, a[:, ::2], a[1, 1], a[:0], memoryview(a), np.asarray(a[1, 1])):
            t = nt.asarray(given)
            assert t.tolist() == np.asarray(given).tolist()
            assert np.dtype(t.dtype) == a.dtype.newbyteorder("=")
        assert (nt.asarray(a[0]) * a).tolist() == (a[0] * a).tolist()
        assert isinstance(a + nt.ones((3,)), nt.Tensor)
        assert nt.concat([nt.ones((1, 3)), a.astype(">f4")]).tolist()[2] == [3, 4, 5]
        with pytest.raises(TypeError, match="little-endian"):
            nt.asarray(a, copy=False)
    assert nt.asarray(np.asarray([1, 256], ">i8"), dtype="int32").tolist() == [1, 256]
    unaligned = np.frombuffer(b"-" + np.arange(3).astype(">f8").tobytes(), ">f8", offset=1)
    assert nt.asarray(unaligned).tolist() == [0, 1, 2]
    big = (ctypes.c_int32.__ctype_be__ * 2)(1, 2)
    assert nt.asarray(big).tolist() == [1, 2]


@pytest.mark.parametrize(
    "a",
    [
        np.zeros(2, complex),
        np.zeros(2, object),
        np.asarray(["a"]),
        np.asarray([b"a"]),
        np.zeros(2, "M8[s]"),
        np.zeros(2, np.longdouble),
        np.zeros(2, "V3"),
    ],
    ids=lambda a: a.dtype.name,
)
def test_element_types_that_there_are_not(a):
    for use in (
        nt.asarray,
        nt.exp,
        lambda a: nt.ones((2,)) + a,
        lambda a: nt.asarray(a, copy=False),
        lambda a: nt.compile(lambda x: x)(a),
    ):
        with pytest.raises(TypeError):
            use(a)


def test_element_types_are_named():
    with pytest.raises(nt.DTypeError, match="complex64.*astype"):
        nt.asarray(np.zeros(2, np.complex64))


def test_too_many_axes():
    with pytest.raises(NotImplementedError, match="9|dimensions"):
        nt.asarray(np.zeros((1,) * 9))
    with pytest.raises(NotImplementedError):
        nt.zeros((1,) * 9)


def test_bfloat16_without_ml_dtypes(monkeypatch):
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    with pytest.raises(NotImplementedError, match="ml_dtypes.*\n.*float32"):
        np.asarray(nt.zeros(2, nt.bfloat16))


def test_bfloat16():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    a = np.asarray([1.5, -2.0], ml_dtypes.bfloat16)
    x = nt.asarray(a)
    assert x.dtype == nt.bfloat16 and x.tolist() == [1.5, -2.0]
    for key in (slice(None), slice(None, None, -1), slice(0, 0)):
        np.testing.assert_array_equal(np.asarray(x[key]), a[key])
        assert np.asarray(x[key]).dtype == a.dtype
    assert np.asarray(x, dtype=np.float32).tolist() == [1.5, -2.0]
    with pytest.raises(BufferError):
        memoryview(x)


def test_dtype_and_copy_of_array():
    x = nt.asarray([1.0, 2.0])
    assert np.asarray(x, dtype=np.int64).tolist() == [1, 2]
    assert np.array(x, copy=True).flags.writeable
    with pytest.raises(ValueError):
        x.__array__(np.int64, copy=False)


def test_buffers():
    x = nt.asarray([[1.0, 2.0], [3.0, 4.0]])
    view = memoryview(x)
    assert view.readonly and view.format == "f" and view.shape == (2, 2)
    assert bytes(view) == np.asarray(x).tobytes()
    rows: Any = memoryview(x.T).tolist()
    assert rows == [[1, 3], [2, 4]]
    assert nt.asarray(arrays.array("d", [1, 2])).tolist() == [1.0, 2.0]
    assert nt.asarray(bytearray(b"ab")).tolist() == [97, 98]
    with pytest.raises(TypeError):
        view[0, 0] = 1


X = nt.reshape(nt.arange(12.0), (3, 4))
STRIDED = {
    "rows": lambda: X,
    "every second": lambda: X[:, ::2],
    "a column": lambda: X[:, 1],
    "backwards": lambda: X[::-1, ::-1],
    "transposed": lambda: X.T,
    "repeated": lambda: nt.broadcast_to(X[0], (5, 4)),
    "one repeated": lambda: nt.broadcast_to(nt.asarray(7), (100_000,)),
    "nothing": lambda: X[:0, ::2],
    "a number": lambda: X[1, 1],
}


@pytest.mark.parametrize("name", STRIDED)
def test_readers_of_bytes(name, tmp_path):
    x = STRIDED[name]()
    expected = np.ascontiguousarray(np.asarray(x)).tobytes()
    assert bytes(x) == b"".join([x]) == io.BytesIO(x).getvalue() == expected
    assert base64.b64decode(base64.b64encode(x)) == expected
    assert hashlib.sha256(x).digest() == hashlib.sha256(expected).digest()
    with open(tmp_path / "bytes", "wb") as file:
        file.write(x)
    assert (tmp_path / "bytes").read_bytes() == expected
    if x.size:
        assert struct.unpack_from("=4B", x) == tuple(expected[:4])


@pytest.mark.parametrize("name", STRIDED)
def test_what_a_buffer_is_asked_for(name):
    request = ctypes.pythonapi.PyObject_GetBuffer
    request.argtypes = [ctypes.py_object, ctypes.c_void_p, ctypes.c_int]
    release = ctypes.pythonapi.PyBuffer_Release
    release.argtypes = [ctypes.c_void_p]

    class Buffer(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p),
            ("owner", ctypes.c_void_p),
            ("size", ctypes.c_ssize_t),
            ("itemsize", ctypes.c_ssize_t),
            ("readonly", ctypes.c_int),
            ("rank", ctypes.c_int),
            ("format", ctypes.c_char_p),
            ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
            ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
            ("suboffsets", ctypes.c_void_p),
            ("internal", ctypes.c_void_p),
        ]

    x = STRIDED[name]()
    a = np.asarray(x)
    simple, with_format, shape, strides = 0, 0x4, 0x8, 0x18
    rows, columns, any_order = 0x38, 0x58, 0x98
    for flags in (simple, shape, strides, rows, columns, any_order):
        for asked in (flags, flags | with_format):
            buffer = Buffer()
            request(x, ctypes.byref(buffer), asked)
            assert (buffer.format is not None) == bool(asked & with_format)
            assert bool(buffer.shape) == bool(flags & shape and x.ndim)
            assert bool(buffer.strides) == bool(flags & 0x10 and x.ndim)
            assert buffer.rank == (x.ndim if flags & shape else 1)
            assert buffer.size == a.nbytes and buffer.readonly == 1
            steps = [buffer.strides[i] for i in range(x.ndim)] if buffer.strides else []
            if a.size and buffer.strides:
                first = ctypes.cast(buffer.data, ctypes.POINTER(ctypes.c_uint8))
                for index in np.ndindex(a.shape):
                    at = sum(i * step for i, step in zip(index, steps))
                    found = bytes(first[at + i] for i in range(a.itemsize))
                    assert found == a[index].tobytes()
                    if sum(index) > 10:
                        break
            elif a.size:
                found = ctypes.string_at(buffer.data, buffer.size)
                assert found == np.ascontiguousarray(a).tobytes()
            if flags in (rows, columns, any_order) and a.size and x.ndim:
                by_rows = list(np.empty(a.shape, a.dtype).strides)
                by_columns = list(np.empty(a.shape, a.dtype, "F").strides)
                orders = {rows: [by_rows], columns: [by_columns]}
                wide = [i for i in range(x.ndim) if a.shape[i] > 1]
                assert [steps[i] for i in wide] in [
                    [order[i] for i in wide] for order in orders.get(flags, [by_rows, by_columns])
                ]
            release(ctypes.byref(buffer))
    with pytest.raises(BufferError):
        request(x, ctypes.byref(Buffer()), 1)  # to write


def test_buffers_without_strides_or_format():
    shared = multiprocessing.Array("f", 3)
    shared[:] = [1, 2, 3]
    matrix: Any = ctypes.c_int * 2 * 3
    a: Any = np.arange(6, dtype=np.int16)
    for given, expected in (
        ((ctypes.c_float * 3)(1, 2, 3), [1, 2, 3]),
        (matrix((1, 2), (3, 4), (5, 6)), [[1, 2], [3, 4], [5, 6]]),
        ((ctypes.c_int64 * 0)(), []),
        (ctypes.c_double(2.5), 2.5),
        (shared.get_obj(), [1, 2, 3]),
        (memoryview(b"ab"), [97, 98]),
        (memoryview(a)[::2], [0, 2, 4]),
        (arrays.array("q", [1, 2]), [1, 2]),
    ):
        for x in (nt.asarray(given), nt.asarray(given, copy=False)):
            assert x.tolist() == expected, given
    assert nt.asarray((ctypes.c_int16 * 2)(1, 2)).dtype == nt.int16
    assert nt.asarray((ctypes.c_uint32 * 2)(1, 2**32 - 1)).tolist() == [1, 2**32 - 1]
    for refused in (
        (ctypes.c_char * 3)(),
        (ctypes.c_void_p * 2)(),
        np.datetime64("2020"),
        np.timedelta64(3),
        np.str_("a"),
        np.bytes_(b"a"),
        np.array([(1, 2.0)], "i4,f4")[0],
    ):
        with pytest.raises(TypeError):
            nt.asarray(refused)


def test_layouts_that_no_step_of_elements_expresses():
    a = np.zeros(3, dtype=[("x", "f4"), ("y", "i1")])
    a["x"] = [1, 2, 3]
    assert nt.asarray(a["x"][::-1]).tolist() == [3, 2, 1]
    misaligned = np.zeros(25, np.uint8)[1:].view(np.float32).reshape(2, 3)
    misaligned[:] = [[1, 2, 3], [4, 5, 6]]
    assert nt.asarray(misaligned.T).tolist() == [[1, 4], [2, 5], [3, 6]]


def test_torch():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    t = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    assert nt.asarray(t).tolist() == t.tolist() == nt.from_dlpack(t.T).mT.tolist()
    assert torch.from_dlpack(nt.asarray(t)).tolist() == t.tolist()
    assert nt.asarray(t.to(torch.bfloat16)).dtype == nt.bfloat16
    assert torch.from_dlpack(nt.ones((2,)).to("bfloat16")).dtype == torch.bfloat16
    assert nt.compile(lambda x: x * 2)(t).tolist() == (t * 2).tolist()
    with pytest.raises(TypeError, match="detach"):
        nt.asarray(torch.ones(2, requires_grad=True))


class Liar:
    """An array whose protocols say what is not so."""

    def __init__(self, what):
        self.what = what

    def __dlpack__(self, **options):
        if self.what == "raises":
            raise ValueError("no")
        return self.what

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("what", [None, 3, "raises", object()])
def test_arrays_that_lie(what):
    for use in (nt.asarray, nt.exp, nt.from_dlpack):
        with pytest.raises(Exception):
            use(Liar(what))
