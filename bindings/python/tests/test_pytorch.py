"""nn.load_pytorch: names and layouts of PyTorch, from files and state_dicts; without PyTorch. Beside it:
test_models.py."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pytest
from conftest import bits

import nitinol as nt
from nitinol import nn

untyped: Any = nn  # for what type checkers refuse, too


class Mine(nn.Linear):
    """A user's own, which is a Linear still."""


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = Mine(4, 4)
        self.layers = [nn.Linear(4, 2, bias=False)]
        self.rnn = nn.Lstm(2, 3)
        self.scale = nt.parameter(nt.ones((2, 2)))


def drawn(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def state() -> dict[str, Any]:
    return {
        "first.weight": drawn(4, 4),
        "first.bias": drawn(4),
        "layers.0.weight": drawn(2, 4),
        "rnn.weight_ih_l0": drawn(12, 2),
        "rnn.weight_hh_l0": drawn(12, 3),
        "rnn.bias_ih_l0": drawn(12),
        "rnn.bias_hh_l0": drawn(12) + 1,
        "scale": drawn(2, 2),
    }


def check(net: Net) -> None:
    given = state()
    assert bits(net.first.weight.value) == bits(nt.asarray(given["first.weight"].T.copy()))
    assert bits(net.layers[0].weight.value) == bits(nt.asarray(given["layers.0.weight"].T.copy()))
    cell = net.rnn.layers[0]
    assert bits(cell.bias.value) == bits(
        nt.asarray(given["rnn.bias_ih_l0"] + given["rnn.bias_hh_l0"])
    )
    assert bits(net.scale.value) == bits(nt.asarray(given["scale"]))  # of no layer: as it is


def test_from_a_dict_and_from_a_file(tmp_path: pathlib.Path) -> None:
    net = Net()
    report = nn.load_pytorch(state(), net)
    check(net)
    hows = {one.name: one.how for one in report.tensors}
    assert hows["first.weight"] == "transposed" and hows["scale"] == "as it is"
    assert hows["rnn.layers.0.bias"] == "sum of 2"
    assert report.tensors[0].names == ("first.weight",)
    assert "sum of 2" in str(report) and str(report) == repr(report)
    path = tmp_path / "net.safetensors"
    nt.save_safetensors(path, {f"module.{n}": nt.asarray(v) for n, v in state().items()})
    for rename in ({"module": ""}, [("module", "there"), ("there", "")]):
        other = Net()
        nn.load_pytorch(path, other, rename=rename)
        check(other)


def test_modules_in_dicts_and_lists() -> None:
    net = {"net": [nn.Linear(4, 4)]}
    nn.load_pytorch({"net.0.weight": drawn(4, 4), "net.0.bias": drawn(4)}, net)
    assert bits(net["net"][0].weight.value) == bits(nt.asarray(drawn(4, 4).T.copy()))


def test_what_is_left_out_is_said() -> None:
    net = Net()
    given = {**state(), "ema.first.weight": drawn(4, 4), "head.bias": drawn(3)}
    with pytest.raises(nt.ArgumentError, match="2 left over: ema.first.weight, head.bias"):
        nn.load_pytorch(given, net)
    nn.load_pytorch(given, net, unused=["ema", "head"])
    check(net)
    del given["scale"]
    report = nn.load_pytorch(given, Net(), strict=False)
    assert {one.how for one in report.tensors if not one.name} == {"unused"}
    assert [one.name for one in report.tensors if one.how == "missing"] == ["scale"]


@pytest.mark.parametrize(
    "change, options, error, words",
    [
        ({"scale": drawn(2, 3)}, {}, nt.ShapeError, r"scale for scale.*\[2, 2\].*float32\[2, 3\]"),
        ({"layers.0.weight": drawn(4, 2)}, {}, nt.ShapeError, "name it in `untransposed`"),
        ({"scale": np.ones((2, 2), np.int32)}, {}, nt.DTypeError, "expected float32, got int32"),
        ({}, {"rename": {"scale": "first.bias"}}, nt.ArgumentError, "two tensors for first.bias"),
        ({}, {"rename": {"scale": "factor"}}, nt.ArgumentError, r"expected scale \(for scale\)"),
        ({}, {"untransposed": ["nowhere"]}, nt.ArgumentError, '`untransposed` has "nowhere"'),
        ({}, {"untransposed": "first"}, TypeError, "a list of str"),
        ({}, {"unused": [3]}, TypeError, "unused is an int"),
        ({3: 4}, {}, TypeError, "a name is an int"),
        ({"scale": "x"}, {}, TypeError, "scale is a str|a tensor is a str"),
    ],
)
def test_errors_change_nothing(
    change: dict[Any, Any], options: dict[str, Any], error: Any, words: str
) -> None:
    net = Net()
    before = list(map(bits, net.state_dict().values()))
    with pytest.raises(error, match=words):
        untyped.load_pytorch({**state(), **change}, net, **options)
    assert list(map(bits, net.state_dict().values())) == before


def test_files_of_ours_and_no_files(tmp_path: pathlib.Path) -> None:
    net, path = Net(), tmp_path / "ours"
    nn.save(path, net)
    with pytest.raises(nt.ArgumentError, match=r"written by save\(\)"):
        nn.load_pytorch(path, net)
    with pytest.raises(OSError):
        nn.load_pytorch(tmp_path / "none", net)
    path.write_bytes(b"PK\x03\x04 a pickle of PyTorch")
    with pytest.raises(OSError, match=r"torch\.save\(\) writes pickles"):
        nn.load_pytorch(path, net)
    with pytest.raises(TypeError):
        untyped.load_pytorch(3, net)
    with pytest.raises(TypeError, match="expected a Module"):
        untyped.load_pytorch({}, 3)


def test_load_state_dict_refuses_tensors_of_pytorch() -> None:
    tensor = type("Tensor", (), {"__module__": "torch"})()
    net = nn.Linear(2, 2)
    with pytest.raises(TypeError, match=r"weight is PyTorch's.*nn.load_pytorch\(state, module\)"):
        net.load_state_dict({"weight": tensor, "bias": nt.zeros(2)})
