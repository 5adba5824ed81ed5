"""profile(): where the time of a program goes, by ops, kernels and lines."""

from __future__ import annotations

import os
from types import TracebackType
from typing import NamedTuple

from nitinol import _ext


class ProfileEvent(NamedTuple):
    """One thing that ran. Times are in seconds, `begin` since the profile was opened; bytes,
    operations and bound (the time that the machine needs at least) are 0 where they are not known,
    or belong to events inside this one."""

    kind: str
    name: str
    detail: str
    places: tuple[str, ...]
    bytes: float
    operations: float
    bound: float
    tier: str
    thread: int
    begin: float
    length: float
    self_time: float
    allocations: int
    parent: int
    forward: int


class Profile:
    """What all threads run while it is open: ops, calls of compiled functions and their steps,
    recording, compiling, ways back. Made by profile()."""

    def __init__(self, most_events: int, lines: bool) -> None:
        self._most_events = most_events
        self._lines = lines
        self._profile: _ext._Profile | None = None
        self._is_open = False
        self._report: _ext._ProfileReport | None = None  # the latest

    def __enter__(self) -> Profile:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Begins anew."""
        self._report = None
        self._is_open = True
        self._profile = _ext._Profile(self._most_events, self._lines)

    def stop(self) -> None:
        """Notes no more. What was noted stays."""
        self._begun().stop()
        self._is_open = False

    def _begun(self) -> _ext._Profile:
        if self._profile is None:
            raise ValueError("Profile: it has not begun; use `with nt.profile() as p:`, or start()")
        return self._profile

    def _reported(self) -> _ext._ProfileReport:
        """What was noted: looked up once, when nothing is added any more."""
        if self._report is None or self._is_open:
            self._report = self._begun().report()
        return self._report

    def table(self, by: str = "op", rows: int = 20) -> str:
        """What took longest by itself, as text: by 'op' (ops, kernels, calls), by 'shape' (the
        same, by their operands, too) or by 'line' of your code."""
        if rows < 0:
            raise ValueError(f"Profile.table: rows is {rows}; expected 0 or more")
        return self._reported().table(by, rows)

    def to_json(self) -> str:
        """The trace that ui.perfetto.dev and chrome://tracing open."""
        return self._reported().to_json()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes to_json() to a file."""
        self._begun().save(path)

    def events(self) -> list[ProfileEvent]:
        """All that was noted, by thread and then by when it began."""
        return [ProfileEvent(*fields) for fields in self._reported().events()]

    @property
    def dropped(self) -> int:
        """How many later events there was no room for."""
        return self._reported().dropped

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return "Profile(not begun)" if self._profile is None else self.table()

    def _repr_html_(self) -> str:
        import html  # here: importing the package is quick

        return f"<pre>{html.escape(repr(self))}</pre>"


def profile(*, most_events: int = 1_000_000, lines: bool = True) -> Profile:
    """Where the time goes: `with nt.profile() as p: train()`, then print(p), p.table(by="line") or
    p.save("train.json") for ui.perfetto.dev. Later events than most_events are counted, and
    dropped. lines=False: eager ops do not look for your line, which takes a microsecond or two.
    NITINOL_PROFILE=file.json profiles the whole process."""
    if isinstance(most_events, bool) or not isinstance(most_events, int) or most_events < 1:
        raise ValueError(f"profile: most_events is {most_events!r}; expected a positive number")
    return Profile(most_events, lines)
