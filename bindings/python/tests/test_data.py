"""Loaders of tensors, of samples that are made one by one and of streams; workers, samplers, places."""

import threading
import time
from pathlib import Path
from typing import Any, Iterator, NamedTuple

import numpy as np
import pytest

import nitinol as nt
from nitinol import nn

nt.set_log_level("off")


class Numbers:
    """Sample i is i and its square."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, i: int) -> tuple[int, np.ndarray[Any, Any]]:
        if i >= self.count:
            raise IndexError(i)
        return i, np.asarray([i, i * i], np.float32)


def numbers_of(loader: nn.DataLoader) -> list[list[int]]:
    return [batch[0].tolist() for batch in loader]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_samples_come_in_the_order_of_rows(workers: int) -> None:
    x = nt.arange(10)
    made = nn.DataLoader(Numbers(10), batch=4, seed=7, workers=workers)
    rows = nn.DataLoader((x, x * 2), batch=4, seed=7, workers=workers)
    single = nn.DataLoader((x, x * 2), batch=4, seed=7)
    assert len(made) == len(rows) == 3
    for _ in range(3):
        batches = numbers_of(made)
        assert batches == numbers_of(rows) == numbers_of(single)
        assert sorted(sum(batches, [])) == list(range(10))
    for i, pair in made:
        assert pair.dtype == nt.float32 and pair.shape == (i.size, 2)
        assert pair[:, 1].tolist() == [n * n for n in i.tolist()]


class Sample(NamedTuple):
    image: nt.Tensor
    label: int


def test_structures_of_samples() -> None:
    def batch_of(make: Any, **options: Any) -> Any:
        return next(
            iter(nn.DataLoader([make(i) for i in range(3)], batch=3, shuffle=False, **options))
        )

    named = batch_of(lambda i: Sample(nt.full((2,), i), i))
    assert isinstance(named, Sample) and named.image.shape == (3, 2)
    assert named.label.tolist() == [0, 1, 2]  # type: ignore[attr-defined]
    told = batch_of(lambda i: {"x": np.ones(2) * i, "name": f"n{i}", "parts": (i, 1.0)})
    assert told["x"].dtype == nt.float64 and told["name"] == ["n0", "n1", "n2"]
    assert told["parts"][0].tolist() == [0, 1, 2]
    assert batch_of(lambda i: 1.5 * i).tolist() == [0, 1.5, 3]
    assert batch_of(lambda i: [i] * (i + 1), collate=lambda all: sum(all, [])) == [0, 1, 1, 2, 2, 2]
    with pytest.raises(nt.Error, match="the parts of a sample"):
        batch_of(lambda i: (i,) * (i + 1))


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_dict_of_tensors_gives_dicts(shuffle: bool) -> None:
    x = nt.arange(10)
    named = nn.DataLoader({"x": x, "twice": (x * 2).numpy()}, batch=4, seed=7, shuffle=shuffle)
    rows = nn.DataLoader((x, x * 2), batch=4, seed=7, shuffle=shuffle)
    assert len(named) == 3
    for batch, (a, b) in zip(named, rows):
        assert list(batch) == ["x", "twice"]
        assert batch["x"].tolist() == a.tolist() and batch["twice"].tolist() == b.tolist()
    numbered = nn.DataLoader({0: x, 1: x + 1}, batch=2, shuffle=False)  # samples by number
    assert next(iter(numbered)).tolist() == [list(range(10)), list(range(1, 11))]
    with pytest.raises(TypeError, match=r"data\['name'\] is a list; expected a tensor"):
        nn.DataLoader({"x": x, "name": ["a"] * 10})
    with pytest.raises(nt.Error, match="DataLoader"):
        nn.DataLoader({"x": x, "y": x[1:]})


@pytest.mark.parametrize("workers", [0, 2])
def test_streams(workers: int) -> None:
    def generate() -> Iterator[tuple[int]]:
        yield from ((i,) for i in range(5))

    class Lines:
        def __iter__(self) -> Iterator[tuple[int]]:
            return generate()

    for data in (generate, Lines()):
        loader = nn.DataLoader(data, batch=2, workers=workers)
        for _ in range(2):
            assert numbers_of(loader) == [[0, 1], [2, 3], [4]]
        assert numbers_of(nn.DataLoader(data, batch=2, drop_last=True, workers=workers)) == [
            [0, 1],
            [2, 3],
        ]
        assert not loader.has_size
        with pytest.raises(nt.Error, match="the number of batches of a stream"):
            len(loader)
    once = nn.DataLoader(generate(), batch=2, workers=workers)
    assert numbers_of(once) == [[0, 1], [2, 3], [4]]
    with pytest.raises(nt.Error, match="a second pass"):
        numbers_of(once)


def test_workers_are_ahead_and_in_order() -> None:
    threads, running, most = set(), [0], [0]
    lock = threading.Lock()

    class Slow:
        def __len__(self) -> int:
            return 12

        def __getitem__(self, i: int) -> int:
            with lock:
                threads.add(threading.get_ident())
                running[0] += 1
                most[0] = max(most[0], running[0])
            time.sleep(0.02 if i % 2 == 0 else 0.001)
            with lock:
                running[0] -= 1
            return i

    loader = nn.DataLoader(Slow(), batch=1, shuffle=False, workers=3)
    assert [batch.item() for batch in loader] == list(range(12))
    assert threading.get_ident() not in threads and most[0] > 1


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_sample_raises_is_raised_where_its_batch_is_taken(workers: int) -> None:
    class Damaged(Numbers):
        def __getitem__(self, i: int) -> Any:
            if i == 3:
                raise OSError("sample 3 is damaged")
            return super().__getitem__(i)

    batches = iter(nn.DataLoader(Damaged(6), batch=2, shuffle=False, workers=workers))
    assert next(batches)[0].tolist() == [0, 1]
    with pytest.raises(OSError, match="sample 3 is damaged"):
        next(batches)


def test_samplers_and_shards() -> None:
    drawn = nn.DataLoader(Numbers(3), batch=100, sampler=nn.weighted([1.0, 1.0, 2.0], 4000, seed=3))
    counts = np.bincount(sum(numbers_of(drawn), []))
    assert np.abs(counts - [1000, 1000, 2000]).max() < 160
    mine = nn.DataLoader(Numbers(4), batch=2, sampler=lambda number: [3 - number % 4] * 4)
    assert [numbers_of(mine) for _ in range(2)] == [[[3, 3], [3, 3]], [[2, 2], [2, 2]]]
    seen = []
    for number in range(3):
        part = nn.DataLoader(Numbers(10), batch=2, seed=5, shard=(number, 3))
        assert len(part) == 2
        seen += sum(numbers_of(part), [])
    assert len(seen) == 12 and set(seen) == set(range(10))


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("stop", [1, 5, 7, 10])
def test_a_loader_goes_on_where_load_says(workers: int, stop: int, tmp_path: Path) -> None:
    def make() -> nn.DataLoader:
        return nn.DataLoader(Numbers(10), batch=2, seed=9, workers=workers)

    whole = make()
    expected = sum((numbers_of(whole) for _ in range(3)), [])
    first = make()
    got: list[list[int]] = []
    while len(got) < stop:
        for batch in first:
            got.append(batch[0].tolist())
            if len(got) == stop:
                break
    nn.save(tmp_path / "place", first)
    second = make()
    numbers_of(second)
    nn.load(tmp_path / "place", second)
    while len(got) < len(expected):
        got += numbers_of(second)
    assert got == expected


def test_what_makes_no_sense_is_refused() -> None:
    data = Numbers(4)
    make: Any = nn.DataLoader
    for options, text in (
        ({"batch": 0}, "batch"),
        ({"workers": -1}, "workers"),
        ({"prefetch": 0}, "prefetch"),
        ({"shard": (2, 2)}, "the shard's number"),
        ({"shard": (0, 1, 2)}, "shard"),
        ({"shard": "all"}, "shard"),
        ({"sampler": 3}, "sampler"),
        ({"sampler": nn.weighted([1.0], 3), "shuffle": True}, "a sampler and shuffling"),
        ({"collate": 3}, "collate"),
        ({"device": "gpu:"}, "device"),
        ({"num_workers": 2}, "no parameter 'num_workers'"),
    ):
        with pytest.raises((TypeError, nt.Error)) as refused:
            make(data, **options)
        assert text in str(refused.value), options
    with pytest.raises(nt.Error, match="an order or a shard of a stream"):
        nn.DataLoader(lambda: iter([1]), shuffle=True)
    with pytest.raises(TypeError, match="data is an int"):
        make(3)
    for weights, count in (([], 1), ([0.0], 1), ([-1.0, 2.0], 1), ([1.0], 0)):
        with pytest.raises(nt.Error, match="weighted"):
            nn.weighted(weights, count)
    with pytest.raises(nt.Error, match="a number that the sampler gave"):
        numbers_of(nn.DataLoader(data, sampler=lambda number: [7]))
    with pytest.raises(TypeError, match="what the sampler gives is a str"):
        nn.DataLoader(data, sampler=lambda number: "abc")  # type: ignore[arg-type, return-value]


def test_a_dataset_of_torch() -> None:
    torch = pytest.importorskip("torch")
    data = torch.utils.data.TensorDataset(torch.arange(6), torch.arange(6) * 2.0)
    loader = nn.DataLoader(data, batch=4, shuffle=False)
    assert [(x.tolist(), y.tolist()) for x, y in loader] == [
        ([0, 1, 2, 3], [0, 2, 4, 6]),
        ([4, 5], [8, 10]),
    ]
