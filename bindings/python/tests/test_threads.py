"""Threads: no deadlock, no lost update, and Python's lock is given away. Each case is a process of
its own, which ends itself when it hangs."""

PRELUDE = """
import threading, time
import nitinol as nt
x = nt.ones((4,))

def run(*functions):
    errors = []
    def guarded(f):
        try:
            f()
        except BaseException as error:
            errors.append(error)
            raise
    threads = [threading.Thread(target=guarded, args=(f,)) for f in functions]
    for t in threads: t.start()
    for t in threads: t.join()
    assert not errors, errors
"""


def test_explain_from_another_thread_while_signatures_come_and_go(in_process):
    in_process(
        PRELUDE
        + """
f = nt.compile(lambda x, k: (x * 2.0, {"s": nt.sum(x)}), signature_limit=8)
done = threading.Event()
def work():
    for k in range(400): f(x, k)
def look():
    while not done.is_set(): str(f.explain())
looker = threading.Thread(target=look)
looker.start()
run(*[work] * 6)
done.set()
looker.join()
"""
    )


def test_one_function_on_many_threads(in_process):
    in_process(
        PRELUDE
        + """
f = nt.compile(lambda x, a, d: nt.tanh(x * a) + d["b"], check_interval_ms=1)
def work():
    for i in range(2000):
        a = 0.5 + i % 7
        y = f(x, a, {"b": x})
        if i % 100 == 0:
            assert y.tolist() == (nt.tanh(x * a) + x).tolist()
run(*[work] * 6)
"""
    )


def test_no_update_is_lost(in_process):
    in_process(
        PRELUDE
        + """
v, w = nt.Variable(nt.zeros((2,))), nt.Variable(nt.zeros(()))
@nt.compile
def step(d):
    v.value = v + d
    return v.value
def compiled():
    for _ in range(500): step(1.0)
def eager():
    for _ in range(500):
        globals()["w"] += 1
def both():
    for _ in range(500):
        nt.Variable.__iadd__(v, 1)
step(1.0)  # from now on it is known what is assigned
run(compiled, compiled, both, eager, eager, eager)
assert v.value.tolist() == [1501.0] * 2, v
assert w.item() == 1500.0, w
"""
    )


def test_calls_that_assign_the_same_variable_and_run_python(in_process):
    # A recorded call owns the Variable while it runs Python; others that wait for it must not hold
    # Python's lock.
    in_process(
        PRELUDE
        + """
v = nt.Variable(nt.zeros(()))
@nt.compile(check="always")
def f(x):
    time.sleep(0.0005)  # another thread runs meanwhile
    v.value = v + 1
    return x + v
def calls():
    for _ in range(150): f(x)
def reads():
    for _ in range(300): v.get().item()
def adds():
    for _ in range(300): nt.Variable.__iadd__(v, 1)
def part():
    w = nt.Variable(nt.zeros((4,)))
    for i in range(300): w[i % 4] = i
f(x)  # from now on it is known what is assigned
run(calls, calls, reads, adds, part)
assert v.item() == 601
"""
    )


def test_drawing_random_numbers_while_a_recorded_call_draws(in_process):
    in_process(
        PRELUDE
        + """
@nt.compile(check="always")
def f(x):
    y = nt.random.rand((4,))
    time.sleep(0.0005)  # another thread runs meanwhile
    return x + y
def calls():
    for _ in range(150): f(x)
def draws():
    for _ in range(150):
        nt.random.randn((2,)); nt.nn.Linear(2, 2); nt.nn.Dropout(0.5)(x)
f(x)  # from now on it is known what is assigned
run(calls, draws, draws)
"""
    )


def test_long_work_gives_the_lock_away(in_process):
    in_process(
        PRELUDE
        + """
a = nt.random.randn((1500, 1500))
f = nt.compile(lambda a: a @ a @ a)
for _ in range(3): f(a)
def longest_pause(work):
    # How long another thread was kept from running.
    pauses, done = [0.0], threading.Event()
    def count():
        last = time.perf_counter()
        while not done.is_set():
            time.sleep(0.0005)
            now = time.perf_counter()
            pauses.append(now - last)
            last = now
    counter = threading.Thread(target=count)
    counter.start()
    start = time.perf_counter()
    work()
    taken = time.perf_counter() - start
    done.set()
    counter.join()
    return taken, len(pauses)
for work in (lambda: [a @ a for _ in range(4)], lambda: [f(a) for _ in range(3)],
             lambda: [nt.exp(a) for _ in range(40)]):
    taken, rounds = longest_pause(work)
    # Were the lock kept, there would be a round or two for each operation.
    assert rounds > 60 or rounds > taken / 0.02, (taken, rounds)
""",
        seconds=120,
    )


def test_a_compiled_function_dies_while_another_thread_calls_it(in_process):
    in_process(
        PRELUDE
        + """
for i in range(60):
    holder = [nt.compile(lambda x: x * 2 + 1, in_background=i % 2 == 0)]
    def call():
        for _ in range(30):
            f = holder[0] if holder else None
            if f is None: return
            f(x)
            del f
    def drop():
        time.sleep(0.0005)
        holder.clear()
    run(call, call, drop)
"""
    )


def test_gradients_on_many_threads(in_process):
    in_process(
        PRELUDE
        + """
w = nt.parameter(nt.ones((4,)))
g = nt.compile(nt.grad(lambda y: nt.sum(y * y * y)))
def work():
    for _ in range(200):
        assert g(x).tolist() == [3.0] * 4
def gather():
    for _ in range(200): nt.sum(w * x).backward()
run(work, work, gather, gather)
assert w.grad.tolist() == [400.0] * 4
"""
    )


def test_an_optimizer_gets_groups_while_other_threads_step(in_process):
    in_process(
        PRELUDE
        + """
def given():
    p = nt.parameter(nt.ones((8,)))
    p.grad = nt.ones((8,))
    return p
optimizer = nt.nn.Sgd([given()], rate=0.0)
ends = threading.Event()
def until_the_end(call):
    def run():
        while not ends.is_set(): call()
    return run
def add():
    for _ in range(300): optimizer.add([given()], rate=0.0)
    ends.set()
run(add, *map(until_the_end, (
    optimizer.step, lambda: optimizer.set_rate(0.0), optimizer.named_variables)))
assert len(optimizer.named_variables()) == 3 * 301
"""
    )


def test_checkpoints_wait_for_one_that_takes_long(in_process):
    in_process(
        PRELUDE
        + """
dropout, count = nt.nn.Dropout(0.5), nt.Variable(nt.zeros(()))
@nt.checkpoint
def block(x):
    n = count.value  # waits, and others need Python's lock to go on
    y = dropout(x)
    time.sleep(0.3)
    count.value = n + 1
    return y
def train():
    nt.grad(lambda at: nt.sum(block(at)))(x)
run(train, train, train)
assert count.item() == 3, count
"""
    )


def test_two_threads_enter_their_first_scope(in_process):
    in_process(
        PRELUDE
        + """
import sys
class Slowly:  # as an import from a slow disk
    def find_spec(self, name, path=None, target=None):
        if name == "contextvars": time.sleep(0.3)
sys.modules.pop("contextvars", None)
sys.meta_path.insert(0, Slowly())
def enter():
    with nt.no_gradients(): pass
run(enter, enter)
""",
        seconds=20,
    )
