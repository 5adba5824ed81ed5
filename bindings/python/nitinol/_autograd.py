"""Differentiating functions: grad, value_and_grad, vjp, jvp, hessian, and what replaces gradients.

Gradients of losses by the parameters of a model are the other way: loss.backward().
"""

from __future__ import annotations

import functools
from typing import Any, Callable, ParamSpec, Sequence, TypeVar

from nitinol import _ext
from nitinol._ext import Tensor, tree_map
from nitinol._typing import TensorLike

_Function = Callable[..., Any]
_P = ParamSpec("_P")
_R = TypeVar("_R")


def _tensors(tree: Any) -> list[Tensor]:
    found: list[Tensor] = []

    def note(tensor: Tensor) -> Tensor:
        found.append(tensor)
        return tensor

    tree_map(note, tree)
    return found


def _with_tensors(tree: Any, tensors: Sequence[Tensor]) -> Any:
    following = iter(tensors)
    return tree_map(lambda _: next(following), tree)


class _Call:
    """One differentiated call: its arguments by which gradients are asked for, and its result."""

    def __init__(
        self,
        where: str,
        f: _Function,
        argnums: int | Sequence[int],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        order: int = 1,
    ) -> None:
        self.is_single = isinstance(argnums, int)
        positions = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        for position in positions:
            if not -len(args) <= position < len(args):
                raise TypeError(
                    f"{where}: argnums is {position}; {len(args)} positional arguments were given"
                )
        self.by = [args[position] for position in positions]
        # A number or an array is a tensor here: a gradient by it is one.
        self.by = [_as_tensors(where, argument) for argument in self.by]
        if not _tensors(self.by):
            raise TypeError(
                f"{where}: argument {positions} holds no Tensor; for Variables use backward()"
            )
        self.arguments = _ext._Arguments()
        given = list(args)
        with _ext._Gradients(True), _ext._Differentiation(order):
            for position, argument in zip(positions, self.by):
                given[position] = tree_map(self.arguments.add, argument)
            self.result = f(*given, **kwargs)

    def gradients(self, results: Sequence[Tensor], seeds: Any = None, keep: bool = False) -> Any:
        found = self.arguments.gradients(results, seeds, keep)
        trees = _with_tensors(self.by, found)
        return trees[0] if self.is_single else tuple(trees)

    def released(self) -> Any:
        return tree_map(self.arguments.released, self.result)


def _as_tensors(where: str, argument: Any) -> Any:
    if isinstance(argument, _ext.Variable):
        raise TypeError(f"{where}: a Variable; its gradient comes from backward(), or give .value")
    if isinstance(argument, (bool, int, float, _ext.Scalar)):  # a float, inside compile()
        return _ext.full((), argument, dtype=_ext.float32)
    if hasattr(argument, "__array_interface__") or (
        hasattr(argument, "__dlpack__") and not isinstance(argument, Tensor)
    ):
        return _ext.asarray(argument)
    return argument


def value_and_grad(
    f: Callable[_P, _R], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[_P, tuple[_R, Any]]:
    """A function that returns (f(...), gradient of f by the arguments numbered argnums).

    f returns its loss, one floating element; with has_aux, (loss, anything). The gradient has the
    argument's structure. Nests: the gradient of a gradient is its own derivative.
    """

    @functools.wraps(f)
    def both(*args: _P.args, **kwargs: _P.kwargs) -> tuple[_R, Any]:
        call = _Call("grad", f, argnums, args, kwargs)
        loss: Any = call.result
        if has_aux:
            if not isinstance(loss, tuple) or len(loss) != 2:
                raise TypeError("grad: with has_aux the function returns (loss, aux)")
            loss = loss[0]
        if not isinstance(loss, Tensor):
            raise TypeError(
                f"grad: the function returned {_ext._with_article(type(loss).__name__)}; expected one floating Tensor"
            )
        _ext._check_scalar("grad", loss)
        gradient = call.gradients([loss])
        return call.released(), gradient

    return both


def grad(
    f: Callable[_P, Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[_P, Any]:
    """A function that returns the gradient of f: see value_and_grad. With has_aux: (gradient, aux)."""
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f)
    def gradient(*args: _P.args, **kwargs: _P.kwargs) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return gradient


def vjp(f: _Function, *args: Any) -> tuple[Any, Callable[[Any], Any]]:
    """(f(*args), pull): pull(seed) are the gradients of the result weighted by `seed`, of the
    result's structure: one for each argument, alone if there is one. It may be called again."""
    call = _Call("vjp", f, tuple(range(len(args))), args, {})
    results = _tensors(call.result)

    def pull(seed: Any) -> Any:
        found = call.gradients(results, _tensors(seed), keep=True)
        return found[0] if len(args) == 1 else found

    return call.released(), pull


def jvp(f: _Function, args: Any, tangents: Any) -> tuple[Any, Any]:
    """(f(*args), the derivative of the result in direction `tangents`); both of the result's
    structure. args and tangents are tuples, or one argument each. Costs about three evaluations."""
    if not isinstance(args, tuple):
        args, tangents = (args,), (tangents,)
    call = _Call("jvp", f, tuple(range(len(args))), args, {}, order=2)
    along = [_as_tensors("jvp", tangent) for tangent in tangents]
    found = call.arguments.push_forward(_tensors(call.result), _tensors(along))
    return call.released(), _with_tensors(call.result, found)


def hessian(f: Callable[[Tensor], Tensor]) -> Callable[[TensorLike], Tensor]:
    """A function that returns the second derivatives of f, a tensor of shape [s..., s...]; argument
    and result of f are a Tensor of shape [s...] and one element."""

    @functools.wraps(f)
    def second(x: TensorLike) -> Tensor:
        return _ext._hessian(f, _as_tensors("hessian", x))

    return second


def checkpoint(f: Callable[_P, _R]) -> Callable[_P, _R]:
    """f, keeping for backward() only its arguments: what it computes in between is computed a second
    time when the gradient is asked for. Random numbers are drawn as the first time, Variables are
    assigned once."""

    @functools.wraps(f)
    def checkpointed(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        held: list[Any] = []

        def on_tensors(tensors: list[Tensor]) -> list[Tensor]:
            given, named = _with_tensors((args, kwargs), tensors)
            result = f(*given, **named)
            if not held:
                held.append(result)
            return _tensors(result)

        results = _ext._checkpointed(on_tensors, _tensors((args, kwargs)))
        return _with_tensors(held[0], results)

    return checkpointed


def custom_gradient(
    f: Callable[..., tuple[Tensor, Callable[[Tensor], Any]]],
) -> Callable[..., Tensor]:
    """A function of Tensors whose gradient is what f says: f(*x) returns (result, pull), and
    pull(gradient of the result) returns the gradient of x, or a tuple of one for each argument (None
    for none)."""

    @functools.wraps(f)
    def customized(*args: Any) -> Tensor:
        return _ext._customized(lambda tensors: f(*tensors), list(args))

    return customized


class no_gradients(_ext._Gradients):
    """A context in which this thread's operations are not noted for differentiation."""

    def __init__(self) -> None:
        super().__init__(False)


def check_gradients(f: _Function, *args: Any, step: float = 1e-5, tolerance: float = 1e-6) -> None:
    """Compares the gradients of f by each element of its arguments with central differences, in
    float64. Raises ArgumentError that names the first element that differs. For tests: it calls f
    twice per element. f must be smooth around the arguments, and a function of them alone."""
    _ext._check_gradients(
        lambda tensors: _tensors(f(*_with_tensors(args, tensors))), _tensors(args), step, tolerance
    )


__all__ = [
    "check_gradients",
    "checkpoint",
    "custom_gradient",
    "grad",
    "hessian",
    "jvp",
    "no_gradients",
    "value_and_grad",
    "vjp",
]
