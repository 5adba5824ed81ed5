"""Cases of activations and losses, as in function_cases.py."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from function_cases import (
    HOT,
    Case,
    F,
    Sample,
    between,
    f,
    normal,
    np_sigmoid,
    np_softmax,
    one,
    torch,
    unary,
)


def with_torch(function: Callable[..., Any]) -> Callable[..., Any] | None:
    return function if torch is not None else None


def values_only(function: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Where PyTorch has no gradient for all operands, or one of single precision."""
    if function is None:
        return None
    return lambda *args, **keywords: function(*args, **keywords).detach()


def np_elu(x: Any, alpha: float = 1) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def np_celu(x: Any, alpha: float = 1) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x / alpha, 0)))


def np_softplus(x: Any) -> Any:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def np_hardsigmoid(x: Any) -> Any:
    return np.clip((x + 3) / 6, 0, 1)


def np_prelu(x: Any, slope: Any) -> Any:
    along = slope.reshape([-1 if i == 1 else 1 for i in range(x.ndim)]) if slope.size > 1 else slope
    return np.where(x > 0, x, x * along)


def np_glu(x: Any, axis: int = -1) -> Any:
    a, b = np.split(x, 2, axis)
    return a * np_sigmoid(b)


def np_softshrink(x: Any, bound: float = 0.5) -> Any:
    return np.sign(x) * np.maximum(np.abs(x) - bound, 0)


def with_settings(case: Case, *keywords: dict[str, float]) -> Case:
    """And one sample for each."""
    more = [Sample((between(-4, 4, 40),), given) for given in keywords]
    return Case(case.name, [*case.samples, *more], case.numpy, case.torch, case.dtypes, case.has_gradient,
                case.scale)  # fmt: skip


ACTIVATIONS = [
    with_settings(
        unary("leaky_relu", lambda x, slope=0.01: np.where(x > 0, x, slope * x),
              with_torch(lambda x, slope=0.01: F.leaky_relu(x, slope))), {"slope": 0.2}),
    with_settings(unary("elu", np_elu, f("elu")), {"alpha": 0.3}),
    with_settings(unary("celu", np_celu, f("celu")), {"alpha": 0.5}),
    unary("selu", lambda x: 1.0507009873554805 * np_elu(x, 1.6732632423543772), f("selu"), scale=2),
    unary("mish", lambda x: x * np.tanh(np_softplus(x)), f("mish"), low=-9, high=9, scale=2),
    unary("hardsigmoid", np_hardsigmoid, values_only(f("hardsigmoid")), low=-5, high=5),
    unary("hardswish", lambda x: x * np_hardsigmoid(x), f("hardswish"), low=-5, high=5, scale=2),
    with_settings(
        unary("hardtanh", lambda x, low=-1, high=1: np.clip(x, low, high),
              with_torch(lambda x, low=-1.0, high=1.0: F.hardtanh(x, low, high))), {"low": -0.5, "high": 2.0}),
    unary("relu6", lambda x: np.clip(x, 0, 6), f("relu6"), low=-5, high=9),
    with_settings(
        unary("hardshrink", lambda x, bound=0.5: np.where(np.abs(x) > bound, x, 0),
              with_torch(lambda x, bound=0.5: F.hardshrink(x, bound))), {"bound": 1.5}),
    with_settings(
        unary("softshrink", np_softshrink, with_torch(lambda x, bound=0.5: F.softshrink(x, bound))),
        {"bound": 1.5}, {"bound": 0.0}),
    unary("tanhshrink", lambda x: x - np.tanh(x), f("tanhshrink"), scale=4),
    unary("softsign", lambda x: x / (1 + np.abs(x)), f("softsign")),
    Case("prelu", [one(normal(3, 4), np.array([0.2])), one(normal(5, 4), between(0, 1, 4)),
                   one(normal(2, 3, 4, 5), between(0, 1, 3)), one(normal(7), np.array([-0.5]))],
         np_prelu, f("prelu"), has_gradient=True),
    Case("glu", [one(normal(3, 4)), one(normal(6)), one(normal(3, 4, 5), axis=1), one(normal(0, 2))], np_glu,
         with_torch(lambda x, axis=-1: F.glu(x, axis)), has_gradient=True),
]  # fmt: skip


# ---- losses


def reduced(losses: Any, reduction: str = "mean") -> Any:
    by: dict[str, Any] = {"mean": np.mean, "sum": np.sum, "none": np.asarray}
    return by[reduction](losses)


def np_loss(function: Callable[..., Any]) -> Callable[..., Any]:
    """The reduction of the losses that `function` gives."""

    def loss(*args: Any, **keywords: Any) -> Any:
        reduction = keywords.pop("reduction", "mean")
        return reduced(function(*args, **keywords), reduction)

    return loss


# PyTorch has classes along axis 1, and other words.
def torch_classes(name: str) -> Callable[..., Any] | None:
    def loss(x: Any, targets: Any, **more: Any) -> Any:
        flat = targets.flatten(0, -2) if targets.ndim == x.ndim else targets.flatten()
        weight = more.pop("weights", None)
        weight = None if weight is None else weight.detach()
        found = getattr(F, name)(x.flatten(0, -2), flat, weight=weight, **more)
        found = found if weight is None else found.detach()
        return found.reshape(x.shape[:-1]) if more.get("reduction") == "none" else found

    return with_torch(loss)


def renamed(name: str, **words: str) -> Callable[..., Any] | None:
    """PyTorch's, with its words for our parameters."""

    def loss(*args: Any, **keywords: Any) -> Any:
        weights = {
            k: keywords.pop(k).detach() for k in list(keywords) if k.endswith(("weight", "weights"))
        }
        named = {words.get(k, k): v for k, v in (keywords | weights).items()}
        found = getattr(F, name)(*args, **named)
        return found.detach() if weights else found

    return with_torch(loss)


def np_classes(
    logs: Any, targets: Any, smoothing: float, ignored: int, weights: Any, reduction: str
) -> Any:
    classes = logs.shape[-1]
    each = np.ones(classes) if weights is None else weights
    if targets.ndim == logs.ndim:
        wanted = targets * (1 - smoothing) + smoothing / classes
        return reduced(-(wanted * each * logs).sum(-1), reduction)
    kept = targets != ignored
    label = np.where(kept, targets, 0)
    counts = kept * each[label]
    found = -np.take_along_axis(logs, label[..., None], -1)[..., 0] * counts
    spread = -(each * logs).sum(-1) * kept / classes
    losses = found * (1 - smoothing) + spread * smoothing
    return losses.sum() / counts.sum() if reduction == "mean" else reduced(losses, reduction)


def np_cross_entropy(logits: Any, targets: Any, label_smoothing: float = 0, ignore_index: int = -100,
                     weights: Any = None, reduction: str = "mean") -> Any:  # fmt: skip
    logs = np.log(np_softmax(logits))
    return np_classes(logs, targets, label_smoothing, ignore_index, weights, reduction)


def np_nll_loss(logs: Any, targets: Any, ignore_index: int = -100, weights: Any = None,
                reduction: str = "mean") -> Any:  # fmt: skip
    return np_classes(logs, targets, 0, ignore_index, weights, reduction)


def np_bce_with_logits(x: Any, t: Any, weights: Any = 1, positive_weight: Any = 1) -> Any:
    return weights * (positive_weight * t * np_softplus(-x) + (1 - t) * np_softplus(x))


def np_bce(p: Any, t: Any, weights: Any = 1) -> Any:
    with np.errstate(divide="ignore"):
        return -weights * (
            t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log(1 - p), -100)
        )


def np_kl_div(logs: Any, t: Any, has_log_targets: bool = False) -> Any:
    if has_log_targets:
        return np.exp(t) * (t - logs)
    return np.where(t > 0, t * np.log(np.where(t > 0, t, 1)), 0) - t * logs


def np_smooth_l1(x: Any, y: Any, beta: float = 1) -> Any:
    d = np.abs(x - y)
    return np.where(d < beta, d * d / (2 * beta or 1), d - beta / 2)


def np_poisson(
    x: Any, y: Any, has_log: bool = True, is_full: bool = False, eps: float = 1e-8
) -> Any:
    losses = np.exp(x) - y * x if has_log else x - y * np.log(x + eps)
    n = np.maximum(y, 1.0)
    return losses + is_full * (y > 1) * (n * np.log(n) - n + np.log(2 * math.pi * n) / 2)


def np_gaussian(x: Any, y: Any, variance: Any, is_full: bool = False, eps: float = 1e-6) -> Any:
    v = np.maximum(variance, eps)
    return (np.log(v) + (x - y) ** 2 / v + is_full * math.log(2 * math.pi)) / 2


def np_cosine(a: Any, b: Any, axis: int = 1, eps: float = 1e-8) -> Any:
    def unit(x: Any) -> Any:
        return x / np.maximum(np.linalg.norm(x, axis=axis, keepdims=True), eps)

    return (unit(a) * unit(b)).sum(axis)


def np_cosine_embedding(a: Any, b: Any, y: Any, margin: float = 0) -> Any:
    cosine = np_cosine(a, b, -1)
    return np.where(y > 0, 1 - cosine, np.maximum(cosine - margin, 0))


def np_triplet(
    a: Any, near: Any, n: Any, margin: float = 1, swaps: bool = False, **norm: float
) -> Any:
    def distance(x: Any, y: Any) -> Any:
        d = np.abs(x - y + norm.get("eps", 1e-6))
        return (d ** norm.get("p", 2)).sum(-1) ** (1 / norm.get("p", 2))

    apart = np.minimum(distance(a, n), distance(near, n)) if swaps else distance(a, n)
    return np.maximum(distance(a, near) - apart + margin, 0)


def np_ctc_loss(logs: Any, labels: Any, steps: Any, lengths: Any, blank: int = 0, zeroes_infinity: bool = False,
                reduction: str = "mean") -> Any:  # fmt: skip
    """Probabilities of positions by the definition, one after another."""
    losses = []
    for n, count in enumerate(lengths):
        at = [blank] + [c for label in labels[n][:count] for c in (label, blank)]
        alpha = np.zeros(len(at))
        alpha[0] = 1
        for t in range(steps[n]):
            before = alpha
            alpha = np.zeros(len(at))
            for s, c in enumerate(at):
                ways = before[s : s + 1].sum() + (before[s - 1] if s > 0 and t > 0 else 0)
                if t == 0:
                    ways = float(s < 2)
                elif s > 1 and c != blank and c != at[s - 2]:
                    ways += before[s - 2]
                alpha[s] = ways * np.exp(logs[t, n, c])
        with np.errstate(divide="ignore"):
            losses.append(-np.log(alpha[-1] + (alpha[-2] if count > 0 else 0)))
    found = np.array(losses)
    found = np.where(np.isinf(found), 0, found) if zeroes_infinity else found
    return reduced(found / np.maximum(lengths, 1) if reduction == "mean" else found, reduction)


def torch_ctc_loss(logs: Any, labels: Any, steps: Any, lengths: Any, blank: int = 0, zeroes_infinity: bool = False,
                   reduction: str = "mean") -> Any:  # fmt: skip
    # Its gradient is by the scores before log_softmax.
    scores = logs.log_softmax(-1)
    return F.ctc_loss(scores, labels, steps, lengths, blank, reduction, zeroes_infinity).detach()


def signs(*shape: int) -> np.ndarray:
    return np.where(normal(*shape) > 0, 1.0, -1.0)


LABELS = np.array([0, 3, -100, 4, 2, -100])
WEIGHTS = between(0.2, 2, 5)
SHARES = np_softmax(normal(6, 5))
BOTH = ("sum", "none")
STEPS = np.log(np_softmax(normal(7, 3, 5)))
SPELLED = np.array([[1, 2, 2, 4], [3, 0, 0, 0], [4, 4, 1, 2]])


def reductions(*args: Any, **keywords: Any) -> list[Sample]:
    return [one(*args, **keywords), *(one(*args, reduction=r, **keywords) for r in BOTH)]


WEIGHTED_LOSSES = [
    Case("nn.cross_entropy",
         [*reductions(normal(6, 5), LABELS), *reductions(normal(6, 5), LABELS, weights=WEIGHTS),
          *reductions(normal(6, 5), LABELS, weights=WEIGHTS, label_smoothing=0.2),
          *reductions(normal(6, 5), SHARES, weights=WEIGHTS, label_smoothing=0.2),
          one(normal(6, 5), LABELS, weights=WEIGHTS * (WEIGHTS != WEIGHTS[3]), label_smoothing=0.2),
          one(normal(2, 3, 5), np.abs(LABELS).reshape(2, 3) % 5, ignore_index=0, reduction="none"),
          one(normal(4, 6, 5), HOT), one(normal(6, 5), HOT[0], label_smoothing=0.1),
          one(normal(6, 5), HOT[1], ignore_index=2), one(normal(3, 5), SHARES[:3])],
         np_cross_entropy, torch_classes("cross_entropy"), has_gradient=True, scale=6),
    Case("nn.nll_loss",
         [*reductions(np.log(SHARES), LABELS), *reductions(np.log(SHARES), LABELS, weights=WEIGHTS),
          one(np.log(np_softmax(normal(2, 3, 5))), np.abs(LABELS).reshape(2, 3) % 5, ignore_index=3)],
         np_nll_loss, torch_classes("nll_loss"), has_gradient=True, scale=4),
    Case("nn.bce_with_logits",
         [*reductions(normal(3, 4), between(0, 1, 3, 4)),
          *reductions(normal(3, 4), between(0, 1, 3, 4), positive_weight=between(0.5, 3, 4)),
          one(normal(3, 4) * 30, between(0, 1, 3, 4), weights=between(0, 2, 3, 1))],
         np_loss(np_bce_with_logits),
         renamed("binary_cross_entropy_with_logits", weights="weight", positive_weight="pos_weight"),
         has_gradient=True, scale=2),
    Case("nn.bce_loss",
         [*reductions(between(0.01, 0.99, 3, 4), between(0, 1, 3, 4)),
          one(np.array([0.0, 1, 0, 1]), np.array([0.0, 1, 1, 0])),
          one(between(0.01, 0.99, 3, 4), between(0, 1, 3, 4), weights=between(0, 2, 4))],
         np_loss(np_bce), renamed("binary_cross_entropy", weights="weight"), scale=6),
    Case("nn.kl_div",
         [*reductions(np.log(SHARES), np_softmax(normal(6, 5))),
          *reductions(np.log(SHARES), np.log(np_softmax(normal(6, 5))), has_log_targets=True)],
         np_loss(np_kl_div), renamed("kl_div", has_log_targets="log_target"), has_gradient=True, scale=4),
    Case("nn.ctc_loss",
         [*reductions(STEPS, SPELLED, np.array([7, 4, 6]), np.array([4, 1, 3])),
          one(STEPS, SPELLED, np.array([4, 1, 3]), np.array([4, 1, 3]), zeroes_infinity=True, reduction="none"),
          one(STEPS, np.array([[0, 1], [2, 3], [1, 1]]), np.array([7, 7, 5]), np.array([2, 1, 2]), blank=4)],
         np_ctc_loss, with_torch(torch_ctc_loss), scale=8),
    Case("nn.mse_loss", reductions(normal(3, 4), normal(3, 4)), np_loss(lambda x, y: (x - y) ** 2),
         f("mse_loss"), has_gradient=True),
    Case("nn.l1_loss", reductions(normal(3, 4), normal(3, 4)), np_loss(lambda x, y: np.abs(x - y)),
         f("l1_loss"), has_gradient=True),
    Case("nn.smooth_l1_loss",
         [*reductions(normal(30), normal(30)), one(normal(30), normal(30), 0.3), one(normal(9), normal(9), beta=0.0)],
         np_loss(np_smooth_l1), with_torch(lambda x, y, beta=1.0, **more: F.smooth_l1_loss(x, y, beta=beta, **more)),
         has_gradient=True),
    Case("nn.poisson_nll_loss",
         [*reductions(normal(3, 4), between(0, 9, 3, 4)), one(normal(3, 4), between(0, 9, 3, 4), is_full=True),
          one(between(0.1, 9, 3, 4), between(0, 9, 3, 4), has_log=False, eps=1e-3)],
         np_loss(np_poisson), renamed("poisson_nll_loss", has_log="log_input", is_full="full"), has_gradient=True,
         scale=4),
    Case("nn.gaussian_nll_loss",
         [*reductions(normal(3, 4), normal(3, 4), between(0.1, 2, 3, 4)),
          one(normal(3, 4), normal(3, 4), between(0.1, 2, 3, 1), is_full=True),
          one(normal(3, 4), normal(3, 4), between(0.1, 1, 3, 4), eps=0.5)],
         np_loss(np_gaussian), renamed("gaussian_nll_loss", is_full="full"), scale=4),
    Case("nn.cosine_similarity",
         [one(normal(3, 4), normal(3, 4)), one(normal(3, 4, 5), normal(3, 4, 5), axis=-1),
          one(normal(7), normal(7), axis=0), one(np.zeros((2, 3)), normal(2, 3))],
         np_cosine, with_torch(lambda a, b, axis=1: F.cosine_similarity(a, b, axis)), scale=4),
    Case("nn.cosine_embedding_loss",
         [*reductions(normal(6, 4), normal(6, 4), signs(6)), one(normal(6, 4), normal(6, 4), signs(6), margin=0.3)],
         np_loss(np_cosine_embedding), f("cosine_embedding_loss"), has_gradient=True, scale=400),
    Case("nn.triplet_margin_loss",
         [*reductions(normal(6, 4), normal(6, 4), normal(6, 4)),
          one(normal(6, 4), normal(6, 4), normal(6, 4), margin=3.0, swaps=True),
          one(normal(6, 4), normal(6, 4), normal(6, 4), p=3.0)],
         np_loss(np_triplet), renamed("triplet_margin_loss", swaps="swap"), has_gradient=True, scale=6),
    Case("nn.margin_ranking_loss",
         [*reductions(normal(9), normal(9), signs(9)), one(normal(9), normal(9), signs(9), margin=0.5)],
         np_loss(lambda a, b, y, margin=0: np.maximum(margin - y * (a - b), 0)), f("margin_ranking_loss"),
         has_gradient=True),
    Case("nn.hinge_embedding_loss",
         [*reductions(between(0, 3, 9), signs(9)), one(between(0, 3, 9), signs(9), margin=2.0)],
         np_loss(lambda x, y, margin=1: np.where(y > 0, x, np.maximum(margin - x, 0))),
         with_torch(lambda x, y, margin=1.0, **more: F.hinge_embedding_loss(x, y, margin, **more)), has_gradient=True),
    Case("nn.soft_margin_loss", reductions(normal(9) * 5, signs(9)),
         np_loss(lambda x, y: np_softplus(-y * x)), values_only(with_torch(lambda x, y, **more: F.soft_margin_loss(x, y.detach(), **more))), has_gradient=True, scale=2),
]  # fmt: skip


def np_dirac(shape: tuple[int, ...], groups: int = 1) -> Any:
    weights = np.zeros(shape, np.float32)
    each = shape[0] // groups
    for i in range(shape[0]):
        if i % each < shape[1]:
            weights[(i, i % each, *(size // 2 for size in shape[2:]))] = 1
    return weights


# From no tensors, so without dtypes and gradients of operands.
WEIGHTS_OF_LAYERS = [
    Case("nn.dirac", [one((4, 2, 3)), one((4, 3, 2, 5)), one((4, 2, 3, 3), groups=2)], np_dirac,
         with_torch(lambda shape, groups=1: torch.nn.init.dirac_(torch.empty(shape), groups))),
]  # fmt: skip

NN_CASES = ACTIVATIONS + WEIGHTED_LOSSES + WEIGHTS_OF_LAYERS
