"""What each process does in the tests of test_dist.py, which start it by mpirun: dist_ranks.py CASE [FOLDER].

Everybody knows what the others have, and compares with NumPy.
"""

import hashlib
import os
import pathlib
import signal
import sys
import threading
import time
import warnings
from typing import Any, Callable

import nitinol as nt
from nitinol import dist, nn

try:
    import numpy as np
except ImportError:
    np = None  # type: ignore[assignment]

SHAPES: list[tuple[int, ...]] = [(), (0,), (6,), (6, 6), (12, 1, 6), (6, 20_000)]
DTYPES = ["float32", "float64", "float16", "int64", "uint8", "bool"]
REDUCED = {"sum": "sum", "mean": "mean", "max": "max", "min": "min", "prod": "prod"}


def data_of(rank: int, shape: tuple[int, ...], dtype: str) -> Any:
    random = np.random.default_rng(100 + rank)
    if dtype == "bool":
        return random.random(shape) < 0.5
    if dtype in ("int64", "uint8"):
        return random.integers(1, 4, shape).astype(dtype)
    return random.uniform(0.5, 1.5, shape).astype(dtype)


def bits(x: nt.Tensor) -> tuple[tuple[int, ...], str, bytes]:
    return (x.shape, str(x.dtype), bytes(nt.row_major(x)))


def check(
    result: nt.Tensor, expected: Any, function: Callable[[nt.Tensor], nt.Tensor], own: Any
) -> bytes:
    """That it is as expected, and that the compiled function gives the same bits in each tier."""
    array = np.asarray(result)
    assert array.shape == expected.shape, (array.shape, expected.shape)
    tolerance = 3e-3 if array.dtype == np.float16 else 1e-6
    np.testing.assert_allclose(array, expected, rtol=tolerance)
    compiled = nt.compile(lambda x: function(nt.row_major(x)), name="collective")
    for _ in range(3):
        assert bits(compiled(nt.asarray(own))) == bits(result)
    return bits(result)[-1]


def collectives() -> None:
    """All functions, dtypes and shapes; and a number for the bits of all results."""
    world = dist.world()
    ranks, rank = world.size, world.rank
    seen = hashlib.sha256()
    for shape in SHAPES:
        for dtype in DTYPES:
            all_of_them = [data_of(r, shape, dtype) for r in range(ranks)]
            stacked, own = np.stack(all_of_them), all_of_them[rank]
            for how in REDUCED:
                expected = getattr(np, how)(stacked, axis=0)
                if how == "mean" and dtype == "float16":
                    expected = stacked.astype("float32").mean(axis=0)
                reduced: Callable[[Any], nt.Tensor] = lambda x: dist.all_reduce(x, how)  # type: ignore[call-overload]  # noqa: B023, E731
                seen.update(check(reduced(own), expected, reduced, own))
                total = dist.all_reduce(own, how)  # type: ignore[call-overload]
                gathered = dist.all_gather(own[None])
                in_order = getattr(nt, how)(nt.stack([gathered[r] for r in range(ranks)]), axis=0)
                if shape and 0 not in shape and dtype not in ("uint8",):
                    assert bits(total) == bits(in_order), (how, dtype, shape)
            roots = dist.broadcast(own, ranks - 1)
            check(roots, all_of_them[-1], lambda x: dist.broadcast(x, ranks - 1), own)
            before = all_of_them[(rank - 1) % ranks]
            check(dist.permute(own), before, dist.permute, own)
            after = all_of_them[(rank + 1) % ranks]
            check(dist.permute(own, shift=-1), after, lambda x: dist.permute(x, -1), own)
            if not shape:
                assert dist.all_gather(own).tolist() == [x.item() for x in all_of_them]
                continue
            for axis in range(len(shape)):
                gather: Callable[[Any], nt.Tensor] = lambda x: dist.all_gather(x, axis)  # noqa: B023, E731
                check(gather(own), np.concatenate(all_of_them, axis), gather, own)
                if shape[axis] % ranks:
                    continue
                scatter: Callable[[Any], nt.Tensor] = lambda x: dist.reduce_scatter(x, "max", axis)  # noqa: B023, E731
                part = np.split(stacked.max(0), ranks, axis)[rank]
                check(scatter(own), part, scatter, own)
                exchange: Callable[[Any], nt.Tensor] = lambda x: dist.all_to_all(x, axis)  # noqa: B023, E731
                parts = [np.split(x, ranks, axis)[rank] for x in all_of_them]
                check(exchange(own), np.concatenate(parts, axis), exchange, own)
            if len(shape) == 2:  # elements that do not lie in a row
                turned = dist.all_reduce(nt.asarray(own).T)
                assert bits(nt.row_major(turned.T)) == bits(dist.all_reduce(own))
    dist.barrier()
    if rank == 0:
        print(f"bits {seen.hexdigest()}")


def gradients() -> None:
    """Of the sum over all ranks of what each calls backward() on; weights tell the ranks apart."""
    world = dist.world()
    ranks, rank = world.size, world.rank
    x = nt.asarray(data_of(rank, (6, 6), "float64"))
    weights = [data_of(10 + r, (6 * ranks, 6), "float64") for r in range(ranks)]
    own = [w[:6] for w in weights]

    def gradient(function: Callable[[nt.Tensor], nt.Tensor], weight: Any) -> Any:
        def loss(x: nt.Tensor) -> nt.Tensor:
            return nt.sum(function(x) * nt.asarray(weight))

        eager = nt.grad(loss)(x)
        compiled = nt.compile(nt.grad(loss))
        for _ in range(3):
            assert bits(compiled(x)) == bits(eager)
        p = nt.parameter(x)
        loss(p.value).backward()
        assert p.grad is not None and bits(p.grad) == bits(eager)
        return np.asarray(eager)

    total = sum(own)
    np.testing.assert_allclose(gradient(dist.all_reduce, own[rank]), total)
    means = gradient(lambda x: dist.all_reduce(x, "mean"), own[rank])
    np.testing.assert_allclose(means, total / ranks)
    gathered = sum(w[6 * rank : 6 * rank + 6] for w in weights)
    np.testing.assert_allclose(gradient(dist.all_gather, weights[rank]), gathered)
    roots = total if rank == 0 else np.zeros((6, 6))
    np.testing.assert_allclose(gradient(dist.broadcast, own[rank]), roots)
    np.testing.assert_allclose(gradient(dist.permute, own[rank]), own[(rank + 1) % ranks])
    exchanged = np.concatenate([np.split(w, ranks)[rank] for w in own])
    np.testing.assert_allclose(gradient(dist.all_to_all, own[rank]), exchanged)
    parts = [w[: 6 // ranks] for w in weights]
    scattered = gradient(dist.reduce_scatter, parts[rank])
    np.testing.assert_allclose(scattered, np.concatenate(parts))


def groups() -> None:
    world = dist.world()
    ranks, rank = world.size, world.rank
    assert world == dist.world() and hash(world) == hash(dist.world())
    assert world.members == tuple(range(ranks)) and world.is_member
    assert repr(world) == f"Group(rank={rank}, size={ranks})"
    assert (dist.local_rank(), dist.local_size()) == (rank, ranks)
    assert f"rank {rank} of {ranks}" in dist.description()
    backwards = world.split(0, key=-rank)
    assert backwards.members == tuple(reversed(range(ranks))) and backwards != world
    assert backwards.rank == ranks - 1 - rank
    gathered = dist.all_gather(nt.asarray(rank), group=backwards)
    assert gathered.tolist() == list(reversed(range(ranks)))
    pair = world.split(0 if rank < 2 else -1)
    assert pair.is_member == (rank < 2)
    step = nt.compile(lambda x, group: dist.all_reduce(x, group=group))
    if pair.is_member:
        for _ in range(3):
            assert step(nt.asarray(float(rank)), pair).item() == 1
    else:
        assert repr(pair) == "Group(is_member=False)" and pair != world
        try:
            dist.barrier(pair)
        except nt.ArgumentError as error:
            assert "barrier: this process is no member of the group" in str(error), error
        else:
            raise AssertionError("no error")
    for _ in range(3):
        assert step(nt.asarray(1.0), world).item() == ranks
    own = world.split(rank)
    assert own.size == 1 and dist.all_reduce(2.0, group=own).item() == 2


class Net(nn.Module):
    def __init__(self, synchronized: bool = True) -> None:
        # With a bias, whose gradient is nothing but rounding before a BatchNorm, Adam would go astray.
        self.hidden = nn.Linear(5, 7, bias=False)
        self.norm = nn.BatchNorm(7, synchronized=synchronized)
        self.out = nn.Linear(7, 3)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        return self.out(nt.tanh(self.norm(self.hidden(x))))


def trained(ranks: int, is_compiled: bool, sharded: bool, folder: pathlib.Path) -> Net:
    """A model after some steps, on this rank's share of the data; of 1, on all of them."""
    world = dist.world()
    is_alone = ranks == 1
    nt.manual_seed(3 if is_alone else 3 + world.rank)
    model = Net(synchronized=not is_alone)
    if not is_alone:
        nn.broadcast(model)
    optimizer: Any = nn.Sharded(nn.Adam, model, rate=0.01) if sharded else nn.Adam(model, rate=0.01)
    random = np.random.default_rng(9)
    data = (random.normal(size=(36, 5)).astype("f"), random.normal(size=(36, 3)).astype("f"))
    loader = nn.DataLoader(
        [nt.asarray(x) for x in data], 12 // ranks, seed=1, shard=(0, 1) if is_alone else world
    )

    def step(x: nt.Tensor, y: nt.Tensor) -> nt.Tensor:
        optimizer.zero_grad()
        loss = nn.mse_loss(model(x), y)
        loss.backward()
        if not is_alone and not sharded:
            nn.average_gradients(model, bucket_bytes=100)
        optimizer.step()
        return nt.stop_gradient(loss)

    run = nt.compile(step) if is_compiled else step
    for number in range(4):
        for x, y in loader:
            run(x, y)
        if sharded and number == 1:  # to another and back, by a file
            whole = optimizer.gathered()
            if world.rank == 0:
                nn.save(folder / "all.safetensors", {"model": model, "optimizer": whole})
            dist.barrier()
            for p in model.parameters():
                p.value = nt.zeros_like(p.value)
            fresh = nn.Adam(model)
            nn.load(folder / "all.safetensors", {"model": model, "optimizer": fresh})
            optimizer = nn.Sharded(nn.Adam, model, rate=0.5)
            optimizer.scatter(fresh)
            assert abs(float(optimizer.rate()) - 0.01) < 1e-9
            run = nt.compile(step) if is_compiled else step
    return model


def training() -> None:
    """As one process on all data; the same bits on all ranks, compiled, and by Sharded."""
    world = dist.world()
    folder = pathlib.Path(sys.argv[2]).parent
    alone = trained(1, False, False, folder)
    first = trained(world.size, False, False, folder)
    for is_compiled, sharded in ((True, False), (False, True), (True, True)):
        model = trained(world.size, is_compiled, sharded, folder)
        for name, p in model.named_variables().items():
            assert bits(p.value) == bits(first.named_variables()[name].value), (is_compiled, name)
    for name, p in first.named_variables().items():
        np.testing.assert_allclose(
            np.asarray(p.value),
            np.asarray(alone.named_variables()[name].value),
            rtol=1e-4,
            atol=1e-6,
        )
        each = dist.all_gather(p.value[None])
        assert all(bits(each[r]) == bits(p.value) for r in range(world.size)), name
    nn.seed_ranks(5)
    drawn = nt.random.rand(4)
    assert len({tuple(row.tolist()) for row in dist.all_gather(drawn[None])}) == world.size
    nn.seed_ranks(5)
    assert bits(nt.random.rand(4)) == bits(drawn)
    layer = nn.Linear(3 + world.rank, 2)
    try:
        nn.broadcast(layer)  # first line
    except nt.FileError as error:
        assert f"{pathlib.Path(__file__).name}:{line_of_broadcast()}" in str(error), error
        os._exit(7)  # such a group is of no use any more


class Pair(nn.Module):
    def __init__(self) -> None:
        self.hidden, self.out = nn.Linear(5, 12), nn.Linear(12, 2)

    def __call__(self, x: nt.Tensor) -> nt.Tensor:
        return self.out(nt.tanh(self.hidden(x)))


def labelled(rows: int, seed: int) -> tuple[nt.Tensor, nt.Tensor]:
    x = nt.random.randn((rows, 5), generator=nt.random.Generator(seed))
    return x, (nt.sum(x, axis=-1) > 0).astype(nt.int64)


def check_alike(values: Any) -> None:
    own = nt.asarray(values) if isinstance(values, list) else values
    assert bits(dist.broadcast(own)) == bits(own), values


def fit() -> None:
    """As one process with the whole batch; unequally many batches; callbacks and files of rank 0."""
    world = dist.world()
    ranks, rank = world.size, world.rank
    folder = pathlib.Path(sys.argv[2]).parent
    alone = world.split(rank)
    for compiled in (True, False):

        def trained(net: Pair, is_alone: bool) -> list[dict[str, float]]:
            shard: Any = (0, 1) if is_alone else world  # noqa: B023
            loader = nn.DataLoader(
                labelled(96, 4), 24 if is_alone else 24 // ranks, seed=3, shard=shard
            )
            held_out = nn.DataLoader(labelled(48, 5), 48, shuffle=False, shard=shard)
            return nn.fit(
                net, nn.cross_entropy, nn.Adam(net, rate=0.02), loader, epochs=3, validation=held_out,
                metrics=[nn.accuracy(), nn.Metric("greatest", lambda out, y: nt.max(out, axis=-1), nt.max)],
                largest_norm=0.5, compiled=compiled, group=alone if is_alone else None,  # noqa: B023
            )  # fmt: skip

        nt.manual_seed(7 + rank)  # but all begin with what rank 0 has
        net = Pair()
        nt.manual_seed(7)
        expected = Pair()
        history, of_one = trained(net, False), trained(expected, True)
        assert len(history) == 3
        for epoch, other in zip(history, of_one):
            assert epoch.keys() == other.keys()
            for name, value in other.items():
                assert abs(epoch[name] - value) <= 1e-4 * abs(value), (name, epoch, other)
        check_alike([list(epoch.values()) for epoch in history])
        for name, p in net.named_parameters().items():
            check_alike(p.value)
            theirs = expected.named_parameters()[name].value
            np.testing.assert_allclose(
                np.asarray(p.value), np.asarray(theirs), rtol=1e-3, atol=1e-5
            )

    # As many steps on each; what rank 0 alone is called for may change the optimizer.
    x, y = labelled(8 * (3 + rank), rank)
    for data in ((x, y), lambda: zip(x, y)):
        loader = nn.DataLoader(data, 8)
        net, steps = Pair(), []
        called: list[Any] = []
        explained: list[Any] = []
        optimizer = nn.Sgd(net, rate=0.1)

        def after_epoch(epoch: Any) -> None:
            called.append(epoch)  # noqa: B023
            optimizer.set_rate(0.05)  # noqa: B023

        def schedule(step: int) -> float:
            steps.append(step)  # noqa: B023
            return 0.1

        log = nn.MetricLog(folder / "log") if rank == 0 else None
        history = nn.fit(
            net, nn.cross_entropy, optimizer, loader, epochs=3, log=log, after_epoch=after_epoch,
            metrics=[nn.accuracy()], explain=explained.append, checkpoint=folder / "never",
            schedule=schedule,
        )  # fmt: skip
        (folder / "never").unlink(missing_ok=True)
        dist.barrier()
        assert len(steps) == 9 and loader.is_between_passes, steps
        assert len(called) == (3 if rank == 0 else 0) and len(explained) == (1 if rank == 0 else 0)
        assert abs(float(optimizer.rate()) - 0.05) < 1e-9
        check_alike([list(epoch.values()) for epoch in history])
        for p in net.parameters():
            check_alike(p.value)

    fit_sharded(folder)

    # A rank whose own values would have it stop.
    net, count = Pair(), 0

    def told(out: nt.Tensor, y: nt.Tensor) -> nt.Tensor:
        nonlocal count
        count += 1
        return nt.full((len(out),), abs(count - (1.0 if rank == 0 else 30.0)), dtype=nt.float64)

    history = nn.fit(
        net, nn.cross_entropy, nn.Sgd(net, rate=0.0),
        nn.DataLoader(labelled(24, 1), 24 // ranks, shard=world), epochs=9, compiled=False,
        metrics=[nn.Metric("told", told)], early_stopping=nn.EarlyStopping("told", patience=2),
    )  # fmt: skip
    assert len(history) == (3 if ranks == 2 else 9), history

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        loader = nn.DataLoader(labelled(24, 1), 24)  # each has all samples
        nn.fit(net, nn.cross_entropy, nn.Sgd(net), loader)
    assert ["the same samples" in str(one.message) for one in caught] == [True] * (rank == 0)


def fit_sharded(folder: pathlib.Path) -> None:
    """By an optimizer of which each rank has a part: the bits of a whole one, whose file it writes."""
    world = dist.world()
    path = folder / "sharded.safetensors"
    nt.manual_seed(20 + world.rank)
    first, second, third = Pair(), Pair(), Pair()
    sharded: Any = nn.Sharded(nn.Adam, first, rate=0.02)
    nt.manual_seed(20)
    for p, q in zip(Pair().parameters(), second.parameters()):
        q.value = p.value

    def trained(net: Pair, optimizer: Any, epochs: int, **options: Any) -> list[dict[str, float]]:
        loader = nn.DataLoader(labelled(96, 4), 24 // world.size, seed=3, shard=world)
        return nn.fit(net, nn.cross_entropy, optimizer, loader, epochs=epochs, **options)

    trained(first, sharded, 2, checkpoint=path)
    trained(second, nn.Adam(second, rate=0.02), 3)
    trained(third, nn.Adam(third), 3, checkpoint=path)  # goes on without parts
    dist.barrier()
    trained(first, nn.Sharded(nn.Adam, first), 3, checkpoint=path)  # it is the third's end
    nn.broadcast(first)
    for p, q, r in zip(second.parameters(), third.parameters(), first.parameters()):
        assert bits(p.value) == bits(q.value) == bits(r.value)
    trained(
        first, sharded, 1, loss_scale=nn.LossScale(), largest_norm=0.5, after_epoch=lambda _: sharded.set_rate(0.5)
    )  # fmt: skip
    assert abs(float(sharded.rate()) - 0.5) < 1e-9
    for p in first.parameters():
        check_alike(p.value)
    for wrong, message in ((sharded, "group: expected the group of the Sharded"), (7, "got int")):
        try:
            trained(first, wrong, 1, group=world.split(world.rank))
        except (nt.ArgumentError, TypeError) as error:
            assert message in str(error), error
        else:
            raise AssertionError(message)
    try:
        nn.save(path, {"optimizer": sharded})
    except TypeError as error:
        assert "give the optimizer that its gathered() returns" in str(error), error
    else:
        raise AssertionError


def resumed() -> None:
    """From a checkpoint, with the bits it would have had."""
    world = dist.world()
    path = pathlib.Path(sys.argv[2]).parent / "fit.safetensors"

    def trained(stops: list[int]) -> tuple[list[Any], Any]:
        for run in range(len(stops) + 1):
            nt.manual_seed(5 if run == 0 else 77)
            net = nn.Sequential(
                nn.Linear(5, 12), nn.BatchNorm(12), nt.tanh, nn.Dropout(0.25), nn.Linear(12, 2)
            )
            nn.seed_ranks(9)
            optimizer = nn.AdamW(net, rate=0.02)
            loader = nn.DataLoader(labelled(96, 4), 24 // world.size, seed=3, shard=world)
            steps = iter(range(10**6))

            def schedule(step: int) -> float:
                if run < len(stops) and next(steps) == stops[run]:  # noqa: B023
                    raise InterruptedError
                return 0.01

            try:
                history = nn.fit(
                    net, nn.cross_entropy, optimizer, loader, epochs=3, metrics=[nn.accuracy()],
                    checkpoint=path, checkpoint_steps=3, schedule=schedule,
                )  # fmt: skip
            except InterruptedError:
                assert run < len(stops)
                continue
            parts = [*net.named_variables().values(), *optimizer.named_variables().values()]
            for v in net.named_variables().values():
                check_alike(v.value)
            return [bits(v.value) for v in parts], [epoch["loss"] for epoch in history]
        raise AssertionError

    whole, losses = trained([])
    dist.barrier()
    path.unlink(missing_ok=True)
    dist.barrier()
    again, their_losses = trained([4, 5])
    assert again == whole
    np.testing.assert_allclose(losses, their_losses, rtol=1e-12)
    key = nt.random.default_generator().state.value[:1]
    assert len(set(dist.all_gather(key).tolist())) == world.size


def lists() -> None:
    """all_reduce() of several tensors at once."""
    world = dist.world()
    tensors = [nt.asarray(data_of(world.rank, shape, "float32")) for shape in SHAPES]
    tensors.append(nt.asarray(data_of(world.rank, (3,), "int64")))
    for how in ("sum", "max"):
        each = [dist.all_reduce(x, how) for x in tensors]

        def together(*xs: nt.Tensor) -> list[nt.Tensor]:
            return dist.all_reduce(xs, how)  # noqa: B023

        for run in (together, nt.compile(together)):
            for _ in range(3):
                got = run(*tensors)
                assert isinstance(got, list)
                assert [bits(x) for x in got] == [bits(x) for x in each]
    assert dist.all_reduce([]) == []
    (total,) = dist.all_reduce([2.0], group=world.split(world.rank))
    assert total.item() == 2
    x = nt.parameter(nt.ones(3))
    a, b = dist.all_reduce([x * 2, x * 3])
    nt.sum(a + b).backward()
    assert x.grad is not None and x.grad.tolist() == [5.0 * world.size] * 3


def clipped() -> None:
    """Functions of all gradients, of which Sharded has parts."""
    world = dist.world()
    x, y = (nt.asarray(data_of(20 + world.rank, shape, "float32")) for shape in ((8, 5), (8, 2)))
    nt.manual_seed(1)
    model, other = Pair(), Pair()
    for p, q in zip(model.parameters(), other.parameters()):
        q.value = p.value
    sharded, plain = (
        nn.Sharded(nn.Sgd, model, rate=0.1, momentum=0.9),
        nn.Sgd(other, rate=0.1, momentum=0.9),
    )

    def step(x: nt.Tensor, y: nt.Tensor) -> nt.Tensor:
        sharded.zero_grad()
        nn.mse_loss(model(x), y).backward()
        norm = sharded.clip_gradient_norm(0.05)
        sharded.clip_gradient_value(0.01)
        sharded.step()
        return norm

    compiled = nt.compile(step)
    for k in range(5):
        norm = (step if k < 2 else compiled)(x, y)
        plain.zero_grad()
        nn.mse_loss(other(x), y).backward()
        nn.average_gradients(other)
        expected = nn.clip_gradient_norm(other, 0.05)
        nn.clip_gradient_value(other, 0.01)
        plain.step()
        assert expected.item() > 0.05 and abs(norm.item() / expected.item() - 1) < 1e-5
        check_alike(norm)
    for p, q in zip(model.parameters(), other.parameters()):
        np.testing.assert_allclose(np.asarray(p.value), np.asarray(q.value), rtol=1e-5, atol=1e-6)
        check_alike(p.value)
    # Overflow on one rank holds back all.
    before, scale = [bits(p.value) for p in model.parameters()], nn.LossScale()
    sharded.zero_grad()
    scale(nn.mse_loss(model(x), y)).backward()
    if world.rank == world.size - 1:
        list(model.parameters())[-1].grad = nt.full((2,), nt.inf)
    finite = sharded.unscale(scale)
    sharded.step(finite)
    assert not finite.item() and [bits(p.value) for p in model.parameters()] == before
    own = nt.parameter(nt.zeros(1))
    own.grad = nt.full((1,), 1.0 + world.rank)
    total = nn.clip_gradient_norm([own], 10.0, group=world).item()
    assert abs(total**2 - sum((1 + r) ** 2 for r in range(world.size))) < 1e-3


def line_of_broadcast() -> int:
    lines = pathlib.Path(__file__).read_text("utf-8").splitlines()
    return next(i + 1 for i, line in enumerate(lines) if "broadcast(layer)  # first" in line)


def other_threads_go_on() -> None:
    """While a collective waits."""
    world = dist.world()
    ticks = 0
    is_over = threading.Event()

    def count() -> None:
        nonlocal ticks
        while not is_over.wait(0.005):
            ticks += 1

    thread = threading.Thread(target=count)
    for function in (
        dist.barrier, lambda: dist.all_reduce(1.0), lambda: world.split(0), nt.compile(dist.barrier),
        nt.compile(lambda: dist.all_reduce(1.0)),
    ):  # fmt: skip
        thread, is_over, ticks = threading.Thread(target=count), threading.Event(), 0
        dist.barrier()
        if world.rank == 0:
            thread.start()
        else:
            time.sleep(0.4)
        function()
        if world.rank == 0:
            assert ticks > 10, (function, ticks)
            is_over.set()
            thread.join()


def a_child() -> None:
    """A process that was forked takes no part; its end ends nobody."""
    world = dist.world()
    warnings.simplefilter("ignore", DeprecationWarning)  # of threads there are
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(1.0)
        except nt.FileError as error:
            assert "this process was forked" in str(error), error
            sys.exit(5)
        sys.exit(6)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
    assert dist.all_reduce(1.0).item() == world.size


def beside_mpi4py() -> None:
    """Who has initialised MPI closes it."""
    from mpi4py import MPI

    assert MPI.Is_initialized()
    assert dist.world().size == MPI.COMM_WORLD.size and dist.world().rank == MPI.COMM_WORLD.rank
    assert dist.all_reduce(1.0).item() == MPI.COMM_WORLD.allreduce(1)
    assert not MPI.Is_finalized()
    print(f"together {dist.world().rank}")


def before_mpi4py() -> None:
    dist.init()
    beside_mpi4py()


def an_exception_beside_mpi4py() -> None:
    from mpi4py import MPI

    assert dist.all_reduce(1.0).item() == MPI.COMM_WORLD.size
    an_exception()


# ---- what ends with an error


def differ() -> None:
    if dist.world().rank == 0:
        dist.all_reduce(nt.ones(3))  # first line
    dist.all_gather(nt.ones(4))  # second line


def differ_when_compiled() -> None:
    step = nt.compile(
        lambda x: dist.all_reduce(x * 2),  # first line
        name="step",
    )
    for _ in range(3):
        step(nt.ones(3))
    step(nt.ones(3 + dist.world().rank))


def an_exception() -> None:
    dist.all_reduce(1.0)
    if dist.world().rank == 1:
        raise ValueError("bad data")
    dist.all_reduce(1.0)


def an_exit() -> None:
    dist.all_reduce(1.0)
    if dist.world().rank == 1:
        sys.exit(3)
    dist.all_reduce(1.0)


def nobody_comes() -> None:
    dist.init(timeout=1)
    dist.all_reduce(1.0)
    if dist.world().rank == 1:
        time.sleep(60)
    dist.barrier()  # first line


def interrupted() -> None:
    """Ctrl-C is seen where others are waited for, and they are told."""
    compiled = len(sys.argv) > 3
    signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where no terminal is
    x = nt.ones(50_000)
    step: Any = lambda x: nt.sum(nt.tanh(dist.all_reduce(x)) * nt.exp(x))  # noqa: E731
    step = nt.compile(step) if compiled else step
    for _ in range(4):
        step(x)
    if dist.world().rank == 1:
        time.sleep(2)
        try:
            step(x)
        except nt.FileError as error:
            print(f"told: {error}", flush=True)
        return
    threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    try:
        step(x)
    except KeyboardInterrupt:
        print(f"interrupted after {time.monotonic() - begin:.1f} s", flush=True)
    try:
        dist.barrier()
    except nt.FileError as error:
        print(f"afterwards: {error}", flush=True)
    time.sleep(3)  # its end is that of the other, which has not come yet


def one_is_killed() -> None:
    dist.init(timeout=5)
    dist.all_reduce(1.0)
    if dist.world().rank == 1:
        os.kill(os.getpid(), 9)
    dist.barrier()


def main() -> None:
    nt.set_log_level("off")
    case = sys.argv[1]
    if len(sys.argv) > 2:  # who is there, for who looks whether anybody is left
        (pathlib.Path(sys.argv[2]) / str(os.getpid())).touch()
    for each in case.split("+"):
        globals()[each]()


if __name__ == "__main__":
    main()
