"""What a program meets as a whole: its end, forks, other libraries, cycles, signals. Each case is a
process of its own."""

import importlib.util
import os
import pathlib
import subprocess
import sys

import pytest

import nitinol as nt


def has(name):
    return importlib.util.find_spec(name) is not None


def test_the_end_with_everything_alive(in_process):
    in_process("""
import nitinol as nt
import numpy as np
x = nt.ones((4,))
borrowed = nt.asarray(np.ones(1000, np.float32), copy=False)
class Net(nt.nn.Module):
    def __init__(self):
        self.linear = nt.nn.Linear(4, 4)
    def __call__(self, x):
        return self.linear(x)
class Registered: pass
nt.register_pytree(Registered, lambda r: ((), None), lambda aux, c: Registered())
import collections, dataclasses, enum
@dataclasses.dataclass
class Data:
    x: object
class Pair(collections.namedtuple("Pair", "a b")):
    pass
class Mode(enum.Enum):
    A = 1
    def f(self): return h
net = Net()
optimizer = nt.nn.Adam(net)
f = nt.compile(net)
h = nt.compile(lambda y: (Data(y * 2), Pair(y, y), Mode.A))
for _ in range(5): h(x)
g = nt.compile(lambda r, y: {"r": y * borrowed[:4]})
for _ in range(4):
    y = f(x)
    z = g(Registered(), x)
iterator = iter(nt.nn.DataLoader(x, batch=2))
context = nt.eager()
context.__enter__()
""")


@pytest.mark.parametrize("end", ["sys.exit(0)", "pass", "os._exit(0)", "raise SystemExit"])
def test_the_end_while_compiling_in_the_background(in_process, end):
    in_process(f"""
import os, sys
import nitinol as nt
fs = [nt.compile(lambda x, i=i: nt.tanh(nt.exp(x * i) + nt.sin(x)), in_background=True)
      for i in range(6)]
for f in fs:
    f(nt.ones((8,)))
    f(nt.ones((8,)))
{end}
""")


def test_the_end_on_a_thread_that_computes(in_process):
    in_process("""
import os, threading
os.environ["NITINOL_REPORT_LEAKS"] = "0"  # what it computes with is never given back
import nitinol as nt
f = nt.compile(lambda x: x @ x)
def work():
    x = nt.ones((64, 64))
    while True: f(x)
threading.Thread(target=work, daemon=True).start()
for _ in range(20): f(nt.ones((64, 64)))
""")


def test_cycles_are_collected(in_process):
    in_process("""
import gc, weakref
import nitinol as nt
x = nt.ones((4,))
class Holder: pass
def make(calls):
    holder = Holder()
    holder.f = nt.compile(lambda y: (holder, y * 2)[1])
    holder.g = nt.compile(lambda y, h: y * 3)
    for _ in range(calls):
        holder.f(x)
        holder.g(x, holder)
    return weakref.ref(holder), weakref.ref(holder.f)
for calls in (0, 1, 4):
    refs = make(calls)
    gc.collect()
    assert [r() for r in refs] == [None, None], calls

def through_results():
    import collections, dataclasses, enum
    @dataclasses.dataclass
    class Data:
        x: object
        def f(self): return g
    class Pair(collections.namedtuple("Pair", "a b")):
        def f(self): return g
    class Mode(enum.Enum):
        A = 1
        def f(self): return g
    g = nt.compile(lambda y: (Data(y * 2), Pair(y, y), Mode.A))
    for _ in range(5): g(x)
    return [weakref.ref(o) for o in (Data, Pair, Mode, g)]
refs = through_results()
gc.collect()
assert [r() for r in refs] == [None] * 4, refs

class Net(nt.nn.Module):
    def __init__(self):
        self.weight = nt.parameter(nt.ones((3,)))
        self.step = nt.compile(self.run)
    def run(self, y):
        return y * self.weight
def use():
    net = Net()
    for _ in range(4): net.step(nt.ones((3,)))
    return weakref.ref(net)
net = use()
gc.collect()
assert net() is None
""")


def test_memory_of_arrays_is_given_back(in_process):
    in_process("""
import gc, sys, weakref
import numpy as np
import nitinol as nt
array = np.arange(5000, dtype=np.float32)
before = sys.getrefcount(array)
t = nt.asarray(array, copy=False)
assert sys.getrefcount(array) > before
f = nt.compile(lambda x: x + t)          # captured: kept by the function's Plan
for _ in range(4): f(array)
del f, t
gc.collect()
for _ in range(1000): pass               # objects wait for Python's next step
assert sys.getrefcount(array) == before
y = nt.zeros((3,)) + 1
view = np.asarray(y)
del y
assert view.tolist() == [1, 1, 1]
""")


def test_fork_after_threads_have_computed(in_process):
    in_process("""
import os
import nitinol as nt
x = nt.random.randn((300, 300))
f = nt.compile(lambda x: nt.tanh(x @ x))
expected = [f(x) for _ in range(4)][-1].tolist()
pid = os.fork()
if pid == 0:
    assert f(x).shape == (300, 300)
    g = nt.compile(lambda x: x * 2)
    assert [g(x) for _ in range(4)][-1].shape == (300, 300)
    os._exit(7)
_, status = os.waitpid(pid, 0)
assert os.waitstatus_to_exitcode(status) == 7
assert f(x).tolist() == expected
""")


def test_multiprocessing_spawns(in_process):
    in_process(
        """
import multiprocessing
import nitinol as nt
@nt.compile
def f(x, net):
    return net(x) * 2
def work(pair):
    x, net = pair
    return f(x, net)
if __name__ == "__main__":
    net = nt.nn.Linear(3, 2)
    x = nt.ones((4, 3))
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        for y in pool.map(work, [(x, net)] * 3):
            assert y.tolist() == f(x, net).tolist()
""",
        seconds=120,
    )


ORDERS = [("torch", "nitinol"), ("nitinol", "torch"), ("jax", "nitinol"), ("nitinol", "jax")]


@pytest.mark.parametrize("first, second", ORDERS)
def test_beside_another_library(in_process, first, second):
    other = first if second == "nitinol" else second
    if not has(other):
        pytest.skip(f"{other} is not installed")
    in_process(
        f"""
import os
os.environ["JAX_PLATFORMS"] = "cpu"
import {first}
import {second}
import nitinol as nt
f = nt.compile(lambda x: nt.softmax(x @ x, -1))
x = nt.random.randn((256, 256))
for _ in range(4):
    y = f(x)
    if "{other}" == "torch":
        theirs = torch.softmax(torch.from_dlpack(x) @ torch.from_dlpack(x), -1)
        theirs = nt.from_dlpack(theirs)
    else:
        import jax.numpy as jnp
        array = jnp.asarray(x.numpy())
        theirs = nt.asarray(jax.nn.softmax(array @ array, -1))
    assert nt.max(nt.abs(y - theirs)).item() < 1e-3
""",
        seconds=120,
    )


def test_interrupted_by_a_signal(in_process):
    in_process("""
import os, signal, threading, time
import nitinol as nt
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where no terminal is
f = nt.compile(lambda x: nt.tanh(x @ x))
x = nt.random.randn((200, 200))
for _ in range(4): f(x)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    end = time.monotonic() + 20
    while time.monotonic() < end: f(x)
except KeyboardInterrupt:
    pass
else:
    raise SystemExit("was not interrupted")
assert f(x).shape == (200, 200)
""")


def test_deep_recursion_and_many_signatures(in_process):
    in_process("""
import sys
import nitinol as nt
x = nt.ones((2,))
@nt.compile
def deep(x, n):
    return x if n == 0 else deep(x + 1, n - 1)
assert deep(x, 100).tolist() == [101.0] * 2
try:
    deep(x, 10 ** 5)
except RecursionError:
    pass
else:
    raise SystemExit("no RecursionError")
nested = x
for _ in range(10 ** 5): nested = [nested]
f = nt.compile(lambda t: x)
try:
    f(nested)
except RecursionError:
    pass
g = nt.compile(lambda x, n: x * n)
for n in range(20000): g(x, n)
assert len(g.explain().data["signatures"]) == 256
""")


@pytest.mark.parametrize("order", ["main first", "subinterpreter first"])
def test_a_subinterpreter_is_refused(in_process, order):
    in_process(f"""
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        raise SystemExit(0)
def use():
    import nitinol as nt
    x = nt.ones((3,))
    f = nt.compile(lambda x: x * 2)
    p = nt.parameter(x)
    for _ in range(5): assert f(x).tolist() == [2, 2, 2]
    nt.sum(p * x).backward()
    assert p.grad.tolist() == [1, 1, 1] and f.explain()["plan_calls"] > 0
if "{order}" == "main first": use()
code = '''
try:
    import nitinol
except ImportError as error:
    assert "main interpreter" in str(error) or "subinterpreters" in str(error), error
else:
    raise SystemError("imported")
'''
for _ in range(3):
    one = interpreters.create()
    failed = interpreters.run_string(one, code)  # raises, or returns what was raised
    assert failed is None, failed
    interpreters.destroy(one)
    use()
""")


def test_a_second_import_is_the_same(in_process):
    in_process("""
import gc, sys
import nitinol as nt
from nitinol import nn
x = nt.ones((3,))
f = nt.compile(lambda x: x * 2)
for _ in range(4): f(x)
layer = nn.Linear(3, 2)
for again in range(3):
    for name in [k for k in sys.modules if k.startswith("nitinol")]: del sys.modules[name]
    gc.collect()
    import nitinol as second
    assert second is not nt and second.Tensor is nt.Tensor and second.bool is nt.bool
    assert second.__version__ == nt.__version__ and second.__all__ == nt.__all__
    assert second.sum(x + second.ones(3)).item() == 6 and f(x).tolist() == [2, 2, 2]
    assert second.random.rand((2,)).shape == (2,) and second.linalg.matmul(x, x).item() == 3
    g = second.compile(lambda y: layer(y))
    for _ in range(4): assert g(x).shape == (2,)
    assert second.nn.Linear(3, 2)(x).shape == (2,)
    try: second.reshape(x, (2,))
    except nt.ShapeError: pass
    with second.no_gradients(), nt.eager(): assert not nt.sum(layer(x)).tracks_gradient
del nt, second, nn, x, f, g, layer
for name in [k for k in sys.modules if k.startswith("nitinol")]: del sys.modules[name]
gc.collect()
import nitinol
assert nitinol.ones((2,)).tolist() == [1, 1]
""")


def test_numpy_is_imported_where_it_is_asked_for(in_process):
    in_process("""
import sys
import nitinol
x = nitinol.ones((3,)) * 2
assert x.tolist() == [2.0] * 3 and "2." in repr(x) and memoryview(x).shape == (3,)
assert "numpy" not in sys.modules
""")


@pytest.mark.parametrize("use", [
    "nt.sum(nt.tanh(x + 1) * 2).item()", "nt.softmax(x, -1)", "big @ big", "nt.exp(big)",
    "[f(x) for _ in range(50)]", "plan(x)", "f.eager(x)", "nt.sum(nt.tanh(p * 2)).backward()",
    "nt.grad(lambda y: nt.sum(y * y))(x)", "net(x)", "[repr(x), x.tolist(), nt.asarray([1.0, 2.0])]",
])  # fmt: skip
def test_threads_with_small_stacks(in_process, use):
    in_process(f"""
import threading
import nitinol as nt
x, big, p = nt.ones((4,)), nt.ones((300, 300)), nt.parameter(nt.ones((4,)))
net = nt.nn.Linear(4, 4)
f = nt.compile(lambda a: nt.tanh(a) * 2 + nt.sum(a), check="never")
plan = nt.compile(lambda a: nt.tanh(a) * 3 + nt.sum(a), check="never")
for _ in range(50): plan(x)
def work():
    try:
        {use}
        done.append("worked")
    except nt.UnsupportedError as error:
        assert "stack" in str(error), error
        done.append("refused")
done = []
for size in (32, 36, 40, 48, 56, 64, 80, 96, 128, 192, 256, 512):
    threading.stack_size(size << 10)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
assert len(done) == 12 and done[-2:] == ["worked"] * 2, done
""")


WITHOUT_NUMPY = """
import sys
sys.modules["numpy"] = None  # as where it is not installed
import nitinol as nt
"""


def test_without_numpy(in_process):
    in_process(
        WITHOUT_NUMPY
        + """
import array
x, v = nt.asarray([1.0, 2.0]), nt.Variable(nt.ones((2,)))
for call in (x.numpy, x.__array__, v.numpy, v.__array__):
    try:
        call()
    except nt.UnsupportedError as error:
        assert "NumPy is not installed" in str(error) and "memoryview" in str(error)
    else:
        raise SystemExit("no error")
assert memoryview(x).tolist() == x.tolist() == nt.from_dlpack(x.__dlpack__()).tolist()
assert nt.asarray(array.array("f", [1, 2])).tolist() == [1, 2]
f = nt.compile(lambda a: a + x)
for _ in range(4): assert f(array.array("f", [1, 2]) and x).tolist() == [2, 4]
"""
    )


ALIVE_AT_THE_END = """
import threading, time
import nitinol as nt
def keep():
    held = nt.ones((3,)) + 1
    f = nt.compile(lambda x: x * 2)
    f(held)
    time.sleep(1000)
threading.Thread(target=keep, daemon=True).start()
time.sleep(0.3)
class Outlives(dict): pass
import builtins
builtins.kept = nt.ones((2,))
"""


def test_what_is_alive_at_the_end_is_reported_to_tests_alone(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(ALIVE_AT_THE_END)
    package = str(pathlib.Path(nt.__file__).parents[1])
    for reports in ("1", "0", None):
        environment = dict(os.environ, PYTHONPATH=package)
        environment.pop("NITINOL_REPORT_LEAKS", None)
        if reports:
            environment["NITINOL_REPORT_LEAKS"] = reports
        done = subprocess.run(
            [sys.executable, str(path)], capture_output=True, text=True, env=environment, timeout=60
        )
        assert done.returncode == 0, done.stderr
        assert ("leaked" in done.stderr) == (reports == "1"), done.stderr


def test_torch_compile_in_the_process(in_process):
    if not has("torch"):
        pytest.skip("torch is not installed")
    in_process(
        """
import os
os.environ["NITINOL_REPORT_LEAKS"] = "0"
import nitinol as nt
import torch
torch.compile(lambda x: x * 2, backend="eager")(torch.ones(3))
f = nt.compile(lambda x: x * 2)
f(nt.ones((3,)))
""",
        seconds=120,
    )


def test_a_warning_names_the_line_of_the_program(tmp_path):
    program = tmp_path / "model.py"
    program.write_text("""\
import nitinol as nt
w = nt.ones((3,))
def loss():
    return nt.sum(w * 2)
loss().backward()
""")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0
    assert "warning: backward at model.py:5: nothing that the tensor" in done.stderr
