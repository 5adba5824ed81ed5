"""Training curves: files that TensorBoard reads, and JSON lines."""

import json
import math
import pathlib
import struct
from typing import Any

import numpy as np
import pytest

import nitinol as nt
from nitinol import nn

reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")


def read(folder: pathlib.Path) -> Any:
    events = reader.EventAccumulator(
        str(folder), size_guidance={reader.SCALARS: 0, reader.HISTOGRAMS: 0, reader.TENSORS: 0}
    )
    events.Reload()
    return events


def scalars(folder: pathlib.Path, name: str) -> list[tuple[int, float]]:
    return [(event.step, event.value) for event in read(folder).Scalars(name)]


def lines(folder: pathlib.Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_tensorboard_reads_what_was_added(tmp_path):
    values = [float(v) for v in np.random.default_rng(0).normal(size=300)]
    with nn.MetricLog(tmp_path / "a" / "b") as log:
        for step, value in enumerate(values):
            log.add("loss", nt.asarray(value), step * 1000)
            log.add("validation/loss", value, step)
        log.add("big step", nt.asarray([7], dtype=nt.int32), 2**40)
        log.add("größe", np.float32(0.5), 1)
        log.add("yes", True, 1)
        log.add("bad", math.nan, 1)
        log.add("worse", -math.inf, 1)
    folder = tmp_path / "a" / "b"
    assert sorted(read(folder).Tags()["scalars"]) == sorted(
        ["loss", "validation/loss", "big step", "größe", "yes", "bad", "worse"]
    )
    rounded = [float(np.float32(v)) for v in values]
    assert scalars(folder, "loss") == [(i * 1000, v) for i, v in enumerate(rounded)]
    assert scalars(folder, "validation/loss") == list(enumerate(rounded))
    assert scalars(folder, "big step") == [(2**40, 7.0)]
    assert scalars(folder, "größe") == [(1, 0.5)]
    assert math.isnan(scalars(folder, "bad")[0][1]) and scalars(folder, "worse")[0][1] == -math.inf
    found = [line for line in lines(folder) if "validation/loss" in line]
    assert [(line["step"], line["validation/loss"]) for line in found] == list(enumerate(values))
    assert {"bad": None, "worse": None, "yes": 1.0}.items() <= lines(folder)[-1].items()
    times = [event.wall_time for event in read(folder).Scalars("loss")]
    assert times == sorted(times) and abs(times[0] - lines(folder)[0]["time"]) < 1


def test_texts_and_histograms(tmp_path):
    weights = nt.asarray([0.0, 1.0, 1.0, 3.0, math.nan, 60.0])
    with nn.MetricLog(tmp_path) as log:
        log.add_text("note", "*hello*\nworld", 3)
        log.add_histogram("weights", weights, 4)
        log.add_histogram("one value", nt.ones((5,)), 4)
        log.add_histogram("nothing", nt.zeros((0,)), 4)
    events = read(tmp_path)
    (text,) = events.Tensors("note")
    assert text.step == 3 and text.tensor_proto.string_val[0] == b"*hello*\nworld"
    (event,) = events.Histograms("weights")
    found = event.histogram_value
    assert (event.step, found.min, found.max, found.num, found.sum) == (4, 0.0, 60.0, 5.0, 65.0)
    assert found.sum_squares == 3611.0
    assert len(found.bucket_limit) == 30 and found.bucket_limit[-1] == 60.0
    counts, _ = np.histogram([0, 1, 1, 3, 60], bins=30)
    assert list(found.bucket) == counts.tolist()
    assert list(events.Histograms("one value")[0].histogram_value.bucket) == [5.0]
    assert "nothing" not in events.Tags()["histograms"]
    assert lines(tmp_path)[0]["note"] == "*hello*\nworld"


def test_tensorboard_notices_a_damaged_byte(tmp_path):
    with nn.MetricLog(tmp_path) as log:
        for step in range(3):
            log.add("loss", 0.5, step)
    (path,) = tmp_path.glob("events.out.tfevents.*")
    content = bytearray(path.read_bytes())
    (first,) = struct.unpack("<Q", content[:8])
    assert len(scalars(tmp_path, "loss")) == 3
    content[first + 16 + 12 + 20] ^= 1  # in the second record, step 0
    path.write_bytes(content)
    assert "loss" not in read(tmp_path).Tags()["scalars"]


def test_a_folder_is_one_run_however_often_it_is_opened(tmp_path):
    for run in range(3):
        with nn.MetricLog(tmp_path) as log:
            for step in range(10):
                log.add("loss", run, run * 10 + step)
    assert len(list(tmp_path.glob("events.out.tfevents.*"))) == 3
    assert scalars(tmp_path, "loss") == [(i, float(i // 10)) for i in range(30)]
    assert [line["step"] for line in lines(tmp_path)] == list(range(30))


def test_what_is_wrong_is_said(tmp_path):
    log = nn.MetricLog(tmp_path)
    with pytest.raises(nt.ArgumentError, match="MetricLog.add: the name"):
        log.add("a\n", 1.0, 0)
    with pytest.raises(nt.ShapeError, match="one element"):
        log.add("a", nt.ones((2,)), 0)
    with pytest.raises(TypeError, match="MetricLog.add"):
        log.add("a", "1.0", 0)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="step"):
        log.add("a", 1.0, 0.5)  # type: ignore[arg-type]
    with pytest.raises(nt.FileError, match="cannot be"):
        nn.MetricLog("/proc/self")
    assert log.lost == 0
    log.close()
    log.close()
    with pytest.raises(ValueError, match="closed"):
        log.add("a", 1.0, 0)
    assert lines(tmp_path) == []


def test_what_was_added_is_there_when_the_program_ends(tmp_path, in_process):
    in_process(
        "import nitinol as nt\nfrom nitinol import nn\n"
        "log = nn.MetricLog('run')\n"
        "def train():\n"
        "    log.add('loss', nt.sum(nt.ones((3,))), 1)\n"
        "train()\n"
    )
    assert lines(tmp_path / "run")[0]["loss"] == 3.0


def test_fit_logs_each_step_and_epoch(tmp_path):
    x = nt.random.normal((24, 4))
    y = (nt.sum(x, axis=-1) > 0).to(nt.int64)
    net = nn.Linear(4, 2)
    loader = nn.DataLoader((x, y), batch=8, shuffle=False)
    with nn.MetricLog(tmp_path) as log:
        history = nn.fit(
            net, nn.cross_entropy, nn.Sgd(net, rate=0.5), loader, epochs=2, metrics=[nn.accuracy()],
            validation=loader, schedule=nn.linear_decay(0.5, 6), log=log,
        )  # fmt: skip
        assert len(lines(tmp_path)) > 0  # after an epoch
    assert [step for step, _ in scalars(tmp_path, "loss")] == list(range(1, 7))
    rates = [rate for _, rate in scalars(tmp_path, "learning rate")]
    schedule = nn.linear_decay(0.5, 6)
    assert rates == pytest.approx([schedule(i) for i in range(6)])
    for name in ("loss", "accuracy", "validation loss", "validation accuracy"):
        found = [
            (line["step"], line[f"epoch/{name}"])
            for line in lines(tmp_path)
            if f"epoch/{name}" in line
        ]
        assert found == [(3, history[0][name]), (6, history[1][name])]
    losses = [loss for _, loss in scalars(tmp_path, "loss")]
    assert sum(losses[:3]) / 3 == pytest.approx(history[0]["loss"], rel=1e-6)


def test_plots():
    assert nn.plot([4, 3, 2, 1], title="loss", width=4, height=2, style="ascii") == (
        "loss\n4 '.\n1   '.\n  1 4 steps\n"
    )
    braille = nn.plot(nt.arange(8), width=4, height=2, style="braille", unit="epochs")
    assert braille == "7   ⡠⠊\n0 ⡠⠊\n  1 8 epochs\n"
    assert nn.plot([nt.asarray(1.0), nt.asarray(2.0)], style="ascii").count("\n") == 11
    with pytest.raises(nt.ArgumentError, match="'braille', 'ascii' or None"):
        nn.plot([1.0], style="dots")
    with pytest.raises(nt.ArgumentError, match="width"):
        nn.plot([1.0], width=1)
