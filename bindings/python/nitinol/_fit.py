"""fit(): the usual loop over epochs and batches, for models of one input and one target.

It is made of public names alone. Who needs another loop copies it from here.
"""

from __future__ import annotations

import math
import os
import sys
from typing import Any, Callable, Mapping, Sequence

import nitinol as nt
from nitinol import _fit_optimizer as of_optimizer
from nitinol import nn
from nitinol._ext import Group
from nitinol._fit_ranks import Ranks
from nitinol._fitting import EarlyStopping, State, check, check_loss, check_metrics
from nitinol._metric_log import MetricLog
from nitinol._metrics import Metric
from nitinol._sharded import Sharded
from nitinol._typing import DTypeLike

Epoch = Mapping[str, float]  # "epoch", "loss", metrics, and the same of the validation


def fit(
    model: nn.Module,
    loss: Callable[..., nt.Tensor],
    optimizer: nn.Optimizer | Sharded,
    loader: nn.DataLoader,
    *,
    epochs: int = 1,
    validation: nn.DataLoader | None = None,
    metrics: Sequence[Metric] = (),
    early_stopping: EarlyStopping | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_steps: int = 0,
    log: MetricLog | None = None,
    after_epoch: Callable[[Epoch], object] | None = None,
    explain: Callable[[nt.Explanation], object] | None = None,
    schedule: Callable[[int], float] | None = None,
    autocast: DTypeLike | None = None,
    loss_scale: nn.LossScale | None = None,
    largest_norm: float | None = None,
    compiled: bool = True,
    group: Group | None = None,
) -> list[dict[str, float]]:
    """Trains by the gradients of loss(model(x), y), for the batches (x, y) of the loader, in a compiled
    step. Returns what came of each epoch: "loss", the metrics, and of the validation, which is looked at
    in eval mode, the same as "validation loss".

    checkpoint: a file that keeps all state, the loader's place included; written after each epoch, and
    after so many steps. If it is there, training goes on from it, with the bits it would have had.
    log: gets "loss" and "learning rate" of each step, by how many were made, and what comes of each epoch
    as "epoch/loss" and so on. after_epoch: called after each. explain: called at the end.
    schedule: the rate of each step.
    loss_scale: for float16. largest_norm: clip_gradient_norm()'s. compiled=False: to look at a step.

    Several processes (nitinol.dist) train one model: those of `group`, else dist.world() in a program that
    has called dist.init() or dist.world(). All give the same options and begin with what rank 0 has,
    gradients are averaged, and losses and metrics are those of all ranks' samples, so that they all end
    alike. Each has a loader of its part, DataLoader(..., shard=dist.world()); a pass ends for all where the
    first has no batch any more. Buffers, such as those of batch norm, are averaged after each pass. Rank 0
    writes the checkpoint, which all read, and the log, shows progress, and calls after_epoch, which may
    change the model and the optimizer, and explain. The group of a Sharded optimizer trains: the file holds
    the state of the whole one, so that training goes on with another number of ranks, or without Sharded.
    """
    ranks = Ranks(of_optimizer.group_of(optimizer, group))
    check_metrics(metrics)
    columns = ["loss", *(metric.name for metric in metrics)]
    columns += [f"validation {name}" for name in columns] if validation is not None else []
    check(epochs, checkpoint_steps, early_stopping, columns)

    call: Any = model  # which has a __call__ of its own

    def judged(value: nt.Tensor, out: nt.Tensor, y: nt.Tensor) -> list[nt.Tensor]:
        out = nt.stop_gradient(out)
        return [nt.stop_gradient(value), *(metric.part(out, y) for metric in metrics)]

    def forward(x: nt.Tensor, y: nt.Tensor) -> tuple[nt.Tensor, nt.Tensor]:
        with nn.autocast(nt.float32 if autocast is None else autocast):
            out = call(x)
            value = loss(out, y)
            check_loss(value)
            return out, value

    @nt.compile(name="fit: step")
    def train_step(x: nt.Tensor, y: nt.Tensor) -> list[nt.Tensor]:
        optimizer.zero_grad()
        out, value = forward(x, y)
        (value if loss_scale is None else loss_scale(value)).backward()
        of_optimizer.update(optimizer, model, ranks, loss_scale, largest_norm)
        return judged(value, out, y)

    @nt.compile(name="fit: validation")
    def test_step(x: nt.Tensor, y: nt.Tensor) -> list[nt.Tensor]:
        with nt.no_gradients():
            out, value = forward(x, y)
            return judged(value, out, y)

    def run(step: Any, batch: Any) -> list[nt.Tensor]:
        if not isinstance(batch, (tuple, list)) or len(batch) != 2:
            raise nt.ArgumentError(
                "fit: a batch of the loader: expected two tensors, what the model gets and the target. "
                "Write the loop yourself: nitinol/_fit.py has it."
            )
        return step(*batch) if compiled else step.eager(*batch)

    def means(total: nt.Tensor, samples: nt.Tensor, rows: list[list[nt.Tensor]]) -> list[float]:
        total, samples = ranks.sum(total), ranks.sum(samples)
        whole = [ranks.rows(parts) for parts in rows]
        return [
            total.item() / samples.item() if samples.item() else math.nan,
            *(
                math.nan if one is None else metric.of_rows(one).item()
                for metric, one in zip(metrics, whole)
            ),
        ]

    state = State()

    def all_state(whole: nn.Optimizer) -> dict[str, Any]:
        parts = {"model": model, "optimizer": whole, "loader": loader, "validation": validation,
                 "loss_scale": loss_scale, "fit": vars(state), "random": nt.random.default_generator().state}  # fmt: skip
        return {name: part for name, part in parts.items() if part is not None}

    def keep() -> None:
        # Rank 0 has what all have added, and the others nothing.
        for part in (state.loss, state.samples):
            total = ranks.sum(part.value)
            part.value = total if ranks.is_first else nt.zeros_like(total)
        whole = of_optimizer.whole_of(optimizer)
        if ranks.is_first and checkpoint is not None:
            nn.save(checkpoint, all_state(whole))

    def share() -> None:
        ranks.broadcast(model, loss_scale)
        of_optimizer.share(optimizer, ranks)
        of_optimizer.take_parameters(optimizer)

    if checkpoint is not None and ranks.first_says(os.path.exists(checkpoint)):
        state.make_room(checkpoint, len(columns))
        random = nt.random.default_generator().state
        whole = of_optimizer.whole_of(optimizer)
        ranks.load(random, lambda: nn.load(checkpoint, all_state(whole)))
        of_optimizer.take(optimizer, whole)
        if not ranks.is_first:
            state.clear_sums()
    share()
    has_log, has_after_epoch = (ranks.first_says(one is not None) for one in (log, after_epoch))
    if not ranks.is_first:
        log = after_epoch = explain = None
    is_begun = False
    while 0 <= state.epoch.value.item() < epochs and state.worse.value.item() >= 0:
        number = state.epoch.value.item() + 1
        model.train()
        shown = ranks.is_first and loader.has_size and len(loader) > 0 and sys.stdout.isatty()
        items = loader.batch_size * ranks.size
        progress = (
            nn.Progress(f"epoch {number}/{epochs}", len(loader), items, "samples")
            if shown
            else None
        )
        rows: list[list[nt.Tensor]] = [[] for _ in metrics]
        for batch in ranks.batches(loader):
            if not is_begun:
                is_begun = True
                ranks.check_parts(batch[0])
            step = int(state.step.value.item())
            if schedule is not None:
                optimizer.set_rate(schedule(step))
            value, *parts = run(train_step, batch)
            state.loss.value = state.loss.value + value.astype(nt.float64) * batch[0].shape[0]
            state.samples.value = state.samples.value + batch[0].shape[0]
            state.step.value = nt.asarray(step + 1)
            logged = ranks.mean(value) if has_log else value
            if log is not None:
                log.add("loss", logged, step + 1)
                log.add("learning rate", optimizer.rate().value, step + 1)
            for of_metric, part in zip(rows, parts):
                of_metric.append(part)
            if progress is not None:
                progress.step(f"loss {value.item():.4g}" if progress.is_due() else "")
            due = checkpoint_steps > 0 and (step + 1) % checkpoint_steps == 0
            if (
                checkpoint is not None and due and not loader.is_between_passes
            ):  # else the epoch ends here
                ranks.average_buffers(model)  # all go on with what it holds
                keep()
        ranks.average_buffers(model)
        values = means(state.loss.value, state.samples.value, rows)
        state.clear_sums()
        if validation is not None:
            model.eval()
            results = [(run(test_step, batch), batch[0].shape[0]) for batch in validation]
            total = sum(value.item() * count for (value, *_), count in results)
            count = sum(count for _, count in results)
            of_metrics = [[parts[i + 1] for parts, _ in results] for i in range(len(metrics))]
            values += means(nt.asarray(total, dtype=nt.float64), nt.asarray(count), of_metrics)
            model.train()
        row = nt.asarray([values], dtype=nt.float64)
        before = state.history.value
        state.history = nt.Variable(nt.concat([before, row]) if before.size else row)
        state.epoch.value = nt.asarray(number)
        epoch = {"epoch": float(number), **dict(zip(columns, values))}
        if log is not None:
            for name, one in zip(columns, values):
                log.add(f"epoch/{name}", one, int(state.step.value.item()))
            log.flush()
        if after_epoch is not None:
            after_epoch(epoch)
        if has_after_epoch:  # it may have changed something
            share()
        if early_stopping is not None:
            state.judge(epoch[early_stopping.monitor], early_stopping, model)
        if checkpoint is not None:
            keep()
    if checkpoint is not None:
        ranks.wait()  # it is there now
    if early_stopping is not None and early_stopping.restores_best:
        for name, best in state.best_parameters.items():
            model.named_parameters()[name].value = best.value
        of_optimizer.take_parameters(optimizer)
    if explain is not None:
        explain(train_step.explain())
    table = state.history.value.tolist() if state.history.value.size else []
    return [{"epoch": i + 1.0, **dict(zip(columns, values))} for i, values in enumerate(table)]


__all__ = ["EarlyStopping", "fit"]
