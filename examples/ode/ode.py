"""Reaction and diffusion by Runge-Kutta steps of adapted length, eager and compiled.

The same program as ode.cpp, with the same numbers. The whole solver is compiled: its `while` and `if` run as they are
written, and what lies between two looks at the error by one Plan.
"""

import argparse
import sys
import time
from collections.abc import Callable

import nitinol as nt


def laplacian(x: nt.Tensor) -> nt.Tensor:
    """Four neighbours and the middle, on a torus."""
    return nt.roll(x, 1, 0) + nt.roll(x, -1, 0) + nt.roll(x, 1, 1) + nt.roll(x, -1, 1) - 4.0 * x


def derivative(state: nt.Tensor) -> nt.Tensor:
    """What the concentrations u and v change by in a unit of time."""
    u, v = state[0], state[1]
    reaction = u * v * v
    return nt.stack(
        [
            0.16 * laplacian(u) - reaction + 0.035 * (1.0 - u),
            0.08 * laplacian(v) + reaction - 0.1 * v,
        ]
    )


def dormand_prince(y: nt.Tensor, h: float) -> tuple[nt.Tensor, nt.Tensor]:
    """The state after one step, and how far the formula of order 4 is from it."""
    k1 = derivative(y)
    k2 = derivative(y + h * (k1 / 5.0))
    k3 = derivative(y + h * (3.0 / 40 * k1 + 9.0 / 40 * k2))
    k4 = derivative(y + h * (44.0 / 45 * k1 - 56.0 / 15 * k2 + 32.0 / 9 * k3))
    k5 = derivative(
        y + h * (19372.0 / 6561 * k1 - 25360.0 / 2187 * k2 + 64448.0 / 6561 * k3 - 212.0 / 729 * k4)
    )
    k6 = derivative(
        y
        + h
        * (
            9017.0 / 3168 * k1
            - 355.0 / 33 * k2
            + 46732.0 / 5247 * k3
            + 49.0 / 176 * k4
            - 5103.0 / 18656 * k5
        )
    )
    after = y + h * (
        35.0 / 384 * k1 + 500.0 / 1113 * k3 + 125.0 / 192 * k4 - 2187.0 / 6784 * k5 + 11.0 / 84 * k6
    )
    k7 = derivative(after)
    return after, h * (
        71.0 / 57600 * k1
        - 71.0 / 16695 * k3
        + 71.0 / 1920 * k4
        - 17253.0 / 339200 * k5
        + 22.0 / 525 * k6
        - 1.0 / 40 * k7
    )


def solve(start: nt.Tensor, end: float, tolerance: float) -> nt.Tensor:
    """The state at time `end`."""
    limit, small = float(end), float(tolerance)
    state, now, h = start, 0.0, 1.0
    while now < limit:
        h = min(h, limit - now)
        after, difference = dormand_prince(state, h)
        error = nt.max(nt.abs(difference)).item()
        if error <= small:
            now, state = now + h, after
        h *= min(max(0.9 * (small / (error + 1e-12)) ** 0.2, 0.2), 5.0)
    return state


def seeded(size: int) -> nt.Tensor:
    """All of u, and some v in the middle, with a little noise."""
    a, b = size * 2 // 5, size * 3 // 5
    v = nt.zeros((size, size))
    v[a:b, a:b] = 0.25
    return nt.stack([1.0 - 2.0 * v, v]) + 0.01 * nt.random.rand((2, size, size))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--until", type=float, default=50.0)
    parser.add_argument("--tolerance", type=float, default=1e-4)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    nt.set_num_threads(options.threads)
    nt.manual_seed(1)
    start = seeded(options.size)
    compiled = nt.compile(solve, name="solve")
    limits = (options.until, options.tolerance)

    def timed(function: Callable[..., nt.Tensor]) -> tuple[nt.Tensor, float]:
        begun = time.perf_counter()
        result = function(start, *limits)
        nt.synchronize()
        return result, time.perf_counter() - begun

    for _ in range(2):  # finds its segments, and makes their Plans
        timed(compiled)
    expected, eager_s = timed(solve)
    got, compiled_s = timed(compiled)
    print(
        f"eager {eager_s:.3f} s, compiled {compiled_s:.3f} s, {eager_s / compiled_s:.2f} times as fast"
    )
    print(compiled.explain())
    same = bytes(expected) == bytes(got)
    print(f"mean of v {nt.mean(got[1]).item():.6f}, bit-identical: {'yes' if same else 'no'}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
