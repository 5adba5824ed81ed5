"""Modules, layers, optimizers, data, files, and gradients of functions."""

import copy
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import bits, check_compiled, gradient_of

import nitinol as nt
from nitinol import nn

# Nothing is checked of what is wrong on purpose.
untyped: Any = nn


class Block(nn.Module):
    def __init__(self, width):
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm(width)

    def __call__(self, x):
        return self.norm(nt.relu(self.linear(x)))


class Net(nn.Module):
    def __init__(self):
        self.first = nn.Linear(4, 8)
        self.blocks = [Block(8), Block(8)]
        self.drop = nn.Dropout(0.5)
        self.extra = {"scale": nt.parameter(nt.ones((8,)))}
        self.tied = self.first

    def __call__(self, x):
        y = nt.tanh(self.first(x)) * self.extra["scale"]
        for block in self.blocks:
            y = self.drop(block(y))
        return nt.sum(y, axis=-1)


NAMES = ["first.weight", "first.bias"] + [
    f"blocks.{i}.{name}" for i in range(2)
    for name in ("linear.weight", "linear.bias", "norm.weight", "norm.bias", "norm.running_mean",
                 "norm.running_var")
] + ["extra.scale"]  # fmt: skip


def test_variables_by_name():
    net = Net()
    assert list(net.named_variables()) == NAMES  # what is shared appears once
    assert list(net.named_parameters()) == [n for n in NAMES if "running" not in n]
    assert list(net.buffers()) == [n for n in NAMES if "running" in n]
    assert len(net.parameters()) == 11


def test_text_shows_where_each_part_is():
    class Small(nn.Module):
        def __init__(self):
            self.first = nn.Linear(2, 3, bias=False)
            self.blocks = [nn.Sequential(nn.Linear(3, 1)), nn.Dropout(0.5)]
            self.heads = {"a": nn.Linear(1, 2)}
            self.scale = nt.parameter(nt.ones(2))

    assert (
        repr(Small())
        == """Small
  first: Linear
    weight: float32[2, 3]
  blocks.0: Sequential
    0: Linear
      weight: float32[3, 1]
      bias: float32[1]
  blocks.1: Dropout
  heads.a: Linear
    weight: float32[1, 2]
    bias: float32[2]
  scale: float32[2]
16 elements"""
    )


def test_train_and_eval():
    net, x = Net(), nt.random.randn((6, 4))
    step = nt.compile(net, check="never")
    for mode in (net.train, net.eval, net.train, net.eval):
        mode()
        assert [m.training for m in net.modules()] == [net.training] * len(net.modules())
        if not net.training:
            assert bits(step(x)) == bits(net(x)) == bits(step(x))
        else:
            assert bits(step(x)) != bits(step(x))  # dropout draws anew
    check_compiled(step, 4)
    assert len(step.explain()["signatures"]) == 2


def test_state_dict():
    net, other = Net(), Net()
    state = net.state_dict()
    assert list(state) == NAMES and all(isinstance(v, nt.Tensor) for v in state.values())
    other.load_state_dict({name: value.numpy() for name, value in state.items()})
    net.eval(), other.eval()
    x = nt.random.randn((3, 4))
    assert bits(net(x)) == bits(other(x))
    with pytest.raises(nt.ArgumentError, match="missing: first.weight; unknown: other"):
        other.load_state_dict(
            {**{n: v for n, v in state.items() if n != "first.weight"}, "other": 1}
        )
    assert other.first.bias is not None
    before = bits(other.first.bias.value)
    with pytest.raises(nt.ShapeError, match="first.weight"):
        other.load_state_dict(
            {**state, "first.weight": nt.ones((2, 2)), "first.bias": state["first.bias"] + 1}
        )
    assert bits(other.first.bias.value) == before  # nothing has changed


def test_save_and_load(tmp_path):
    net = Net()
    optimizer = nn.Adam(net)
    x = nt.random.randn((6, 4))

    def step(net, optimizer):
        optimizer.zero_grad()
        nt.mean(net(x) ** 2).backward()
        optimizer.step()

    net.drop.rate = 0.0
    step(net, optimizer)
    path = tmp_path / "all.safetensors"
    nn.save(path, {"net": net, "optimizer": optimizer})
    other = Net()
    other.drop.rate = 0.0
    other_optimizer = nn.Adam(other)
    nn.load(path, {"net": other, "optimizer": other_optimizer})
    for _ in range(3):
        step(net, optimizer), step(other, other_optimizer)
    for a, b in zip(net.state_dict().values(), other.state_dict().values()):
        assert bits(a) == bits(b)
    with pytest.raises(ValueError):
        nn.load(path, net)
    with pytest.raises(OSError):
        nn.load(tmp_path / "none", net)
    path.write_bytes(b"not a file")
    with pytest.raises(OSError):
        nn.load(path, {"net": net, "optimizer": optimizer})
    with pytest.raises(TypeError, match="expected a Module"):
        nn.save(path, 3)


def test_safetensors_of_its_own_package(tmp_path):
    safetensors = pytest.importorskip("safetensors.numpy")
    net = Net()
    nn.save(tmp_path / "ours", net)
    theirs = safetensors.load_file(tmp_path / "ours")
    assert sorted(theirs) == sorted(NAMES)
    for name, value in net.state_dict().items():
        np.testing.assert_array_equal(theirs[name], value.numpy())
    safetensors.save_file({n: v + 1 for n, v in theirs.items()}, tmp_path / "theirs")
    nn.load(tmp_path / "theirs", net)
    np.testing.assert_array_equal(net.first.weight.value.numpy(), theirs["first.weight"] + 1)
    loaded = nt.load_safetensors(tmp_path / "theirs")
    assert set(loaded) == set(NAMES)
    nt.save_safetensors(tmp_path / "third", loaded, {"key": "value"})
    assert bits(nt.load_safetensors(tmp_path / "third")["extra.scale"]) == bits(
        loaded["extra.scale"]
    )


def test_npy_files(tmp_path):
    x = nt.random.randn((3, 4))
    nt.save_npy(tmp_path / "x.npy", x.T)
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy"), x.T.numpy())
    np.save(tmp_path / "y.npy", np.arange(5))
    assert nt.load_npy(tmp_path / "y.npy").tolist() == [0, 1, 2, 3, 4]
    for order in (">f4", ">i8", ">u2", ">f2"):
        theirs = np.asfortranarray(np.arange(6).reshape(2, 3).astype(order))
        np.save(tmp_path / "big.npy", theirs)
        ours = nt.load_npy(tmp_path / "big.npy").numpy()
        assert ours.dtype == theirs.dtype.newbyteorder("=")
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(OSError):
        nt.load_npy(tmp_path / "none.npy")


def test_copies_of_modules():
    net = Net().eval()
    x = nt.random.randn((3, 4))
    for other in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert list(other.named_variables()) == NAMES and other.tied is other.first
        assert bits(other(x)) == bits(net(x))
        other.first.weight = other.first.weight * 2
        assert bits(other(x)) != bits(net(x))


def test_to_another_dtype():
    net = Net().eval()
    net.to(nt.float64)
    assert {v.dtype for v in net.named_variables().values()} == {nt.float64}
    assert net.tied.weight is net.first.weight
    assert net(nt.ones((2, 4), dtype=nt.float64)).dtype == nt.float64


def test_a_module_need_not_call_init():
    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.w = nt.parameter(nt.ones((2,)))

    class Bare(nn.Module):
        def __init__(self):
            self.w = nt.parameter(nt.ones((2,)))

    class None_(nn.Module):
        pass

    for module in (Plain(), Bare()):
        assert list(module.named_variables()) == ["w"]
    assert None_().parameters() == []


# ---- layers

LAYERS: dict[str, tuple[Callable[[], Any], tuple[int, ...], tuple[int, ...]]] = {
    "Linear": (lambda: nn.Linear(4, 3), (5, 2, 4), (5, 2, 3)),
    "Linear without bias": (lambda: nn.Linear(4, 3, bias=False), (4,), (3,)),
    "Conv2d": (lambda: nn.Conv2d(2, 3, 3, stride=2, padding=1), (4, 2, 8, 8), (4, 3, 4, 4)),
    "Conv2d of groups": (lambda: nn.Conv2d(4, 4, (1, 3), groups=2, bias=False), (1, 4, 5, 5), (1, 4, 5, 3)),
    "Conv1d": (lambda: nn.Conv1d(2, 3, 3, is_same=True), (4, 2, 8), (4, 3, 8)),
    "Conv3d": (lambda: nn.Conv3d(2, 3, 2, stride=(1, 2, 2)), (1, 2, 3, 4, 4), (1, 3, 2, 2, 2)),
    "ConvTranspose1d": (lambda: nn.ConvTranspose1d(2, 3, 2, stride=2), (4, 2, 8), (4, 3, 16)),
    "ConvTranspose2d": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, padding=1, output_padding=1),
                        (1, 2, 4, 4), (1, 3, 8, 8)),
    "ConvTranspose3d": (lambda: nn.ConvTranspose3d(2, 3, 2), (1, 2, 2, 2, 2), (1, 3, 3, 3, 3)),
    "MaxPool1d": (lambda: nn.MaxPool1d(2), (1, 2, 6), (1, 2, 3)),
    "AvgPool1d": (lambda: nn.AvgPool1d(3, stride=2, is_ceil=True), (1, 2, 6), (1, 2, 3)),
    "MaxPool3d": (lambda: nn.MaxPool3d(2), (1, 2, 4, 4, 4), (1, 2, 2, 2, 2)),
    "AvgPool3d": (lambda: nn.AvgPool3d((1, 2, 2)), (1, 2, 3, 4, 4), (1, 2, 3, 2, 2)),
    "MaxPool2d": (lambda: nn.MaxPool2d(2), (1, 2, 6, 6), (1, 2, 3, 3)),
    "AvgPool2d": (lambda: nn.AvgPool2d(2, stride=1), (1, 2, 6, 6), (1, 2, 5, 5)),
    "LayerNorm": (lambda: nn.LayerNorm(4), (5, 4), (5, 4)),
    "LayerNorm without weights": (lambda: nn.LayerNorm(4, affine=False), (5, 4), (5, 4)),
    "GroupNorm": (lambda: nn.GroupNorm(2, 4), (5, 4, 3), (5, 4, 3)),
    "InstanceNorm": (lambda: nn.InstanceNorm(4), (5, 4, 3), (5, 4, 3)),
    "FeatureDropout": (lambda: nn.FeatureDropout(0.1), (5, 4, 3), (5, 4, 3)),
    "TransformerEncoderLayer": (lambda: nn.TransformerEncoderLayer(8, 2, 6), (2, 5, 8), (2, 5, 8)),
    "RmsNorm": (lambda: nn.RmsNorm(4), (5, 4), (5, 4)),
    "BatchNorm": (lambda: nn.BatchNorm(4), (5, 4), (5, 4)),
    "BatchNorm of images": (lambda: nn.BatchNorm(2), (5, 2, 4, 4), (5, 2, 4, 4)),
    "BatchNorm without weights": (lambda: nn.BatchNorm(4, affine=False), (5, 4), (5, 4)),
    "WeightNorm": (lambda: nn.WeightNorm(nn.Linear(4, 3)), (5, 4), (5, 3)),
    "SpectralNorm": (lambda: nn.SpectralNorm(nn.Conv2d(2, 3, 3)), (1, 2, 5, 5), (1, 3, 3, 3)),
    "Dropout": (lambda: nn.Dropout(0.1), (5, 4), (5, 4)),
    "MultiHeadAttention": (lambda: nn.MultiHeadAttention(8, 2, is_causal=True), (2, 5, 8), (2, 5, 8)),
    "Sequential": (lambda: nn.Sequential(nn.Linear(4, 4), nt.relu, nn.Linear(4, 2)), (3, 4), (3, 2)),
}  # fmt: skip


def check_same_compiled(layer, f):
    """f(layer) is compiled, and gives what it gives eagerly, in numbers drawn and in state left."""
    start = layer.state_dict()

    def run(called):
        layer.load_state_dict(start)
        nt.manual_seed(1)
        results = [f(called) for _ in range(5)]
        return results, [bits(v) for v in layer.state_dict().values()]

    compiled = nt.compile(layer, check="never")
    assert run(compiled) == run(layer)
    check_compiled(compiled, 3)
    always = nt.compile(layer, check="always")  # recordings agree with the first ones
    run(always)
    check_compiled(always, 0)


@pytest.mark.parametrize("name", LAYERS)
def test_layers(name):
    make, shape, expected = LAYERS[name]
    layer = make()
    x = nt.random.randn(shape)
    y = layer(x)
    assert y.shape == expected and y.dtype == nt.float32
    for is_training in (True, False):
        layer.train(is_training)
        check_same_compiled(layer, lambda l: bits(l(x)))
    for p in layer.parameters():
        assert p.grad is None
    if layer.parameters():
        nt.sum(layer(x) ** 2).backward()
        assert all(p.grad is not None for p in layer.parameters())


def test_embedding_and_lstm():
    embedding = nn.Embedding(10, 4)
    assert embedding(nt.asarray([[1, 2], [3, 9]])).shape == (2, 2, 4)
    with pytest.raises(ValueError):
        embedding(nt.asarray([10]))
    check_same_compiled(embedding, lambda f: bits(f(nt.asarray([[1, 2], [3, 9]]))))
    lstm = nn.Lstm(4, 6)
    x = nt.random.randn((5, 2, 4))
    check_same_compiled(lstm, lambda f: [bits(part) for part in f(x)])
    out = lstm(nt.random.randn((5, 2, 4)))
    assert out.sequence.shape == (5, 2, 6) and out.hidden.shape == out.cell.shape == (1, 2, 6)
    again = lstm(nt.random.randn((5, 2, 4)), out.hidden, out.cell)
    assert again.sequence.shape == (5, 2, 6)
    with pytest.raises(TypeError, match="both"):
        lstm(nt.random.randn((5, 2, 4)), out.hidden)


@pytest.mark.parametrize("make, error", [
    (lambda: nn.Linear(0, 3), ValueError), (lambda: untyped.Linear("a", 3), TypeError),
    (lambda: nn.Linear(4, 3)(nt.ones((2, 5))), ValueError), (lambda: nn.Dropout(2.0), ValueError),
    (lambda: nn.MultiHeadAttention(8, 3), ValueError), (lambda: untyped.Sequential(3), TypeError),
    (lambda: nn.Conv2d(3, 4, 3, groups=2), ValueError), (lambda: nn.Adam([]), ValueError),
    (lambda: untyped.Adam(nn.Linear(2, 2), speed=1), TypeError),
    (lambda: nn.Adam([nt.Variable(nt.ones((2,)))]), ValueError),
    (lambda: nn.Sgd(nn.Linear(2, 2), rate=-1.0), ValueError),
    (lambda: nn.DataLoader([]), ValueError),
    (lambda: nn.DataLoader([nt.ones((2,)), nt.ones((3,))]), ValueError),
])  # fmt: skip
def test_what_layers_refuse(make, error):
    with pytest.raises(error):
        make()


def test_errors_name_what_python_has():
    """Not C++'s factories, parameters and fixes."""
    x, p = nt.ones((2, 3)), nt.parameter(nt.ones((2, 3)))
    for call, text in (
        (lambda: nn.Linear(0, 3), "Linear: the setting `in_features`: expected at least 1"),
        (lambda: nn.Linear(3, 0), "Linear: the setting `out_features`"),
        (lambda: nn.Conv2d(0, 3, 3), "Conv2d: the setting `in_channels`"),
        (lambda: nn.Conv2d(3, 3, 0), "Conv2d: the setting `kernel_size`"),
        (lambda: nn.Lstm(0, 3), "Lstm: the setting `in_features`"),
        (lambda: nn.Embedding(0, 3), "Embedding: the setting `count`"),
        (lambda: nn.LayerNorm(0), "LayerNorm: the setting `features`"),
        (lambda: nn.RmsNorm(0), "RmsNorm: "),
        (lambda: nn.BatchNorm(0), "BatchNorm: "),
        (lambda: nn.Dropout(2.0), "Dropout: the setting `rate`"),
        (lambda: nn.MultiHeadAttention(0, 4), "MultiHeadAttention: the setting `width`"),
        (lambda: nn.MultiHeadAttention(6, 4), "MultiHeadAttention: 4 heads for a width of 6"),
        (lambda: nn.Sgd([p], nesterov=True), "Sgd with nesterov: the setting `momentum`"),
        (lambda: nn.Adam([p], rate=-1.0), "Adam: the setting `rate`"),
        (lambda: nn.Sgd([nt.Variable(x)]), "Pass model.parameters()."),
        (lambda: nn.Sgd([p]).step(), "Optimizer.step: no parameter has a gradient"),
        (lambda: nn.DataLoader([]), "Pass the data: DataLoader((images, labels))."),
        (lambda: nt.var(x, correction=-1), "elements, correction: expected"),
        (lambda: nt.permute_dims(x, (0, 0)), "permute_dims: axes [0, 0]"),
        (lambda: nt.expand_dims(x, axis=7), "expand_dims: axis 7"),
        (lambda: nt.take_along_axis(x, nt.ones((2, 3)), axis=0), "indices.to(nitinol.int64)"),
        (lambda: nt.matmul(x, x), "expected x2.shape[-2] == 3"),
        (lambda: nt.pad(x, [(0, 0)]), "Give (0, 0) for axes that stay"),
        (lambda: nt.compile(nt.sum, check="no"), "check is 'no'"),
        (lambda: nt.set_log_level("loud"), "level is 'loud'"),
    ):
        with pytest.raises(nt.Error) as refused:
            call()
        assert text in str(refused.value)
        assert not re.search(r"::|`in`|`out`|\bis_nesterov|\{|ddof", str(refused.value))


def test_a_group_of_adamw_has_adamws_defaults():
    a, b = (nt.parameter(nt.ones((2,))) for _ in range(2))
    optimizer = nn.AdamW([a])
    optimizer.add([b])
    nt.sum((a + b) * 0).backward()
    optimizer.step()
    assert a.tolist() == b.tolist() != [1.0, 1.0]  # by weight decay alone


# ---- optimizers and data

OPTIMIZERS = {
    "sgd": (
        lambda p: nn.Sgd(p, rate=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
        lambda t, p: t.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    ),
    "adam": (
        lambda p: nn.Adam(p, rate=0.1, beta1=0.8, weight_decay=0.01),
        lambda t, p: t.optim.Adam(p, lr=0.1, betas=(0.8, 0.999), weight_decay=0.01),
    ),
    "adamw": (lambda p: nn.AdamW(p, rate=0.1), lambda t, p: t.optim.AdamW(p, lr=0.1)),
    "rmsprop": (
        lambda p: nn.RmsProp(p, rate=0.1, momentum=0.5),
        lambda t, p: t.optim.RMSprop(p, lr=0.1, momentum=0.5),
    ),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_beside_pytorch(name):
    torch = pytest.importorskip("torch", exc_type=ImportError)
    start = np.random.default_rng(0).normal(size=(4, 3))
    ours = nt.parameter(start)
    theirs = torch.nn.Parameter(torch.tensor(start))
    optimizer = OPTIMIZERS[name][0]([ours])
    reference = OPTIMIZERS[name][1](torch, [theirs])

    @nt.compile
    def step():
        optimizer.zero_grad()
        nt.sum((ours - 1) ** 4).backward()
        optimizer.step()

    for _ in range(8):
        step()
        reference.zero_grad()
        ((theirs - 1) ** 4).sum().backward()
        reference.step()
        np.testing.assert_allclose(ours.numpy(), theirs.detach().numpy(), rtol=1e-9, atol=1e-11)
    check_compiled(step)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_are_compiled(name):
    def trained(is_compiled):
        p = nt.parameter(nt.reshape(nt.arange(12.0), (4, 3)))
        optimizer = OPTIMIZERS[name][0]([p])

        def step():
            optimizer.zero_grad()
            nt.sum((p - 1) ** 4).backward()
            nn.clip_gradient_norm([p], 10.0)
            optimizer.step()

        compiled = nt.compile(step, check="never")
        for i in range(6):
            optimizer.set_rate(0.1 / (i + 1))
            compiled() if is_compiled else step()
        return compiled, [bits(p.value), *map(bits, optimizer.named_variables().values())]

    compiled, state = trained(True)
    assert state == trained(False)[1]
    check_compiled(compiled, 3)


def test_rates_and_groups():
    a, b = nt.parameter(nt.ones((2,))), nt.parameter(nt.ones((2,)))
    optimizer = nn.Sgd([a], rate=0.5)
    optimizer.add([b], rate=0.25)
    nt.sum(a + b).backward()
    optimizer.step()
    assert a.tolist() == [0.5, 0.5] and b.tolist() == [0.75, 0.75]
    optimizer.set_rate(1.0)
    assert optimizer.rate().item() == optimizer.rate(1).item() == 1.0
    assert nn.clip_gradient_norm([a, b], 1.0).item() == 2.0
    assert gradient_of(a).tolist() == pytest.approx([0.5, 0.5])
    nn.clip_gradient_value([a], 0.25)
    assert gradient_of(a).tolist() == [0.25, 0.25]
    optimizer.zero_grad()
    assert a.grad is None
    schedule = nn.warm_up(2, nn.step_decay(1.0, 2, 0.5))
    assert [schedule(i) for i in range(6)] == pytest.approx([0.5, 1.0, 1.0, 1.0, 0.5, 0.5], abs=0.5)
    assert nn.cosine_decay(1.0, 10)(10) == 0.0


def test_data_loader():
    x = nt.arange(10)
    loader = nn.DataLoader((x, x * 2), batch=4, seed=3)
    assert len(loader) == 3
    passes = [[(a.tolist(), b.tolist()) for a, b in loader] for _ in range(2)]
    for batches in passes:
        assert [len(a) for a, _ in batches] == [4, 4, 2]
        assert sorted(sum((a for a, _ in batches), [])) == list(range(10))
        assert all(b == [2 * v for v in a] for a, b in batches)
    assert passes[0] != passes[1]
    again = nn.DataLoader((x, x * 2), batch=4, seed=3)
    assert [(a.tolist(), b.tolist()) for a, b in again] == passes[0]
    plain = nn.DataLoader(np.arange(10), batch=4, shuffle=False, drop_last=True)
    assert [batch[0].tolist() for batch in plain] == [[0, 1, 2, 3], [4, 5, 6, 7]]


# ---- gradients of functions


def test_grad():
    x = nt.asarray([1.0, 2.0, 3.0])
    f = lambda x, k=1.0: nt.sum(x**3) * k  # noqa: E731
    assert nt.grad(f)(x).tolist() == [3, 12, 27]
    assert nt.grad(f)(x, k=2.0).tolist() == [6, 24, 54]
    assert nt.grad(lambda x: nt.sum(nt.grad(f)(x)))(x).tolist() == [6, 12, 18]
    assert nt.grad(f)(2.0).item() == 12.0
    assert nt.grad(f)(np.asarray([1.0])).tolist() == [3.0]
    tree = {"a": x, "b": [x, (x,)], "n": 3}
    value, gradient = nt.value_and_grad(lambda t: nt.sum(t["a"] * t["b"][0] + t["b"][1][0]))(tree)
    assert value.item() == 20.0 and gradient["n"] == 3
    assert gradient["b"][0].tolist() == [1, 2, 3] and gradient["b"][1][0].tolist() == [1, 1, 1]
    first, second = nt.grad(lambda a, b: nt.sum(a * b), argnums=(0, 1))(x, x + 1)
    assert first.tolist() == [2, 3, 4] and second.tolist() == [1, 2, 3]
    found, aux = nt.grad(lambda x: (nt.sum(x), "aux"), has_aux=True)(x)
    assert found.tolist() == [1, 1, 1] and aux == "aux"


def test_compiled_gradients_have_the_same_bits():
    x, w = nt.random.randn((5, 4)), nt.random.randn((4, 3))
    f = lambda w: nt.mean(nt.tanh(x @ w) ** 2)  # noqa: E731
    compiled = nt.compile(nt.grad(f))
    for _ in range(4):
        assert bits(compiled(w)) == bits(nt.grad(f)(w))
    assert compiled.explain().data["plan_calls"] > 0


@pytest.mark.parametrize(
    "call, error, text",
    [
        (lambda x: nt.grad(lambda x: x)(x), nt.ShapeError, "one"),
        (lambda x: nt.grad(lambda x: 3)(x), TypeError, "returned an int"),
        (lambda x: nt.grad(lambda x: nt.sum(x), argnums=1)(x), TypeError, "argnums is 1"),
        (lambda x: nt.grad(lambda x: x)("a"), TypeError, "holds no Tensor"),
        (lambda x: nt.grad(nt.sum)(nt.Variable(x)), TypeError, "backward"),
        (lambda x: x.backward(), ValueError, "gradient"),
    ],
)
def test_gradients_that_cannot_be(call, error, text):
    with pytest.raises(error, match=text):
        call(nt.asarray([1.0, 2.0]))


def test_gradients_by_a_number_inside_compile():
    f = lambda x: x**3  # noqa: E731
    compiled = nt.compile(nt.grad(f), check="never")
    for number in (1.0, 2.0, 3.0, 4.0):
        assert compiled(number).item() == nt.grad(f)(number).item() == 3 * number**2
    assert len(compiled.explain().data["signatures"]) == 1


def test_vjp_jvp_hessian():
    x = nt.asarray([1.0, 2.0])
    value, pull = nt.vjp(lambda x: x**2, x)
    assert value.tolist() == [1, 4]
    assert pull(nt.ones((2,))).tolist() == pull(nt.ones((2,))).tolist() == [2, 4]
    value, tangent = nt.jvp(lambda x: x**2, x, nt.asarray([1.0, 0.0]))
    assert tangent.tolist() == [2, 0]
    (_, pair) = nt.jvp(lambda a, b: (a * b, a), (x, x), (x, x * 0))
    assert pair[0].tolist() == [1, 4] and pair[1].tolist() == [1, 2]
    assert nt.hessian(lambda x: nt.sum(x**3))(x).tolist() == [[6, 0], [0, 12]]


def test_checkpoint_and_custom_gradients():
    x = nt.asarray([1.0, 2.0])
    calls = []

    def f(x, k):
        calls.append(1)
        return {"y": nt.tanh(x) * k}

    loss = lambda x: nt.sum(nt.checkpoint(f)(x, k=2.0)["y"])  # noqa: E731
    plain = nt.grad(lambda x: nt.sum(f(x, 2.0)["y"]))(x)
    calls.clear()
    assert bits(nt.grad(loss)(x)) == bits(plain)
    assert len(calls) == 2
    clipped = nt.custom_gradient(lambda x: (x * 1, lambda g: nt.clip(g, -1.0, 1.0)))
    assert nt.grad(lambda x: nt.sum(clipped(x) * 5))(x).tolist() == [1, 1]
    both = nt.custom_gradient(lambda a, b: (a * b, lambda g: (g * 7, None)))
    assert nt.grad(lambda a: nt.sum(both(a, x)))(x).tolist() == [7, 7]
    with pytest.raises(TypeError, match="result, pull"):
        nt.custom_gradient(lambda x: x)(x)


def test_no_gradients():
    w = nt.parameter(nt.ones((2,)))
    assert (w * 2).tracks_gradient
    with nt.no_gradients():
        assert not (w * 2).tracks_gradient
    assert not nt.stop_gradient(w * 2).tracks_gradient and not (w * 2).detach().tracks_gradient


def test_check_gradients():
    nt.check_gradients(
        lambda x, y: nt.sum(nt.exp(x) * y["k"]),
        nt.asarray([0.5, 1.0]),
        {"k": nt.asarray([2.0, 3.0])},
    )
    wrong = nt.custom_gradient(lambda x: (x**2, lambda g: g))
    with pytest.raises(ValueError):
        nt.check_gradients(lambda x: nt.sum(wrong(x)), nt.asarray([2.0]))


def test_training_with_everything_compiled():
    nt.manual_seed(1)
    x = nt.random.randn((64, 2))
    y = x[:, :1] * x[:, 1:]

    def train(is_compiled):
        nt.manual_seed(2)
        net = nn.Sequential(nn.Linear(2, 16), nt.tanh, nn.Linear(16, 1))
        optimizer = nn.Adam(net, rate=0.02)

        def step(x, y):
            optimizer.zero_grad()
            loss = nn.mse_loss(net(x), y)
            loss.backward()
            optimizer.step()
            return nt.stop_gradient(loss)

        run = nt.compile(step, check="never") if is_compiled else step
        losses = [run(x, y).item() for _ in range(60)]
        if is_compiled:
            check_compiled(run, 50)
        return losses, net

    (eager, a), (compiled, b) = train(False), train(True)
    assert eager == compiled and eager[-1] < eager[0] / 2
    for p, q in zip(a.parameters(), b.parameters()):
        assert bits(p.value) == bits(q.value)


def test_to_keeps_what_is_shared_and_comes_back_from_circles() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            self.first = nn.Linear(2, 2)
            self.again = self.first
            self.bare = self.first.weight
            self.held: list[Any] = [self.first, {"bias": self.first.bias}, (self.bare,)]
            self.held.append(self.held)
            self.root = self

    model = Tied()
    model.to(nt.float64)
    assert model.again is model.first and model.root is model
    weight, bias = model.first.weight, model.first.bias
    assert bias is not None and weight.dtype == bias.dtype == nt.float64
    for other in (model.bare, model.held[2][0]):
        assert hash(other) == hash(weight)  # one cell
    assert hash(model.held[1]["bias"]) == hash(bias)
    assert list(model.named_variables()) == ["first.weight", "first.bias"]


def test_layers_take_what_their_functions_take() -> None:
    x = nt.asarray(np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4))
    layer = nn.AvgPool2d(3, padding=1, counts_padding=False)
    function = nt.avg_pool2d(x, 3, padding=1, counts_padding=False)
    assert np.array_equal(np.asarray(layer(x)), np.asarray(function))
    assert not np.array_equal(np.asarray(nn.AvgPool2d(3, padding=1)(x)), np.asarray(function))
    assert nn.Linear(2, 3, dtype="float64").weight.dtype == nt.float64
