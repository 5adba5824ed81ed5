"""What a call from Python costs, beside NumPy, PyTorch, JAX and MLX, as far as they are installed.

    python bench/python_calls.py            # with nitinol installed, or PYTHONPATH=build/release/python

One thread, float32[4], so that nothing but the call is measured; the last row is a loss of [256, 10].
Each figure is the best of several rounds, in microseconds; all rows take turns in one process, so that
what disturbs one disturbs all.
"""

import argparse
import json
import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")

import time  # noqa: E402


def rows_of_nitinol():
    import nitinol as nt
    from nitinol import nn

    nt.set_num_threads(1)
    x, y = nt.ones((4,)), nt.ones((4,))
    scores, labels = nt.random.randn((256, 10)), nt.random.randint(0, 10, (256,))
    add = nt.compile(lambda a, b: a + b, name="add")
    scaled = nt.compile(lambda p, rate: p["w"] + p["b"] * rate, name="scaled")
    total = nt.compile(lambda xs: sum(xs[1:], xs[0]), name="total")
    tree, many = {"w": x, "b": y}, [nt.ones((4,)) for _ in range(64)]
    return {
        "eager add": lambda: x + y,
        "compiled add": lambda: add(x, y),
        "dict of 2 and a float": lambda: scaled(tree, 0.5),
        "list of 64": lambda: total(many),
        "cross entropy": lambda: nn.cross_entropy(scores, labels),
        **slices_of(nt.ones((8, 8))),
    }


def rows_of_numpy():
    import numpy as np

    x, y = np.ones(4, np.float32), np.ones(4, np.float32)
    return {"eager add": lambda: x + y, **slices_of(np.ones((8, 8), np.float32))}


def rows_of_torch():
    import torch

    torch.set_num_threads(1)
    x, y = torch.ones(4), torch.ones(4)
    scores, labels = torch.randn(256, 10), torch.randint(0, 10, (256,))
    rows = {
        "eager add": lambda: x + y,
        "cross entropy": lambda: torch.nn.functional.cross_entropy(scores, labels),
        **slices_of(torch.ones(8, 8)),
    }
    try:
        add = torch.compile(lambda a, b: a + b)
        scaled = torch.compile(lambda p, rate: p["w"] + p["b"] * rate)
        total = torch.compile(lambda xs: sum(xs[1:], xs[0]))
        tree, many = {"w": x, "b": y}, [torch.ones(4) for _ in range(64)]
        add(x, y), scaled(tree, 0.5), total(many)
    except Exception as error:  # it asks for a C++ compiler and more
        print(f"torch.compile: {type(error).__name__}")
        return rows
    return rows | {
        "compiled add": lambda: add(x, y),
        "dict of 2 and a float": lambda: scaled(tree, 0.5),
        "list of 64": lambda: total(many),
    }


def rows_of_jax():
    import jax
    import jax.numpy as jnp

    x, y = jnp.ones(4, jnp.float32), jnp.ones(4, jnp.float32)
    add = jax.jit(lambda a, b: a + b)
    scaled = jax.jit(lambda p, rate: p["w"] + p["b"] * rate)
    total = jax.jit(lambda xs: sum(xs[1:], xs[0]))
    tree, many = {"w": x, "b": y}, [jnp.ones(4, jnp.float32) for _ in range(64)]
    return {
        "eager add": lambda: (x + y).block_until_ready(),
        "compiled add": lambda: add(x, y).block_until_ready(),
        "dict of 2 and a float": lambda: scaled(tree, 0.5).block_until_ready(),
        "list of 64": lambda: total(many).block_until_ready(),
    }


def rows_of_mlx():
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    x, y = mx.ones(4), mx.ones(4)
    add = mx.compile(lambda a, b: a + b)
    return {
        "eager add": lambda: mx.eval(x + y),
        "compiled add": lambda: mx.eval(add(x, y)),
    }


def slices_of(x):
    """Of a matrix [8, 8]."""
    return {
        "x[1:3]": lambda: x[1:3],
        "x[:, 0]": lambda: x[:, 0],
        "x[..., ::2]": lambda: x[..., ::2],
    }


LIBRARIES = {
    "nitinol": rows_of_nitinol,
    "numpy": rows_of_numpy,
    "torch": rows_of_torch,
    "jax": rows_of_jax,
    "mlx": rows_of_mlx,
}


def seconds(call, least):
    """The time of one call, over so many that they take `least` seconds."""
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        taken = time.perf_counter() - start
        if taken >= least:
            return taken / count
        count *= 2


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--libraries", nargs="*", choices=LIBRARIES, default=list(LIBRARIES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--least", type=float, default=0.02, help="seconds of one sample")
    parser.add_argument("--json", help="write all figures to this file")
    options = parser.parse_args()
    calls, best = {}, {}
    for library in options.libraries:
        try:
            calls[library] = LIBRARIES[library]()
        except ImportError:
            print(f"{library}: not installed")
    for _ in range(options.rounds):
        for library, rows in calls.items():
            for row, call in rows.items():
                taken = seconds(call, options.least) * 1e6
                best[library, row] = min(taken, best.get((library, row), taken))
    names = list(dict.fromkeys(row for rows in calls.values() for row in rows))
    print(f"\n{'us a call':<24}" + "".join(f"{library:>12}" for library in calls))
    for row in names:
        cells = (best.get((library, row)) for library in calls)
        print(f"{row:<24}" + "".join(f"{'' if t is None else f'{t:.3f}':>12}" for t in cells))
    if options.json:
        with open(options.json, "w") as file:
            json.dump(
                {
                    library: {row: best[library, row] for row in rows}
                    for library, rows in calls.items()
                },
                file,
                indent=2,
            )


if __name__ == "__main__":
    main()
