"""Libraries written for any array library of the standard run on Nitinol's tensors, and give what NumPy's arrays give."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

os.environ["SCIPY_ARRAY_API"] = "1"  # read when SciPy is imported

import numpy as np
import pytest

import nitinol as nt

random = np.random.default_rng(3)


def normal(*shape: int) -> np.ndarray:
    return random.standard_normal(shape)


def positive(*shape: int) -> np.ndarray:
    made: np.ndarray = np.abs(normal(*shape)) + 0.1
    return made


def shares(*shape: int) -> np.ndarray:
    return random.uniform(0.1, 0.9, shape)


def arrays_in(result: Any) -> Iterator[np.ndarray]:
    if isinstance(result, (tuple, list)):
        for part in result:
            yield from arrays_in(part)
    else:
        yield np.asarray(getattr(result, "statistic", result))


def check(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> None:
    """The function of tensors gives tensors, or numbers, close to what it gives of arrays."""
    expected = function(*arguments, **keywords)
    tensors = [nt.asarray(a) if isinstance(a, np.ndarray) else a for a in arguments]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        got = function(*tensors, **keywords)
    assert not isinstance(got, np.ndarray)
    for mine, theirs in zip(arrays_in(got), arrays_in(expected), strict=True):
        assert mine.shape == theirs.shape
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-6)


SPECIAL = {
    "logit": (shares(8),),
    "expit entr softmax log_softmax logsumexp erf ndtr log_ndtr i0 expm1": (normal(8),),
    "gammaln digamma": (positive(8),),
    "xlogy rel_entr betaln gammainc gammaincc chdtrc": (positive(8), positive(8)),
    "betainc": (positive(8), positive(8), shares(8)),
    "stdtrit": (positive(8), shares(8)),
}
STATS = {
    "skew kurtosis describe zscore skewtest kurtosistest normaltest jarque_bera variation tmean tvar "
    "tmin tmax tstd tsem sem iqr circmean circvar circstd rankdata": (normal(40),),
    "gmean hmean entropy chisquare power_divergence": (positive(40) + 1,),
    "moment": (normal(40), 3),
    "pmean": (positive(40), 2),
    "ttest_1samp": (normal(40), 0.0),
    "pearsonr ttest_ind bartlett": (normal(40), normal(40)),
    "combine_pvalues": (shares(9),),
}


def each(names: dict[str, tuple[Any, ...]]) -> list[Any]:
    return [
        pytest.param(name, given, id=name) for many, given in names.items() for name in many.split()
    ]


@pytest.mark.parametrize("name, given", each(SPECIAL))
def test_scipy_special(name: str, given: tuple[Any, ...]) -> None:
    check(getattr(pytest.importorskip("scipy.special"), name), *given)


@pytest.mark.parametrize("name, given", each(STATS))
def test_scipy_stats(name: str, given: tuple[Any, ...]) -> None:
    check(getattr(pytest.importorskip("scipy.stats"), name), *given)


def test_scipy_cluster() -> None:
    vq = pytest.importorskip("scipy.cluster.vq")
    hierarchy = pytest.importorskip("scipy.cluster.hierarchy")
    points = normal(30, 4)
    check(vq.whiten, points)
    check(vq.vq, points, points[:3])
    check(hierarchy.linkage, points)


# ---- scikit-learn

TRUTH = random.integers(0, 2, 60)
GUESS = random.integers(0, 2, 60)
METRICS = {
    "accuracy_score zero_one_loss f1_score precision_score recall_score jaccard_score confusion_matrix "
    "multilabel_confusion_matrix hamming_loss cohen_kappa_score balanced_accuracy_score": (
        TRUTH,
        GUESS,
    ),
    "brier_score_loss log_loss roc_auc_score": (TRUTH, shares(60)),
    "mean_squared_error mean_absolute_error r2_score max_error mean_absolute_percentage_error "
    "median_absolute_error mean_tweedie_deviance explained_variance_score mean_pinball_loss "
    "mean_gamma_deviance mean_poisson_deviance mean_squared_log_error root_mean_squared_error": (
        positive(50),
        positive(50),
    ),
}
PAIRWISE = (
    "cosine_similarity cosine_distances euclidean_distances linear_kernel polynomial_kernel rbf_kernel "
    "sigmoid_kernel paired_cosine_distances paired_euclidean_distances manhattan_distances "
    "laplacian_kernel additive_chi2_kernel chi2_kernel"
)
SCALERS = "StandardScaler MinMaxScaler MaxAbsScaler Normalizer Binarizer PolynomialFeatures"


@pytest.fixture
def dispatching() -> Iterator[Any]:
    sklearn = pytest.importorskip("sklearn")
    with sklearn.config_context(array_api_dispatch=True):
        yield sklearn


@pytest.mark.parametrize("name, given", each(METRICS))
def test_scikit_learn_metrics(dispatching: Any, name: str, given: tuple[Any, ...]) -> None:
    check(getattr(pytest.importorskip("sklearn.metrics"), name), *given)


@pytest.mark.parametrize("name", PAIRWISE.split())
def test_scikit_learn_pairs(dispatching: Any, name: str) -> None:
    points = positive(20, 5)
    check(getattr(pytest.importorskip("sklearn.metrics.pairwise"), name), points, points)


@pytest.mark.parametrize("name", SCALERS.split())
def test_scikit_learn_scalers(dispatching: Any, name: str) -> None:
    scaler = getattr(pytest.importorskip("sklearn.preprocessing"), name)
    check(lambda x: scaler().fit_transform(x), normal(20, 5))


# ---- others

EXTRA = {
    "cov": (normal(4, 9),),
    "kron": (normal(2, 3), normal(3, 2)),
    "setdiff1d": (np.array([3, 1, 2]), np.array([2])),
    "sinc create_diagonal": (normal(7),),
    "nunique": (np.array([1, 2, 2]),),
    "isclose": (normal(4), normal(4)),
    "isin": (np.array([1, 2, 3]), np.array([2])),
    "pad": (normal(3, 4), 1),
    "one_hot": (np.array([1, 2]), 3),
}


@pytest.mark.parametrize("name, given", each(EXTRA))
def test_array_api_extra(name: str, given: tuple[Any, ...]) -> None:
    check(getattr(pytest.importorskip("array_api_extra"), name), *given)


def test_array_api_extra_assigns() -> None:
    at = pytest.importorskip("array_api_extra").at
    check(lambda x: at(x)[0, :].set(1.0, copy=True), normal(4, 4))
    check(lambda x: at(x)[x > 0].add(1.0, copy=True), normal(4, 4))


def test_einops() -> None:
    einops = pytest.importorskip("einops.array_api")
    x = normal(6, 10, 3)
    for call in (
        lambda e, x: e.rearrange(x, "(a b) c d -> b a (c d)", a=2),
        lambda e, x: e.reduce(x, "a (b c) d -> a c", "mean", b=5),
        lambda e, x: e.repeat(x, "a b c -> a r b c", r=3),
    ):
        expected = call(pytest.importorskip("einops"), x)
        np.testing.assert_allclose(np.asarray(call(einops, nt.asarray(x))), expected, rtol=1e-6)


def test_opt_einsum() -> None:
    contract = pytest.importorskip("opt_einsum").contract
    a, b, c = normal(3, 4), normal(4, 5), normal(5, 2)
    check(lambda *given: contract("ij,jk,kl->il", *given), a, b, c)
    check(lambda x: contract("ii->", x), normal(4, 4))
