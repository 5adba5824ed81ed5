"""Weight and spectral norms, bags with offsets, norms without weights, and minimize(), beside PyTorch
where it is installed."""

from __future__ import annotations

from typing import Any

import nitinol as nt
import numpy as np
import pytest
from conftest import bits, check_compiled, gradient_of
from nitinol import nn

untyped: Any = nn
RNG = np.random.default_rng(5)


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", exc_type=ImportError)


def normal(*shape: int) -> Any:
    return RNG.normal(size=shape).astype(np.float32)


def layers(torch: Any) -> dict[str, Any]:
    """Ours, PyTorch's, input, axes that take our weight to PyTorch's."""
    t = torch.nn
    same3, same4 = (0, 1, 2), (0, 1, 2, 3)
    return {
        "linear": (nn.Linear(4, 3), t.Linear(4, 3), normal(5, 4), (1, 0)),
        "conv1d": (nn.Conv1d(4, 6, 3, groups=2), t.Conv1d(4, 6, 3, groups=2), normal(2, 4, 7), same3),
        "conv2d": (nn.Conv2d(2, 3, 3), t.Conv2d(2, 3, 3), normal(2, 2, 5, 5), same4),
        "conv_transpose1d": (nn.ConvTranspose1d(3, 2, 4, stride=2),
                             t.ConvTranspose1d(3, 2, 4, stride=2), normal(2, 3, 5), same3),
        "conv_transpose2d": (nn.ConvTranspose2d(3, 2, 2), t.ConvTranspose2d(3, 2, 2),
                             normal(1, 3, 3, 3), same4),
    }  # fmt: skip


def load(torch: Any, ours: Any, theirs: Any, axes: tuple[int, ...]) -> None:
    weight = np.asarray(ours.weight.get()).transpose(axes)
    with torch.no_grad():
        theirs.weight.copy_(torch.from_numpy(weight.copy()))
        theirs.bias.copy_(torch.from_numpy(np.array(ours.bias.get())))


def close(ours: Any, theirs: Any) -> None:
    np.testing.assert_allclose(np.asarray(ours), theirs.detach().numpy(), rtol=2e-5, atol=2e-6)


NAMES = ("linear", "conv1d", "conv2d", "conv_transpose1d", "conv_transpose2d")


@pytest.mark.parametrize("name", NAMES)
def test_weight_norm_beside_pytorch(torch: Any, name: str) -> None:
    layer, other, data, axes = layers(torch)[name]
    load(torch, layer, other, axes)
    ours = nn.WeightNorm(layer)
    theirs = torch.nn.utils.parametrizations.weight_norm(other)
    optimizer = nn.Sgd(ours, rate=0.1)
    reference = torch.optim.SGD(theirs.parameters(), lr=0.1)
    x, v = nt.asarray(data), torch.from_numpy(data)

    @nt.compile
    def step() -> nt.Tensor:
        optimizer.zero_grad()
        y = ours(x)
        nt.sum(nt.sin(y)).backward()
        optimizer.step()
        return nt.stop_gradient(y)

    for _ in range(6):
        reference.zero_grad()
        y = theirs(v)
        torch.sin(y).sum().backward()
        reference.step()
        close(step(), y)
    check_compiled(step)
    magnitude = theirs.parametrizations.weight.original0.detach().numpy()
    inverse = np.argsort(axes)
    np.testing.assert_allclose(
        np.asarray(ours.magnitude.get()), magnitude.transpose(inverse), rtol=2e-5
    )


@pytest.mark.parametrize("name", NAMES)
def test_spectral_norm_beside_pytorch(torch: Any, name: str) -> None:
    layer, other, data, axes = layers(torch)[name]
    load(torch, layer, other, axes)
    theirs = torch.nn.utils.parametrizations.spectral_norm(other, n_power_iterations=2)
    ours = nn.SpectralNorm(layer, steps=2)
    vectors = theirs.parametrizations.weight[0]
    for mine, its in ((ours.left, vectors._u), (ours.right, vectors._v)):
        assert mine.shape == tuple(its.shape)
        mine.set(nt.asarray(its.numpy().copy()))
    x, v = nt.asarray(data), torch.from_numpy(data)
    call = nt.compile(lambda: ours(x))
    for _ in range(5):
        close(call(), theirs(v))
        close(ours.left.get(), vectors._u)
        close(ours.right.get(), vectors._v)
    nt.sum(nt.sin(ours(x))).backward()
    torch.sin(theirs(v)).sum().backward()
    gradient = theirs.parametrizations.weight.original.grad.permute(tuple(np.argsort(axes)))
    close(gradient_of(layer.weight), gradient)
    ours.eval()
    theirs.eval()
    before = bits(ours.left.get())
    close(ours(x), theirs(v))
    assert bits(ours.left.get()) == before


def test_norms_of_a_model() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            self.first = nn.WeightNorm(nn.Linear(4, 8))
            self.second = nn.SpectralNorm(nn.Linear(8, 1))

        def __call__(self, x: nt.Tensor) -> nt.Tensor:
            return self.second(nt.tanh(self.first(x)))

    net = Net()
    assert list(net.named_variables()) == [
        "first.layer.weight", "first.layer.bias", "first.magnitude", "second.layer.weight",
        "second.layer.bias", "second.left", "second.right"]  # fmt: skip
    assert list(net.buffers()) == ["second.left", "second.right"]
    assert net.first.magnitude.shape == (1, 8)
    assert nn.WeightNorm(nn.Linear(4, 8), 0).magnitude.shape == (4, 1)
    assert nn.WeightNorm(nn.Linear(4, 8), axis=-1).magnitude.shape == (1, 8)
    with nn.autocast("bfloat16"):
        assert net(nt.ones((2, 4))).dtype == nt.bfloat16
    half = nn.SpectralNorm(nn.Linear(4, 3)).to(nt.bfloat16)
    assert half(nt.ones((2, 4), dtype=nt.bfloat16)).dtype == nt.bfloat16
    for make, text in (
        (lambda: nn.WeightNorm(nn.Linear(4, 8), 2), r"axis 2 of a weight float32\[4, 8\]"),
        (lambda: nn.SpectralNorm(nn.Linear(4, 8), steps=0), "`steps`: expected at least 1, got 0"),
        (lambda: nn.SpectralNorm(nn.Linear(4, 8), eps=0.0), "`eps`"),
        (lambda: nn.SpectralNorm(nn.Linear(4, 8))(nt.ones((2, 3))), "4 features"),
    ):
        with pytest.raises(ValueError, match=text):
            make()
    for wrong in (nn.LayerNorm(4), nt.relu, 3):
        with pytest.raises(TypeError, match="WeightNorm: .* has no weight|takes no other weight"):
            untyped.WeightNorm(wrong)
        with pytest.raises(TypeError, match="SpectralNorm: "):
            untyped.SpectralNorm(wrong)


@pytest.mark.parametrize("padding", (None, 1))
@pytest.mark.parametrize("pooling", ("sum", "mean", "max"))
def test_bags_with_offsets(torch: Any, pooling: Any, padding: int | None) -> None:
    ours = nn.EmbeddingBag(7, 4, pooling, padding)
    theirs = torch.nn.EmbeddingBag(7, 4, mode=pooling, padding_idx=padding)
    with torch.no_grad():
        theirs.weight.copy_(torch.from_numpy(np.array(ours.weight.get())))
    bags = nt.compile(lambda i, o: ours(i, offsets=o))
    for indices, offsets in (
        ([3, 1, 6, 0, 2, 2, 5], [0, 2, 2, 6]),
        ([1, 1, 4, 0, 2, 3, 6], [0, 0, 3, 7]),
        ([0, 1, 4, 0, 1, 3, 6], [0, 1, 2, 3]),
    ):
        given = [np.array(one) for one in (indices, offsets)]
        want = theirs(*(torch.from_numpy(one) for one in given))
        close(ours(nt.asarray(given[0]), offsets=nt.asarray(given[1])), want)
        for _ in range(3):
            close(bags(*map(nt.asarray, given)), want)
        ours.weight.grad = None
        theirs.weight.grad = None
        nt.sum(ours(nt.asarray(given[0]), offsets=nt.asarray(given[1])) ** 2).backward()
        (want**2).sum().backward()
        close(gradient_of(ours.weight), theirs.weight.grad)
    check_compiled(bags)
    with pytest.raises(ValueError, match="EmbeddingBag: the offsets"):
        ours(nt.asarray([1, 2]), offsets=nt.asarray([1]))


def test_batch_norm_without_weights(torch: Any) -> None:
    ours = nn.BatchNorm(3, eps=0.1, momentum=0.3, affine=False)
    theirs = torch.nn.BatchNorm2d(3, eps=0.1, momentum=0.3, affine=False)
    assert ours.parameters() == [] and ours.weight is None
    for _ in range(3):
        data = normal(4, 3, 5, 2)
        close(ours(nt.asarray(data)), theirs(torch.from_numpy(data)))
    close(ours.running_mean.get(), theirs.running_mean)
    close(ours.running_var.get(), theirs.running_var)
    ours.eval()
    theirs.eval()
    data = normal(4, 3, 5, 2)
    close(ours(nt.asarray(data)), theirs(torch.from_numpy(data)))
    with pytest.raises(ValueError, match="BatchNorm: the setting `momentum`"):
        nn.BatchNorm(3, momentum=2)


def rosenbrock(x: Any) -> Any:
    return (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2 + (x[2] - 3 * x[1]) ** 4


@pytest.mark.parametrize("is_compiled", (False, True))
def test_minimize_beside_pytorch(torch: Any, is_compiled: bool) -> None:
    start = np.array([-1.2, 1.0, 0.5])
    x = nt.parameter(start)
    optimizer = nn.Lbfgs([x])
    calls = 0

    def loss() -> nt.Tensor:
        value = rosenbrock(x)
        value.backward()
        return nt.stop_gradient(value)

    run = nt.compile(loss) if is_compiled else loss

    def counted() -> nt.Tensor:
        nonlocal calls
        calls += 1
        return run()

    found = optimizer.minimize(counted, iterations=200)
    y = torch.tensor(start, requires_grad=True)
    reference = torch.optim.LBFGS([y], max_iter=200, line_search_fn="strong_wolfe", history_size=10)
    theirs = 0

    def closure() -> Any:
        nonlocal theirs
        theirs += 1
        reference.zero_grad()
        value = rosenbrock(y)
        value.backward()
        return value

    reference.step(closure)
    least = float(rosenbrock(y).detach())
    assert found.converged and found.loss <= max(1e-10, 10 * least), (found, least)
    assert found.evaluations == calls <= 1.5 * theirs + 5, (calls, theirs)
    assert "converged=True" in repr(found) and found.iterations > 5
    if is_compiled:
        check_compiled(run)


def test_what_minimize_refuses() -> None:
    x = nt.parameter(np.ones(2))
    optimizer = nn.Lbfgs([x])

    def loss() -> nt.Tensor:
        value = nt.sum(x**2)
        value.backward()
        return value

    untyped = optimizer.minimize  # type: Any
    for call, error, text in (
        (lambda: optimizer.minimize(loss, iterations=0), ValueError, "`iterations`"),
        (lambda: untyped(3), TypeError, "minimize"),
        (lambda: untyped(lambda: None), TypeError, "the loss"),
        (lambda: untyped(lambda: 1 / 0), ZeroDivisionError, "division"),
    ):
        with pytest.raises(error, match=text):
            call()
    assert np.asarray(x.get()).tolist() == [1, 1]
    assert optimizer.minimize(loss).converged
    assert abs(np.asarray(x.get())).max() < 1e-6
