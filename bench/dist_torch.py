"""The step of nitinol_dist_bench's dist.mlp.step by PyTorch's DistributedDataParallel on gloo, for a look
at both on one machine.

python bench/dist_torch.py [--ranks 2] [--batch 512]   (needs torch)
"""

from __future__ import annotations

import argparse
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SAMPLES = 7


def timed(step: object, seconds: float = 0.02) -> float:
    """Median seconds of a call, of samples that all ranks begin together."""
    for _ in range(20):
        step()  # type: ignore[operator]
    start = time.perf_counter()
    step()  # type: ignore[operator]
    count = torch.tensor(int(seconds / max(1e-7, time.perf_counter() - start)) + 1)
    dist.broadcast(count, 0)
    times = []
    for _ in range(SAMPLES):
        dist.barrier()
        start = time.perf_counter()
        for _ in range(int(count)):
            step()  # type: ignore[operator]
        times.append((time.perf_counter() - start) / int(count))
    return statistics.median(times)


def run(rank: int, ranks: int, batch: int) -> None:
    """One process."""
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", "29517"
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    torch.manual_seed(0)
    part = batch // ranks
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 10))
    parallel = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    loss_of = nn.CrossEntropyLoss()
    x, labels = torch.rand(part, 784), torch.randint(0, 10, (part,))

    def step() -> None:
        optimizer.zero_grad()
        loss_of(parallel(x), labels).backward()
        optimizer.step()

    took = timed(step)
    flat = torch.ones(250_000)
    sums = {size: timed(lambda size=size: dist.all_reduce(flat[:size])) for size in (1, 250_000)}
    if rank == 0:
        print(
            f"torch {torch.__version__}, gloo, {ranks} ranks: dist.mlp.step.b{batch} {took * 1e6:.0f} us; "
            f"all_reduce of 4 B {sums[1] * 1e6:.1f} us, of 1 MB {sums[250_000] * 1e6:.0f} us",
            flush=True,
        )
    dist.barrier()
    dist.destroy_process_group()


def main() -> None:
    """Starts the processes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--batch", type=int, default=512)
    given = parser.parse_args()
    mp.spawn(run, args=(given.ranks, given.batch), nprocs=given.ranks)


if __name__ == "__main__":
    main()
