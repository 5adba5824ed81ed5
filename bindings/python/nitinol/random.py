"""Random tensors: counter-based, so that eager and compiled code draw the same numbers."""

from typing import TYPE_CHECKING

from nitinol._ext import Generator, default_generator
from nitinol._ext import random as _functions
from nitinol._ext.random import *  # noqa: F403
from nitinol._hints import names_of_module

__all__ = ["Generator", "default_generator"]
__all__ += _functions.__all__


if not TYPE_CHECKING:  # which would take it for a promise that every name is there
    __dir__, __getattr__ = names_of_module(__name__, __all__)
