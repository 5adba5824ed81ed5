"""Trains a small network on 1,797 handwritten digits, first eagerly, then compiled, and compares.

The same program as digits.cpp, with the same numbers: at the end all parameters agree bit for bit,
of the eager and the compiled run, and of both languages.
"""

import argparse
import csv
import os
import pathlib
import statistics
import sys
import time

import nitinol as nt
from nitinol import dist, nn

HERE = pathlib.Path(__file__).parent


class Mlp(nn.Module):
    """64 pixels -> 128 -> 10 classes."""

    def __init__(self) -> None:
        self.hidden = nn.Linear(64, 128)
        self.out = nn.Linear(128, 10)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        return self.out(nt.relu(self.hidden(x)))


class Cnn(nn.Module):
    """Two convolutions of 3 x 3, pooling from 8 x 8 to 4 x 4, then 10 classes."""

    def __init__(self) -> None:
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.second = nn.Conv2d(16, 32, 3, padding=1)
        self.out = nn.Linear(32 * 4 * 4, 10)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        images = nt.reshape(x, (x.shape[0], 1, 8, 8))
        features = nt.relu(self.second(nt.relu(self.first(images))))
        return self.out(nt.flatten(nt.max_pool2d(features, 2), 1))


Data = dict[str, tuple[nt.Tensor, nt.Tensor]]


def read_csv(path: str) -> Data:
    """Images with pixels from 0 to 1, and labels; every fifth row is held out for testing."""
    rows: dict[str, tuple[list[list[float]], list[int]]] = {"train": ([], []), "test": ([], [])}
    with open(path, newline="") as file:
        for number, row in enumerate(csv.reader(file), 1):
            if not row or (number == 1 and row[0].startswith("p")):
                continue
            images, labels = rows["train" if number % 5 else "test"]
            images.append([int(pixel) / 16 for pixel in row[:64]])
            labels.append(int(row[64]))
    return {name: (nt.asarray(x), nt.asarray(y)) for name, (x, y) in rows.items()}


def accuracy_of(model: Mlp | Cnn, images: nt.Tensor, labels: nt.Tensor) -> float:
    with nt.no_gradients():
        is_right = nt.argmax(model(images), -1) == labels
        return nt.mean(is_right.to(nt.float32)).item()


def train(
    model_class: type[Mlp] | type[Cnn], is_compiled: bool, data: Data, options: argparse.Namespace
) -> tuple[Mlp | Cnn, float, nt.Compiled[[nt.Tensor, nt.Tensor], nt.Tensor], str]:
    rank, ranks = options.rank, options.ranks
    loader = nn.DataLoader(
        data["train"],
        options.batch // ranks,
        drop_last=True,
        seed=options.seed,
        shard=(rank, ranks),
    )
    steps = options.epochs * len(loader)
    nt.manual_seed(options.seed)
    model = model_class()
    parameters = model.parameters()
    optimizer = nn.Adam(parameters)

    def train_step(images: nt.Tensor, labels: nt.Tensor) -> nt.Tensor:
        optimizer.zero_grad()
        loss = nn.cross_entropy(model(images), labels)
        loss.backward()
        if options.data_parallel:
            nn.average_gradients(parameters)
        optimizer.step()
        return nt.stop_gradient(loss)

    compiled = nt.compile(train_step, name="train_step")
    step = compiled if is_compiled else train_step
    rate = nn.cosine_decay(options.rate, steps)
    name = "compiled" if is_compiled else "eager"
    log = nn.MetricLog(pathlib.Path(options.log) / name) if options.log else None
    progress = nn.Progress(name, steps=steps, items=options.batch, unit="images")
    times: list[float] = []
    losses: list[nt.Tensor] = []
    for _ in range(options.epochs):
        for images, labels in loader:
            optimizer.set_rate(rate(len(times)))
            start = time.perf_counter()
            loss = step(images, labels)
            times.append(time.perf_counter() - start)
            losses.append(dist.all_reduce(loss, "mean") if options.data_parallel else loss)
            if log is not None:
                log.add("loss", losses[-1], len(times) - 1)
                log.add("learning rate", rate(len(times) - 1), len(times) - 1)
            progress.step(f"loss {losses[-1].item():.4f}" if progress.is_due() else "")
    picture = nn.plot(nt.stack(losses), title="loss", height=8)
    if options.data_parallel:
        picture += f"ranks: {ranks}, the last loss: {losses[-1].item():.7f}\n"
    return model, statistics.median(times), compiled, picture


def same_bits(a: nn.Module, b: nn.Module) -> bool:
    return all(
        bytes(x.get()) == bytes(y.get())
        for x, y in zip(a.named_variables().values(), b.named_variables().values())
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--model", choices=("mlp", "cnn"), default="mlp", help="the network")
    parser.add_argument(
        "--data-parallel", action="store_true", help="processes of mpirun share each batch"
    )
    parser.add_argument("--eager", action="store_true", help="train eagerly only")
    parser.add_argument("--explain", action="store_true", help="say what the step consists of")
    parser.add_argument("--epochs", type=int, default=40, help="passes over the data")
    parser.add_argument("--batch", type=int, default=32, help="images in a batch")
    parser.add_argument("--rate", type=float, default=3e-3, help="the first learning rate")
    parser.add_argument("--threads", type=int, default=1, help="threads to compute with")
    parser.add_argument("--seed", type=int, default=0, help="start of all random numbers")
    parser.add_argument(
        "--device", default="cpu:0", help="cpu:0, cuda:0; cuda: a GPU for each process"
    )
    parser.add_argument("--data", default=HERE / "digits.csv", help="digits.csv, if elsewhere")
    parser.add_argument("--save", help="write the model to this file")
    parser.add_argument("--log", help="write training curves to this folder, for TensorBoard")
    options = parser.parse_args()

    options.rank, options.ranks = 0, 1
    if options.data_parallel:
        world = dist.world()
        options.rank, options.ranks = world.rank, world.size
        if options.batch % world.size:
            parser.error(f"--batch must be a multiple of the number of processes, {world.size}")
        if world.rank > 0:  # rank 0 alone prints
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    nt.set_num_threads(options.threads)
    nt.set_default_device(
        f"cuda:{dist.local_rank()}" if options.device == "cuda" else options.device
    )
    data = read_csv(options.data)
    model_class: type[Mlp] | type[Cnn] = Mlp if options.model == "mlp" else Cnn
    print(f"{len(data['train'][1])} images to train on, {len(data['test'][1])} held out\n")
    print(model_class(), "\n")

    model, eager_s, _, picture = train(model_class, False, data, options)
    is_same = True
    if not options.eager:
        eager_model = model
        model, compiled_s, compiled, picture = train(model_class, True, data, options)
        explained = str(compiled.explain())
        print("\n" + (explained if options.explain else explained.split("\n      1. ")[0]))
        is_same = same_bits(eager_model, model)
        print(f"\na step: eager {eager_s * 1e6:.1f} us, compiled {compiled_s * 1e6:.1f} us")
        print(f"compiled is {eager_s / compiled_s:.2f} times as fast")
        print(f"bit-identical: {'yes' if is_same else 'no'}")
    print(f"accuracy: {accuracy_of(model, *data['test']):.3f}\n\n{picture}", end="")
    if options.save and options.rank == 0:
        nn.save(options.save, model)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
