"""The models of examples/models: how many parameters, compiled with eager's bits, and beside PyTorch's
where that is installed, from its weights."""

from __future__ import annotations

import importlib
import pathlib
import sys
from typing import Any

import numpy as np
import pytest
from conftest import bits, check_compiled

import nitinol as nt
from nitinol import nn

ROOT = pathlib.Path(__file__).parents[3]


def module_of(folder: str, name: str) -> Any:
    path = str(ROOT / folder)
    sys.path.insert(0, path)
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(path)


models = module_of("examples/models", "models")
gpt2, resnet, vit = (module_of("examples/models", name) for name in ("gpt2", "resnet", "vit"))
SMALL: dict[str, Any] = models.SMALL
# Of PyTorch's weights.
MAPPINGS: dict[str, dict[str, Any]] = {
    "resnet18": {"rename": resnet.TORCHVISION},
    "resnet50": {"rename": resnet.TORCHVISION},
    "vit": {"rename": vit.TIMM},
    "gpt2": gpt2.HUGGING_FACE,
}


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = nt.num_threads()
    nt.set_num_threads(1)  # so small that threads only cost time
    yield
    nt.set_num_threads(before)


@pytest.mark.parametrize(
    "name, count",
    [
        ("resnet18", 11_689_512),
        ("resnet50", 25_557_032),
        ("vit", 5_717_416),
        ("gpt2", 124_439_808),
        ("unet", 31_037_698),
        ("vae", 652_824),
    ],
)
def test_as_many_parameters_as_in_the_literature(name: str, count: int) -> None:
    assert sum(p.size for p in models.FULL[name].make().parameters()) == count


def step_of(task: Any, model: Any, optimizer: nn.Optimizer) -> Any:
    def step(wanted: nt.Tensor, *inputs: nt.Tensor) -> nt.Tensor:
        optimizer.zero_grad()
        loss: nt.Tensor = task.loss(model(*inputs), wanted)
        loss.backward()
        optimizer.step()
        return nt.stop_gradient(loss)

    return step


@pytest.mark.parametrize("name", SMALL)
def test_one_plan_with_eagers_bits(name: str) -> None:
    task = SMALL[name]
    found = []
    for is_compiled in (False, True):
        nt.manual_seed(3)
        model = task.make()
        *inputs, wanted = task.inputs()
        step = step_of(task, model, nn.Adam(model, rate=1e-3))
        compiled = nt.compile(step, check="never")
        losses = [(compiled if is_compiled else step)(wanted, *inputs) for _ in range(6)]
        model.eval()
        infer = nt.compile(model.__call__, check="never")
        with nt.no_gradients():
            results = [(infer if is_compiled else model)(*inputs) for _ in range(5)]
        results = [one for result in results for one in models.flat(result)]
        found.append([bits(one) for one in (*losses, *model.state_dict().values(), *results)])
        for function, plans in ((compiled, 4), (infer, 3)) if is_compiled else ():
            check_compiled(function, plans)
            explanation = function.explain()
            assert len(explanation["signatures"]) == 1 and explanation["eager_calls"] == 0
    assert found[0] == found[1]


def test_gpt2_writes_the_same_with_a_cache() -> None:
    model = SMALL["gpt2"].make()
    prompt = SMALL["gpt2"].inputs()[0]
    following = nt.compile(gpt2.next_tokens, check="never")
    with nt.no_gradients():
        seen = prompt
        for _ in range(20):
            seen = nt.concat([seen, gpt2.next_tokens(model, [], seen)], axis=1)
        for _ in range(4):
            caches, parts = model.caches(2, 28), [prompt]
            for _ in range(20):
                parts.append(following(model, caches, parts[-1]))
            assert bits(nt.concat(parts, axis=1)) == bits(seen)
    check_compiled(following, 4 * 20 - 6)
    assert len(following.explain()["signatures"]) == 2  # prompts, and all tokens behind them


def test_lengths_are_no_signature() -> None:
    model = SMALL["tagger"].make().eval()
    compiled = nt.compile(model.__call__, check="never")
    words = nt.random.randint(1, 50, (3, 12))
    with nt.no_gradients():
        for lengths in ([12, 5, 9], [1, 1, 1], [3, 12, 2], [7, 7, 7], [12, 12, 12]):
            given = nt.asarray(lengths)
            scores = compiled(words, given)
            assert bits(scores) == bits(model(words, given))
            # What is behind the end of a sentence makes no difference.
            others = nt.where(nt.arange(12) < given[:, None], words, 49)
            assert bits(compiled(others, given)) == bits(scores)
    check_compiled(compiled, 8)
    assert len(compiled.explain()["signatures"]) == 1


# ---- beside PyTorch


@pytest.fixture
def theirs() -> Any:
    """Makes PyTorch's model of a name."""
    torch = pytest.importorskip("torch", exc_type=ImportError)
    torch_models = module_of("tests/reference", "torch_models")
    torch.manual_seed(0)
    make = {
        "resnet18": lambda: torch_models.ResNet([1, 1], False, 10, 8),
        "resnet50": lambda: torch_models.ResNet([1, 2], True, 10, 4),
        "vit": lambda: torch_models.VisionTransformer(16, 4, 24, 2, 3, 10),
        "gpt2": lambda: torch_models.Gpt2(50, 32, 24, 3, 2),
        "unet": lambda: torch_models.UNet(3, 2, 4, 2),
        "tagger": lambda: torch_models.Tagger(50, 5, 8, 6),
        "vae": lambda: torch_models.Vae(36, 16, 4),
    }

    def with_statistics(name: str, inputs: list[Any]) -> Any:
        model = make[name]()
        with torch.no_grad():
            model.train()(*inputs)  # running means that are not 0
        return model

    return with_statistics


def close(ours: Any, of_torch: Any, tolerance: float = 1e-5) -> None:
    expected = of_torch.detach().numpy()
    size = float(np.abs(expected).max())
    np.testing.assert_allclose(np.asarray(ours), expected, tolerance, tolerance * size)


def torch_loss(name: str, result: Any, wanted: Any) -> Any:
    return module_of("tests/reference", "torch_models").loss_of(name, result, wanted)


@pytest.mark.parametrize("rule", ["Sgd", "Adam"])
@pytest.mark.parametrize("name", SMALL)
def test_as_pytorchs(name: str, rule: str, theirs: Any, tmp_path: pathlib.Path) -> None:
    torch = importlib.import_module("torch")
    task, mapping = SMALL[name], MAPPINGS.get(name, {})
    *inputs, wanted = task.inputs()
    given = [torch.tensor(np.asarray(x)) for x in inputs]
    if name == "vae":  # the noise that ours will draw
        nt.manual_seed(5)
        given.append(torch.tensor(np.asarray(nt.random.randn((4, 4)))))
    target = torch.tensor(np.asarray(wanted))
    other = theirs(name, given)
    path = tmp_path / "model.safetensors"
    state = {key: nt.asarray(value) for key, value in other.state_dict().items()}
    nt.save_safetensors(path, state)
    model = task.make()
    report = nn.load_pytorch(path, model, **mapping)
    assert [one.name for one in report.tensors if one.name] == list(model.named_variables())
    assert {one.how for one in report.tensors} <= {"as it is", "transposed", "unused"}
    direct = task.make()
    nn.load_pytorch(other.state_dict(), direct, **mapping)
    assert list(map(bits, direct.state_dict().values())) == list(
        map(bits, model.state_dict().values())
    )

    model.eval(), other.eval()
    nt.manual_seed(5)
    with nt.no_gradients():
        results = models.flat(model(*inputs))
    for ours, of_torch in zip(results, [*other(*given)] if name == "vae" else [other(*given)]):
        close(ours, of_torch)

    model.train(), other.train()
    if rule == "Sgd":
        optimizer: nn.Optimizer = nn.Sgd(model, rate=0.01, momentum=0.9)
        torch_optimizer = torch.optim.SGD(other.parameters(), lr=0.01, momentum=0.9)
    else:
        optimizer = nn.Adam(model, rate=1e-3)
        torch_optimizer = torch.optim.Adam(other.parameters(), lr=1e-3)
    step = nt.compile(step_of(task, model, optimizer), check="never")
    for _ in range(5):
        nt.manual_seed(5)  # the same noise again
        loss = step(wanted, *inputs)
        torch_optimizer.zero_grad()
        torch_loss_now = torch_loss(name, other(*given), target)
        torch_loss_now.backward()
        torch_optimizer.step()
        close(loss, torch_loss_now, 2e-5)
    check_compiled(step, 3)
    if rule == "Sgd":  # Adam makes steps of any rounding error where a gradient is 0
        nn.load_pytorch(other.state_dict(), direct, **mapping)
        for key, value in direct.state_dict().items():
            found, expected = np.asarray(model.state_dict()[key]), np.asarray(value)
            np.testing.assert_allclose(found, expected, 1e-4, 2e-6, err_msg=key)


def test_gpt2_writes_what_pytorch_does(theirs: Any) -> None:
    torch = pytest.importorskip("torch", exc_type=ImportError)
    model, prompt = SMALL["gpt2"].make(), SMALL["gpt2"].inputs()[0]
    seen = torch.tensor(np.asarray(prompt))
    other = theirs("gpt2", [seen])
    nn.load_pytorch(other.state_dict(), model, **gpt2.HUGGING_FACE)
    for _ in range(20):
        with torch.no_grad():
            scores = other(seen)[:, -1]
        seen = torch.cat([seen, scores.argmax(-1, keepdim=True)], 1)
    caches, parts = model.caches(2, 28), [prompt]
    following = nt.compile(gpt2.next_tokens)
    with nt.no_gradients():
        for _ in range(20):
            parts.append(following(model, caches, parts[-1]))
    assert np.asarray(nt.concat(parts, axis=1)).tolist() == seen.tolist()
