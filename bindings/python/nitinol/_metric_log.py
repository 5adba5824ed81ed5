"""MetricLog and plot(): training curves, on disk and in the terminal."""

from __future__ import annotations

import atexit
import os
import sys
import weakref
from types import TracebackType
from typing import Iterable

from nitinol import _ext
from nitinol._ext import Tensor
from nitinol._typing import TensorLike


class MetricLog:
    """Writes numbers, texts and histograms by name and step: for TensorBoard a file
    events.out.tfevents.<time>.<host>.<process> in the folder, which is made, and numbers and texts to
    metrics.jsonl, where those of one step that are written together are one line, and NaN and infinity
    are null.

        with nn.MetricLog("runs/first") as log:
            for step in range(steps):
                log.add("loss", train_step(x, y), step)

    What is added waits in memory and is written every `flush_seconds`, when 1,000 wait, at flush() and
    at the end: a crash loses no more. A tensor is kept and read when it is written, so that add() waits
    for no device. Inside a compiled function it is read at once, as by item(), and the function runs in
    segments from then on: rather add what it returns.

    A folder that has a log already gets another event file, which TensorBoard reads as one with the
    first, and lines at the end of metrics.jsonl. When nothing can be written any more, a full disk say,
    the program goes on: a warning says so, and another at the end how many values were lost. Any thread
    may add; the child of a fork writes an event file of its own."""

    def __init__(self, folder: str | os.PathLike[str], *, flush_seconds: float = 10) -> None:
        self._log: _ext._MetricLog | None = _ext._MetricLog(folder, flush_seconds)
        _open.add(self)

    def _opened(self) -> _ext._MetricLog:
        if self._log is None:
            raise ValueError("MetricLog: it is closed")
        return self._log

    def add(self, name: str, value: TensorLike, step: int) -> None:
        """One number: a tensor of one element, or what can be one. Slashes in names group curves, as in
        "validation/loss"; "step" and "time" are no names, as each line of metrics.jsonl has them."""
        self._opened().add(name, value, step)

    def add_text(self, name: str, text: str, step: int) -> None:
        """A text, which TensorBoard shows as Markdown."""
        self._opened().add_text(name, text, step)

    def add_histogram(self, name: str, values: TensorLike, step: int) -> None:
        """How the elements are distributed, in 30 equal parts from the least to the greatest; those that
        are not finite are left out. Reads the tensor at once. Not in metrics.jsonl."""
        self._opened().add_histogram(name, values, step)

    def flush(self) -> None:
        """Writes what was added so far, waiting for what computes it. Raises what that failed with."""
        self._opened().flush()

    def close(self) -> None:
        """The same, for good; a second time does nothing."""
        log, self._log = self._log, None
        if log is not None:
            log.flush()

    @property
    def lost(self) -> int:
        """How many values could not be written."""
        return self._opened().lost()

    def __enter__(self) -> MetricLog:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


_open: weakref.WeakSet[MetricLog] = weakref.WeakSet()


@atexit.register
def _close_all() -> None:
    for log in list(_open):
        log.close()


def plot(
    values: Tensor | Iterable[float | Tensor],
    *,
    title: str = "",
    width: int = 60,
    height: int = 10,
    unit: str = "steps",
    style: str | None = None,
) -> str:
    """A curve through the values, in order, as lines of text that begin with what the greatest, the
    middle and the least height are. Many values in one place are drawn by their mean; those that are not
    finite are left out, and counted in the last line. style: 'braille', eight points a character, or
    'ascii', two; None: what sys.stdout can write."""
    if style is None:
        encoding = (getattr(sys.stdout, "encoding", None) or "").lower().replace("-", "")
        style = "braille" if encoding == "utf8" else "ascii"
    numbers = (
        values.flatten().tolist() if isinstance(values, Tensor) else [float(v) for v in values]
    )
    return _ext._plot(numbers, title, width, height, unit, style)


__all__ = ["MetricLog", "plot"]
