"""What arguments may be, for type checkers."""

from __future__ import annotations

from typing import Any, Protocol, Sequence, Union

from nitinol._ext import Device, DType, Scalar, Tensor, Variable


class HasArray(Protocol):
    """An array of NumPy."""

    @property
    def __array_interface__(self) -> dict[str, Any]: ...


class HasDLPack(Protocol):
    """An array of another library."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


class HasItemSize(Protocol):
    """A dtype of NumPy."""

    @property
    def kind(self) -> str: ...
    @property
    def itemsize(self) -> int: ...


class HasParameters(Protocol):
    """A module."""

    def parameters(self) -> list[Variable]: ...


TensorLike = Union[Tensor, Variable, Scalar, bool, int, float, HasArray, HasDLPack]
DTypeLike = Union[DType, str, "type[Any]", HasItemSize]
DeviceLike = Union[Device, str]
Parameters = Union[Sequence[Variable], HasParameters]
