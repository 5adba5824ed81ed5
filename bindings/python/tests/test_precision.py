"""autocast, LossScale and Optimizer.step(when): values beside PyTorch's, and that steps compile."""

from typing import Any

import numpy as np
import pytest

import nitinol as nt
from nitinol import nn

nt.set_log_level("off")


class Net(nn.Module):
    def __init__(self) -> None:
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm(4)
        self.first = nn.Linear(64, 16)
        self.last = nn.Linear(16, 3)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        images = nt.relu(self.norm(self.conv(x)))
        return self.last(nt.gelu(self.first(nt.flatten(images, 1))))


def bits(x: Any) -> bytes:
    return np.asarray(nt.asarray(x).astype(nt.float64)).tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_step_learns_is_one_plan_and_has_the_same_bits(dtype: str) -> None:
    def run(compiled: bool) -> tuple[list[bytes], list[float]]:
        nt.random.manual_seed(3)
        net = Net()
        optimizer, scale = nn.Adam(net, rate=0.01), nn.LossScale(initial=1024)

        def step(x: nt.Tensor, y: nt.Tensor) -> nt.Tensor:
            optimizer.zero_grad()
            with nn.autocast(dtype):
                loss = nn.cross_entropy(net(x), y)
            scale(loss).backward()
            optimizer.step(scale.unscale(net))
            return loss

        f = nt.compile(step) if compiled else step
        x, y = nt.random.randn((8, 1, 6, 6)), nt.arange(8) % 3
        losses = [f(x, y).item() for _ in range(12)]
        if compiled:
            explained = f.explain()  # type: ignore[attr-defined]
            assert [s["tier"] for s in explained["signatures"]] == ["compiled"], str(explained)
            assert explained["plan_calls"] > 0
        return [bits(p) for p in net.parameters()], losses

    eager, compiled = run(False), run(True)
    assert eager == compiled
    assert eager[1][-1] < 0.7 * eager[1][0]


def test_dtypes() -> None:
    x, net = nt.ones((2, 1, 6, 6)), Net()
    assert net(x).dtype == nt.float32
    with nn.autocast(nt.bfloat16):
        y = net(x)
        assert y.dtype == nt.bfloat16
        assert nt.exp(y).dtype == nt.softmax(y).dtype == y.sum().dtype == nt.float32
        assert nn.cross_entropy(y, nt.asarray([0, 1])).dtype == nt.float32
        with nn.autocast("float32"):
            assert net(x).dtype == nt.float32
    half = nt.compile(lambda t: t @ t, autocast="float16")
    square = nt.ones((2, 2))
    assert {str(half(square).dtype) for _ in range(4)} == {"float16"}
    assert half.eager(square).dtype == nt.float16
    for wrong in (nt.float64, nt.int32):
        with pytest.raises(nt.Error, match="autocast"):
            nn.autocast(wrong)
        with pytest.raises(nt.Error, match="autocast"):
            nt.compile(lambda t: t, autocast=wrong)
    with pytest.raises((TypeError, nt.Error), match="autocast"):
        nn.autocast("fast")
    with pytest.raises((TypeError, nt.Error), match="autocast"):
        nt.compile(lambda t: t, autocast=3)  # type: ignore[call-overload]


def test_a_step_that_overflows_is_left_out() -> None:
    w = nt.parameter(nt.ones((3,)))
    optimizer, scale = nn.Adam([w], rate=0.1), nn.LossScale(initial=8.0, interval=2)

    @nt.compile
    def step(x: nt.Tensor) -> nt.Tensor:
        optimizer.zero_grad()
        scale(nt.sum(w * x)).backward()
        finite = scale.unscale([w])
        optimizer.step(when=finite)
        return finite

    seen, values = [], []
    for factor in (1.0, 1.0, np.inf, 1.0, np.nan, 1.0):
        seen.append((step(nt.full((3,), factor)).item(), scale.value().item()))
        values.append(w.value[0].item())
    assert seen == [(True, 8), (True, 16), (False, 8), (True, 8), (False, 4), (True, 4)]
    assert values[1] == values[2] and values[3] == values[4]
    assert len({values[0], values[1], values[3], values[5]}) == 4
    assert [s["tier"] for s in step.explain()["signatures"]] == ["compiled"]


def test_a_scale_is_saved(tmp_path: Any) -> None:
    w = nt.parameter(nt.ones((3,)))
    scale = nn.LossScale(initial=8.0)
    scale(nt.sum(w * np.inf)).backward()
    assert not scale.unscale([w]).item()
    nn.save(tmp_path / "scale.safetensors", {"scale": scale})
    other = nn.LossScale()
    nn.load(tmp_path / "scale.safetensors", {"scale": other})
    assert other.value().item() == 4


@pytest.mark.parametrize("make, text", [
    (lambda w: nn.LossScale(initial=0.0), "LossScale: the setting `initial`"),
    (lambda w: nn.LossScale(growth=0.5), "LossScale: the setting `growth`"),
    (lambda w: nn.LossScale(backoff=2.0), "LossScale: the setting `backoff`"),
    (lambda w: nn.LossScale(interval=0), "LossScale: the setting `interval`"),
    (lambda w: nn.LossScale().unscale([w]), "no parameter has a gradient"),
    (lambda w: nn.Sgd([w]).step(when=nt.asarray(1.0)), "one boolean"),
    (lambda w: nn.Sgd([w]).step(when=nt.asarray([True])), "one boolean"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(make: Any, text: str) -> None:
    with pytest.raises(nt.Error) as refused:
        make(nt.parameter(nt.ones((2,))))
    assert text in str(refused.value)


def test_beside_torch() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    theirs = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
    )
    ours = nn.Sequential(nn.Linear(16, 32), nt.gelu, nn.LayerNorm(32), nn.Linear(32, 4))
    with torch.no_grad():
        for name, value in theirs.state_dict().items():
            array = value.numpy()
            ours.named_variables()[name].value = array.T.copy() if array.ndim == 2 else array
    x, y = torch.randn(8, 16), torch.arange(8) % 4
    with torch.autocast("cpu", torch.bfloat16):
        expected = torch.nn.functional.cross_entropy(theirs(x), y)
    expected.backward()
    with nn.autocast(nt.bfloat16):
        loss = nn.cross_entropy(ours(nt.asarray(x.numpy())), nt.asarray(y.numpy()))
    loss.backward()
    assert abs(loss.item() - expected.item()) < 0.01
    gradients = dict(theirs.named_parameters())
    for name, variable in ours.named_variables().items():
        mine, reference = np.asarray(variable.grad), gradients[name].grad.numpy()
        reference = reference.T if reference.ndim == 2 else reference
        assert mine.dtype == np.float32
        assert np.abs(mine - reference).max() < 0.03 * np.abs(reference).max() + 1e-3, name
