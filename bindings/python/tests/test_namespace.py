"""What there is by which name, beside C++'s list of ops and the Python Array API standard."""

from __future__ import annotations

import inspect

import nitinol
import pytest
from nitinol import _ext

# ---- ops

# Ops that graphs contain and no function is named for: the function that applies them.
APPLIED_BY = {
    "check_fits": "add",  # an integer argument of a compiled function beside a narrow tensor
    "integer_pow": "pow",
    "transfer": "to",
    "conv2d_input": "conv2d",  # its gradients
    "conv2d_weight": "conv2d",
    "window_max": "max_pool2d",
    "window_max_input": "max_pool2d",
    "rand_f32": "random.rand",
    "rand_f64": "random.rand",
    "randn_f32": "random.randn",
    "randn_f64": "random.randn",
    "randint": "random.randint",
}


def found(name: str) -> object:
    value: object = nitinol
    for part in name.split("."):
        value = getattr(value, part, None)
    return value


def test_every_op_is_reachable() -> None:
    ops = [name for name, _, _ in _ext._all_ops()]
    assert len(ops) > 100
    missing = [name for name in ops if not callable(found(APPLIED_BY.get(name, name)))]
    assert missing == []
    assert set(APPLIED_BY) <= set(ops), "an op of the table is gone"


def test_every_op_has_a_kind_and_a_summary() -> None:
    kinds = {"elementwise", "reduce", "view", "index", "create", "library", "transfer", "composite"}
    for name, kind, summary in _ext._all_ops():
        assert kind in kinds, name
        assert summary.endswith("."), name


@pytest.mark.parametrize("entry", _ext._functions, ids=lambda entry: f"{entry[0]}.{entry[1]}")
def test_a_function_can_be_inspected_and_has_a_comment(entry: tuple) -> None:
    module, name, others, in_cpp = entry
    function = found(f"{module}.{name}".removeprefix("nitinol."))
    assert callable(function)
    assert function.__name__ == name
    assert function.__module__ == module
    assert function.__doc__ and function.__doc__[0].strip()
    assert "Error(" not in function.__doc__ and "Throws" not in function.__doc__
    assert inspect.signature(function).parameters
    for other in others:
        assert found(f"{module}.{other}".removeprefix("nitinol.")) is function


# ---- the standard (2024.12)

STANDARD = """
arange asarray empty empty_like eye from_dlpack full full_like linspace meshgrid ones ones_like tril
triu zeros zeros_like
astype can_cast finfo iinfo isdtype result_type
abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_invert
bitwise_or bitwise_right_shift bitwise_xor ceil clip conj copysign cos cosh divide equal exp expm1
floor floor_divide greater greater_equal hypot imag isfinite isinf isnan less less_equal log log1p
log2 log10 logaddexp logical_and logical_not logical_or logical_xor maximum minimum multiply
negative nextafter not_equal positive pow real reciprocal remainder round sign signbit sin sinh
square sqrt subtract tan tanh trunc
matmul matrix_transpose tensordot vecdot
broadcast_arrays broadcast_to concat expand_dims flip moveaxis permute_dims repeat reshape roll
squeeze stack tile unstack
argmax argmin count_nonzero nonzero searchsorted where
unique_all unique_counts unique_inverse unique_values
argsort sort
take take_along_axis
cumulative_prod cumulative_sum max mean min prod std sum var
all any diff
fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft
fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift
linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv
linalg.matmul linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.matrix_transpose
linalg.outer linalg.pinv linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals
linalg.tensordot linalg.trace linalg.vecdot linalg.vector_norm
""".split()

# A list that only becomes shorter.
MISSING = """
empty empty_like meshgrid tril triu
can_cast finfo iinfo isdtype result_type
acos acosh asin asinh atan atan2 atanh conj cosh hypot imag logaddexp nextafter positive real
signbit sinh
tensordot vecdot
broadcast_arrays moveaxis repeat roll tile unstack
count_nonzero nonzero searchsorted
unique_all unique_counts unique_inverse unique_values
argsort sort
cumulative_prod
diff
fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft
fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift
linalg.cholesky linalg.cross linalg.det linalg.diagonal linalg.eigh linalg.eigvalsh linalg.inv
linalg.matrix_norm linalg.matrix_power linalg.matrix_rank linalg.outer linalg.pinv linalg.qr
linalg.slogdet linalg.solve linalg.svd linalg.svdvals linalg.tensordot linalg.trace linalg.vecdot
linalg.vector_norm
""".split()


def test_the_standard_has_166_functions() -> None:
    assert len(STANDARD) - 4 == 166  # of linalg, four are the core's


def test_missing_names_are_those_of_the_list() -> None:
    missing = [name for name in STANDARD if not callable(found(name))]
    print(f"{len(STANDARD) - len(missing)} of {len(STANDARD)}; missing: {' '.join(missing)}")
    assert sorted(missing) == sorted(MISSING)


_operands = {
    "(x, /)": "abs bitwise_invert ceil cos exp expm1 floor isfinite isinf isnan log log1p log2 log10 "
    "logical_not matrix_transpose negative reciprocal round sign sin square sqrt tan tanh trunc",
    "(x1, x2, /)": "add bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor "
    "copysign divide equal floor_divide greater greater_equal less less_equal logical_and "
    "logical_or logical_xor matmul maximum minimum multiply not_equal pow remainder subtract",
    "(x, /, *, axis=None, keepdims=False)": "all any argmax argmin max mean min",
    "(x, /, *, axis=None, dtype=None, keepdims=False)": "prod sum",
    "(x, /, *, axis=None, correction=0.0, keepdims=False)": "std var",
    "(x, /, *, dtype=None, device=None)": "ones_like zeros_like",
    "(shape, *, dtype=None, device=None)": "ones zeros",
}
# As the standard writes them.
SIGNATURES = {
    **{name: signature for signature, names in _operands.items() for name in names.split()},
    "arange": "(start, /, stop=None, step=1, *, dtype=None, device=None)",
    "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
    "astype": "(x, dtype, /, *, copy=True, device=None)",
    "broadcast_to": "(x, /, shape)",
    "clip": "(x, /, min=None, max=None)",
    "concat": "(arrays, /, *, axis=0)",
    "cumulative_sum": "(x, /, *, axis=None, dtype=None, include_initial=False)",
    "expand_dims": "(x, /, *, axis=0)",
    "eye": "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)",
    "flip": "(x, /, *, axis=None)",
    "from_dlpack": "(x, /, *, device=None, copy=None)",
    "full": "(shape, fill_value, *, dtype=None, device=None)",
    "full_like": "(x, /, fill_value, *, dtype=None, device=None)",
    "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
    "permute_dims": "(x, /, axes)",
    "reshape": "(x, /, shape, *, copy=None)",
    "squeeze": "(x, /, axis)",
    "stack": "(arrays, /, *, axis=0)",
    "take": "(x, indices, /, *, axis)",
    "take_along_axis": "(x, indices, /, *, axis=-1)",
    "where": "(condition, x1, x2, /)",
}
# nanobind's functions have no signature that inspect reads. A list that only becomes shorter.
WITHOUT_SIGNATURE = {"asarray", "from_dlpack"}


def test_signatures_are_known_for_all_that_is_present() -> None:
    present = {name for name in STANDARD if callable(found(name)) and "." not in name}
    assert present == set(SIGNATURES)


def parameters_of(signature: str) -> list[inspect.Parameter]:
    scope: dict[str, object] = {}
    exec(f"def f{signature}: ...", scope)
    return list(inspect.signature(scope["f"]).parameters.values())


def stand_at(parameter: inspect.Parameter) -> bool:
    return parameter.kind != inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_signatures_take_what_the_standard_calls_with(name: str) -> None:
    if name in WITHOUT_SIGNATURE:  # nanobind's functions, which inspect knows from Python 3.13 on
        return
    ours = list(inspect.signature(found(name)).parameters.values())
    wanted = parameters_of(SIGNATURES[name])
    by_name = {p.name: p for p in ours if p.kind != inspect.Parameter.POSITIONAL_ONLY}
    places = [p for p in ours if stand_at(p)]
    for i, parameter in enumerate(wanted):
        same = places[i] if stand_at(parameter) else by_name[parameter.name]
        assert same.name == parameter.name
        if parameter.kind == inspect.Parameter.POSITIONAL_OR_KEYWORD:
            assert same.name in by_name
        if parameter.default is not inspect.Parameter.empty:
            assert same.default == parameter.default
            assert type(same.default) is type(parameter.default)
    extra = {p.name for p in ours} - {p.name for p in wanted}
    assert all(by_name[one].default is not inspect.Parameter.empty for one in extra)


# ---- how arguments are given


def test_arguments_are_refused_in_pythons_words() -> None:
    x = nitinol.ones((2, 3))
    for call, text in (
        (lambda: nitinol.sum(), "misses 'x'"),
        (lambda: nitinol.sum(x=x), "'x' by its position"),
        (lambda: nitinol.sum(x, dim=0), "no parameter 'dim'"),
        (lambda: nitinol.sum(x, 0, axis=0), "'axis' twice"),
        (lambda: nitinol.sum(x, 0, None), "at most 2 positional arguments, 3 were given"),
        (lambda: nitinol.sum(x, True), "sum: axis is a bool, True; expected"),
        (lambda: nitinol.sum(x, keepdims=1), "sum: keepdims is a int, 1; expected True or False"),
        (lambda: nitinol.full((2, 2)), "misses 'fill_value'"),
        (
            lambda: nitinol.batch_norm(x, weight=x, bias=x, mean=x),
            "mean and variance are given together or not at all",
        ),
    ):
        with pytest.raises(TypeError) as refused:
            call()
        assert text in str(refused.value)


def test_none_stands_for_a_default_of_none_only() -> None:
    x = nitinol.ones((2, 3))
    assert nitinol.sum(x, axis=None).shape == ()
    assert nitinol.zeros((2,), dtype=None).dtype == nitinol.float32
    with pytest.raises(TypeError):
        nitinol.softmax(x, axis=None)


def test_names_of_arguments_need_not_be_interned() -> None:
    name = "".join(["ax", "is"])
    assert nitinol.sum(nitinol.ones((2, 3)), **{name: 0}).shape == (3,)
