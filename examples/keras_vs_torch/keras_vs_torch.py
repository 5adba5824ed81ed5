"""The networks of "Why is Torch 4 times slower than Keras?", eager and compiled.

The same program as keras_vs_torch.cpp, with the same numbers: 1,000 samples, Adam at 1e-3 and some
epochs of one full batch.
"""

import argparse
import sys
import time

import nitinol as nt
from nitinol import nn


class Small(nn.Module):
    """100 -> 128 -> 10."""

    def __init__(self) -> None:
        self.hidden = nn.Linear(100, 128)
        self.out = nn.Linear(128, 10)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        return self.out(nt.relu(self.hidden(x)))


class Normalised(nn.Module):
    """100 -> 256 -> 128 -> 10 with batch norm and dropout."""

    def __init__(self) -> None:
        self.first = nn.Linear(100, 256)
        self.norm_1 = nn.BatchNorm(256)
        self.drop_1 = nn.Dropout(0.5)
        self.second = nn.Linear(256, 128)
        self.norm_2 = nn.BatchNorm(128)
        self.drop_2 = nn.Dropout(0.5)
        self.out = nn.Linear(128, 10)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        y = self.drop_1(nt.relu(self.norm_1(self.first(x))))
        return self.out(self.drop_2(nt.relu(self.norm_2(self.second(y)))))


class Recurrent(nn.Module):
    """Scores from the last of 25 steps of 4 features each."""

    def __init__(self) -> None:
        self.lstm = nn.Lstm(4, 64)
        self.out = nn.Linear(64, 10)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        steps = nt.permute_dims(nt.reshape(x, (x.shape[0], 25, 4)), (1, 0, 2))
        return self.out(self.lstm(steps).hidden[0])


Model = Small | Normalised | Recurrent
Class = type[Small] | type[Normalised] | type[Recurrent]


def train(
    model_class: Class, is_compiled: bool, options: argparse.Namespace, x: nt.Tensor, y: nt.Tensor
) -> tuple[Model, float, float, int]:
    nt.manual_seed(options.seed)
    model = model_class()
    optimizer = nn.Adam(model, rate=1e-3)

    def epoch(x: nt.Tensor, y: nt.Tensor) -> nt.Tensor:
        optimizer.zero_grad()
        loss = nn.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        return nt.stop_gradient(loss)

    compiled = nt.compile(epoch, name="epoch")
    step = compiled if is_compiled else epoch
    times: list[float] = []
    loss = nt.zeros(())
    for _ in range(options.epochs):
        start = time.perf_counter()
        loss = step(x, y)
        nt.synchronize()
        times.append(time.perf_counter() - start)
    return model, min(times), loss.item(), compiled.explain()["plan_calls"]


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epochs", type=int, default=10, help="how often to train on all samples")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--seed", type=int, default=0, help="of data and weights")
    parser.add_argument("--device", default="cpu:0", help="where to compute: cpu:0, cuda:0")
    parser.add_argument("--save", help="write the models to files that begin with this")
    options = parser.parse_args()
    if options.threads:
        nt.set_num_threads(options.threads)
    nt.set_default_device(options.device)
    nt.manual_seed(options.seed)
    x = nt.random.randn((1000, 100))
    y = nt.random.randint(0, 10, (1000,))
    columns = ("eager", "compiled", "by plans", "ratio", "loss", "bits")
    print(f"{'model':<26} {{:>10}} {{:>10}} {{:>9}} {{:>6}} {{:>8}} {{:>5}}".format(*columns))
    is_same = True
    models: dict[str, Class] = {
        "MLP 100-128-10": Small,
        "MLP 100-256-128-10 bn+drop": Normalised,
        "LSTM 25x4-64-10": Recurrent,
    }
    for name, model_class in models.items():
        eager, eager_s, _, _ = train(model_class, False, options, x, y)
        compiled, compiled_s, loss, plans = train(model_class, True, options, x, y)
        same = all(
            bytes(a) == bytes(b)
            for a, b in zip(eager.state_dict().values(), compiled.state_dict().values())
        )
        print(
            f"{name:<26} {eager_s * 1e3:7.2f} ms {compiled_s * 1e3:7.2f} ms "
            f"{f'{plans} of {options.epochs}':>9} {eager_s / compiled_s:6.2f} {loss:8.4f} "
            f"{'yes' if same else 'NO':>5}"
        )
        is_same &= same
        if options.save:
            nn.save(f"{options.save}.{model_class.__name__.lower()}", compiled)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
