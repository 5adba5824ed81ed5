"""memory_snapshot(): which operation, in which line, made the memory that lives."""

from __future__ import annotations

import os
from types import TracebackType
from typing import NamedTuple

from nitinol import _ext
from nitinol._ext import Device


class MemoryBlock(NamedTuple):
    """A block that lives. `held`: by a Variable, as its value or its gradient; else by a tensor."""

    made_by: str
    places: tuple[str, ...]
    bytes: int
    device: Device
    age: float
    held: bool


class MemoryLine(NamedTuple):
    """All blocks that one operation has made in one line: bytes and blocks that live, bytes of
    Variables among them, bytes that lived when most memory did, and blocks in all."""

    made_by: str
    places: tuple[str, ...]
    bytes: int
    blocks: int
    held: int
    at_peak: int
    made: int


class MemoryPoint(NamedTuple):
    """The most bytes that lived from this time, in seconds since noting began, to that of the next
    point, and how many of them had been made by the lines that had most, by their number in `lines`."""

    time: float
    bytes: int
    shares: dict[int, int]


class MemorySnapshot:
    """Memory of all devices, as data. `blocks`: the largest first; `lines`: of most bytes first;
    `points`: memory over time. `others` are bytes in use that are not noted: made before, or by no
    operation."""

    def __init__(self, found: _ext._MemorySnapshot) -> None:
        self._found = found
        self.blocks = [MemoryBlock(*fields) for fields in found.blocks()]
        self.lines = [MemoryLine(*fields) for fields in found.lines()]
        self.points = [MemoryPoint(*fields) for fields in found.points()]
        self.bytes: int = found.bytes
        self.others: int = found.others
        self.peak: int = found.peak

    def table(self, rows: int = 20) -> str:
        """A table of operations and lines, at most so many."""
        if rows < 0:
            raise ValueError(f"MemorySnapshot.table: rows is {rows}; expected 0 or more")
        return self._found.table(rows)

    def to_json(self) -> str:
        """All of it as JSON."""
        return self._found.to_json()

    def to_html(self) -> str:
        """A page that needs nothing else: memory over time by the user's lines, and a bar for
        each operation and line."""
        return self._found.to_html()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes to_html() to a file whose name ends in .html, else to_json()."""
        self._found.save(path)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return self.table()


class MemoryNotes:
    """While it is open, blocks of memory are noted. Made by memory_notes()."""

    def __init__(self) -> None:
        self._notes: list[_ext._MemoryNotes] = []

    def __enter__(self) -> MemoryNotes:
        self._notes.append(_ext._MemoryNotes())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._notes.pop()


def memory_notes() -> MemoryNotes:
    """`with nt.memory_notes():` blocks of memory are noted, for memory_snapshot(): by which operation,
    from which line, when. It costs one or two microseconds an operation, and some 100 bytes a block that
    lives. What was made before is not known. NITINOL_MEMORY=1 is that for the whole process."""
    return MemoryNotes()


def memory_snapshot() -> MemorySnapshot:
    """What lives now. Raises ArgumentError unless memory is noted: in a memory_notes(), or with
    NITINOL_MEMORY=1."""
    return MemorySnapshot(_ext._memory_snapshot())
