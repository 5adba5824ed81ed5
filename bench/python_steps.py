"""Compiled functions called from Python beside the same functions called from C++.

    python bench/python_steps.py --bench build/release/nitinol_bench

Of rows that nitinol_bench times: a training step (W4i), and functions that look at data, whose Python
runs at each call (W8). Both take turns, each in a process of its own on one thread; a figure is the
least median of the rounds.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time


def mlp_step(batch, skips):
    """Of 100 -> 128 -> 10 with Adam; `skips`: unless the loss is finite, which is looked at."""
    import nitinol as nt
    from nitinol import nn

    class Mlp(nn.Module):
        def __init__(self):
            self.hidden = nn.Linear(100, 128)
            self.out = nn.Linear(128, 10)

        def __call__(self, x):
            return self.out(nt.relu(self.hidden(x)))

    model = Mlp()
    optimizer = nn.Adam(model, rate=1e-3)
    x = nt.random.randn((batch, 100))
    y = nt.random.randn((batch, 10)) if skips else nt.random.randint(0, 10, (batch,))

    def step(x, y):
        optimizer.zero_grad()
        scores = model(x)
        loss = nt.mean(nt.square(scores - y)) if skips else nn.cross_entropy(scores, y)
        loss.backward()
        if not skips or loss < 1e9:
            optimizer.step()
        return nt.stop_gradient(loss)

    return step, (x, y)


def newton(size):
    """Square roots, until the largest residual is small."""
    import nitinol as nt

    def roots(x):
        y = x * 0.5 + 0.5
        while nt.max(nt.abs(y * y - x)).item() > 1e-3 * nt.max(x).item():
            y = 0.5 * (y + x / y) + 0.0 * nt.tanh(y)
            y = y - (y * y - x) * 0.01 / (y + 1.0)
        return y

    return roots, (nt.abs(nt.random.randn((size,))) + 1.0,)


ROWS = {
    "W4i.train.b32": lambda: mlp_step(32, False),
    "W4i.train.b128": lambda: mlp_step(128, False),
    "W4i.train.b1000": lambda: mlp_step(1000, False),
    "W8.skip.b32": lambda: mlp_step(32, True),
    "W8.newton.n16": lambda: newton(16),
    "W8.newton.n16384": lambda: newton(16384),
    "W8.newton.n262144": lambda: newton(262144),
}


def time_of(row):
    import nitinol as nt

    nt.set_num_threads(1)
    nt.manual_seed(1)
    function, arguments = ROWS[row]()
    compiled = nt.compile(function)
    for _ in range(128):
        compiled(*arguments)
    samples, count = [], 1
    for _ in range(9):
        start = time.perf_counter()
        for _ in range(count):
            compiled(*arguments)
        taken = time.perf_counter() - start
        samples.append(taken / count)
        count = max(1, int(count * 0.05 / taken))
    return statistics.median(samples[2:])


def time_in_cpp(program, row):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "rows.json"
        subprocess.run(
            [program, "--rows", row, "--threads", "1", "--json", str(path)],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for found in json.loads(path.read_text())["rows"]:
            if found["workload"] == row and found["mode"] == "compiled":
                return found["median_s"]
    raise SystemExit(f"{program} printed no row {row}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--bench", help="the program nitinol_bench")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--rows", nargs="*", choices=ROWS, default=list(ROWS), metavar="ROW")
    parser.add_argument("--one", choices=ROWS, help="only time this row, for a round")
    options = parser.parse_args()
    if options.one:
        print(time_of(options.one))
        return
    if not options.bench:
        parser.error("say where nitinol_bench is, with --bench")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    print(f"{'row':<18} {'C++':>12} {'Python':>12} {'ratio':>7}")
    for row in options.rows:
        ours, theirs = [], []
        for _ in range(options.rounds):
            theirs.append(time_in_cpp(options.bench, row))
            done = subprocess.run(
                [sys.executable, __file__, "--one", row],
                check=True,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
            ours.append(float(done.stdout))
        a, b = min(theirs), min(ours)
        print(f"{row:<18} {a * 1e6:9.1f} us {b * 1e6:9.1f} us {b / a:7.3f}")


if __name__ == "__main__":
    main()
