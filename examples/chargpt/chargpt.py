"""Trains a small GPT, character by character, on this project's own documents, and lets it write.

The same program as chargpt.cpp, with the same numbers.
"""

import argparse
import os
import pathlib
import sys
import time

import nitinol as nt
from nitinol import dist, nn


class Block(nn.Module):
    """Attention and a network of two layers, each normalised before and added to what came in."""

    def __init__(self, width: int, heads: int) -> None:
        self.before_attention = nn.LayerNorm(width)
        self.attention = nn.MultiHeadAttention(width, heads, is_causal=True)
        self.before_mlp = nn.LayerNorm(width)
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        y = x + self.attention(self.before_attention(x))
        return y + self.down(nt.gelu_tanh(self.up(self.before_mlp(y))))


class Gpt(nn.Module):
    """What the next character is, given those before it (A. Radford et al., 2019)."""

    def __init__(
        self, characters: int, context: int = 64, width: int = 128, heads: int = 4, blocks: int = 3
    ) -> None:
        self.characters = nn.Embedding(characters, width)
        self.positions = nn.Embedding(context, width)
        # Drawn before the blocks, as in chargpt.cpp, but named after them.
        norm, head = nn.LayerNorm(width), nn.Linear(width, characters)
        self.blocks = [Block(width, heads) for _ in range(blocks)]
        self.norm, self.head = norm, head

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        y = self.characters(x) + self.positions.weight[: x.shape[1]]
        for block in self.blocks:
            y = block(y)
        return self.head(self.norm(y))


class Text:
    """The ASCII characters of some files, and a number for each that occurs."""

    def __init__(self, paths: list[pathlib.Path]) -> None:
        text = "".join(path.read_text(encoding="latin-1") for path in paths)
        self.text = "".join(c for c in text if c == "\n" or " " <= c <= "~")
        self.alphabet = "".join(sorted(set(self.text)))
        number = {c: i for i, c in enumerate(self.alphabet)}
        self.numbers = nt.asarray([number[c] for c in self.text])

    def numbers_of(self, text: str) -> list[int]:
        return [self.alphabet.index(c) for c in text]

    def batch(self, count: int, length: int) -> tuple[nt.Tensor, nt.Tensor]:
        """Pieces of the text from random places, and the same one character later."""
        begin = nt.random.randint(0, len(self.text) - length, (count, 1))
        places = begin + nt.arange(length)
        return nt.take(self.numbers, places), nt.take(self.numbers, places + 1)


def train(
    name: str, is_compiled: bool, steps: int, text: Text, options: argparse.Namespace
) -> tuple[Gpt, float, int, str]:
    nt.manual_seed(options.seed)
    model = Gpt(len(text.alphabet))
    parameters = model.parameters()
    optimizer = nn.AdamW(parameters, beta2=0.99, weight_decay=0.01)

    def train_step(x: nt.Tensor, y: nt.Tensor) -> nt.Tensor:
        optimizer.zero_grad()
        loss = nn.cross_entropy(model(x), y)
        loss.backward()
        if options.data_parallel:
            nn.average_gradients(parameters)
        nn.clip_gradient_norm(parameters, 1)
        optimizer.step()
        return nt.stop_gradient(loss)

    compiled = nt.compile(train_step, name="train_step")
    step = compiled if is_compiled else train_step
    rate = nn.warm_up(50, nn.cosine_decay(options.rate, options.steps))
    progress = nn.Progress(name, steps=steps, items=options.batch * 64, unit="characters")
    log = nn.MetricLog(pathlib.Path(options.log) / name) if options.log else None
    times: list[float] = []
    losses: list[nt.Tensor] = []
    for i in range(steps):
        optimizer.set_rate(rate(i))
        # All draw the same places, and each takes its share of them.
        x, y = (part[options.share] for part in text.batch(options.batch, 64))
        start = time.perf_counter()
        loss = step(x, y)
        times.append(time.perf_counter() - start)
        losses.append(dist.all_reduce(loss, "mean") if options.data_parallel else loss)
        if log is not None:
            log.add("loss", losses[-1], i)
            log.add("learning rate", rate(i), i)
        progress.step(f"loss {losses[-1].item():.3f}" if progress.is_due() else "")
    picture = nn.plot(nt.stack(losses), title="loss", height=8)
    if options.data_parallel:
        picture += f"ranks: {dist.world().size}, the last loss: {losses[-1].item():.7f}\n"
    return model, min(times), compiled.explain()["plan_calls"], picture


def write(model: Gpt, prompt: nt.Tensor, length: int, end: int, temperature: float) -> nt.Tensor:
    """What the model writes after the prompt, numbers of characters, one by one: each is drawn, read,
    and seen by the next. At least `length`, then up to `end`; at most twice as many."""
    written: list[int] = []
    seen = prompt
    while len(written) < length or (written[-1] != end and len(written) < 2 * length):
        scores = model(seen[-64:][None])[0, -1]
        next = nt.random.categorical(nt.softmax(scores / temperature))
        written.append(int(next))
        seen = nt.concat([seen[-64:], next.reshape(1)])
    return nt.asarray(written)


def compare_writing(model: Gpt, text: Text, options: argparse.Namespace) -> tuple[str, bool]:
    """What the model writes, eagerly and compiled, and whether that is the same."""

    def plain(prompt: nt.Tensor) -> nt.Tensor:
        return write(model, prompt, options.length, text.alphabet.index("\n"), options.temperature)

    compiled = nt.compile(plain, name="write")
    written: list[list[int]] = []
    times: list[float] = []
    with nt.no_gradients():
        for function in (plain, compiled, compiled, compiled):
            nt.manual_seed(options.seed)
            start = time.perf_counter()
            written.append(function(nt.asarray(text.numbers_of(options.prompt))).tolist())
            times.append((time.perf_counter() - start) * 1e3 / len(written[-1]))
    is_same = all(other == written[0] for other in written)
    print(
        f"\nwrote {len(written[0])} characters: eager {times[0]:.2f} ms each, compiled "
        f"{times[3]:.2f} ms ({times[1]:.2f} ms at first, with compiling)\n"
        f"the same characters: {'yes' if is_same else 'no'}"
    )
    return options.prompt + "".join(text.alphabet[i] for i in written[0]), is_same


def main() -> int:
    root = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--data-parallel", action="store_true", help="processes of mpirun share each batch"
    )
    parser.add_argument("--steps", type=int, default=2400, help="of training")
    parser.add_argument("--compared", type=int, default=20, help="steps made in both ways before")
    parser.add_argument("--batch", type=int, default=16, help="pieces of text in a step")
    parser.add_argument("--rate", type=float, default=3e-3, help="the highest learning rate")
    parser.add_argument("--threads", type=int, default=0, help="0: all cores")
    parser.add_argument("--seed", type=int, default=0, help="start of all random numbers")
    parser.add_argument("--prompt", default="## ", help="what the written text begins with")
    parser.add_argument(
        "--length", type=int, default=500, help="characters to write, and on to the end of the line"
    )
    parser.add_argument("--temperature", type=float, default=0.5, help="lower: likelier characters")
    parser.add_argument(
        "--device", default="cpu:0", help="cpu:0, cuda:0; cuda: a GPU for each process"
    )
    parser.add_argument("--save", help="write the model to this file")
    parser.add_argument("--log", help="write training curves to this folder, for TensorBoard")
    parser.add_argument(
        "files", nargs="*", type=pathlib.Path, help="text; without any, README.md and docs/*.md"
    )
    options = parser.parse_args()
    options.share = slice(None)
    rank = 0
    if options.data_parallel:
        rank, ranks = dist.world().rank, dist.world().size
        if options.batch % ranks:
            parser.error(f"--batch must be a multiple of the number of processes, {ranks}")
        count = options.batch // ranks
        options.share = slice(rank * count, (rank + 1) * count)
        if rank > 0:  # rank 0 alone prints
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if options.threads:
        nt.set_num_threads(options.threads)
    nt.set_default_device(
        f"cuda:{dist.local_rank()}" if options.device == "cuda" else options.device
    )
    own_files = sorted([root / "README.md", *(root / "docs").glob("*.md")])
    files: list[pathlib.Path] = options.files or own_files
    text = Text(files)
    print(f"{len(text.text)} characters of {len(files)} files, {len(text.alphabet)} different\n")

    eager, eager_s, _, _ = train("eager", False, options.compared, text, options)
    compiled, compiled_s, plans, _ = train("compiled", True, options.compared, text, options)
    is_same = all(
        bytes(a) == bytes(b)
        for a, b in zip(eager.state_dict().values(), compiled.state_dict().values())
    )
    print(f"\na step: eager {eager_s * 1e3:.2f} ms, compiled {compiled_s * 1e3:.2f} ms")
    print(
        f"compiled is {eager_s / compiled_s:.2f} times as fast; {plans} of {options.compared} by plans"
    )
    print(f"bit-identical: {'yes' if is_same else 'no'}\n")
    model, _, _, picture = train("train", True, options.steps, text, options)
    written, writes_same = compare_writing(model, text, options)
    print("\n" + written + "\n" + picture, end="")
    if options.save and rank == 0:
        nn.save(options.save, model)
    return 0 if is_same and writes_same else 1


if __name__ == "__main__":
    sys.exit(main())
