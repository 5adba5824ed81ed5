"""A compiled training step called from Python beside the same step called from C++.

    python bench/python_steps.py --bench build/release/nitinol_bench

The step is that of the rows W4i.train (100 -> 128 -> 10, cross entropy, Adam), which nitinol_bench
times. Both take turns, each in a process of its own on one thread; a figure is the least median of
the rounds.
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


def time_of_step(batch):
    import nitinol as nt
    from nitinol import nn

    nt.set_num_threads(1)

    class Mlp(nn.Module):
        def __init__(self):
            self.hidden = nn.Linear(100, 128)
            self.out = nn.Linear(128, 10)

        def __call__(self, x):
            return self.out(nt.relu(self.hidden(x)))

    model = Mlp()
    optimizer = nn.Adam(model, rate=1e-3)
    x = nt.random.randn((batch, 100))
    y = nt.random.randint(0, 10, (batch,))

    @nt.compile
    def step(x, y):
        optimizer.zero_grad()
        loss = nn.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return nt.stop_gradient(loss)

    for _ in range(50):
        step(x, y)
    samples, count = [], max(1, int(0.02 / 20e-6))
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(count):
            step(x, y)
        taken = time.perf_counter() - start
        samples.append(taken / count)
        count = max(1, int(count * 0.05 / taken))
    return statistics.median(samples)


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
    parser.add_argument("--batch", type=int, help="only time this batch size, for a round")
    options = parser.parse_args()
    if options.batch:
        print(time_of_step(options.batch))
        return
    if not options.bench:
        parser.error("say where nitinol_bench is, with --bench")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    print(f"{'batch':>6} {'C++':>12} {'Python':>12} {'ratio':>7}")
    for batch in (32, 128, 1000):
        ours, theirs = [], []
        for _ in range(options.rounds):
            theirs.append(time_in_cpp(options.bench, f"W4i.train.b{batch}"))
            done = subprocess.run(
                [sys.executable, __file__, "--batch", str(batch)],
                check=True,
                capture_output=True,
                text=True,
                env=environment,
            )
            ours.append(float(done.stdout))
        a, b = min(theirs), min(ours)
        print(f"{batch:>6} {a * 1e6:9.1f} us {b * 1e6:9.1f} us {b / a:7.3f}")


if __name__ == "__main__":
    main()
