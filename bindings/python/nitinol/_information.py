"""What dtypes hold, how they meet, and what the library can do: the Array API's functions of that kind."""

from __future__ import annotations

import builtins
import dataclasses
import sys
from typing import Union

from nitinol import _ext
from nitinol._ext import DType, Scalar, Tensor, Variable
from nitinol._typing import DeviceLike, DTypeLike
from nitinol._variadic import where

__all__ = ["can_cast", "finfo", "iinfo", "isdtype", "result_type"]

_SIGNED = (_ext.int8, _ext.int16, _ext.int32, _ext.int64)
_UNSIGNED = (_ext.uint8, _ext.uint16, _ext.uint32, _ext.uint64)
_FLOATING = (_ext.float16, _ext.bfloat16, _ext.float32, _ext.float64)
_KINDS = {
    "bool": (_ext.bool,),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _FLOATING,
    "complex floating": (),
    "numeric": _SIGNED + _UNSIGNED + _FLOATING,
}


def _dtype_of(where: str, value: Tensor | Variable | DTypeLike) -> DType:
    if isinstance(value, (Tensor, Variable)):
        return value.dtype
    return _ext._dtype_of(where, value)


def _refused(where: str, expected: str, got: object) -> _ext.DTypeError:
    return _ext.DTypeError(f"{where}: expected {expected}, got {got}.")


@dataclasses.dataclass(frozen=True)
class FloatInfo:
    """What a floating dtype holds."""

    bits: int
    eps: float  # from 1 to the next number
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclasses.dataclass(frozen=True)
class IntegerInfo:
    """What an integer dtype holds."""

    bits: int
    max: int
    min: int
    dtype: DType


def finfo(type: Tensor | Variable | DTypeLike, /) -> FloatInfo:
    """The limits of a floating dtype, or of a tensor's. Raises DTypeError for others."""
    dtype = _dtype_of("finfo", type)
    digits, exponent = {  # after the point; of the largest power of two
        _ext.float16: (10, 15),
        _ext.bfloat16: (7, 127),
        _ext.float32: (23, 127),
        _ext.float64: (52, 1023),
    }.get(dtype, (0, 0))
    if digits == 0:
        raise _refused("finfo", "a floating dtype", f"{dtype}; see iinfo")
    largest = sys.float_info.max if digits == 52 else 2.0**exponent * (2 - 2.0**-digits)
    smallest = 2.0 ** (1 - exponent)
    return FloatInfo(8 * dtype.itemsize, 2.0**-digits, largest, -largest, smallest, dtype)


def iinfo(type: Tensor | Variable | DTypeLike, /) -> IntegerInfo:
    """The limits of an integer dtype, or of a tensor's. Raises DTypeError for others."""
    dtype = _dtype_of("iinfo", type)
    if dtype not in _KINDS["integral"]:
        raise _refused("iinfo", "an integer dtype", f"{dtype}; see finfo")
    bits = 8 * dtype.itemsize
    if dtype in _UNSIGNED:
        return IntegerInfo(bits, 2**bits - 1, 0, dtype)
    return IntegerInfo(bits, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), dtype)


def isdtype(dtype: DTypeLike, kind: DTypeLike | tuple[DTypeLike, ...]) -> builtins.bool:
    """Whether a dtype is of a kind, or of one of several: another dtype, or "bool", "signed integer",
    "unsigned integer", "integral", "real floating", "complex floating", "numeric"."""
    own = _dtype_of("isdtype", dtype)
    if isinstance(kind, tuple):
        return any(isdtype(own, one) for one in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return own in _KINDS[kind]
    try:
        return own == _dtype_of("isdtype", kind)
    except TypeError as error:
        raise TypeError(f"{error}, or one of {', '.join(map(repr, _KINDS))}") from None


def can_cast(from_: Tensor | Variable | DTypeLike, to: DTypeLike, /) -> builtins.bool:
    """Whether values of a dtype, or of a tensor's, are those of another when the two meet: whether
    promotion gives `to`."""
    target = _dtype_of("can_cast", to)
    try:
        return _ext.promote(_dtype_of("can_cast", from_), target) == target
    except _ext.DTypeError:  # they do not meet: uint64 and signed integers
        return False


Typed = Union[Tensor, Variable, DTypeLike]


def result_type(*arrays_and_dtypes: Typed | Scalar | builtins.bool | int | float) -> DType:
    """The dtype in which tensors, dtypes and numbers meet, as operands do: numbers decide only what
    the others leave open. Raises TypeError unless a tensor or dtype is among them."""
    numbers = [v for v in arrays_and_dtypes if isinstance(v, (builtins.bool, int, float, Scalar))]
    typed = [
        _dtype_of("result_type", v)
        for v in arrays_and_dtypes
        if not isinstance(v, (builtins.bool, int, float, Scalar))
    ]
    if not typed:
        raise TypeError("result_type: expected a tensor or a dtype among the arguments")
    result = typed[0]
    for dtype in typed[1:]:
        result = _ext._promote_in("result_type", result, dtype)
    for number in numbers:  # as an operation has it; where() takes every dtype
        of_its_kind = {int: 1, float: 1.0}.get(type(number), number)  # which every dtype holds
        result = where(True, _ext.zeros((0,), dtype=result), of_its_kind).dtype
    return result


class NamespaceInfo:
    """What the Array API's inspection asks for."""

    def capabilities(self) -> dict[str, builtins.bool | int | None]:
        """What not every library does, and how many axes a tensor may have."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": _ext._most_axes,
        }

    def default_device(self) -> _ext.Device:
        """Where tensors are made unless a device is given."""
        return _ext.default_device()

    def default_dtypes(self, *, device: DeviceLike | None = None) -> dict[str, DType]:
        """The dtypes of what is made without one. There is no complex one."""
        return {
            "real floating": _ext.float32,
            "integral": _ext.int64,
            "indexing": _ext.int64,
        }

    def dtypes(
        self, *, device: DeviceLike | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """Dtypes by name; of a kind, or of several, as isdtype() has them."""
        every = _KINDS["bool"] + _KINDS["numeric"]
        wanted = every if kind is None else [d for d in every if isdtype(d, kind)]
        # 16-bit floats are none of the standard's.
        others = (_ext.float16, _ext.bfloat16)
        return {str(d): d for d in wanted if d not in others}

    def devices(self) -> list[_ext.Device]:
        """What tensors can lie on here."""
        return [one["device"] for one in _ext.devices() if not one["missing"]]


def __array_namespace_info__() -> NamespaceInfo:
    """What the library can do, for code that is written for any library of the Array API."""
    return NamespaceInfo()
