"""Random tensors: counter-based, so that eager and compiled code draw the same numbers."""

from nitinol import _ext
from nitinol._ext import Generator, default_generator
from nitinol._ext.random import *  # noqa: F403

__all__ = ["Generator", "default_generator"] + [
    name for name in vars(_ext.random) if not name.startswith("_")
]
