"""summary(): the same numbers as in C++ (tests/nn/summary_test.cpp)."""

import pathlib
import sys

import pytest

import nitinol as nt
from nitinol import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "examples" / "models"))


class Mlp(nn.Module):
    def __init__(self) -> None:
        self.hidden = nn.Linear(64, 128)
        self.norm = nn.BatchNorm(128)
        self.out = nn.Linear(128, 10)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        return self.out(nt.relu(self.norm(self.hidden(x))))


def test_parameters_outputs_and_operations():
    model = Mlp()
    before = {name: bytes(v.get()) for name, v in model.named_variables().items()}
    found = nn.summary(model, nt.ones((32, 64)))
    assert [(r.path, r.type, r.depth, r.output, r.parameters, r.others) for r in found.rows] == [
        ("", "Mlp", 0, "float32[32, 10]", 9866, 256),
        ("hidden", "Linear", 1, "float32[32, 128]", 8320, 0),
        ("norm", "BatchNorm", 1, "float32[32, 128]", 256, 256),
        ("out", "Linear", 1, "float32[32, 10]", 1290, 0),
    ]
    assert found.rows[1].operations == 2 * 32 * 64 * 128 + 32 * 128
    assert found.parameters == 9866 and found.operations == found.rows[0].operations > 600_000
    assert {name: bytes(v.get()) for name, v in model.named_variables().items()} == before
    assert str(found).splitlines()[0].split() == [
        "layer", "type", "output", "parameters", "%", "buffers", "bytes", "operations", "%",
    ]  # fmt: skip
    assert "hidden" not in found.table(depth=0)


def test_models_of_all_kinds():
    assert nn.summary(nn.Sequential(nn.Linear(4, 16), nt.relu, nn.Linear(16, 2))).parameters == 114
    assert nn.summary([nn.Linear(2, 2), {"a": nn.Linear(2, 3)}]).rows[2].path == "1.a"
    assert nn.summary(nt.parameter(nt.zeros((3,)))).parameters == 3
    assert nn.summary([]).rows[0].parameters == 0
    layer = nn.Linear(3, 3)
    shared = nn.summary(nn.Sequential(layer, layer), nt.ones((2, 3)))
    assert shared.parameters == 12
    assert nn.summary(nn.Lstm(8, 16), nt.ones((5, 2, 8))).parameters == 4 * 16 * (8 + 16 + 1)
    with pytest.raises(nt.ShapeError):
        nn.summary(nn.Linear(4, 2), nt.ones((3, 5)))
    noisy = nn.Sequential(nn.Dropout(0.5), nn.Linear(4, 2))
    state = nt.random.default_generator().state.value.tolist()
    nn.summary(noisy, nt.ones((3, 4)))
    assert nt.random.default_generator().state.value.tolist() == state


def test_what_modules_share():
    layer = nn.Linear(3, 3)
    found = nn.summary(nn.Sequential(layer, layer), nt.ones((2, 3)))
    assert [(r.path, r.parameters, r.shared, r.shared_with) for r in found.rows] == [
        ("", 12, 0, ""),
        ("0", 12, 0, ""),
        ("1", 0, 12, "0"),
    ]
    assert found.rows[1].operations == 2 * (2 * 2 * 3 * 3 + 6)
    assert str(found).splitlines()[3].split()[:3] == ["1", "Linear", "?"]
    assert str(found).splitlines()[3].endswith("  12 with 0")
    assert "what is shared counts once" in str(found)

    class Tied(nn.Module):
        def __init__(self) -> None:
            block = nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4))
            self.blocks = [[block, nn.Sequential(nn.Linear(4, 4))], {"again": block}]
            self.head = nn.Linear(4, 4)
            self.head.weight = block[0].weight
            self.head.model = self  # type: ignore[attr-defined]  # one that refers to what it is in
            block.head = self.head  # type: ignore[attr-defined]

    rows = {r.path: r for r in nn.summary(Tied()).rows}
    assert list(rows) == [
        "", "blocks.0.0", "blocks.0.0.0", "blocks.0.0.1", "blocks.0.0.head", "blocks.0.1", "blocks.0.1.0",
        "blocks.1.again", "head",
    ]  # fmt: skip
    assert rows[""].parameters == 28 + 4 + 20 and rows[""].shared == 0
    assert rows["blocks.0.0.head"][-2:] == (16, "blocks.0.0.0")
    assert rows["blocks.1.again"][-2:] == (28 + 4, "blocks.0.0.0")
    assert rows["head"].parameters == 0 and rows["head"].shared == 20


class Centred(nn.Module):
    """Less its mean of all calls so far, which it keeps."""

    def __init__(self) -> None:
        self.kept = {"mean": nt.Variable(nt.zeros((3,)))}

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        mean = self.kept["mean"]
        mean.set(mean * 0.9 + nt.mean(x, 0) * 0.1)
        return x - mean


def test_a_running_mean_is_a_buffer_and_no_output():
    found = nn.summary(
        nn.Sequential(nn.Linear(2, 3), Centred(), nt.relu, Centred()), nt.ones((5, 2))
    )
    assert [(r.path, r.output, r.parameters, r.others) for r in found.rows] == [
        ("", "float32[5, 3]", 9, 6),
        ("0", "float32[5, 3]", 9, 0),
        ("1", "float32[5, 3]", 0, 3),
        ("3", "float32[5, 3]", 0, 3),
    ]
    assert str(found).splitlines()[-1].startswith("9 parameters, 6 in buffers")


def test_a_module_without_variables():
    class Scale(nn.Module):
        def __call__(self, x: nt.Tensor) -> nt.Tensor:
            return x * 2

    found = nn.summary(nn.Sequential(nn.Linear(4, 3), Scale(), nn.Linear(3, 2)), nt.ones((5, 4)))
    assert [(r.path, r.output) for r in found.rows] == [
        ("", "float32[5, 2]"),
        ("0", "float32[5, 3]"),
        ("1", ""),
        ("2", "float32[5, 2]"),
    ]
    assert str(found).splitlines()[3].split()[:3] == ["1", "Scale", "?"]
    assert str(found).splitlines()[-1].startswith("? of modules")
    assert nn.summary(Scale(), nt.ones((5, 4))).rows[0].output == "float32[5, 4]"


def test_known_models():
    resnet = pytest.importorskip("resnet")
    gpt2 = pytest.importorskip("gpt2")
    model = resnet.resnet18().eval()
    found = nn.summary(model, nt.zeros((1, 3, 224, 224)))
    assert found.parameters == 11_689_512
    layers = [r.operations for r in found.rows if r.type in ("Conv2d", "Linear")]
    assert sum(layers) / 2 == 1_814_073_344 + 500
    assert found.rows[0].output == "float32[1, 1000]"
    assert nn.summary(gpt2.gpt2_small()).parameters == 124_439_808
