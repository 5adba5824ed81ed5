"""Processes that were started together and compute together: docs/distributed.md.

A program that was started alone is a world of one, in which every collective gives what it was
given: the same program runs both ways.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from nitinol import _ext
from nitinol._ext import Group
from nitinol._ext import dist as _functions
from nitinol._ext.dist import *  # noqa: F403
from nitinol._hints import names_of_module

__all__ = ["Group", "description", "init", "local_rank", "local_size", "world"]
__all__ += _functions.__all__


def init(timeout: float = 300) -> None:
    """Joins the processes that were started together, by mpirun or srun; in a program that was
    started alone it does nothing.

    timeout: seconds after which a rank that waits for others raises FileError, which names them;
    NITINOL_DIST_TIMEOUT overrides it, math.inf waits for ever.

    Then as many threads compute as this process has cores, divided by the processes that it shares
    them with, unless the environment or the program has said how many. A second call does nothing.
    Call it before the work begins, in the main thread; world() and the collectives do so if nobody
    has.

    At the end the processes wait for each other; an exception that nobody caught, an exit with a
    status that is not 0, or a collective that has failed ends all of them.

    Raises FileError if processes were started together and this library has no module for their
    MPI, or cannot open it.
    """
    _ext._dist_init(timeout)


def world() -> Group:
    """All processes that were started together. Calls init() if nobody has."""
    return _ext._dist_world()


if not TYPE_CHECKING:  # whom stubs.py tells of both

    @functools.wraps(_functions.all_reduce)
    def all_reduce(*args: Any, **kwargs: Any) -> Any:
        if args and isinstance(args[0], (list, tuple)) and not kwargs.keys() - {"how", "group"}:
            return _ext._dist_all_reduce(*args, **kwargs)
        return _functions.all_reduce(*args, **kwargs)

    all_reduce.__doc__ += (
        "\n\nOf a list or tuple of tensors, a list of the same of each. What one of them waits for in a\n"
        "compiled function is on its way while others are computed."
    )


def local_rank() -> int:
    """The number of this process among those on its machine, from 0 on: for which GPU it takes."""
    return _ext._dist_local_rank()


def local_size() -> int:
    """How many processes of the world are on this machine."""
    return _ext._dist_local_size()


def description() -> str:
    """By what the processes reach each other, and how: "Open MPI v4.1.4, called by any thread; rank
    1 of 4, 1 of 2 on host a"; of a world of one, "one process"."""
    return _ext._dist_description()


if not TYPE_CHECKING:  # which would take it for a promise that every name is there
    __dir__, __getattr__ = names_of_module(__name__, __all__)
