"""fit() and metrics: values by hand and beside scikit-learn's definitions, that steps are compiled, and
that training goes on from a checkpoint with the bits it would have had."""

import math
from pathlib import Path
from typing import Any, Callable

import numpy as np
import pytest

import nitinol as nt
from nitinol import nn

nt.set_log_level("off")
X = nt.random.randn((70, 4), generator=nt.random.Generator(1))
Y = (nt.sum(X * nt.asarray([1.0, -2.0, 0.5, 1.5]), axis=-1) > 0).astype(nt.int64)


class Net(nn.Module):
    def __init__(self) -> None:
        self.hidden, self.norm = nn.Linear(4, 16), nn.BatchNorm(16)
        self.drop, self.out = nn.Dropout(0.25), nn.Linear(16, 2)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        return self.out(self.drop(nt.relu(self.norm(self.hidden(x)))))


def bits(module: Any) -> list[bytes]:
    return [np.asarray(v.value).tobytes() for v in module.named_variables().values()]


def loader_of(**options: Any) -> nn.DataLoader:
    return nn.DataLoader((X, Y), **({"batch": 16, "seed": 3} | options))


def test_metrics() -> None:
    scores = nt.asarray([[1.0, 3.0, 2.0], [5.0, 4.0, 0.0], [0.0, 1.0, 2.0], [1.0, 0.0, 2.0]])
    classes = nt.asarray([1, 1, 2, 1])
    assert nn.accuracy()(scores, classes).item() == 0.5
    assert [nn.top_k(k)(scores, classes).item() for k in (1, 2, 3)] == [0.5, 0.75, 1]
    assert nn.mean_absolute_error()(nt.asarray([1.0, 2.0]), nt.asarray([1.0, 4.0])).item() == 1
    assert (
        nn.area_under_curve()(nt.asarray([0.8, 0.3, 0.8, 0.1]), nt.asarray([1, 1, 0, 0])).item()
        == 0.625
    )
    random = np.random.default_rng(0)
    values, targets = random.integers(0, 20, 200) / 7, random.integers(0, 2, 200)
    pairs = values[targets == 1][:, None] - values[targets == 0]
    expected = (pairs > 0).mean() + 0.5 * (pairs == 0).mean()
    assert nn.area_under_curve()(nt.asarray(values), nt.asarray(targets)).item() == pytest.approx(
        expected
    )
    ours = nn.Metric("greatest", lambda out, y: nt.max(out, axis=-1), nt.max)
    assert ours(scores, classes).item() == 5
    with pytest.raises(nt.Error, match="accuracy"):
        nn.accuracy()(scores, scores)
    with pytest.raises(nt.Error, match="top_k: the setting `k`"):
        nn.top_k(0)


@pytest.mark.parametrize("compiled", [True, False])
def test_fit_does_what_the_loop_does_that_one_writes_oneself(compiled: bool) -> None:
    nt.manual_seed(5)
    by_hand, losses = Net(), []
    optimizer = nn.Adam(by_hand, rate=0.01)
    loader = loader_of()
    for _ in range(3):
        total = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.cross_entropy(by_hand(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        losses.append(total / 70)
    nt.manual_seed(5)
    net = Net()
    logged: list[Any] = []
    explained: list[Any] = []
    history = nn.fit(
        net, nn.cross_entropy, nn.Adam(net, rate=0.01), loader_of(), epochs=3,
        validation=loader_of(shuffle=False), metrics=[nn.accuracy()], after_epoch=logged.append,
        explain=explained.append, compiled=compiled,
    )  # fmt: skip
    assert bits(net) == bits(by_hand)
    assert history == logged
    assert [e["epoch"] for e in history] == [1, 2, 3]
    assert [e["loss"] for e in history] == pytest.approx(losses, rel=1e-12)
    net.eval()
    assert history[2]["validation loss"] == pytest.approx(
        nn.cross_entropy(net(X), Y).item(), rel=1e-6
    )
    assert history[2]["validation accuracy"] == nn.accuracy()(net(X), Y).item()
    if compiled:
        data = explained[0]
        assert [s["tier"] for s in data["signatures"]] == [
            "compiled"
        ] * 2  # 16 rows, and the last 6
        assert data["plan_calls"] > 0


class Interrupt(Exception):
    pass


def trained(stops: list[int], path: Path, workers: int = 0, **options: Any) -> tuple[Any, Any]:
    """Broken off after so many steps of each run, and going on from the checkpoint."""
    for run in range(len(stops) + 1):
        nt.manual_seed(5 if run == 0 else 77 + run)
        net, steps = Net(), iter(range(10**6))
        optimizer = nn.AdamW(net, rate=0.02)

        def schedule(step: int) -> float:
            if run < len(stops) and next(steps) == stops[run]:
                raise Interrupt
            return 0.02 / (1 + step)

        try:
            history = nn.fit(
                net, nn.cross_entropy, optimizer, loader_of(workers=workers), epochs=4,
                validation=loader_of(batch=70), metrics=[nn.accuracy()], schedule=schedule,
                early_stopping=nn.EarlyStopping(), checkpoint=path if stops else None, **options,
            )  # fmt: skip
        except Interrupt:
            assert run < len(stops)
            continue
        assert run == len(stops)
        return bits(net) + bits(optimizer), history
    raise AssertionError


@pytest.mark.parametrize("stops", [[3], [5], [6], [9, 4], [19]])
@pytest.mark.parametrize("workers", [0, 2])
def test_training_goes_on_with_the_bits_it_would_have_had(
    stops: list[int], workers: int, tmp_path: Path
) -> None:
    state, history = trained([], tmp_path / "none")
    again, later = trained(stops, tmp_path / "state", workers, checkpoint_steps=2)
    assert again == state
    assert [e["loss"] for e in later] == [e["loss"] for e in history]
    assert [e["validation accuracy"] for e in later] == [e["validation accuracy"] for e in history]


def test_early_stopping() -> None:
    net = nn.Sequential(nn.Linear(4, 2))
    optimizer = nn.Sgd(net, rate=0.5)
    weights: list[list[bytes]] = []
    seen = [3, 2, 2.5, 1.95, 2.1, 2, 1, 0.5]
    told = nn.Metric("told", lambda out, y: y, lambda rows: nt.asarray(float(seen[len(weights)])))

    def run(**stopping: Any) -> int:
        weights.clear()
        return len(nn.fit(
            net, nn.cross_entropy, optimizer, loader_of(), epochs=8, metrics=[told],
            after_epoch=lambda epoch: weights.append(bits(net)), early_stopping=nn.EarlyStopping("told", **stopping),
        ))  # fmt: skip

    assert run(patience=2) == 6 and bits(net) == weights[3]
    assert run(patience=2, threshold=0.1) == 4 and bits(net) == weights[1]
    assert run(patience=2, restores_best=False) == 6 and bits(net) == weights[5]
    assert run(patience=3, maximize=True) == 4
    assert run(patience=9) == 8


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_precision_and_streams(dtype: str) -> None:
    nt.manual_seed(2)
    net = Net()
    stream = nn.DataLoader(lambda: zip(X[:64], Y[:64]), batch=16, workers=1)
    history = nn.fit(
        net, nn.cross_entropy, nn.Adam(net, rate=0.03), stream, epochs=8, autocast=dtype, largest_norm=1.0,
        loss_scale=nn.LossScale(initial=256.0) if dtype == "float16" else None,
    )  # fmt: skip
    assert history[-1]["loss"] < 0.7 * history[0]["loss"]


def test_what_makes_no_sense_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    net = nn.Sequential(nn.Linear(4, 2))
    path = tmp_path / "state"

    def fit(loader: nn.DataLoader | None = None, **options: Any) -> Any:
        return nn.fit(net, nn.cross_entropy, nn.Sgd(net), loader or loader_of(), **options)

    makes_none: list[tuple[Callable[[], Any], str]] = [
        (lambda: fit(epochs=-1), "epochs"),
        (lambda: fit(checkpoint_steps=-1), "checkpoint_steps"),
        (lambda: fit(early_stopping=nn.EarlyStopping()), "monitor"),
        (lambda: fit(early_stopping=nn.EarlyStopping("loss", patience=0)), "patience"),
        (lambda: fit(early_stopping=nn.EarlyStopping("loss", threshold=-1.0)), "threshold"),
        (lambda: fit(early_stopping=nn.EarlyStopping("loss", threshold=math.nan)), "threshold"),
        (lambda: fit(autocast=nt.float64), "autocast"),
        (lambda: fit(nn.DataLoader(X)), "two tensors"),
    ]
    for call, text in makes_none:
        with pytest.raises(nt.Error, match=text):
            call()
    with pytest.raises(TypeError, match="metrics has 'accuracy'; expected an nn.Metric"):
        fit(metrics=["accuracy"])
    for compiled in (True, False):
        with pytest.raises(TypeError, match=r"loss\(output, target\) gave 1; expected a Tensor"):
            nn.fit(net, lambda out, y: 1, nn.Sgd(net), loader_of(), compiled=compiled)  # type: ignore
    assert fit(epochs=0) == []
    assert [len(fit(epochs=n, checkpoint=path)) for n in (2, 2, 3)] == [2, 2, 3]
    with pytest.raises(nt.Error, match="goes on with the metrics"):
        fit(epochs=4, checkpoint=path, metrics=[nn.accuracy()])
    nn.save(path, net)
    with pytest.raises(nt.Error):
        fit(epochs=4, checkpoint=path)
    assert capsys.readouterr().out == ""  # quiet where there is no terminal
