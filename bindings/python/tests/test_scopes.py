"""Scopes that do not nest: of tasks, generators and threads. They belong to Python's context, as
decimal.localcontext does."""

import asyncio
import contextvars
import gc
import threading

import pytest

import nitinol as nt

nt.set_log_level("off")
P = nt.parameter(nt.ones((3,)))
X = nt.ones((3,))


def tracks():
    return nt.sum(P * 2).tracks_gradient


def compiles():
    f = nt.compile(lambda x: x * 2)
    for _ in range(6):
        f(X)
    return f.explain()["plan_calls"] > 0


def multiplies_in_full():
    return (X @ X).dtype == nt.float32


# A scope, and what is otherwise inside of it and outside.
SCOPES = [
    (nt.no_gradients, tracks),
    (nt.eager, compiles),
    (lambda: nt.stance("eager"), compiles),
    (lambda: nt.nn.autocast(nt.bfloat16), multiplies_in_full),
]
scopes = pytest.mark.parametrize("scope, is_outside", SCOPES)


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    assert tracks() and compiles() and multiplies_in_full()


@scopes
def test_nested(scope, is_outside):
    one = scope()
    with one:
        with one, scope():
            assert not is_outside()
        assert not is_outside()
    assert is_outside()
    with nt.no_gradients():
        assert nt.grad(lambda x: nt.sum(x * x))(X).tolist() == [2, 2, 2]
        assert not tracks() and compiles()
        with nt.eager():
            assert not tracks() and not compiles()
        assert not tracks() and compiles()


@scopes
@pytest.mark.parametrize("first", [0, 1])
def test_generators_that_cross(scope, is_outside, first):
    def inside():
        with scope():
            yield
            assert not is_outside()

    one, other = inside(), inside()
    next(one), next(other)
    assert not is_outside()
    (one, other)[first].close()
    assert not is_outside()
    (one, other)[1 - first].close()
    assert is_outside()


@scopes
def test_tasks_that_overlap(scope, is_outside):
    inside, outside = [], []

    async def within(before, after):
        await asyncio.sleep(before)
        with scope():
            await asyncio.sleep(after)
            inside.append(is_outside())
            await asyncio.sleep(after)
        outside.append(is_outside())

    async def without():
        for _ in range(20):
            outside.append(is_outside())
            await asyncio.sleep(0.002)

    async def main():
        await asyncio.gather(within(0, 0.01), within(0.005, 0.012), within(0.006, 0.001), without())

    asyncio.run(main())
    assert inside == [False] * 3 and outside == [True] * 23


@scopes
def test_a_task_made_inside_stays_inside(scope, is_outside):
    async def child():
        await asyncio.sleep(0.001)
        return is_outside(), await asyncio.to_thread(is_outside)

    async def main():
        with scope():
            task = asyncio.create_task(child())
        assert is_outside()
        return await task

    assert asyncio.run(main()) == (False, False)
    with scope():
        context = contextvars.copy_context()
    assert is_outside() and not context.run(is_outside)
    assert is_outside()


@scopes
def test_one_object_for_many_tasks(scope, is_outside):
    shared = scope()

    async def within(seconds):
        with shared:
            await asyncio.sleep(seconds)
            first = is_outside()
        return first, is_outside()

    async def main():
        return await asyncio.gather(*(within(s) for s in (0.01, 0.002, 0.006)))

    assert asyncio.run(main()) == [(False, True)] * 3


@scopes
def test_other_threads(scope, is_outside):
    found = []
    with scope():
        thread = threading.Thread(target=lambda: found.append(is_outside()))
        thread.start()
        thread.join()
    assert found == [True]

    def inside():
        with scope():
            yield

    for end in (lambda s: s.close(), None):  # closed by another thread, or dropped
        suspended = inside()
        next(suspended)
        assert not is_outside()
        if end:
            thread = threading.Thread(target=end, args=(suspended,))
            thread.start()
            thread.join()
        del suspended
        gc.collect()
        assert is_outside()


@scopes
def test_left_without_being_entered(scope, is_outside):
    never = scope()
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not entered"):
            never.__exit__(None, None, None)
    with never:
        assert not is_outside()
    with pytest.raises(RuntimeError, match="not entered"):
        never.__exit__(None, None, None)
    entered = scope()
    entered.__enter__()
    assert not is_outside()
    del entered
    gc.collect()
    assert is_outside()


def test_differentiations_left_without_being_entered():
    with pytest.raises(RuntimeError, match="not entered"):
        nt._ext._Differentiation(1).__exit__(None, None, None)


def test_scopes_inside_of_scopes_of_cpp():
    # checkpoint() runs its function without noting it; grad() inside does, and ends.
    def f(x):
        inner = nt.grad(lambda y: nt.sum(y * y * y))(x)
        seen.append(nt.sum(x * 2).tracks_gradient)
        return nt.sum(inner * x)

    seen: list[bool] = []
    expected = nt.grad(f)(X).tolist()
    plain = list(seen)
    seen.clear()
    assert nt.grad(nt.checkpoint(f))(X).tolist() == expected
    assert plain == [True] and seen[0] is False
    with nt.no_gradients():
        large = nt.ones((100, 100)) * P[0]  # computed without Python's lock
        assert not large.tracks_gradient
