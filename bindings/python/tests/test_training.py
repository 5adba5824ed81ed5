"""Optimizers, averages, rates by the step and initial values, beside PyTorch where it is installed."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable
from typing import Any

import nitinol as nt
import numpy as np
import pytest
from conftest import bits, check_compiled, gradient_of
from nitinol import nn

# Nothing is checked of what is wrong on purpose.
untyped: Any = nn
START = np.random.default_rng(0).normal(size=(4, 3))


def torch_or_skip() -> Any:
    return pytest.importorskip("torch", exc_type=ImportError)


# ---- optimizers

# Ours, PyTorch's (None: it has none), and what PyTorch calls the settings.
RULES: dict[str, tuple[str, str | None, dict[str, Any]]] = {
    "sgd": ("Sgd", "SGD", {"rate": 0.05, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.01}),
    "nesterov": ("Sgd", "SGD", {"rate": 0.05, "momentum": 0.9, "nesterov": True}),
    "adam": ("Adam", "Adam", {"rate": 0.1, "beta1": 0.8, "weight_decay": 0.01}),
    "amsgrad": ("Adam", "Adam", {"rate": 0.1, "beta2": 0.8, "amsgrad": True}),
    "adamw": ("AdamW", "AdamW", {"rate": 0.1, "beta2": 0.8, "amsgrad": True}),
    "adamax": ("Adamax", "Adamax", {"rate": 0.1, "weight_decay": 0.01}),
    "nadam": ("NAdam", "NAdam", {"rate": 0.1, "momentum_decay": 0.02, "weight_decay": 0.01}),
    "nadam_decoupled": (
        "NAdam",
        "NAdam",
        {"rate": 0.1, "weight_decay": 0.01, "decoupled_weight_decay": True},
    ),
    "radam": ("RAdam", "RAdam", {"rate": 0.1, "beta2": 0.9, "weight_decay": 0.01}),
    "radam_decoupled": (
        "RAdam",
        "RAdam",
        {"rate": 0.1, "weight_decay": 0.01, "decoupled_weight_decay": True},
    ),
    "rmsprop": ("RmsProp", "RMSprop", {"rate": 0.05, "momentum": 0.5, "weight_decay": 0.01}),
    "rmsprop_centered": ("RmsProp", "RMSprop", {"rate": 0.05, "decay": 0.9, "centered": True}),
    "adagrad": ("Adagrad", "Adagrad", {"rate": 0.1, "rate_decay": 0.1, "initial": 0.5}),
    "adadelta": ("Adadelta", "Adadelta", {"rate": 2.0, "weight_decay": 0.01}),
    "adafactor": ("Adafactor", "Adafactor", {"rate": 0.3, "clipping": 1.0, "weight_decay": 0.01}),
    "lion": ("Lion", None, {"rate": 0.02, "weight_decay": 0.01}),
    "lamb": ("Lamb", None, {"rate": 0.05, "weight_decay": 0.01}),
    "lbfgs": ("Lbfgs", "LBFGS", {"rate": 0.05, "history": 3}),
}
WORDS = {"rate": "lr", "rate_decay": "lr_decay", "initial": "initial_accumulator_value",
         "clipping": "d", "history": "history_size"}  # fmt: skip


def ours(name: str, parameters: Any, **more: Any) -> nn.Optimizer:
    made, _, settings = RULES[name]
    optimizer: nn.Optimizer = getattr(nn, made)(parameters, **settings, **more)
    return optimizer


def theirs(torch: Any, name: str, parameters: Any, maximize: bool) -> Any:
    _, made, settings = RULES[name]
    assert made is not None
    given = {WORDS.get(key, key): value for key, value in settings.items()}
    if "beta1" in given or "beta2" in given:
        given["betas"] = (given.pop("beta1", 0.9), given.pop("beta2", 0.999))
    if made in ("RMSprop",) and "decay" in given:
        given["alpha"] = given.pop("decay")
    if made == "LBFGS":
        given |= {"max_iter": 1, "tolerance_grad": 0, "tolerance_change": 0}
    return getattr(torch.optim, made)(parameters, maximize=maximize, **given)


def np_step(name: str, x: Any, g: Any, state: dict[str, Any], t: int) -> Any:
    """What PyTorch does not have, by the papers."""
    settings = RULES[name][2]
    rate, decay = settings["rate"], settings["weight_decay"]
    m, v = state.setdefault("m", 0 * x), state.setdefault("v", 0 * x)
    if name == "lion":
        move = np.sign(0.9 * m + 0.1 * g) + decay * x
        state["m"] = 0.99 * m + 0.01 * g
        return x - rate * move
    state["m"], state["v"] = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
    first, second = state["m"] / (1 - 0.9**t), state["v"] / (1 - 0.999**t)
    move = first / (np.sqrt(second) + 1e-6) + decay * x
    return x - rate * np.linalg.norm(x) / np.linalg.norm(move) * move


@pytest.mark.parametrize("maximize", (False, True))
@pytest.mark.parametrize("name", RULES)
def test_rules_beside_pytorch(name: str, maximize: bool, request: pytest.FixtureRequest) -> None:
    torch = None if RULES[name][1] is None else torch_or_skip()
    if torch is not None:  # which keeps numbers such as NAdam's product in its default dtype
        torch.set_default_dtype(torch.float64)
        request.addfinalizer(lambda: torch.set_default_dtype(torch.float32))
    p = nt.parameter(START)
    optimizer = ours(name, [p], maximize=maximize)
    x, state = START, {}  # type: tuple[Any, dict[str, Any]]
    q: Any = torch.nn.Parameter(torch.tensor(START)) if torch else None
    reference = theirs(torch, name, [q], maximize) if torch else None

    def loss() -> Any:
        assert reference is not None and torch is not None
        reference.zero_grad()
        value = torch.sin(q * 1.5).sum()
        value.backward()
        return value

    @nt.compile
    def step() -> None:
        optimizer.zero_grad()
        nt.sum(nt.sin(p * 1.5)).backward()
        optimizer.step()

    for t in range(1, 13):
        step()
        if reference is not None:
            reference.step(loss)
            x = q.detach().numpy()
        else:
            gradient = 1.5 * np.cos(x * 1.5) * (-1 if maximize else 1)
            x = np_step(name, x, gradient, state, t)
        np.testing.assert_allclose(p.numpy(), x, rtol=1e-11, atol=1e-12)
    check_compiled(step)


@pytest.mark.parametrize("name", RULES)
def test_rules_are_compiled_and_resumed(name: str, tmp_path: pathlib.Path) -> None:
    def parts() -> tuple[nt.Variable, nn.Optimizer, Callable[[], None]]:
        p = nt.parameter(START.astype(np.float32))
        optimizer = ours(name, [p])

        def step() -> None:
            optimizer.zero_grad()
            nt.sum(nt.sin(p * 1.5)).backward()
            optimizer.step()

        return p, optimizer, step

    def all_bits(optimizer: nn.Optimizer) -> list[Any]:
        return [bits(v.value) for v in optimizer.named_variables().values()]

    (_, a, eager), (_, b, other), (_, c, third) = parts(), parts(), parts()
    compiled = nt.compile(other, check="never")
    for i in range(8):
        for optimizer in (a, b):
            optimizer.set_rate(0.1 / (i + 1))  # compiles nothing
        eager(), compiled()
        assert all_bits(a) == all_bits(b)
    check_compiled(compiled, 5)
    assert len(compiled.explain()["signatures"]) == 1
    nn.save(tmp_path / "state", b)
    nn.load(tmp_path / "state", c)
    for _ in range(3):
        eager(), third()
    assert all_bits(a) == all_bits(c)


def test_every_optimizer_is_here() -> None:
    made = {
        v
        for v in vars(nt._ext).values()
        if isinstance(v, type) and issubclass(v, nn.Optimizer) and v is not nn.Optimizer
    }
    assert {getattr(nn, rule[0]) for rule in RULES.values()} == made
    assert made <= {getattr(nn, name) for name in nn.__all__}


@pytest.mark.parametrize("name", sorted({rule[0] for rule in RULES.values()}))
def test_groups_have_settings_of_their_own(name: str) -> None:
    a, b = (nt.parameter(nt.ones((2, 2))) for _ in range(2))
    optimizer = getattr(nn, name)([a], rate=0.0)
    optimizer.add([b], rate=0.25)
    nt.sum(a + b).backward()
    optimizer.step()
    assert optimizer.rate(1).item() == 0.25
    assert bits(a.value) == bits(nt.ones((2, 2))) != bits(b.value)


@pytest.mark.parametrize("make, text", [
    (lambda p: nn.Sgd(p, dampening=2.0), "Sgd: the setting `dampening`"),
    (lambda p: nn.Sgd(p, momentum=0.5, dampening=0.5, nesterov=True), "Sgd with nesterov: the setting `dampening`"),
    (lambda p: nn.Adamax(p, beta1=1.0), "Adamax: the setting `beta1`"),
    (lambda p: nn.NAdam(p, momentum_decay=-1.0), "NAdam: the setting `momentum_decay`"),
    (lambda p: nn.RAdam(p, beta2=1.0), "RAdam: the setting `beta2`"),
    (lambda p: nn.RmsProp(p, decay=1.5), "RmsProp: the setting `decay`"),
    (lambda p: nn.Adagrad(p, rate_decay=-1.0), "Adagrad: the setting `rate_decay`"),
    (lambda p: nn.Adagrad(p, initial=math.nan), "Adagrad: the setting `initial`"),
    (lambda p: nn.Adadelta(p, decay=-0.1), "Adadelta: the setting `decay`"),
    (lambda p: nn.Adafactor(p, clipping=0.0), "Adafactor: the setting `clipping`"),
    (lambda p: nn.Adafactor(p, eps2=-1.0), "Adafactor: the setting `eps2`"),
    (lambda p: nn.Lion(p, beta2=1.0), "Lion: the setting `beta2`"),
    (lambda p: nn.Lamb(p, eps=-1.0), "Lamb: the setting `eps`"),
    (lambda p: nn.Lbfgs(p, history=0), "Lbfgs: the setting `history`"),
    (lambda p: nn.Lamb(p, rate=-1.0), "Lamb: the setting `rate`"),
    (lambda p: nn.Lion(p, weight_decay=-1.0), "Lion: the setting `weight_decay`"),
    (lambda p: nn.Average([]), "Average: the list of parameters"),
    (lambda p: nn.Average(p, 1.5), "Average: the setting `decay`"),
    (lambda p: nn.Average(p).copy_to([]), "the number of Variables"),
    (lambda p: nn.Plateau(1.0, factor=1.0), "Plateau: the setting `factor`"),
    (lambda p: nn.Plateau(1.0, patience=-1), "Plateau: the setting `patience`"),
    (lambda p: nn.constant_rate(-1.0), "constant_rate: the setting `rate`"),
    (lambda p: nn.multi_step_decay(1.0, [3, 2]), "multi_step_decay: the setting `steps`"),
    (lambda p: nn.exponential_decay(1.0, -1.0), "exponential_decay: the setting `factor`"),
    (lambda p: nn.linear_decay(1.0, 0), "linear_decay: the setting `steps`"),
    (lambda p: nn.polynomial_decay(1.0, 3, -1.0), "polynomial_decay: the setting `power`"),
    (lambda p: nn.cosine_restarts(1.0, 3, 0), "cosine_restarts: the setting `growth`"),
    (lambda p: nn.one_cycle(1.0, 2), "one_cycle: the rate rises"),
    (lambda p: nn.joined([nn.constant_rate(1.0)], [2]), "joined: 1 schedules"),
    (lambda p: nn.linear_decay(1.0, 4)(-1), "linear_decay: the setting `step`"),
    (lambda p: nn.orthogonal((3,)), "orthogonal: the shape"),
    (lambda p: nn.dirac((3, 3, 3), groups=2), "dirac: the setting `groups`"),
    (lambda p: nn.truncated_normal((3,), -1.0), "truncated_normal: the setting `deviation`"),
    (lambda p: nn.kaiming_uniform((3, 3), slope=-1.0), "kaiming_uniform: the setting `slope`"),
])  # fmt: skip
def test_what_makes_no_sense_is_refused(make: Callable[[Any], Any], text: str) -> None:
    with pytest.raises(nt.Error) as refused:
        make([nt.parameter(nt.ones((2,)))])
    assert text in str(refused.value)


def test_gradients_add_up_over_parts_of_a_batch() -> None:
    x, y = nt.random.randn((12, 3), "float64"), nt.arange(12) % 3
    whole, parts = (nt.parameter(START.T[:, :3]) for _ in range(2))
    of_whole, of_parts = nn.Adam([whole]), nn.Adam([parts])
    for _ in range(3):
        of_whole.zero_grad()
        of_parts.zero_grad()
        nn.cross_entropy(x @ whole, y).backward()
        for i in range(0, 12, 4):
            (nn.cross_entropy(x[i : i + 4] @ parts, y[i : i + 4]) / 3).backward()
        of_whole.step()
        of_parts.step()
        np.testing.assert_allclose(parts.numpy(), whole.numpy(), rtol=1e-9)


def test_a_loss_to_which_nothing_flows_adds_no_gradients() -> None:
    w = nt.parameter(nt.ones((2,)))
    nt.sum(nt.stop_gradient(w * 2)).backward()
    assert w.grad is None
    nt.sum(w * 2).backward()
    nt.sum(nt.ones((3,))).backward()
    assert gradient_of(w).tolist() == [2, 2]
    assert nt.grad(lambda x: nt.sum(nt.ones((3,))))(w.value).tolist() == [0, 0]
    with pytest.raises(nt.ShapeError):
        nt.ones((3,)).backward()


# ---- averages


@pytest.mark.parametrize("decay", (0.9, 1.0))
def test_averages_beside_pytorch(decay: float, tmp_path: pathlib.Path) -> None:
    torch = torch_or_skip()
    swa = pytest.importorskip("torch.optim.swa_utils")
    theirs = torch.nn.Linear(3, 2).double()
    model = nn.Linear(3, 2, dtype="float64")
    function = swa.get_ema_multi_avg_fn(decay) if decay < 1 else None
    averaged = swa.AveragedModel(theirs, multi_avg_fn=function)
    average = nn.Average(model, decay)

    def updated(x: nt.Tensor) -> nt.Tensor:
        average.update()
        return x + 1

    update = nt.compile(updated, check="never")
    for i in range(6):
        values = np.random.default_rng(i).normal(size=(3, 2))
        model.weight.set(values)
        with torch.no_grad():
            theirs.weight.copy_(torch.tensor(values.T))
        averaged.update_parameters(theirs)
        update(nt.ones((1,)))
        average.swap()
        expected = averaged.module.weight.detach().numpy().T
        np.testing.assert_allclose(model.weight.numpy(), expected, rtol=1e-12)
        average.swap()
        np.testing.assert_array_equal(model.weight.numpy(), values)
    check_compiled(update, 3)
    assert average.count().item() == 6
    nn.save(tmp_path / "average", average)
    other = nn.Average(model, decay)
    nn.load(tmp_path / "average", other)
    copy = nn.Linear(3, 2, dtype="float64")
    other.copy_to(copy)
    average.swap()
    assert bits(copy.weight.value) == bits(model.weight.value)
    assert list(average.named_variables()) == ["count", "averages.0", "averages.1"]


# ---- rates

STEPS = 24
SCHEDULES: dict[str, tuple[nn.Schedule, Callable[[Any, Any], Any]]] = {
    "constant": (nn.constant_rate(0.5), lambda s, o: s.ConstantLR(o, 1.0)),
    "step": (nn.step_decay(0.5, 5, 0.3), lambda s, o: s.StepLR(o, 5, 0.3)),
    "multi_step": (
        nn.multi_step_decay(0.5, [4, 7, 8], 0.3),
        lambda s, o: s.MultiStepLR(o, [4, 7, 8], 0.3),
    ),
    "exponential": (nn.exponential_decay(0.5, 0.9), lambda s, o: s.ExponentialLR(o, 0.9)),
    "linear": (nn.linear_decay(0.1, 9, 0.45), lambda s, o: s.LinearLR(o, 0.2, 0.9, 9)),
    "polynomial": (nn.polynomial_decay(0.5, 9, 2.5), lambda s, o: s.PolynomialLR(o, 9, 2.5)),
    "restarts": (
        nn.cosine_restarts(0.5, 3, 2, 0.1),
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.1),
    ),
    "same_restarts": (
        nn.cosine_restarts(0.5, 5),
        lambda s, o: s.CosineAnnealingWarmRestarts(o, 5),
    ),
    "one_cycle": (
        nn.one_cycle(0.5, STEPS),
        lambda s, o: s.OneCycleLR(o, 0.5, STEPS, cycle_momentum=False),
    ),
    "one_cycle_of_others": (
        nn.one_cycle(0.5, STEPS, 0.42, 5.0, 30.0),
        lambda s, o: s.OneCycleLR(
            o, 0.5, STEPS, pct_start=0.42, div_factor=5, final_div_factor=30, cycle_momentum=False
        ),
    ),
    "joined": (
        nn.joined(
            [nn.linear_decay(0.05, 4, 0.5), nn.exponential_decay(0.5, 0.8), nn.constant_rate(0.5)],
            [4, 10],
        ),
        lambda s, o: s.SequentialLR(
            o,
            [s.LinearLR(o, 0.1, 1.0, 4), s.ExponentialLR(o, 0.8), s.ConstantLR(o, 1.0)],
            [4, 10],
        ),
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules_beside_pytorch(name: str) -> None:
    torch = torch_or_skip()
    schedule, make = SCHEDULES[name]
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    reference = make(torch.optim.lr_scheduler, optimizer)
    for i in range(STEPS):
        assert schedule(i) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-9, abs=1e-12)
        optimizer.step()
        if i < STEPS - 1:
            reference.step()


@pytest.mark.parametrize("settings", [
    {"factor": 0.5, "patience": 2}, {"factor": 0.5, "patience": 0, "cooldown": 3, "last": 0.1},
    {"patience": 1, "threshold": 0.2, "absolute": True}, {"patience": 1, "maximize": True, "threshold": 0.05},
    {"patience": 1, "maximize": True, "absolute": True, "threshold": 0.3},
])  # fmt: skip
def test_plateau_beside_pytorch(settings: dict[str, Any]) -> None:
    torch = torch_or_skip()
    given = dict(settings)
    given["mode"] = "max" if given.pop("maximize", False) else "min"
    given["threshold_mode"] = "abs" if given.pop("absolute", False) else "rel"
    given["min_lr"] = given.pop("last", 0)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.5)
    reference = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, eps=0, **given)
    plateau = nn.Plateau(0.5, **settings)
    for metric in np.random.default_rng(3).normal(3, 1, size=40):
        reference.step(metric)
        assert plateau(metric) == pytest.approx(optimizer.param_groups[0]["lr"], rel=1e-12)
    assert plateau.rate() < 0.5


# ---- initial values


def test_orthogonal_and_dirac_weights() -> None:
    for shape in ((4, 4), (3, 8), (8, 3), (4, 2, 3, 3)):
        w = nn.orthogonal(shape, "float64", 2.0).numpy().reshape(shape[0], -1)
        products = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
        np.testing.assert_allclose(products, 4 * np.eye(len(products)), atol=1e-13)
    assert nn.dirac((2, 3, 1)).tolist() == [[[1], [0], [0]], [[0], [1], [0]]]
    for groups in (1, 2):
        torch = torch_or_skip()
        for sizes in ((4, 2, 3), (4, 3, 2, 5), (2, 4, 3, 3, 2)):
            expected = torch.nn.init.dirac_(torch.empty(sizes), groups).numpy()
            np.testing.assert_array_equal(nn.dirac(sizes, groups=groups).numpy(), expected)


def test_apply_reaches_every_module() -> None:
    model = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3), nt.tanh))
    seen: list[type] = []

    def f(module: nn.Module) -> None:
        seen.append(type(module))
        if isinstance(module, nn.Linear):
            module.weight.set(nn.orthogonal(module.weight.shape))

    assert model.apply(f) is model
    assert seen == [nn.Sequential, nn.Linear, nn.Sequential, nn.Linear]
    w = model[1][0].weight.numpy()
    np.testing.assert_allclose(w @ w.T, np.eye(3), atol=1e-6)
