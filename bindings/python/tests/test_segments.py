"""compile() of functions that look at data: Python runs as written, and what lies between two looks by Plans."""

import gc
import signal
import threading
import time
from typing import Any

import numpy as np
import pytest
from conftest import bits

import nitinol as nt

X = nt.asarray([[1.0, -2.0, 3.0], [0.5, 0.25, -4.0]])


def segments(f):
    return f.explain().data["segments"]


def agree(f, *inputs, rounds=4):
    """Calls f on each of the inputs, again and again, beside plain calls; then all is done by Plans."""
    compiled = nt.compile(f)
    for _ in range(rounds):
        for x in inputs:
            assert bits(compiled(x)) == bits(f(x))
    assert compiled.explain().data["signatures"][-1]["tier"] == "compiled in segments"
    before = segments(compiled)
    for x in inputs:
        assert bits(compiled(x)) == bits(f(x))
    after = segments(compiled)
    assert after["computed"] == before["computed"]
    assert after["plans"] == before["plans"]
    assert after["matched"] > before["matched"]
    return compiled


def branches(x):
    y = nt.tanh(x) * 2
    if nt.mean(y) > 0.5:
        return nt.exp(y) + x
    elif nt.max(y) < -1:
        return y
    return y - x * x


def loops(x):
    y = nt.abs(x)
    while nt.sum(y) < 100:
        y = y * 1.5 + 1
        if bool(nt.min(y) > 50):
            break
    return y


def numbers(x):
    y = nt.tanh(x)
    scale = float(nt.max(nt.abs(y)))
    count = int(nt.sum(y > 0))
    return y / scale + len(y) * count


def recursive(x, depth=0):
    if depth > 10 or nt.max(x).item() < 1:
        return x
    return recursive(x * 0.5, depth + 1) + 1


def raises_inside(x):
    try:
        if nt.sum(x) > 0:
            raise KeyError("inside")
        y = x * 2
    except KeyError:
        y = x * 3
    return y + x[{0: 1}.get(int(nt.sum(x) > 1e6), 0)]


def by_generator(x):
    def rows():
        for row in x:
            if nt.sum(row) > 0:
                yield row * 2

    return sum(rows(), nt.zeros(3))


def by_numpy(x):
    y = nt.sin(x) * 2
    return y * float(np.asarray(y).max()) + nt.asarray(np.asarray(y) > 0)


@pytest.mark.parametrize(
    "f", [branches, loops, numbers, recursive, raises_inside, by_generator, by_numpy]
)
def test_python_runs_as_written(f):
    agree(f, X, X + 3, X - 5)


def test_python_runs_at_each_call():
    calls = []

    @nt.compile
    def f(x):
        calls.append(float(nt.sum(x)))
        return x * 2

    for i in range(10):
        f(X + i)
    assert len(calls) == 10


def test_a_loop_has_as_many_plans_for_any_number_of_rounds():
    f = nt.compile(lambda x, limit: loop_to(x, limit))
    for limit in (1.0, 50.0, 1e3, 1e9, 1.0, 1e6):
        assert bits(f(X, limit)) == bits(loop_to(X, limit))
    before = segments(f)["plans"]
    assert bits(f(X, 1e30)) == bits(loop_to(X, 1e30))
    assert segments(f)["plans"] == before <= 5


def loop_to(x, limit):
    y = nt.abs(x)
    while nt.sum(y) < limit:
        y = y * 1.5 + 1
    return y


def test_a_training_step_that_is_skipped():
    def net() -> tuple[nt.nn.Sequential, nt.nn.Adam]:
        nt.manual_seed(0)
        model = nt.nn.Sequential(nt.nn.Linear(3, 4), nt.tanh, nt.nn.Linear(4, 1))
        return model, nt.nn.Adam(model, rate=0.01)

    def step(model, adam, x, y):
        adam.zero_grad()
        loss = nt.mean((model(x) - y) ** 2)
        loss.backward()
        if nt.isfinite(loss):
            adam.step()
        return nt.stop_gradient(loss)

    plain, compiled = net(), net()
    f = nt.compile(lambda x, y: step(*compiled, x, y))
    y = nt.asarray([[1.0], [0.0]])
    for i in range(12):
        target = y / 0 if i % 4 == 3 else y
        assert bits(f(X, target)) == bits(step(*plain, X, target))
    for a, b in zip(plain[0].parameters(), compiled[0].parameters()):
        assert bits(a.value) == bits(b.value)
    before = segments(f)
    f(X, y)
    assert segments(f)["computed"] == before["computed"]


def test_tensors_that_leave_the_call_are_there():
    kept = []

    @nt.compile
    def f(x):
        y = x * 2
        kept.append(y + 1)
        if nt.sum(y) > 1e9:
            return y
        kept.append(y * y)
        raise ValueError("after all")

    for _ in range(5):
        kept.clear()
        with pytest.raises(ValueError, match="after all"):
            f(X)
        assert bits(kept[0]) == bits(X * 2 + 1)
        assert bits(kept[1]) == bits(X * 2 * (X * 2))
    gc.collect()


def test_another_thread_reads_what_is_pending():
    @nt.compile
    def f(x):
        y = nt.exp(x) * 2
        found = []
        thread = threading.Thread(target=lambda: found.append(float(nt.max(y))))
        thread.start()
        z = y
        for _ in range(10):
            z = z * 0.5 + y
        thread.join()
        return z + found[0] if nt.sum(z) < 1e9 else z

    expected = f.eager(X)
    for _ in range(20):
        assert bits(f(X)) == bits(expected)


def test_explain_shows_looks_with_their_lines():
    f = nt.compile(branches)
    for i in range(9):
        f(X + (3 if i % 3 == 0 else -3))
    text = str(f.explain())
    assert "test_segments.py" in text and "times true" in text, text
    found = segments(f)
    assert found["cuts"] == sum(s["visits"] for s in found["segments"])
    looks = [look for s in found["segments"] for look in s["looks"]]
    assert {look["what"] for look in looks} == {"bool(tensor)"}
    assert all(look["place"].split(":")[0].endswith("test_segments.py") for look in looks)


def test_an_error_comes_from_its_line():
    @nt.compile
    def f(x, i):
        y = x * 2
        if nt.sum(y) > 1e9:
            return y
        try:
            return nt.take(y, i, axis=0)
        except nt.Error:
            return y

    good, bad = nt.asarray([0, 1]), nt.asarray([0, 7])
    for _ in range(4):
        assert bits(f(X, good)) == bits(X * 2)
        assert bits(f(X, bad)) == bits(X * 2)


def test_sizes_from_data():
    f = nt.compile(lambda x: nt.sum(x[x > 0] * 2) + len(nt.nonzero(x)[0]))
    for i in range(12):
        x = X + 0.5 * i
        assert bits(f(x)) == bits(nt.sum(x[x > 0] * 2) + len(nt.nonzero(x)[0]))


def test_an_interrupt_inside_leaves_nothing_half_done():
    w = nt.Variable(nt.zeros((3,)))
    interrupts = False

    def f(x):
        w.set(w + x)
        if nt.sum(x) > 1e9:
            return x
        kept.append(w.get() * 2.0)
        if interrupts:
            raise KeyboardInterrupt
        w.set(w * 1.0)
        return x + 1

    kept: list[nt.Tensor] = []
    g = nt.compile(f)
    x = nt.asarray([1.0, 2.0, 3.0])
    for _ in range(6):
        g(x)
    before = bits(w.get())
    interrupts = True
    for _ in range(3):
        with pytest.raises(KeyboardInterrupt):
            g(x)
    assert bits(w.get()) == before
    assert bits(kept[-1]) == bits((w.get() + x) * 2.0)  # what left the call is there
    interrupts = False
    assert bits(g(x)) == bits(x + 1)
    assert bits(w.get()) == bits(x * 7.0)


@pytest.mark.parametrize("looks", [False, True])
def test_an_interrupt_from_the_outside_ends_a_loop(looks):
    end = time.monotonic() + 20

    def f(x):
        y = x
        while time.monotonic() < end:
            y = nt.matmul(y * 0.5, x) * 1e-3  # long enough that other threads come to their turn
            if looks and nt.sum(y) > 1e30:
                break
        return y

    g = nt.compile(f)
    x = nt.ones((300, 300))
    # Who starts this process in the background may have told it to ignore them.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT))
    timer.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            g(x)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)
    assert bits(nt.compile(loops)(X)) == bits(loops(X))


def test_threads_run_while_segments_do():
    """Looks and cuts of one thread leave others the interpreter, which each needs in its turn."""
    turns = [0, 0]

    def f(x, me):
        y = x
        for _ in range(30):
            y = nt.tanh(y) * 0.5 + x
            if nt.sum(y) > 1e9:
                y = y + 1
            turns[me] += 1
        return y

    compiled = [nt.compile(lambda x, me=me: f(x, me)) for me in range(2)]
    x = nt.ones((200, 200))
    expected = bits(f(x, 0))
    found: list[list[Any]] = [[], []]

    def run(me):
        for _ in range(20):
            found[me].append(bits(compiled[me](x)))

    threads = [threading.Thread(target=run, args=(me,)) for me in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert all(result == expected for results in found for result in results)
    assert turns == [630, 600]


def test_a_thread_that_ends_with_what_its_call_left_pending_elsewhere():
    shared = []

    def f(x):
        y = nt.exp(x) + 1.0
        shared.append(y)
        if nt.sum(y) > 1e9:
            return y
        z = y * 2.0
        shared.append(z)
        return z - 1.0

    g = nt.compile(f)
    for _ in range(6):
        thread = threading.Thread(target=lambda: g(X))
        thread.start()
        thread.join()
    y = nt.exp(X) + 1.0
    assert all(bits(a) == bits(y) for a in shared[::2])
    assert all(bits(a) == bits(y * 2.0) for a in shared[1::2])
