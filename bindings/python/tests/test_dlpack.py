"""DLPack: capsules in and out. Who reads one may write it: no value changes."""

import ctypes
import gc
import sys
from typing import Any

import numpy as np
import pytest

import nitinol as nt

# Nothing is checked of what is wrong on purpose.
untyped: Any = nt


def test_dlpack_protocol():
    x = nt.asarray([1.0, 2.0])
    assert x.__dlpack_device__() == (1, 0)
    assert "dltensor_versioned" in repr(x.__dlpack__(max_version=(1, 1)))
    assert np.from_dlpack(x).ctypes.data != x.numpy().ctypes.data
    assert np.from_dlpack(x, copy=True).ctypes.data != x.numpy().ctypes.data
    shared = np.from_dlpack(x, copy=False)
    assert shared.ctypes.data == x.numpy().ctypes.data and not shared.flags.writeable
    # What stands after copy=True is read, too.
    for copy in (None, True, False):
        with pytest.raises(BufferError):
            x.__dlpack__(copy=copy, dl_device=(2, 0))
        assert "_versioned" in repr(x.__dlpack__(copy=copy, max_version=(1, 0), stream=None))
        assert "_versioned" not in repr(x.__dlpack__(copy=copy, max_version=(0, 8)))
        with pytest.raises(TypeError):
            untyped.Tensor.__dlpack__(x, copy=copy, version=1)
    with pytest.raises(TypeError):
        untyped.from_dlpack(3)


def test_the_device_of_from_dlpack():
    a, x, v = np.ones(3, np.float32), nt.ones((3,), device="cpu"), nt.Variable(nt.ones((3,)))
    for given in (a, x, v):
        made = nt.from_dlpack(given, device="reference:0")
        assert str(made.device) == "reference:0" and made.tolist() == [1, 1, 1]
    assert nt.from_dlpack(x, device="cpu").device == nt.Device("cpu")
    with pytest.raises(BufferError):
        nt.from_dlpack(x, device="reference:0", copy=False)
    same, other = nt.from_dlpack(x, copy=False), nt.from_dlpack(x, copy=True)
    address = np.asarray(x).ctypes.data
    assert np.asarray(same).ctypes.data == address != np.asarray(other).ctypes.data
    same[0] = nt.ones((), device="cpu") * 5
    assert x.tolist() == [1, 1, 1]


class Array(ctypes.Structure):  # what lies in a capsule of DLPack, from `array` on
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", ctypes.c_int32 * 2),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_uint32 * 2),
        ("context", ctypes.c_void_p),
        ("release", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("array", Array),
    ]


def content(capsule):
    """The structure in a versioned capsule."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return Versioned.from_address(pointer(capsule, b"dltensor_versioned"))


def write_ones(capsule):
    """Does as PyTorch's from_dlpack(...).fill_(1): it disregards the flag."""
    array = content(capsule).array
    assert [array.strides[i] for i in range(array.rank)] == sorted(
        (array.strides[i] for i in range(array.rank)), reverse=True
    )
    count = int(np.prod([array.shape[i] for i in range(array.rank)]))
    (ctypes.c_float * count).from_address(array.data)[:] = [1.0] * count


def test_a_reader_that_writes_changes_no_value():
    x = nt.zeros((2, 3))
    v, view = nt.Variable(x), x[:, ::-1]
    f = nt.compile(lambda y: y + x)
    expected = [f(x).tolist() for _ in range(4)][-1]
    for given in (x, v, view, x.T, x[1]):
        capsule = given.__dlpack__(max_version=(1, 0))
        write_ones(capsule)
        for each in (x, v, view, f(x)):
            assert each.tolist() == expected
    assert content(x.__dlpack__(max_version=(1, 0))).flags == 2  # a copy
    shared = content(x.__dlpack__(max_version=(1, 0), copy=False))
    assert shared.flags == 1 and shared.array.data == np.asarray(x).ctypes.data  # read only


def test_what_a_reader_is_given_lives_on():
    x = nt.asarray([1.0, 2.0, 3.0])
    for copy in (None, False):
        a = np.from_dlpack(x[1:] * 1, copy=copy)
        for _ in range(5):
            nt.zeros((2,)) + 7
        assert a.tolist() == [2, 3]


class Holder:
    """An array whose capsule is always the same."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **options):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


@pytest.mark.parametrize("of", [lambda: nt.ones((3,)) * 1, lambda: np.ones(3, np.float32)])
@pytest.mark.parametrize("options", [{}, {"max_version": (1, 0)}])
@pytest.mark.parametrize("copy", [None, False])
def test_a_capsule_is_read_once(of, options, copy):
    capsule = of().__dlpack__(**options)
    holder = Holder(capsule)
    made = nt.from_dlpack(holder, copy=copy)
    for given in (holder, holder.capsule):
        with pytest.raises(nt.ArgumentError, match="read before"):
            nt.from_dlpack(given, copy=copy)
    assert "used_dltensor" in repr(capsule)
    assert made.tolist() == [1, 1, 1]
    assert nt.from_dlpack(of().__dlpack__(**options)).tolist() == [1, 1, 1]
    with pytest.raises(ValueError):
        np.from_dlpack(holder)


def test_the_memory_of_a_capsule_is_given_back_once():
    array = np.arange(5000, dtype=np.float32)
    before = sys.getrefcount(array)
    made = nt.from_dlpack(Holder(array.__dlpack__()), copy=False)
    assert sys.getrefcount(array) == before + 1
    del made
    gc.collect()
    for _ in range(1000):  # objects wait for Python's next step
        pass
    assert sys.getrefcount(array) == before
    with pytest.raises(TypeError):  # of a type that there is not
        nt.from_dlpack(Holder(array.view(np.complex64).__dlpack__()))
    assert sys.getrefcount(array) == before


def test_capsules_that_are_none():
    ctypes.pythonapi.PyCapsule_New.restype = ctypes.py_object
    ctypes.pythonapi.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    other = ctypes.pythonapi.PyCapsule_New(1234, b"something else", None)
    for given in (other, Holder(other), Holder(7), Holder(None)):
        with pytest.raises(nt.ArgumentError, match="no capsule"):
            nt.from_dlpack(given)


@pytest.mark.parametrize("error", [KeyError, RuntimeError, BufferError, AttributeError])
def test_what_dlpack_raises_is_raised(error):
    class Raises(Holder):
        def __dlpack__(self, **options):
            raise error("of its own")

    for use in (nt.asarray, nt.from_dlpack, nt.exp, lambda a: nt.ones((2,)) + a):
        with pytest.raises(error, match="of its own"):
            use(Raises(None))


def test_arrays_older_than_versions():
    class Old:
        def __dlpack__(self, stream=None):
            return nt.ones((2,)).__dlpack__()

        def __dlpack_device__(self):
            return (1, 0)

    assert nt.from_dlpack(Old()).tolist() == [1, 1]


def test_torch_writes_its_own():
    torch = pytest.importorskip("torch", exc_type=ImportError)
    x = nt.arange(4.0)
    v = nt.Variable(x)
    for given in (x, v, x[::-1], nt.broadcast_to(x, (2, 4))):
        torch.from_dlpack(given).add_(1)
        assert x.tolist() == v.tolist() == [0, 1, 2, 3]
    assert torch.from_dlpack(x[::-1]).tolist() == [3, 2, 1, 0]
    assert torch.from_dlpack(x, copy=False).data_ptr() == np.asarray(x).ctypes.data
