"""Nitinol: tensors that run eagerly, and functions that remember the shapes they have seen."""

from nitinol._ext import __version__

__all__ = ["__version__"]
