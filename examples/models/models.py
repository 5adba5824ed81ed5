"""Models as they are in the literature: parameters, bits and times, eagerly and compiled.

The same program as models.cpp, with the same numbers. Data are random: what is compared is the same.
"""

import argparse
import itertools
import pathlib
import sys
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import gpt2
import resnet
import tagger
import unet
import vae
import vit

import nitinol as nt
from nitinol import nn


class Task(NamedTuple):
    """A model, what it is given and what for."""

    make: Callable[[], Any]
    inputs: Callable[[], tuple[nt.Tensor, ...]]  # and what is wanted last
    loss: Callable[[Any, Any], nt.Tensor] = nn.cross_entropy  # of results and what is wanted


def images(batch: int, size: int, classes: int) -> Callable[[], tuple[nt.Tensor, ...]]:
    return lambda: (
        nt.random.randn((batch, 3, size, size)),
        nt.random.randint(0, classes, (batch,)),
    )


def pixels(batch: int, size: int) -> tuple[nt.Tensor, ...]:
    return nt.random.randn((batch, 3, size, size)), nt.random.randint(0, 2, (batch, size, size))


def pixel_loss(scores: nt.Tensor, classes: nt.Tensor) -> nt.Tensor:
    return nn.cross_entropy(nt.moveaxis(scores, 1, -1), classes)


def text(batch: int, positions: int, tokens: int) -> tuple[nt.Tensor, ...]:
    x = nt.random.randint(0, tokens, (batch, positions + 1))
    return x[:, :-1], x[:, 1:]


def sentences(batch: int, words: int, tags: int) -> tuple[nt.Tensor, ...]:
    lengths = nt.random.randint(1, 13, (batch,))
    is_word = nt.arange(12) < lengths[:, None]
    x = nt.random.randint(1, words, (batch, 12)) * is_word
    return x, lengths, nt.random.randint(1, tags, (batch, 12)) * is_word


def digits(batch: int, count: int) -> tuple[nt.Tensor, ...]:
    x = nt.random.rand((batch, count))
    return x, x


FULL = {
    "resnet18": Task(resnet.resnet18, images(4, 224, 1000)),
    "resnet50": Task(resnet.resnet50, images(2, 224, 1000)),
    "vit": Task(vit.vit_tiny, images(4, 224, 1000)),
    "gpt2": Task(gpt2.gpt2_small, lambda: text(1, 64, 50257)),
    "unet": Task(unet.UNet, lambda: pixels(1, 128), pixel_loss),
    "tagger": Task(tagger.Tagger, lambda: sentences(16, 20000, 18), tagger.tagger_loss),
    "vae": Task(vae.Vae, lambda: digits(64, 784), vae.vae_loss),
}
SMALL = {
    "resnet18": Task(lambda: resnet.ResNet([1, 1], False, 10, 8), images(2, 32, 10)),
    "resnet50": Task(lambda: resnet.ResNet([1, 2], True, 10, 4), images(2, 32, 10)),
    "vit": Task(lambda: vit.VisionTransformer(16, 4, 24, 2, 3, 10), images(2, 16, 10)),
    "gpt2": Task(lambda: gpt2.Gpt2(50, 32, 24, 3, 2), lambda: text(2, 8, 50)),
    "unet": Task(lambda: unet.UNet(3, 2, 4, 2), lambda: pixels(2, 16), pixel_loss),
    "tagger": Task(lambda: tagger.Tagger(50, 5, 8, 6), lambda: sentences(3, 50, 5), tagger.tagger_loss),
    "vae": Task(lambda: vae.Vae(36, 16, 4), lambda: digits(4, 36), vae.vae_loss),
}  # fmt: skip


def flat(result: Any) -> list[nt.Tensor]:
    return [result] if isinstance(result, nt.Tensor) else list(result)


def bits(tensors: list[nt.Tensor]) -> list[bytes]:
    return [bytes(one) for one in tensors]


def timed(calls: int, f: Callable[[], Any]) -> tuple[float, Any]:
    """The fastest of so many calls in milliseconds, and the last one's result."""
    result: Any = None
    times: list[float] = []
    for _ in range(calls):
        start = time.perf_counter()
        result = f()
        times.append((time.perf_counter() - start) * 1e3)
    return min(times), result


def report(what: str, ms: list[float], plan_calls: int, calls: int, is_same: bool) -> None:
    print(
        f"  {what:<10} eager {ms[0]:8.2f} ms, compiled {ms[1]:8.2f} ms, {plan_calls} of {calls} "
        f"by plans, bit-identical: {'yes' if is_same else 'no'}",
        flush=True,
    )


def infer(task: Task, calls: int) -> bool:
    """Compares what the model makes of its inputs."""
    model = task.make().eval()
    inputs = task.inputs()[:-1]
    compiled = nt.compile(model.__call__, name="infer")
    ms: list[float] = []
    found: list[list[bytes]] = []
    with nt.no_gradients():
        for function in (model, compiled):
            nt.manual_seed(1)
            one_ms, result = timed(calls, lambda: function(*inputs))
            ms.append(one_ms)
            found.append(bits(flat(result)))
    report("inference", ms, compiled.explain()["plan_calls"], calls, found[0] == found[1])
    return found[0] == found[1]


def train(name: str, task: Task, options: argparse.Namespace) -> tuple[bool, nn.Module]:
    """Compares all parameters after some steps."""
    ms: list[float] = []
    found: list[list[bytes]] = []
    model: Any = None
    for is_compiled in (False, True):
        nt.manual_seed(options.seed)
        model = task.make()
        *inputs, wanted = task.inputs()
        rate = 1e-4
        optimizer = nn.Adam(model, rate=rate)

        def step(wanted: nt.Tensor, *inputs: nt.Tensor) -> nt.Tensor:
            optimizer.zero_grad()
            loss = task.loss(model(*inputs), wanted)
            loss.backward()
            optimizer.step()
            return nt.stop_gradient(loss)

        compiled = nt.compile(step, name="train_step")
        run = f"{name}-{'compiled' if is_compiled else 'eager'}"
        log = nn.MetricLog(pathlib.Path(options.log) / run) if options.log else None
        numbers = itertools.count()

        def call() -> None:
            loss = (compiled if is_compiled else step)(wanted, *inputs)
            if log is not None:
                number = next(numbers)
                log.add("loss", loss, number)
                log.add("learning rate", rate, number)

        one_ms, _ = timed(options.calls, call)
        ms.append(one_ms)
        found.append(bits(list(model.state_dict().values())))
    report("training", ms, compiled.explain()["plan_calls"], options.calls, found[0] == found[1])
    return found[0] == found[1], model


def write(task: Task, length: int) -> bool:
    """Compares what a Gpt2 writes with a cache, and without one."""
    model = task.make()
    prompt = task.inputs()[0]
    compiled = nt.compile(gpt2.next_tokens, name="next_tokens")

    def written(function: Callable[..., nt.Tensor]) -> tuple[float, bytes]:
        caches = model.caches(prompt.shape[0], prompt.shape[1] + length)
        found = [prompt]
        times: list[float] = []
        for _ in range(length):
            ms, following = timed(1, lambda: function(model, caches, found[-1]))
            found.append(following)
            times.append(ms)
        return min(times), bytes(nt.concat(found, axis=1))

    with nt.no_gradients():
        eager_ms, eager = written(gpt2.next_tokens)
        compiled_ms, with_plans = written(compiled)
        seen = prompt
        for _ in range(length):
            seen = nt.concat([seen, gpt2.next_tokens(model, [], seen)], axis=1)
    plans = compiled.explain()["plan_calls"]
    report("writing", [eager_ms, compiled_ms], plans, length, eager == with_plans)
    is_as_without = bytes(seen) == eager
    print(f"             the same tokens without a cache: {'yes' if is_as_without else 'no'}")
    return eager == with_plans and is_as_without


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--small", action="store_true", help="models and data of a few numbers")
    parser.add_argument("--calls", type=int, default=6, help="of each function")
    parser.add_argument("--length", type=int, default=20, help="tokens that GPT-2 writes")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--seed", type=int, default=0, help="start of all random numbers")
    parser.add_argument("--save", help="write each trained model to a file that begins so")
    parser.add_argument("--log", help="write training curves to this folder, for TensorBoard")
    parser.add_argument("models", nargs="*", help=f"some of {', '.join(FULL)}; all if none")
    options = parser.parse_args()
    if options.threads:
        nt.set_num_threads(options.threads)
    tasks = SMALL if options.small else FULL
    is_same = True
    for name in options.models or tasks:
        nt.manual_seed(options.seed)
        task = tasks[name]
        count = sum(p.size for p in task.make().parameters())
        print(f"{name}: {count:,} parameters")
        is_same &= infer(task, options.calls)
        same, model = train(name, task, options)
        is_same &= same
        if name == "gpt2":
            is_same &= write(task, options.length)
        if options.save:
            nn.save(f"{options.save}.{name}", model)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
