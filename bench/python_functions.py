"""Functions one by one from Python, eager and compiled, beside PyTorch's on the same data: a map of
where we are slower, over the width of the vocabulary.

    python bench/python_functions.py --rows roll lerp "take" --threads 1

Each library runs in a process of its own, in turns; a figure is the least of the rounds, in
microseconds, and a ratio above 1 means that PyTorch was faster. Worst rows come first. --edge 32
shows what a call costs, --edge 4096 memory; with --gradients a row is a function's value and its
gradient by every operand of floats; with --transposed matrices lie column after column, and --dtype
float16 is that of x, y and a row. Needs PyTorch, and our package: PYTHONPATH=build/release/python,
or the wheel. Where PyTorch lives in another environment, --torch-python names its interpreter.
"""

import argparse
import json
import subprocess
import sys
import time

# Functions of x alone (or of numbers that suit them), elementwise. Ours have PyTorch's names.
UNARY = {
    "x": "abs exp expm1 sigmoid relu sin cos tan atan sinh cosh tanh asinh floor ceil round trunc sign square "
    "reciprocal isnan isinf isfinite signbit erf erfc nan_to_num",
    "positive": "log log1p log2 log10 sqrt rsqrt lgamma digamma",
    "fraction": "asin acos atanh erfinv",
}
BINARY = "add subtract multiply divide maximum minimum atan2 hypot logaddexp fmod remainder floor_divide fmax fmin"
REDUCED = "sum prod mean var std argmax argmin logsumexp"
F = "T.nn.functional."

# row: PyTorch's expression, ours where it differs (T is the module, C lays out anew, N the edge)
ROWS = {
    "pow": ("T.pow(positive, y)",),
    "where": ("T.where(mask, x, y)",),
    "clip": ("T.clamp(x, -0.5, 0.5)", "T.clip(x, -0.5, 0.5)"),
    "lerp": ("T.lerp(x, y, 0.3)",),
    "less": ("x < y",),
    "add.row": ("x + row",),
    "add.column": ("x + row[:, None]",),
    "chain": ("T.tanh(x * 2 + y) * T.sigmoid(y) - x",),
    "isclose": ("T.isclose(x, y)",),
    "int.add": ("i + i",),
    "int.floor_divide": ("i // 7",),
    "int.remainder": ("i % 7",),
    "int.square": ("i ** 2",),
    "int.sum.0": ("T.sum(i, dim=0)", "T.sum(i, axis=0)"),
    "int.max.1": ("T.amax(i, dim=1)", "T.max(i, axis=1)"),
    "int.count": ("T.count_nonzero(i)",),
    "f16.neg": ("-half",),
    "f16.mul": ("half * half",),
    "bf16.add": ("bfloat + bfloat",),
    "cast.f16": ("x.half()", "T.astype(x, T.float16)"),
    "cast.bf16": ("x.bfloat16()", "T.astype(x, T.bfloat16)"),
    "cast.f64": ("x.double()", "T.astype(x, T.float64)"),
    "cast.int.bf16": ("i.bfloat16()", "T.astype(i, T.bfloat16)"),
    "cast.int.f16": ("i.half()", "T.astype(i, T.float16)"),
    "cast.i8": ("x.to(T.int8)", "T.astype(x, T.int8)"),
    "cast.i16": ("x.to(T.int16)", "T.astype(x, T.int16)"),
    "cast.bool": ("mask.float()", "T.astype(mask, T.float32)"),
    "full": ("T.full((N, N), 2.0)",),
    "zeros": ("T.zeros((N, N))",),
    "eye": ("T.eye(N)",),
    "arange": ("T.arange(N * N)",),
    "linspace": ("T.linspace(0, 1, N * N)",),
    "roll.0": ("T.roll(x, 7, 0)", "T.roll(x, 7, axis=0)"),
    "roll.1": ("T.roll(x, 7, 1)", "T.roll(x, 7, axis=1)"),
    "flip.1": ("T.flip(x, [1])", "C(T.flip(x, axis=1))"),
    "transpose": ("x.T.contiguous()", "C(x.T)"),
    "slice": ("x[::2, ::2].contiguous()", "C(x[::2, ::2])"),
    "concat.0": ("T.cat([x, y], 0)", "T.concat([x, y], axis=0)"),
    "concat.1": ("T.cat([x, y], 1)", "T.concat([x, y], axis=1)"),
    "stack.last": ("T.stack([x, y], -1)", "T.stack([x, y], axis=-1)"),
    "tile": ("T.tile(x, (2, 2))", "C(T.tile(x, (2, 2)))"),
    "repeat.1": ("T.repeat_interleave(x, 2, 1)", "C(T.repeat(x, 2, axis=1))"),
    "tril": ("T.tril(x)",),
    "pad": (F + "pad(x, (1, 1, 1, 1))", "T.pad(x, ((1, 1), (1, 1)))"),
    "pad.reflect": (
        F + "pad(x[None], (1, 1, 1, 1), mode='reflect')",
        "T.pad(x, ((1, 1), (1, 1)), mode='reflect')",
    ),
    "take.0": ("T.index_select(x, 0, k)", "T.take(x, k, axis=0)"),
    "take.1": ("T.index_select(x, 1, k)", "T.take(x, k, axis=1)"),
    "gather.0": ("T.gather(x, 0, g)", "T.take_along_axis(x, g, axis=0)"),
    "gather.1": ("T.gather(x, 1, g)", "T.take_along_axis(x, g, axis=1)"),
    "index_add": ("T.index_add(x, 0, k, y)", "x.at[k].add(y)"),
    "mask.select": ("x[mask]",),
    "mask.nonzero": ("T.nonzero(mask)",),
    "mask.fill": ("T.masked_fill(x, mask, 0.0)",),
    "any.1": ("T.any(mask, dim=1)", "T.any(mask, axis=1)"),
    "sum.all": ("T.sum(x)",),
    "max.all": ("T.max(x)",),
    "count_nonzero": ("T.count_nonzero(x)",),
    "norm.1": ("T.linalg.vector_norm(x, dim=1)", "T.linalg.vector_norm(x, axis=1)"),
    "cumsum.1": ("T.cumsum(x, 1)", "T.cumulative_sum(x, axis=1)"),
    "cumsum.0": ("T.cumsum(x, 0)", "T.cumulative_sum(x, axis=0)"),
    "cumprod.1": ("T.cumprod(x, 1)", "T.cumulative_prod(x, axis=1)"),
    "cummax.1": ("T.cummax(x, 1)[0]", "T.cummax(x, axis=1)"),
    "logcumsumexp.1": ("T.logcumsumexp(x, 1)", "T.logcumsumexp(x, axis=1)"),
    "softmax.0": ("T.softmax(x, 0)",),
    "softmax.1": ("T.softmax(x, 1)",),
    "sort.1": ("T.sort(x, 1)[0]", "T.sort(x, axis=1)"),
    "sort.flat": ("T.sort(x.reshape(-1))[0]", "T.sort(x.reshape(-1))"),
    "topk": ("T.topk(x, 8, 1)[0]", "T.topk(x, 8, axis=1)[0]"),
    "median.1": ("T.median(x, 1)[0]", "T.median(x, axis=1)"),
    "unique": ("T.unique(i)", "T.unique_values(i)"),
    "bincount": ("T.bincount(i.reshape(-1), minlength=1000)",),
    "histogram": ("T.histc(x, 64, -3, 3)", "T.histogram(x, 64, -3, 3)"),
    "searchsorted": ("T.searchsorted(row.sort()[0], x)", "T.searchsorted(T.sort(row), x)"),
    "matmul": ("x @ y",),
    "matvec": ("x @ row",),
    "outer": ("T.outer(row, row)", "T.linalg.outer(row, row)"),
    "dot": ("T.dot(x.reshape(-1), y.reshape(-1))", "T.vecdot(x.reshape(-1), y.reshape(-1))"),
    "cross": ("T.linalg.cross(points, points + 1)",),
    "rand": ("T.rand(N, N)", "T.random.rand((N, N))"),
    "randn": ("T.randn(N, N)", "T.random.randn((N, N))"),
    "permutation": ("T.randperm(N * N)", "T.random.permutation(N * N)"),
    "gelu": (F + "gelu(x)", "T.gelu(x)"),
    "silu": (F + "silu(x)", "T.silu(x)"),
    "leaky_relu": (F + "leaky_relu(x, 0.1)", "T.leaky_relu(x, 0.1)"),
    "glu": (F + "glu(x)", "T.glu(x)"),
    "layer_norm": (F + "layer_norm(x, (N,))", "T.layer_norm(x)"),
    "mse_loss": (F + "mse_loss(x, y)", "T.nn.mse_loss(x, y)"),
    "huber_loss": (F + "huber_loss(x, y)", "T.nn.huber_loss(x, y)"),
    "cross_entropy": (F + "cross_entropy(x, k)", "T.nn.cross_entropy(x, k)"),
    "conv2d": (F + "conv2d(images, filters)", "T.conv2d(images, filters)"),
    "max_pool": (F + "max_pool2d(images, 2)", "T.max_pool2d(images, 2)"),
}
for operand, names in UNARY.items():
    ROWS |= {name: (f"T.{name}({operand})",) for name in names.split()}
ROWS |= {name: (f"T.{name}(x, y)",) for name in BINARY.split()}
for name in REDUCED.split():
    ROWS |= {f"{name}.{k}": (f"T.{name}(x, dim={k})", f"T.{name}(x, axis={k})") for k in (0, 1)}


def data(edge):
    import numpy as np

    random = np.random.default_rng(0)

    def normal(*shape):
        return random.standard_normal(shape).astype("f4")

    x = normal(edge, edge)
    images = max(1, edge * edge // 2**17)
    return {
        "x": x,
        "y": normal(edge, edge),
        "positive": np.abs(x) + 0.1,
        "fraction": np.tanh(x) * 0.9,
        "row": normal(edge),
        "mask": x < 0,
        "i": random.integers(0, 1000, (edge, edge)),
        "k": random.integers(0, edge, edge),
        "g": random.integers(0, edge, (edge, edge)),
        "points": normal(edge * edge // 10, 3),
        "images": normal(images, 32, 56, 56),
        "filters": normal(32, 32, 3, 3),
    }


def arranged(values, options, cast):
    """What options ask of these tensors of either library."""
    for name in "x", "y", "positive", "fraction", "row":
        values[name] = cast(values[name], options.dtype)
    if options.transposed:
        for name, value in values.items():
            if len(value.shape) == 2 and name != "points":
                values[name] = value.T
    return values


def microseconds(call):
    call()
    start = time.perf_counter()
    call()
    count = max(1, min(1000, int(0.02 / (time.perf_counter() - start))))
    least = float("inf")
    for _ in range(3):
        start = time.perf_counter()
        for _ in range(count):
            call()
        least = min(least, time.perf_counter() - start)
    return least / count * 1e6


def theirs(rows, options):
    import torch

    torch.set_num_threads(options.threads)
    values = {name: torch.from_numpy(value) for name, value in data(options.edge).items()}
    values = arranged(values, options, lambda value, dtype: value.to(getattr(torch, dtype)))
    values |= {"half": values["x"].half(), "bfloat": values["x"].bfloat16()}
    values |= {"T": torch, "N": options.edge}
    times = {}
    for row in rows:
        code = compile(ROWS[row][0], row, "eval")
        if not options.gradients:
            times[row] = [microseconds(lambda: eval(code, values))]
            continue
        floats = {name: values[name] for name in code.co_names if is_float(values.get(name))}
        leaves = {name: value.detach().requires_grad_() for name, value in floats.items()}
        operands = values | leaves
        if not leaves or not eval(code, operands).requires_grad:
            continue
        inputs = list(leaves.values())

        def gradient():
            return torch.autograd.grad(eval(code, operands).sum(), inputs, allow_unused=True)

        times[row] = [microseconds(gradient)]
    return times


def ours(rows, options):
    import nitinol

    nitinol.set_num_threads(options.threads)
    values = {name: nitinol.asarray(value) for name, value in data(options.edge).items()}
    cast = lambda value, dtype: nitinol.astype(value, getattr(nitinol, dtype))  # noqa: E731
    values = arranged(values, options, cast)
    values |= {"half": nitinol.astype(values["x"], nitinol.float16)}
    values |= {"bfloat": nitinol.astype(values["x"], nitinol.bfloat16)}
    functions = {"T": nitinol, "C": nitinol.copy, "N": options.edge}
    times = {}
    for row in rows:
        text = ROWS[row][-1]
        names = [name for name in compile(text, row, "eval").co_names if name in values]
        function = eval(f"lambda {', '.join(names)}: {text}", functions)
        if options.gradients:
            function = gradients(function, [k for k, n in enumerate(names) if is_float(values[n])])
        arguments = [values[name] for name in names]
        compiled = nitinol.compile(function)
        for _ in range(4):
            compiled(*arguments)
        times[row] = [
            microseconds(lambda: function(*arguments)),
            microseconds(lambda: compiled(*arguments)),
        ]
    return times


def is_float(value):
    return "float" in str(getattr(value, "dtype", ""))


def gradients(function, numbers):
    import nitinol

    return nitinol.grad(lambda *operands: nitinol.sum(function(*operands)), argnums=numbers)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", nargs="+", default=[""], help="prefixes of rows' names")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument(
        "--edge", type=int, default=1024, help="arrays are of edge rows and columns"
    )
    parser.add_argument("--gradients", action="store_true", help="value and gradient of each row")
    parser.add_argument(
        "--transposed", action="store_true", help="matrices lie column after column"
    )
    parser.add_argument(
        "--dtype", choices=["float16", "bfloat16", "float32", "float64"], default="float32"
    )
    parser.add_argument(
        "--torch-python", default=sys.executable, help="the interpreter that has PyTorch"
    )
    parser.add_argument("--child", choices=["torch", "nitinol"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    rows = [row for row in ROWS if row.startswith(tuple(options.rows))]
    if options.gradients:
        rows = [row for row in rows if row != "floor_divide"]  # PyTorch's is an error
    if options.child:
        rows = options.rows
    if not rows:
        parser.error(f"no row begins so; there are {', '.join(ROWS)}")
    if options.child:
        run = theirs if options.child == "torch" else ours
        print(json.dumps(run(rows, options)))
        return

    least = {}
    for number in range(options.rounds):
        for library, python in (("torch", options.torch_python), ("nitinol", sys.executable)):
            print(
                f"round {number + 1} of {options.rounds}: {library}, {len(rows)} rows",
                file=sys.stderr,
            )
            command = [
                python,
                __file__,
                "--child",
                library,
                "--threads",
                str(options.threads),
                "--edge",
                str(options.edge),
                *["--gradients"] * options.gradients,
                *["--transposed"] * options.transposed,
                "--dtype",
                options.dtype,
                "--rows",
                *rows,
            ]
            child = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
            for row, times in json.loads(child.stdout).items():
                before = least.setdefault((library, row), times)
                least[library, row] = [min(pair) for pair in zip(before, times)]
            rows = [row for row in rows if ("torch", row) in least]

    lines = []
    for row in rows:
        (torch,), (eager, compiled) = least["torch", row], least["nitinol", row]
        lines.append((eager / torch, row, torch, eager, compiled, compiled / torch))
    print(f"{'us':18}{'PyTorch':>10}{'eager':>10}{'ratio':>7}{'compiled':>10}{'ratio':>7}")
    for ratio, row, torch, eager, compiled, other in sorted(lines, reverse=True):
        print(f"{row:18}{torch:10.1f}{eager:10.1f}{ratio:7.2f}{compiled:10.1f}{other:7.2f}")


if __name__ == "__main__":
    main()
