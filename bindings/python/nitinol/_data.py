"""DataLoader: batches of tensors, of samples that are made one by one, and of streams."""

from __future__ import annotations

import collections
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Callable, Iterable, Iterator, Mapping, Protocol, Sequence, Union

from nitinol import _ext
from nitinol._ext import Group, Tensor, Variable
from nitinol._hints import of_parameters
from nitinol._typing import DeviceLike, TensorLike


class MapDataset(Protocol):
    """Samples by number."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int, /) -> Any: ...


Data = Union[
    TensorLike, Sequence[TensorLike], Mapping[str, TensorLike], MapDataset, Iterable[Any],
    Callable[[], Iterator[Any]],
]  # fmt: skip


def _is_tensor(value: Any) -> bool:
    is_array = hasattr(value, "__array_interface__") or hasattr(value, "__dlpack__")
    return isinstance(value, (Tensor, Variable)) or (is_array and value.ndim > 0)


def _stacked(samples: Sequence[Any]) -> Any:
    """A batch: what samples have in common along a new first axis."""
    first = samples[0]
    if isinstance(first, dict):
        return {key: _stacked([sample[key] for sample in samples]) for key in first}
    if isinstance(first, (tuple, list)):
        if any(len(sample) != len(first) for sample in samples):
            lengths = sorted({len(sample) for sample in samples})
            raise _ext.ArgumentError(
                f"DataLoader: the parts of a sample: expected {len(first)}, as of the first of its "
                f"batch, got {lengths}."
            )
        columns = [_stacked(column) for column in zip(*samples)]
        is_named = isinstance(first, tuple) and hasattr(first, "_fields")
        return type(first)(*columns) if is_named else tuple(columns)
    if isinstance(first, (str, bytes)):
        return list(samples)
    if isinstance(first, (bool, int, float)):
        return _ext.asarray(list(samples))
    return _ext.stack([_ext.asarray(sample) for sample in samples])


def _moved(batch: Any, device: Any) -> Any:
    if isinstance(batch, Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {key: _moved(value, device) for key, value in batch.items()}
    if isinstance(batch, tuple):
        parts = [_moved(value, device) for value in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else tuple(parts)
    return batch


class DataLoader:
    """Batches, one pass after the other, each in a fresh order that depends on the seed alone.

    data: a tensor or several, whose row i makes sample i; an object with __len__ and __getitem__; or
    a stream: what can be iterated, or a function that begins an iteration. Samples are tensors, arrays
    or numbers, or tuples and dicts of them, which batches have with a new first axis. Of tensors a
    batch is a tuple, of a dict of tensors a dict.

    shuffle: else in the order there is; by default all but streams, and unless there is a sampler.
    device: where batches go. sampler: f(pass) gives the numbers of the samples, as weighted() does.
    shard: (number, of) of several processes, or their dist.Group. workers: threads that make batches before they are asked
    for, each `prefetch` ahead; the order and what is raised stay the same. collate: makes a batch of a
    list of samples.

    How far it has come is a Variable: save() keeps it, and after load() the next pass goes on there.
    """

    @of_parameters
    def __init__(
        self,
        data: Data,
        batch: int = 32,
        *,
        shuffle: bool | None = None,
        drop_last: bool = False,
        seed: int = 0,
        device: DeviceLike | None = None,
        sampler: Callable[[int], Sequence[int]] | None = None,
        shard: tuple[int, int] | Group = (0, 1),
        workers: int = 0,
        prefetch: int = 2,
        collate: Callable[[list[Any]], Any] | None = None,
    ) -> None:
        self._tensors: list[Tensor] | None = None
        self._names: list[str] | None = None  # of the tensors of a dict
        self._data: Any = data
        self._collate = _stacked if collate is None else collate
        if collate is not None and not callable(collate):
            raise TypeError(f"DataLoader: collate is {collate!r}; expected a function of a list")
        if isinstance(data, Mapping) and data and all(isinstance(name, str) for name in data):
            for name, value in data.items():
                if not _is_tensor(value):
                    raise TypeError(
                        f"DataLoader: data[{name!r}] is "
                        f"{_ext._with_article(type(value).__name__)}; expected a tensor, whose row "
                        "i is of sample i"
                    )
            self._names, data = list(data), list(data.values())
        is_list = isinstance(data, (tuple, list)) and all(map(_is_tensor, data))
        if _is_tensor(data) or is_list:
            self._tensors = _ext._rows_of(data if is_list else [data])
            samples = self._tensors[0].shape[0]
        elif hasattr(data, "__getitem__") and hasattr(data, "__len__"):
            samples = len(data)  # type: ignore[arg-type]
        elif hasattr(data, "__iter__") or callable(data):
            samples = -1
        else:
            raise TypeError(
                f"DataLoader: data is {_ext._with_article(type(data).__name__)}; expected tensors, an "
                "object with __len__ and __getitem__, or a stream"
            )
        self._order = _ext._Order(
            samples, batch, shuffle=shuffle, drop_last=drop_last, seed=seed, device=device,
            sampler=sampler, shard=shard, workers=workers, prefetch=prefetch,
        )  # fmt: skip
        self._is_stream = samples < 0
        order = self._order
        self._batch, self._drops_last, self._device = order.batch, order.drop_last, order.device
        self._workers = min(order.workers, 1) if self._is_stream else order.workers
        self._ahead = self._workers * order.prefetch
        self._has_begun = False

    def __len__(self) -> int:
        """Batches of one pass."""
        return self._order.batches()

    @property
    def has_size(self) -> bool:
        """Whether it is known how many batches a pass has: not of a stream."""
        return not self._is_stream

    @property
    def batch_size(self) -> int:
        """Samples of a batch; the last one of a pass may have fewer."""
        return self._batch

    @property
    def is_between_passes(self) -> bool:
        """Whether the next batch is the first of a pass."""
        return self._order.place()[1] == 0

    def end_pass(self) -> None:
        """Leaves out what is left of a pass: the next batch is the first of a new one."""
        self._order.end_pass()

    def __iter__(self) -> Iterator[Any]:
        return _Pass(self)

    def named_variables(self) -> dict[str, Variable]:
        """How far it has come: what save() writes."""
        return self._order.named_variables()

    def _samples_of_pass(self) -> Iterator[Any]:
        samples = iter(self._data() if callable(self._data) else self._data)
        if samples is self._data and self._has_begun:
            raise _ext.ArgumentError(
                "DataLoader: a second pass over an iterator, which is at its end: expected what can be "
                "iterated again. Pass the function that makes it."
            )
        self._has_begun = True
        return samples


class _Pass:
    """One pass over a DataLoader."""

    def __init__(self, loader: DataLoader) -> None:
        self._loader = loader
        self._number, self._next = loader._order.begin()
        self._waiting: collections.deque[Future[Any]] = collections.deque()
        self._made = self._next
        self._stream: Iterator[Any] | None = None
        self._numbers: list[int] | None = None
        self._rows: Tensor | None = None
        if loader._is_stream:
            self._stream = loader._samples_of_pass()
            for _ in range(self._next):
                if not self._read():
                    break
            self._last = None
        else:
            self._last = len(loader)
            self._rows = loader._order.order(self._number)
            if self._rows is not None and loader._tensors is None:
                self._numbers = self._rows.tolist()
        self._pool = ThreadPoolExecutor(loader._workers) if loader._workers > 0 else None

    def __iter__(self) -> _Pass:
        return self

    def __next__(self) -> Any:
        loader, order = self._loader, self._loader._order
        if self._last is not None and self._next >= self._last:
            self._end()
            raise StopIteration
        if self._pool is None:
            batch = self._make(self._next)
        else:
            while len(self._waiting) < loader._ahead and (
                self._last is None or self._made < self._last
            ):
                self._waiting.append(self._pool.submit(self._make, self._made))
                self._made += 1
            batch = self._waiting.popleft().result()
        if batch is None:  # the stream's end
            order.reached(self._number + 1, 0)
            self._last = self._next
            self._end()
            raise StopIteration
        self._next += 1
        is_last = self._next == self._last
        order.reached(self._number + is_last, 0 if is_last else self._next)
        return batch if loader._device is None else _moved(batch, loader._device)

    def _end(self) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def __del__(self) -> None:
        if getattr(self, "_pool", None) is not None:
            self._end()

    def _read(self) -> list[Any]:
        assert self._stream is not None
        samples: list[Any] = []
        for sample in self._stream:
            samples.append(sample)
            if len(samples) == self._loader._batch:
                break
        return samples

    def _make(self, i: int) -> Any:
        loader = self._loader
        if self._stream is not None:
            samples = self._read()
            is_short = len(samples) < loader._batch
            return (
                None
                if not samples or (is_short and loader._drops_last)
                else loader._collate(samples)
            )
        first, last = loader._order.range(i)
        if loader._tensors is not None:
            if self._rows is None:
                parts = [tensor[first:last] for tensor in loader._tensors]
            else:
                rows = self._rows[first:last]
                parts = [_ext.take(tensor, rows, axis=0) for tensor in loader._tensors]
            return tuple(parts) if loader._names is None else dict(zip(loader._names, parts))
        numbers = range(first, last) if self._numbers is None else self._numbers[first:last]
        return loader._collate([loader._data[number] for number in numbers])


def weighted(weights: Sequence[float], count: int, seed: int = 0) -> Callable[[int], list[int]]:
    """A sampler that draws `count` samples of each pass with replacement, as often as the weights say:
    for classes of unequal size."""
    return _ext._Sampler(weights, count, seed)


__all__ = ["DataLoader", "weighted"]
