"""What there is by which name, beside C++'s list of ops and the Python Array API standard."""

from __future__ import annotations

import copy
import inspect
import pickle
import re
from typing import Any, Iterator

import nitinol
import pytest
from nitinol import _ext

# Nothing is checked of what is wrong on purpose.
untyped: Any = nitinol

# ---- ops

# Ops that graphs contain and no function is named for: the function that applies them.
APPLIED_BY = {
    "batch_mean": "batch_norm",
    "batch_shift": "batch_norm",
    "batch_variance": "batch_norm",
    "check_fits": "add",  # an integer argument of a compiled function beside a narrow tensor
    "gelu_slope": "gelu",  # its gradient
    "huber": "nn.huber_loss",
    "integer_pow": "pow",
    "take_along": "take",
    "transfer": "to",
    "conv2d_input": "conv2d",  # its gradients
    "conv2d_weight": "conv2d",
    "window_max": "max_pool2d",
    "window_max_input": "max_pool2d",
    "log_likelihood": "nn.cross_entropy",
    "log_likelihood_gradient": "nn.cross_entropy",
    "rand_f32": "random.rand",
    "rand_f64": "random.rand",
    "randn_f32": "random.randn",
    "randn_f64": "random.randn",
    "randint": "random.randint",
    "permutation": "random.permutation",
    "rank_broadcast": "dist.broadcast",
    "rank_exchange": "dist.all_to_all",
    "rank_gather": "dist.all_gather",
    "rank_permute": "dist.permute",
    "rank_reduce": "dist.all_reduce",
}


def found(name: str) -> Any:
    value: Any = nitinol
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
def test_a_function_can_be_inspected_and_has_a_comment(
    entry: tuple[str, str, list[str], str],
) -> None:
    module, name, others, in_cpp = entry
    function = found(f"{module}.{name}".removeprefix("nitinol."))
    assert callable(function)
    assert function.__name__ == name
    assert function.__module__ == module
    assert function.__doc__ and function.__doc__[0].strip()
    assert "Error(" not in function.__doc__ and "hrow" not in function.__doc__
    assert not re.search(r"^(They|These)\b|[{}]|::|, keepdims\)", function.__doc__, re.MULTILINE)
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
fft.fft fft.ifft fft.fftn fft.ifftn fft.rfft fft.irfft fft.rfftn fft.irfftn fft.hfft fft.ihfft
fft.fftfreq fft.rfftfreq fft.fftshift fft.ifftshift
linalg.cholesky linalg.det linalg.eigh linalg.eigvalsh linalg.inv linalg.matrix_rank linalg.pinv
linalg.qr linalg.slogdet linalg.solve linalg.svd linalg.svdvals
""".split()


def test_the_standard_has_166_functions() -> None:
    assert len(STANDARD) - 4 == 166  # of linalg, four are the core's


def test_missing_names_are_those_of_the_list() -> None:
    missing = [name for name in STANDARD if not callable(found(name))]
    print(f"{len(STANDARD) - len(missing)} of {len(STANDARD)}; missing: {' '.join(missing)}")
    assert sorted(missing) == sorted(MISSING)


_operands = {
    "(x, /)": "abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor "
    "imag isfinite isinf isnan log log1p log2 log10 logical_not matrix_transpose negative positive "
    "real reciprocal round sign signbit sin sinh square sqrt tan tanh trunc",
    "(x1, x2, /)": "add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift "
    "bitwise_xor copysign divide equal floor_divide greater greater_equal hypot less less_equal "
    "logaddexp logical_and logical_or logical_xor matmul maximum minimum multiply nextafter "
    "not_equal pow remainder subtract",
    "(x, /, *, axis=None, keepdims=False)": "all any argmax argmin max mean min",
    "(x, /, *, axis=None, dtype=None, keepdims=False)": "prod sum",
    "(x, /, *, axis=None, correction=0.0, keepdims=False)": "std var",
    "(x, /, *, dtype=None, device=None)": "ones_like zeros_like",
    "(shape, *, dtype=None, device=None)": "ones zeros",
}
# As the standard writes them.
SIGNATURES = {
    **{name: signature for signature, names in _operands.items() for name in names.split()},
    "argsort": "(x, /, *, axis=-1, descending=False, stable=True)",
    "broadcast_arrays": "(*arrays)",
    "count_nonzero": "(x, /, *, axis=None, keepdims=False)",
    "cumulative_prod": "(x, /, *, axis=None, dtype=None, include_initial=False)",
    "empty": "(shape, *, dtype=None, device=None)",
    "empty_like": "(x, /, *, dtype=None, device=None)",
    "meshgrid": "(*arrays, indexing='xy')",
    "nonzero": "(x, /)",
    "searchsorted": "(x1, x2, /, *, side='left', sorter=None)",
    "sort": "(x, /, *, axis=-1, descending=False, stable=True)",
    "tensordot": "(x1, x2, /, *, axes=2)",
    "unique_all": "(x, /)",
    "unique_counts": "(x, /)",
    "unique_inverse": "(x, /)",
    "unique_values": "(x, /)",
    "vecdot": "(x1, x2, /, *, axis=-1)",
    "arange": "(start, /, stop=None, step=1, *, dtype=None, device=None)",
    "asarray": "(obj, /, *, dtype=None, device=None, copy=None)",
    "astype": "(x, dtype, /, *, copy=True, device=None)",
    "broadcast_to": "(x, /, shape)",
    "can_cast": "(from_, to, /)",
    "clip": "(x, /, min=None, max=None)",
    "concat": "(arrays, /, *, axis=0)",
    "cumulative_sum": "(x, /, *, axis=None, dtype=None, include_initial=False)",
    "diff": "(x, /, *, axis=-1, n=1, prepend=None, append=None)",
    "expand_dims": "(x, /, *, axis=0)",
    "eye": "(n_rows, n_cols=None, /, *, k=0, dtype=None, device=None)",
    "finfo": "(type, /)",
    "flip": "(x, /, *, axis=None)",
    "from_dlpack": "(x, /, *, device=None, copy=None)",
    "full": "(shape, fill_value, *, dtype=None, device=None)",
    "full_like": "(x, /, fill_value, *, dtype=None, device=None)",
    "iinfo": "(type, /)",
    "isdtype": "(dtype, kind)",
    "linspace": "(start, stop, /, num, *, dtype=None, device=None, endpoint=True)",
    "moveaxis": "(x, source, destination, /)",
    "permute_dims": "(x, /, axes)",
    "repeat": "(x, /, repeats, *, axis=None)",
    "reshape": "(x, /, shape, *, copy=None)",
    "result_type": "(*arrays_and_dtypes)",
    "roll": "(x, /, shift, *, axis=None)",
    "squeeze": "(x, /, axis)",
    "stack": "(arrays, /, *, axis=0)",
    "take": "(x, indices, /, *, axis)",
    "take_along_axis": "(x, indices, /, *, axis=-1)",
    "tile": "(x, repetitions, /)",
    "tril": "(x, /, *, k=0)",
    "triu": "(x, /, *, k=0)",
    "unstack": "(x, /, *, axis=0)",
    "where": "(condition, x1=None, x2=None, /)",
}


def test_signatures_are_known_for_all_that_is_present() -> None:
    present = {name for name in STANDARD if callable(found(name)) and "." not in name}
    assert present == set(SIGNATURES)


def parameters_of(signature: str) -> list[inspect.Parameter]:
    scope: dict[str, Any] = {}
    exec(f"def f{signature}: ...", scope)
    return list(inspect.signature(scope["f"]).parameters.values())


def stand_at(parameter: inspect.Parameter) -> bool:
    return parameter.kind != inspect.Parameter.KEYWORD_ONLY


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_signatures_take_what_the_standard_calls_with(name: str) -> None:
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


# ---- what is bound by hand

MODULES = (nitinol, nitinol.dist, nitinol.linalg, nitinol.nn, nitinol.random)
# Classes whose objects users are given.
NOT_MADE = {nitinol.Compiled, nitinol.dist.Group, nitinol.nn.Optimizer, nitinol.nn.Schedule}


def public_callables() -> Iterator[tuple[str, Any]]:
    for module in MODULES:
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or (isinstance(value, type) and issubclass(value, Exception)):
                continue
            if value not in NOT_MADE:
                yield name, value
            if isinstance(value, type):
                methods = {n: m for n, m in vars(value).items() if not n.startswith("_")}
                yield from ((f"{name}.{n}", m) for n, m in methods.items() if callable(m))


def test_parameters_of_all_functions_and_methods_are_known() -> None:
    all_of_them = dict(public_callables())
    assert len(all_of_them) > 200 and "Tensor.to" in all_of_them
    for name, value in all_of_them.items():
        assert isinstance(inspect.signature(value), inspect.Signature), name


def test_signatures_of_what_is_bound_by_hand() -> None:
    def text(value: Any) -> str:
        signature = inspect.signature(value)
        bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
        return str(inspect.Signature(bare))

    nn = nitinol.nn
    x = nitinol.ones((2,))
    assert text(nn.Adam) == (
        "(parameters, *, rate=0.001, beta1=0.9, beta2=0.999, eps=1e-08, weight_decay=0.0, "
        "amsgrad=False, maximize=False)"
    )
    assert text(nn.cosine_decay) == "(rate, steps, last=0.0)"
    assert text(nn.Optimizer.set_rate) == "(self, rate)"
    assert text(nn.Progress) == "(name, steps, items=1, unit='steps')"
    assert text(nitinol.Tensor.to) == "(self, *targets)"
    assert text(x.to) == "(*targets)"
    assert text(nitinol.Tensor) == "(obj)"
    assert text(nitinol.Variable) == "(initial)"
    assert str(inspect.signature(nn.warm_up)) == "(steps: 'int', then: 'Schedule') -> 'Schedule'"

    @nitinol.compile
    def f(x: object, scale: float = 2.0) -> None: ...

    assert text(f) == "(x, scale=2.0)"


def test_functions_bound_by_hand_are_as_pythons() -> None:
    function, x = nitinol.asarray, nitinol.ones((2,))
    assert function.__name__ == function.__qualname__ == "asarray"
    assert function.__doc__ and "A tensor of numbers" in function.__doc__
    assert inspect.isroutine(nitinol.Tensor.to) and inspect.isroutine(x.to)
    assert pickle.loads(pickle.dumps(function)) is function
    assert copy.deepcopy([function])[0] is function
    assert [*map(nitinol.Tensor.item, [nitinol.ones(())])] == [1.0]

    class Holder:
        made = nitinol.asarray
        to = nitinol.Tensor.to

    holder: Any = Holder()
    assert holder.made(3).item() == 3  # no method of Holder's
    with pytest.raises(TypeError):
        holder.to("cpu:0")


def test_dir_shows_what_there_is_to_use() -> None:
    for module in MODULES:
        assert sorted(dir(module)) == sorted(set(module.__all__))
        for name in module.__all__:
            assert hasattr(module, name)
    assert not {"Any", "copyreg", "os", "ModuleBase"} & set(dir(nitinol.nn))
    assert {"asarray", "compile", "nn", "float32", "bool"} <= set(dir(nitinol))


def test_linalg_has_what_the_standard_has_there() -> None:
    of_both = [name.removeprefix("linalg.") for name in STANDARD if name.startswith("linalg.")]
    assert [n for n in of_both if hasattr(nitinol, n)] == nitinol.linalg.__all__


# ---- how arguments are given


def test_arguments_are_refused_in_pythons_words() -> None:
    x = nitinol.ones((2, 3))
    for call, text in (
        (lambda: untyped.sum(), "misses 'x'"),
        (lambda: untyped.sum(x=x), "'x' by its position"),
        (lambda: untyped.sum(x, way=0), "no parameter 'way'"),
        (lambda: untyped.sum(x, 0, axis=0), "'axis' twice"),
        (lambda: untyped.sum(x, 0, None), "at most 2 positional arguments, 3 were given"),
        (lambda: untyped.sum(x, True), "sum: axis is a bool, True; expected"),
        (lambda: untyped.sum(x, keepdims=1), "sum: keepdims is an int, 1; expected True or False"),
        (
            lambda: untyped.random.choice(3, (2,), replace=False),
            "choice() has no parameter 'replace'; here it is 'replaces'",
        ),
        (lambda: untyped.full((2, 2)), "misses 'fill_value'"),
        (
            lambda: nitinol.batch_norm(x, weight=x, bias=x, mean=x),
            "mean and variance are given together or not at all",
        ),
    ):
        with pytest.raises(TypeError) as refused:
            call()
        assert text in str(refused.value)


def test_constructors_and_methods_refuse_arguments_as_functions_do() -> None:
    nn, x = untyped.nn, nitinol.ones((2, 3))
    w = nitinol.parameter(x)
    adam = nn.Adam([w])
    for call, text in (
        (lambda: nn.Adam([w], 0.05), "Adam() takes at most 1 positional argument, 2 were given"),
        (lambda: nn.Adam([w], 0.05), "Give others by name: Adam(..., rate=...)"),
        (lambda: nn.Adam(), "Adam() misses 'parameters'"),
        (lambda: nn.Adam([w], rate="a"), "Adam: rate is a str, 'a'; expected a number"),
        (lambda: adam.add([w], 0.05), "add() takes at most 1 positional argument"),
        (lambda: adam.zero_grad(1), "zero_grad() takes no positional arguments, 1 was given"),
        (lambda: adam.step("a"), "Optimizer.step: when is a str, 'a'; expected a Tensor"),
        (lambda: nn.autocast("fast"), "autocast: dtype is a str, 'fast'; expected a dtype"),
        (lambda: nn.LossScale(8), "LossScale(..., initial=...)"),
        (lambda: adam.rate("a"), "rate: group is a str, 'a'; expected an integer"),
        (lambda: adam.set_rate(lr=1.0), "set_rate() has no parameter 'lr'; here it is 'rate'"),
        (lambda: nn.DataLoader(x, 32, False), "DataLoader(..., shuffle=...)"),
        (lambda: nn.DataLoader(x, shuffle=1), "shuffle is an int, 1; expected True or False"),
        (lambda: nn.Progress("a"), "Progress() misses 'steps'"),
        (lambda: nn.Schedule(), "step_decay()"),
        (lambda: nn.Optimizer(), "make one of Sgd"),
        (lambda: nn.warm_up(3, 4), "warm_up: then is an int, 4; expected a Schedule"),
        (lambda: nn.cosine_decay(1, 2)("a"), "step is a str, 'a'; expected an integer"),
        (lambda: untyped.Tensor(), "Tensor() misses 'obj'"),
        (lambda: untyped.Variable(1, 2), "Variable() takes at most 1 positional argument"),
        (lambda: untyped.random.Generator(), "Generator() misses 'seed'"),
        (lambda: untyped.HostValue(1, nam="a"), "HostValue() has no parameter 'nam'"),
        (lambda: untyped.stance(3), "stance: name is an int, 3; expected a str"),
        (lambda: untyped.save_npy(None, x), "save_npy: path is None; expected a str or a path"),
        (lambda: untyped.asarray(1, nitinol.int8), "asarray(..., dtype=...)"),
        (lambda: untyped.set_num_threads(1.5), "count is a float, 1.5; expected an integer"),
        (lambda: untyped.Tensor.item(3), "the object is an int, 3; expected a Tensor"),
        (lambda: untyped.promote(nitinol.int8, 2), "promote: b is an int, 2; expected a dtype"),
    ):
        with pytest.raises(TypeError) as refused:
            call()
        assert text in str(refused.value)


def test_no_refusal_is_a_list_of_types_of_cpp() -> None:
    x = nitinol.ones((2, 3))
    owners: list[Any] = [
        nitinol, nitinol.dist, nitinol.nn, nitinol.random, nitinol.linalg, nitinol.dist.world(), x, nitinol.parameter(x), nitinol.Scalar(1.0),
        nitinol.random.Generator(0), nitinol.HostValue(1), nitinol.Device("cpu"), nitinol.stance("normal"),
        nitinol.nn.Sgd([nitinol.parameter(x)]), nitinol.nn.step_decay(1, 1), nitinol.nn.DataLoader(x),
        nitinol.nn.Average([nitinol.parameter(x)]), nitinol.nn.Plateau(1.0),
        nitinol.nn.Progress("a", 1), nitinol.compile(lambda x: x), nitinol.float32,
    ]  # fmt: skip
    count = 0
    for owner in owners:
        for name in dir(owner):
            value = getattr(owner, name, None)
            is_left = name.startswith("_") and name != "__call__"
            if is_left or not callable(value) or isinstance(value, type(nitinol)):
                continue
            for positional, named in (((object(),) * 20, {}), ((), {"no_such": 1}), ((None,), {})):
                try:
                    value(*positional, **named)
                except Exception as error:
                    count += 1
                    text = str(error)
                    assert "incompatible function" not in text and "nitinol._ext" not in text, name
    assert count > 500


@pytest.mark.parametrize(
    "of",
    [
        nitinol.Tensor, nitinol.Variable, nitinol.Scalar, nitinol.Device, nitinol.Generator,
        nitinol.HostValue, nitinol.Compiled,
    ],
)  # fmt: skip
def test_classes_that_have_no_subclasses_say_what_to_do_instead(of: type) -> None:
    text = f"{of.__name__}: no class can derive from it.* got the class Mine.\n.*an attribute"
    with pytest.raises(TypeError, match=text):
        type("Mine", (of,), {})


@pytest.mark.parametrize(
    "call, here",
    [
        (lambda x: untyped.sum(x, dim=0), "'axis'"),
        (lambda x: x.sum(dim=0), "'axis'"),
        (lambda x: untyped.permute_dims(x, dims=(1, 0)), "'axes'"),
        (lambda x: x.max(keepdim=True), "'keepdims'"),
        (lambda x: untyped.zeros(size=(2,)), "'shape'"),
        (lambda x: untyped.nn.Adam([nitinol.parameter(x)], lr=1e-3), "'rate'"),
        (lambda x: untyped.nn.Sgd([nitinol.parameter(x)]).add([], learning_rate=1.0), "'rate'"),
        (lambda x: untyped.nn.Dropout(p=0.5), "Dropout() has no parameter 'p'; here it is 'rate'"),
        (lambda x: untyped.nn.MaxPool2d(kernel=2), "MaxPool2d() has no parameter 'kernel'; here"),
        (lambda x: untyped.nn.Conv2d(1, 2, 3, padding="same"), "is_same=True"),
        (lambda x: untyped.interpolate(x, scale_factor=2), "here it is 'size'"),
        (lambda x: untyped.zeros(2, 3), "zeros() takes its shape as one argument, a tuple"),
        (lambda x: untyped.random.rand(2, 3, 4), "rand() takes its shape as one argument"),
        (lambda x: untyped.random.randint(0, 9, 2, 3), "its shape as one argument"),
        (lambda x: untyped.permute_dims(x, 1, 0), "takes its axes as one argument"),
    ],
)
def test_what_others_call_it_is_answered_with_what_it_is_here(call: Any, here: str) -> None:
    with pytest.raises(TypeError) as refused:
        call(nitinol.ones((2, 3)))
    assert here in str(refused.value)


def test_shapes_and_dtypes_are_given_by_position_as_before() -> None:
    assert nitinol.zeros((2,), nitinol.int64).dtype == nitinol.int64
    assert nitinol.full(2, 3).tolist() == [3, 3]
    assert nitinol.random.rand((2, 3)).shape == (2, 3)


def test_names_of_other_libraries_lead_to_ours() -> None:
    with pytest.raises(AttributeError, match="'tensor'; here it is nitinol.asarray$"):
        untyped.tensor
    with pytest.raises(AttributeError, match="'array'; here it is nitinol.asarray$"):
        untyped.array
    with pytest.raises(AttributeError, match="here it is nitinol.random.randn$"):
        untyped.random.standard_normal((2, 3))
    # Of each module, what another one has.
    with pytest.raises(AttributeError, match="'softmax'; here it is nitinol.softmax$"):
        untyped.nn.softmax
    with pytest.raises(
        AttributeError, match="'cross_entropy'; here it is nitinol.nn.cross_entropy$"
    ):
        untyped.cross_entropy
    with pytest.raises(AttributeError, match="'dot'; here it is"):
        untyped.linalg.dot
    with pytest.raises(AttributeError, match="'functional'; here it is nitinol, and nitinol.nn"):
        untyped.nn.functional
    for module in (untyped, untyped.nn, untyped.random, untyped.linalg, untyped.dist):
        with pytest.raises(AttributeError, match="has no attribute 'nothing'$"):
            module.nothing
    for module, name, here in _ext._elsewhere():
        if not module:
            continue
        assert not hasattr(found(module.removeprefix("nitinol.")) or nitinol, name), name
        if path := re.fullmatch(r"nitinol\.([\w.]+)", here):
            assert found(path[1]) is not None, here


def test_parameters_of_other_libraries_lead_to_ours() -> None:
    ours = {p for _, value in public_callables() for p in inspect.signature(value).parameters}
    for module, name, here in _ext._elsewhere():
        assert module or here in ours, (name, here)


def test_none_stands_for_a_default_of_none_only() -> None:
    x = nitinol.ones((2, 3))
    assert nitinol.sum(x, axis=None).shape == ()
    assert nitinol.zeros((2,), dtype=None).dtype == nitinol.float32
    with pytest.raises(TypeError):
        untyped.softmax(x, axis=None)


def test_names_of_arguments_need_not_be_interned() -> None:
    given: dict[str, Any] = {"".join(["ax", "is"]): 0}
    assert nitinol.sum(nitinol.ones((2, 3)), **given).shape == (3,)


def test_classes_have_signatures_of_their_own() -> None:
    # Python before 3.11.3, Debian 12's, asks for nothing else.
    for made in (nitinol.Device, nitinol.nn.Adam, nitinol.random.Generator):
        assert inspect.signature(made) == made.__signature__
        assert "self" not in made.__signature__.parameters
    assert not hasattr(nitinol.Device("cpu"), "__signature__")
