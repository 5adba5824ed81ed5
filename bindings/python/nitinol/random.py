"""Random tensors: counter-based, so that eager and compiled code draw the same numbers."""

from nitinol._ext import Generator, default_generator
from nitinol._ext import random as _functions
from nitinol._ext.random import *  # noqa: F403

__all__ = ["Generator", "default_generator"]
__all__ += _functions.__all__


def __dir__() -> list[str]:
    return __all__
