"""Functions that take any number of arrays, or words beside numbers, for those of C++ that take lists."""

from __future__ import annotations

from typing import Any, Sequence, overload

from nitinol import _ext
from nitinol._ext import Tensor
from nitinol._typing import TensorLike

_lists: Any = _ext


def einsum(equation: str, /, *operands: TensorLike) -> Tensor:
    return _lists.einsum(equation, operands)


def broadcast_arrays(*arrays: TensorLike) -> list[Tensor]:
    return _lists.broadcast_arrays(arrays)


def broadcast_shapes(*shapes: int | Sequence[int]) -> tuple[int, ...]:
    """The shape to which all these broadcast; () for none.

    Raises ShapeError if there is none.
    """
    return _ext._broadcast_shapes(*shapes)


def meshgrid(*arrays: TensorLike, indexing: str = "xy") -> list[Tensor]:
    return _lists.meshgrid(arrays, indexing=indexing)


def tensordot(
    x1: TensorLike,
    x2: TensorLike,
    /,
    *,
    axes: int | tuple[int | Sequence[int], int | Sequence[int]] = 2,
) -> Tensor:
    if isinstance(axes, int):
        return _lists.tensordot(x1, x2, axes)
    if not isinstance(axes, (tuple, list)) or len(axes) != 2:
        raise TypeError(f"tensordot: axes is {axes!r}; expected a number, or axes of each operand")
    first, second = axes
    return _lists.tensordot(x1, x2, axes1=first, axes2=second)


def matrix_norm(
    x: TensorLike, /, *, keepdims: bool = False, ord: int | float | str = "fro"
) -> Tensor:
    word = ord if isinstance(ord, str) else f"{ord:g}"
    return _lists.matrix_norm(x, keepdims=keepdims, ord=word)


@overload
def where(condition: TensorLike, /) -> tuple[Tensor, ...]: ...
@overload
def where(condition: TensorLike, x1: TensorLike, x2: TensorLike, /) -> Tensor: ...
def where(
    condition: TensorLike, x1: TensorLike | None = None, x2: TensorLike | None = None, /
) -> Tensor | tuple[Tensor, ...]:
    """x1 where the condition holds, else x2. The condition counts as x != 0; x1 and x2 meet in their
    common dtype. Without both, the places where it holds, as nonzero() gives them."""
    if x2 is not None and x1 is not None:
        return _lists.where(condition, x1, x2)
    if x2 is not None or x1 is not None:
        raise TypeError("where: expected x1 and x2, or neither of them")
    return _lists.nonzero(condition)


for _function in (einsum, broadcast_arrays, meshgrid, tensordot, matrix_norm):
    _function.__doc__ = getattr(_lists, _function.__name__).__doc__
    _function.__module__ = "nitinol"
einsum.__doc__ = (einsum.__doc__ or "").replace("(a, b))", "a, b)")  # C++'s takes a list
broadcast_shapes.__module__ = where.__module__ = "nitinol"
