"""summary(): what a model consists of, and where its arithmetic is."""

from __future__ import annotations

from typing import Any, Iterator, NamedTuple

from nitinol import _ext
from nitinol._ext import Variable
from nitinol._module import Module, children, walk


class SummaryRow(NamedTuple):
    """A module, with all that is in it. `output` is of the last operation that is its own, as
    "float32[32, 10]", or empty where it has none; `others` are elements of Variables that do not learn;
    `operations` are arithmetic ones of a call, two for a multiply-add. `shared` are elements of Variables
    that are in the module `shared_with`, too, and count there alone, as do the operations that read
    them."""

    path: str
    type: str
    depth: int
    output: str
    parameters: int
    others: int
    bytes: int
    operations: float
    shared: int
    shared_with: str


class Summary:
    """A model as data: `rows` are the model, then the modules in it, in their order. What is in a module
    all of whose Variables are shared has none. Made by summary()."""

    def __init__(self, found: _ext._Summary) -> None:
        self._found = found
        self.rows = [SummaryRow(*fields) for fields in found.rows()]

    @property
    def parameters(self) -> int:
        """Elements of all Variables that learn."""
        return self.rows[0].parameters

    @property
    def operations(self) -> float:
        """Of a call; 0 without inputs."""
        return self.rows[0].operations

    def table(self, depth: int = 1000) -> str:
        """A table of modules in at most so many others."""
        return self._found.table(depth)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return self.table()


def occurrences(
    path: str, value: Any, seen: set[int], around: set[int]
) -> Iterator[tuple[str, Any]]:
    """Every Variable and Module below `value`, as often as they are there. Of a Module that was there
    before only the Variables follow, and what refers to a Module around it is left out."""
    if isinstance(value, (Module, list, dict)):
        if id(value) in around:
            return
        if id(value) in seen:
            yield path, value
            yield from (
                (p, v) for p, v in walk(path, value, set(around)) if isinstance(v, Variable)
            )
            return
        seen.add(id(value))
    if isinstance(value, (Variable, Module)):
        yield path, value
    for name, child in children(value):
        yield from occurrences(
            f"{path}.{name}" if path else name, child, seen, around | {id(value)}
        )


def summary(model: Any, *inputs: Any) -> Summary:
    """The modules of a model with their parameters; with inputs also what happens when it is called with
    them, once, eagerly, in the mode that it is in. Nothing that the call assigns is kept: no running
    mean, no state of a random generator. A Variable that several modules share counts in the first.

    Whose an operation is follows from the parameters that it reads. One that reads none belongs to the
    module that holds both the module of the operation before which does and that of the next: a relu
    between two layers to what holds these."""
    found = list(occurrences("", model, set(), set()))
    modules = [(path, type(one).__name__) for path, one in found if isinstance(one, Module)]
    if not modules or modules[0][0]:
        modules.insert(0, ("", type(model).__name__))
    variables = [(path, one) for path, one in found if isinstance(one, Variable)]
    call = (lambda: model(*inputs)) if inputs else None
    return Summary(_ext._summary(modules, variables, call))


__all__ = ["Summary", "SummaryRow", "summary"]
