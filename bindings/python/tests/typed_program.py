"""A training program as a user types it, for test_types.py: checkers know what each expression is."""

from __future__ import annotations

import pathlib
import tempfile
from typing import Any, Callable, assert_type

import nitinol as nt
from nitinol import linalg, nn


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        self.linear = nn.Linear(width, width)
        self.norm = nn.BatchNorm(width)
        self.drop = nn.Dropout(0.1)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        return x + self.drop(nt.relu(self.norm(self.linear(x))))

    @nt.compile
    def scores(self, x: nt.Tensor, scale: float = 1.0) -> nt.Tensor:
        return nt.log_softmax(self(x) * scale, axis=-1)


class Net(nn.Module):
    def __init__(self) -> None:
        self.first = nn.Sequential(nn.Linear(4, 8), nt.tanh)
        self.blocks = [Block(8) for _ in range(2)]
        self.scale = nt.parameter(nt.ones((8,)))

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        y = self.first(x)
        for block in self.blocks:
            y = block(y)
        return y * self.scale


def tensors() -> None:
    x = nt.random.randn((2, 3))
    assert_type(x.to(nt.float64), nt.Tensor)
    assert_type(x.to("float64").to("cpu:0"), nt.Tensor)
    assert_type(x.reshape(3, 2), nt.Tensor)
    assert_type(x.reshape((3, 2)) + 1, nt.Tensor)
    assert_type(2 * x[0, None, 1:] ** 2, nt.Tensor)
    assert_type(nt.linalg.matmul(x, x.T), nt.Tensor)
    assert_type(linalg.matrix_transpose(x), nt.Tensor)
    assert_type(nt.split(x, 3, axis=1), list[nt.Tensor])
    assert_type(nt.roll(nt.moveaxis(x, 0, -1), (1, -2), axis=(0, 1)), nt.Tensor)
    assert_type(nt.unstack(x, axis=1), tuple[nt.Tensor, ...])
    assert_type(nt.einsum("ij,kj->ik", x, x), nt.Tensor)
    assert_type(nt.where(x > 0, x, 0), nt.Tensor)
    assert_type(nt.where(x), tuple[nt.Tensor, ...])
    assert_type(nt.topk(x, 2).indices.sum(), nt.Tensor)
    assert_type(x.sort(axis=0).transpose().float(), nt.Tensor)
    assert_type(nt.repeat(x, nt.asarray([2, 0]), axis=0), nt.Tensor)
    assert_type(nt.finfo(x).eps, float)
    assert_type(nt.iinfo("int8").max, int)
    assert_type(nt.result_type(x, nt.int8, 2), nt.DType)
    assert_type(nt.isdtype(x.dtype, ("bool", nt.float32)), bool)
    assert_type(nt.__array_namespace_info__().dtypes(kind="integral"), dict[str, nt.DType])
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.dtype.itemsize, int)
    assert_type([row for row in x], list[nt.Tensor])
    with nt.no_gradients(), nt.eager():
        assert_type(x.sum(axis=(0, 1), keepdims=True).item(), float | int | bool)


def gradients() -> None:
    def loss(weights: dict[str, nt.Tensor], x: nt.Tensor) -> nt.Tensor:
        return nt.mean(x @ weights["w"])

    weights, x = {"w": nt.ones((3, 2))}, nt.ones((4, 3))
    value, gradient = nt.value_and_grad(loss)(weights, x)
    assert_type(value, nt.Tensor)
    assert_type(gradient, Any)
    assert_type(nt.checkpoint(loss)(weights, x), nt.Tensor)
    assert_type(nt.hessian(lambda v: nt.sum(v * v))(nt.ones((2,))), nt.Tensor)

    @nt.custom_gradient
    def doubled(x: nt.Tensor) -> tuple[nt.Tensor, Callable[[nt.Tensor], nt.Tensor]]:
        return x * 2, lambda g: g * 2

    assert_type(doubled(x), nt.Tensor)


def compiled_functions() -> None:
    @nt.compile(name="scaled", signature_limit=4)
    def scaled(x: nt.Tensor, scale: float = 1.0) -> dict[str, nt.Tensor]:
        return {"y": x * scale}

    x = nt.ones((2, 8))
    assert_type(scaled(x, scale=2.0), dict[str, nt.Tensor])
    assert_type(scaled.eager(x, 2.0), dict[str, nt.Tensor])
    assert_type(scaled.explain().data, dict[str, Any])
    block = Block(8).eval()
    assert_type(block, Block)
    assert_type(block.scores(x, 0.5), nt.Tensor)
    assert_type(block.scores.eager(x, 0.5), nt.Tensor)
    assert_type(block.scores.explain().to_json(), str)
    assert_type(nt.compile(block)(x), nt.Tensor)


def training() -> float:
    net = Net().train()
    optimizer = nn.AdamW(net, rate=1e-2)
    schedule = nn.warm_up(2, nn.cosine_decay(1e-2, 8))
    loader = nn.DataLoader((nt.random.randn((32, 4)), nt.random.randint(0, 8, (32,))), batch=8)

    @nt.compile
    def step(x: nt.Tensor, labels: nt.Tensor) -> nt.Tensor:
        optimizer.zero_grad()
        loss = nn.cross_entropy(net(x), labels)
        loss.backward()
        nn.clip_gradient_norm(net.parameters(), 1.0)
        optimizer.step()
        return nt.stop_gradient(loss)

    last = 0.0
    for i in range(2):
        optimizer.set_rate(schedule(i))
        for x, labels in loader:
            last = step(x, labels).item()
    for name, variable in net.named_parameters().items():
        assert variable.grad is None or variable.grad.shape == variable.shape, name
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "net.safetensors"
        nn.save(path, {"net": net, "optimizer": optimizer})
        nn.load(path, {"net": net, "optimizer": optimizer})
    return last


if __name__ == "__main__":
    tensors()
    gradients()
    compiled_functions()
    print(training())
