"""Models of examples/models from Python beside PyTorch's from tests/reference: a step of Adam, or
inference, on random data of the same shapes.

    python bench/python_models.py --rows W4.vit W4v --threads 1

Each library runs in a process of its own, in turns; a figure is the least median of the rounds. Needs
PyTorch, and our package: PYTHONPATH=build/release/python, or the wheel.
"""

import argparse
import importlib
import json
import pathlib
import resource
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).parents[1]

# row: the model of examples/models/models.py, what is done
ROWS = {
    "W4v.infer": ("resnet50", "infer"),
    "W4.resnet18": ("resnet18", "train"),
    "W4.vit": ("vit", "train"),
    "W4.unet": ("unet", "train"),
    "W4.gru": ("tagger", "train"),
    "W4.gpt2": ("gpt2", "train"),
    "W4.vae": ("vae", "train"),
}
BATCH = {"W4v.infer": 1}


def module_of(folder, name):
    sys.path.insert(0, str(ROOT / folder))
    return importlib.import_module(name)


def theirs(name, task, batch, compiles):
    import numpy as np
    import torch

    models = module_of("tests/reference", "torch_models")
    make = {
        "resnet18": lambda: models.ResNet([2, 2, 2, 2], False, 1000, 64),
        "resnet50": lambda: models.ResNet([3, 4, 6, 3], True, 1000, 64),
        "vit": lambda: models.VisionTransformer(224, 16, 192, 12, 3, 1000),
        "gpt2": lambda: models.Gpt2(50257, 1024, 768, 12, 12),
        "unet": lambda: models.UNet(3, 2, 64, 4),
        "tagger": lambda: models.Tagger(20000, 18, 128, 256),
        "vae": lambda: models.Vae(784, 400, 20),
    }
    model = make[name]()
    inputs = [torch.from_numpy(np.array(one)) for one in data_of(name, batch)]
    if name == "vae":
        inputs.insert(1, torch.randn(len(inputs[0]), 20))  # ours draws it itself
    if task == "infer":
        model.eval()
        model = torch.compile(model) if compiles else model

        def infer():
            with torch.no_grad():
                model(*inputs[:-1])

        return infer

    optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
    forward = torch.compile(model) if compiles else model

    def step():
        optimizer.zero_grad()
        models.loss_of(name, forward(*inputs[:-1]), inputs[-1]).backward()
        optimizer.step()

    return step


def data_of(name, batch):
    """The same for both, as arrays; what is wanted last."""
    import numpy as np

    models = module_of("examples/models", "models")
    import nitinol as nt

    nt.manual_seed(0)
    arrays = [np.asarray(one) for one in models.FULL[name].inputs()]
    return arrays if batch is None else [one[:batch] for one in arrays]


def ours(name, task, batch, compiles):
    import nitinol as nt
    from nitinol import nn

    models = module_of("examples/models", "models")
    kind = models.FULL[name]
    model = kind.make()
    *inputs, wanted = [nt.asarray(one) for one in data_of(name, batch)]
    optimizer = nn.Adam(model, rate=1e-4)

    def step(wanted, *inputs):
        optimizer.zero_grad()
        loss = kind.loss(model(*inputs), wanted)
        loss.backward()
        optimizer.step()
        return nt.stop_gradient(loss)

    def infer(wanted, *inputs):
        with nt.no_gradients():
            return model(*inputs)

    if task == "infer":
        model.eval()
    f = step if task == "train" else infer
    f = nt.compile(f) if compiles else f
    return lambda: f(wanted, *inputs)


def measure(library, row, threads):
    """In this process: the median of calls for a second and a half, and the most memory in use."""
    name, task = ROWS[row]
    compiles = library.endswith("compiled")
    if library.startswith("PyTorch"):
        importlib.import_module("torch").set_num_threads(threads)
        call = theirs(name, task, BATCH.get(row), compiles)
    else:
        importlib.import_module("nitinol").set_num_threads(threads)
        call = ours(name, task, BATCH.get(row), compiles)
    for _ in range(8):
        call()
    times = []
    end = time.perf_counter() + 1.5
    while len(times) < 5 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"ms": statistics.median(times) * 1e3, "peak": peak}))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", nargs="+", default=list(ROWS), help="prefixes of names")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--torch-compile", action="store_true", help="torch.compile, too: minutes")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        return measure(given.one[0], given.one[1], given.threads)
    libraries = ["eager", "compiled", "PyTorch"]
    libraries += ["PyTorch compiled"] if given.torch_compile else []
    print(
        f"{'row':<14}" + "".join(f"{name:>20}" for name in libraries) + f"{'PyTorch/compiled':>20}"
    )
    for row in ROWS:
        if not any(row.startswith(prefix) for prefix in given.rows):
            continue
        best = {}
        for _ in range(given.rounds):
            for library in libraries:
                command = [
                    sys.executable,
                    __file__,
                    "--one",
                    library,
                    row,
                    "--threads",
                    str(given.threads),
                ]
                done = subprocess.run(command, capture_output=True, text=True)
                if done.returncode != 0:
                    sys.exit(f"{library}, {row}:\n{done.stderr}")
                found = json.loads(done.stdout.splitlines()[-1])
                best[library] = min(best.get(library, found), found, key=lambda one: one["ms"])
        cells = "".join(
            f"{best[n]['ms']:9.2f} ms {best[n]['peak'] / 1e6:5.0f} MB" for n in libraries
        )
        peers = [best[n]["ms"] for n in libraries if n.startswith("PyTorch")]
        print(f"{row:<14}{cells}{min(peers) / best['compiled']['ms']:20.2f}", flush=True)


if __name__ == "__main__":
    main()
