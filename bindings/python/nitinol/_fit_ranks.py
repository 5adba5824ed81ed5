"""The processes that fit() trains by, and what they do together besides the steps."""

from __future__ import annotations

import math
import warnings
from typing import Any, Callable, Iterator, Sequence

import nitinol as nt
from nitinol import _ext, dist, nn
from nitinol._ext import Group


class Ranks:
    """A process that trains alone is a group of one, which sends nothing. All ranks call the same."""

    def __init__(self, group: Group | None = None) -> None:
        # A program that has not asked for others trains alone, whoever has started it.
        if group is None and _ext._dist_has_joined():
            group = dist.world()
        self.group = group
        self.size = 1 if group is None else group.size
        self.are_several = self.size > 1
        self.is_first = group is None or group.rank == 0

    def first_says(self, own: bool) -> bool:
        """What rank 0 says."""
        return bool(dist.broadcast(own, group=self.group)) if self.are_several else own

    def all_say(self, own: bool) -> bool:
        """Whether all say so."""
        return bool(dist.all_reduce(own, "min", self.group)) if self.are_several else own

    def sum(self, x: nt.Tensor) -> nt.Tensor:
        return dist.all_reduce(x, "sum", self.group) if self.are_several else x

    def mean(self, x: nt.Tensor) -> nt.Tensor:
        return dist.all_reduce(x, "mean", self.group) if self.are_several else x

    def rows(self, own: Sequence[nt.Tensor]) -> nt.Tensor | None:
        """The rows of all ranks, which may have unequally many of them."""
        rows = nt.concat(own) if own else None
        if not self.are_several:
            return rows
        counts = dist.all_gather(len(rows) if rows is not None else 0, group=self.group).tolist()
        most = max(counts)
        if most == 0:
            return None
        if rows is None or min(counts) == 0:
            raise nt.ArgumentError(
                "fit: samples of a pass, of which metrics are made: expected some on each rank, got "
                "none on one. Give each rank a part of them: shard=dist.world()."
            )
        if most > len(rows):
            padding = nt.zeros((most - len(rows), *rows.shape[1:]), dtype=rows.dtype)
            rows = nt.concat([rows, padding.to(rows.device)])
        gathered = dist.all_gather(rows, group=self.group)
        return nt.concat([gathered[r * most : r * most + n] for r, n in enumerate(counts)])

    def average_gradients(self, model: nn.Module) -> None:
        if self.are_several:
            nn.average_gradients(model, group=self.group)

    def broadcast(self, *parts: Any) -> None:
        """Gives all ranks what rank 0 has."""
        if self.are_several:
            nn.broadcast([part for part in parts if part is not None], group=self.group)

    def average_buffers(self, model: nn.Module) -> None:
        """Of what is no parameter, such as the running statistics of batch norm: the mean."""
        if not self.are_several:
            return
        learned = {id(parameter) for parameter in model.parameters()}
        for buffer in model.named_variables().values():
            if id(buffer) in learned or not nt.isdtype(buffer.dtype, "real floating"):
                continue
            # A mean of equal numbers may be rounded to another.
            least = dist.all_reduce(buffer.value, "min", self.group)
            most = dist.all_reduce(buffer.value, "max", self.group)
            buffer.value = nt.where(least == most, buffer.value, self.mean(buffer.value))

    def wait(self) -> None:
        if self.are_several:
            dist.barrier(self.group)

    def check_parts(self, x: nt.Tensor) -> None:
        """Warns if all ranks have got the same samples."""
        if self.are_several:
            marks = dist.all_gather(nt.sum(x.astype(nt.float64)), group=self.group).tolist()
            if self.is_first and len(set(marks)) == 1 and not math.isnan(marks[0]):
                warnings.warn(
                    "fit: all ranks have got the same samples, of which each is to have a part: give "
                    "the DataLoader shard=dist.world()",
                    stacklevel=3,
                )

    def load(self, random: nt.Variable, load: Callable[[], None]) -> None:
        """load(), which sets the default generator's state to that of rank 0, on each. Ranks that draw
        other numbers than rank 0 go on doing so."""
        own = random.value
        of_first = dist.broadcast(own, group=self.group) if self.are_several else own
        load()
        if own[0].item() != of_first[0].item():
            random.value = nt.stack([own[0], random.value[1]])

    def batches(self, loader: nn.DataLoader) -> Iterator[Any]:
        """The batches of a pass of which every rank has one: all make equally many steps. Who has more
        leaves them out."""
        batches = iter(loader)
        if not self.are_several:
            yield from batches
            return
        count = len(loader) if loader.has_size else -1
        mean = self.mean(nt.asarray(float(count), dtype=nt.float64)).item()
        is_even = self.all_say(count >= 0 and mean == count)
        while True:
            batch = next(batches, None)
            if not (batch is not None if is_even else self.all_say(batch is not None)):
                break
            yield batch
        if batch is not None:
            loader.end_pass()
