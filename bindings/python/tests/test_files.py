"""A file that one language saved, the other one loads: every layer, by the same names."""

import os
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

import nitinol as nt
from nitinol import nn

# bindings/python/tests/layer_files.cpp: set by the build.
PROGRAM = os.environ.get("NITINOL_LAYER_FILES")


class Block(nn.Module):
    def __init__(self):
        self.up = nn.Linear(4, 6)
        self.layers = nn.Sequential(nn.LayerNorm(6), nt.gelu)


def model():
    return nn.Sequential(nn.Linear(4, 3), nt.relu, nn.Linear(3, 2))


# By the names that the program gives them.
LAYERS: dict[str, Callable[[], Any]] = {
    "linear": lambda: nn.Linear(4, 3),
    "linear_without_bias": lambda: nn.Linear(4, 3, bias=False),
    "conv2d": lambda: nn.Conv2d(2, 4, 3, groups=2),
    "conv1d": lambda: nn.Conv1d(2, 4, 3),
    "conv3d": lambda: nn.Conv3d(2, 4, (1, 2, 2)),
    "conv_transpose1d": lambda: nn.ConvTranspose1d(2, 4, 3),
    "conv_transpose2d": lambda: nn.ConvTranspose2d(2, 4, (2, 3)),
    "conv_transpose3d": lambda: nn.ConvTranspose3d(2, 4, 2),
    "embedding": lambda: nn.Embedding(5, 4),
    "embedding_bag": lambda: nn.EmbeddingBag(5, 4),
    "layer_norm": lambda: nn.LayerNorm(4),
    "group_norm": lambda: nn.GroupNorm(2, 4),
    "instance_norm": lambda: nn.InstanceNorm(4, affine=True),
    "rms_norm": lambda: nn.RmsNorm(4),
    "batch_norm": lambda: nn.BatchNorm(4),
    "prelu": lambda: nn.PRelu(3),
    "weight_norm": lambda: nn.WeightNorm(nn.Conv2d(2, 3, 3)),
    "spectral_norm": lambda: nn.SpectralNorm(nn.Linear(4, 3)),
    "lstm": lambda: nn.Lstm(3, 4),
    "lstm_of_two": lambda: nn.Lstm(3, 4, layers=2, bidirectional=True),
    "gru": lambda: nn.Gru(3, 4, layers=2, bidirectional=True),
    "rnn": lambda: nn.Rnn(3, 4, "relu", layers=2, bidirectional=True),
    "lstm_cell": lambda: nn.LstmCell(3, 4),
    "gru_cell": lambda: nn.GruCell(3, 4),
    "rnn_cell": lambda: nn.RnnCell(3, 4),
    "multi_head_attention": lambda: nn.MultiHeadAttention(4, 2),
    "key_value_cache": lambda: nn.KeyValueCache(1, 2, 3, 4),
    "encoder_layer": lambda: nn.TransformerEncoderLayer(4, 2, 6),
    "decoder_layer": lambda: nn.TransformerDecoderLayer(4, 2, 6),
    "sequential": lambda: nn.Sequential(
        nn.Linear(4, 3),
        nt.relu,
        nn.BatchNorm(3),
        nn.Sequential(nn.Dropout(0.5), nn.Linear(3, 2)),
    ),
    "block": Block,
    "sgd": lambda: nn.Sgd(model(), momentum=0.9),
    "adam": lambda: nn.Adam(model()),
    "adamw": lambda: nn.AdamW(model()),
    "rms_prop": lambda: nn.RmsProp(model(), momentum=0.5, centered=True),
    "adamax": lambda: nn.Adamax(model()),
    "nadam": lambda: nn.NAdam(model()),
    "radam": lambda: nn.RAdam(model()),
    "adagrad": lambda: nn.Adagrad(model(), initial=0.5),
    "adadelta": lambda: nn.Adadelta(model()),
    "adafactor": lambda: nn.Adafactor(model()),
    "lion": lambda: nn.Lion(model()),
    "lamb": lambda: nn.Lamb(model()),
    "lbfgs": lambda: nn.Lbfgs(model(), history=3),
    "average": lambda: nn.Average(model()),
}


def test_a_sequentials_parameters_are_named_by_position():
    assert list(LAYERS["sequential"]().named_parameters()) == [
        "0.weight", "0.bias", "2.weight", "2.bias", "3.1.weight", "3.1.bias",
    ]  # fmt: skip
    assert list(Block().named_variables())[2:] == ["layers.0.weight", "layers.0.bias"]

    class Scaled(nn.Sequential):
        def __init__(self):
            super().__init__(nn.Linear(2, 2, bias=False))
            self.scale = nt.parameter(nt.ones((2,)))

    assert list(Scaled().named_variables()) == ["0.weight", "scale"]


def test_every_layer_is_among_them():
    of_nn = [
        name
        for name in nn.__all__
        if isinstance(value := getattr(nn, name), type)
        and issubclass(value, (nn.Module, nn.Optimizer, nn.Average))
    ]
    have_no_variables = {
        "AvgPool1d", "AvgPool2d", "AvgPool3d", "Celu", "Dropout", "Elu", "FeatureDropout", "Flatten", "Glu", "Identity", "LeakyRelu", "MaxPool1d", "MaxPool2d", "MaxPool3d",
        "Module", "Optimizer", "Softmax",
    }  # fmt: skip
    made = {type(make()).__name__ for make in LAYERS.values()}
    assert made - {"Block"} == set(of_nn) - have_no_variables


def run(what, folder):
    assert PROGRAM
    done = subprocess.run([PROGRAM, what, folder], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not PROGRAM, reason="layer_files is not built (NITINOL_LAYER_FILES)")
def test_files_of_both_languages_are_the_same(tmp_path):
    run("save", tmp_path)
    assert {path.stem for path in tmp_path.iterdir()} == set(LAYERS)
    for name, make in LAYERS.items():
        ours = make()
        nn.save(tmp_path / f"{name}.py", ours)
        nn.load(tmp_path / f"{name}.cpp", ours)
        nn.save(tmp_path / "again", ours)
        assert (tmp_path / "again").read_bytes() == (tmp_path / f"{name}.cpp").read_bytes(), name
    run("copy", tmp_path)
    for name in LAYERS:
        assert (tmp_path / f"{name}.py").read_bytes() == (tmp_path / f"{name}.copy").read_bytes()
