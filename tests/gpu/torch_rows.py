"""PyTorch's times of the rows that standard input names, by its eager mode, torch.compile and torch.compile with
mode reduce-overhead: the clock, the sizes and the lines of `nitinol_bench --serve`, which takes turns with this.

With --stand-in, which needs no PyTorch, every row is there and its times are those of doing nothing: to try what
reads them."""

import argparse
import importlib
import json
import math
import pathlib
import statistics
import subprocess
import sys
import time

MODES = ("eager", "compile", "reduce-overhead")
COLD = ("W1a", "W1b", "W1c", "W1d", "W3.chain10")


class Clock:
    """bench/device_clock.h: the calls are asked for behind copies that keep the device busy."""

    def __init__(self, copy, wait, is_quick):
        self.copy, self.wait, self.rounds = copy, wait, 1 if is_quick else 5
        self.behind(4, None, 0)
        times = [
            (self.behind(24, None, 0) - self.behind(4, None, 0)) / 20 for _ in range(self.rounds)
        ]
        self.copy_s = max(min(times), 1e-9)

    def behind(self, copies, call, calls):
        start = time.perf_counter()
        for _ in range(copies):
            self.copy()
        for _ in range(calls):
            call()
        self.wait()
        return time.perf_counter() - start

    def time(self, call, is_quick):
        start = time.perf_counter()
        call()
        self.wait()
        first = time.perf_counter() - start
        start, settled = time.perf_counter(), 0
        while settled < (2 if is_quick else 5) or (
            settled < 128 and time.perf_counter() - start < (0 if is_quick else 0.2)
        ):
            call()
            settled += 1
        self.wait()
        one = max((time.perf_counter() - start) / settled, 1e-9)
        calls = max(1, min(50, int(0.01 / one)))
        host, device, copies = [], [], 1
        for turn in range(-1, self.rounds):
            start = time.perf_counter()
            for _ in range(calls):
                call()
            asking = time.perf_counter() - start
            self.wait()
            if turn < 0:
                copies = 1 + int(min(math.ceil(min(1.5 * asking, 0.2) / self.copy_s), 2000))
                continue
            host.append(asking / calls)
            both = self.behind(copies, call, calls)
            device.append((both - self.behind(copies, None, 0)) / calls)
        return {
            "first_call_s": first,
            "host_s": statistics.median(host),
            "device_s": max(statistics.median(device), 0.0),
            "inner": calls,
        }


class StandIn:
    """What answers where PyTorch is missing."""

    version = None

    def __init__(self, options):
        self.clock, self.asked = Clock(lambda: None, lambda: None, True), options.modes

    def modes(self, name):
        for mode in self.asked:
            yield mode, lambda: None, None


class Torch:
    def __init__(self, options):
        import torch

        self.torch, self.device, self.is_quick = torch, options.device, options.quick
        self.asked = options.modes
        self.version = torch.__version__
        torch.manual_seed(0)
        # As Nitinol: f32 means f32.
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
        filler = torch.ones(1 << (10 if options.quick else 26), device=self.device)
        wait = torch.cuda.synchronize if self.device.startswith("cuda") else lambda: None
        self.clock = Clock(filler.clone, wait, options.quick)

    def normal(self, *shape, dtype=None):
        return self.torch.randn(*shape, device=self.device).to(dtype or self.torch.float32)

    def modes(self, name):
        """Of each mode its name, a call, and the mean magnitude of its results."""
        torch = self.torch
        for mode in self.asked:
            torch._dynamo.reset()
            if self.device.startswith("cuda"):
                torch.cuda.empty_cache()
            made = self.row(name)
            if made is None:
                return
            function, inputs = made
            if mode != "eager" and not getattr(function, "is_whole_step", False):
                options = {} if mode == "compile" else {"mode": mode}
                dynamic = None if name == "W7.shapes" else False
                function = torch.compile(function, dynamic=dynamic, **options)
            elif mode != "eager":
                function = function.compiled(mode)
            yield mode, self.turns(function, inputs, mode), lambda: self.digest(function(*inputs))

    def turns(self, function, inputs, mode):
        """Copies of the inputs take turns, and hold their last results: no cache has them when it is theirs."""
        torch = self.torch
        size = sum(x.numel() * x.element_size() for x in inputs if torch.is_tensor(x))
        wanted = 1 if self.is_quick or size == 0 else math.ceil(200e6 / size)
        sets = [inputs]
        while len(sets) < min(wanted, 64):
            sets.append([x.detach().clone().requires_grad_(x.requires_grad) for x in inputs])
        held, state = [None] * len(sets), [0]
        if len(sets) == 1 or mode == "reduce-overhead":  # whose results lie where they lay before
            held = [None]

        def call():
            if mode == "reduce-overhead":
                torch.compiler.cudagraph_mark_step_begin()
            state[0] = (state[0] + 1) % len(sets)
            if len(held) > 1:
                held[state[0]] = None
                held[state[0]] = function(*sets[state[0]])
            else:
                function(*sets[state[0]])

        return call

    def digest(self, results):
        torch = self.torch
        if results is None:
            return None
        results = [results] if torch.is_tensor(results) else list(results)
        return sum(float(x.detach().double().abs().mean()) for x in results) / len(results)

    # ---- the rows: a function and its inputs, or None for names that are not known

    def row(self, name):
        parts = name.split(".")
        family = parts[0]
        if family.startswith("W1") and family != "W1e":
            count = {"n1e3": 10**3, "n1e5": 10**5, "n1e6": 10**6, "n1": 16 * 10**6}[
                parts[-2 if parts[-1] == "6e7" else -1]
            ]
            return self.chain(family, self.few(count), self.dtype(parts))
        makers = {
            "W1e": self.scaled,
            "W2": self.reduction,
            "W3": self.small,
            "W4i": self.model,
            "W4ii": self.model,
            "W4iii": self.model,
            "W4iv": self.model,
            "W4vii": self.model,
            "W4v": self.zoo,
            "W4vi": self.zoo,
            "W4": self.zoo,
            "W5": self.product,
            "W7": self.shapes if parts[1:] == ["shapes"] else self.looking,
            "W8": self.looking,
            "index": self.lookup,
            "einsum": self.contracted,
            "order": self.ordered,
            "random": self.drawn,
            "scan": self.scan,
            "large": self.large,
        }
        return makers[family](parts) if family in makers else None

    def few(self, count, quick=64):
        return min(count, quick) if self.is_quick else count

    def dtype(self, parts):
        torch = self.torch
        names = {"bf16": torch.bfloat16, "f16": torch.float16}
        return next((names[part] for part in parts if part in names), torch.float32)

    def chain(self, family, n, dtype):
        torch = self.torch

        def w1a(x, a, b, c):
            return (a * x + b) * x - c

        def w1b(x):
            return 0.5 * x * (1 + torch.tanh(0.7978845608 * (x + 0.044715 * (x * x * x))))

        def w1c(x):
            return (
                torch.exp(-x * x) * torch.sin(x)
                + torch.log(1 + torch.abs(x)) / torch.sqrt(1 + x * x)
                + torch.tanh(x)
            )

        def w1d(s, k, t):
            r, sigma = 0.03, 0.2
            v = sigma * torch.sqrt(t)
            d1 = (torch.log(s / k) + (r + sigma * sigma / 2) * t) / v
            d2 = d1 - v
            n1 = 0.5 * (1 + torch.erf(d1 * 0.7071067811865476))
            n2 = 0.5 * (1 + torch.erf(d2 * 0.7071067811865476))
            kd = k * torch.exp(-r * t)
            return s * n1 - kd * n2, kd * (1 - n2) - s * (1 - n1)

        if family == "W1d":
            uniform = [torch.rand(n, device=self.device) for _ in range(3)]
            spread = ((80, 120), (80, 120), (0.1, 2))
            return w1d, [u * (high - low) + low for u, (low, high) in zip(uniform, spread)]
        function = {"W1a": w1a, "W1b": w1b, "W1c": w1c}[family]
        return function, [self.normal(n, dtype=dtype) for _ in range(4 if family == "W1a" else 1)]

    def scaled(self, parts):
        n = self.few(1024)
        shapes = ((n, n), (n,), (n,), (n, n))
        relu = self.torch.relu
        return lambda x, s, b, r: relu(x * s + b) + r, [self.normal(*shape) for shape in shapes]

    def reductions(self):
        torch = self.torch
        return {
            "copy": lambda v: v.clone(),
            "sum": lambda v: torch.sum(v),
            "mean": lambda v: torch.mean(v, -1),
            "softmax": lambda v: torch.softmax(v, -1),
            "var": lambda v: torch.var(v, -1, correction=0),
            "argmax": lambda v: torch.argmax(v, -1),
            "columns": lambda v: torch.sum(v, 0),
            "few-columns": lambda v: torch.sum(v, 0),
            "cumsum": lambda v: torch.cumsum(v, -1),
            "transpose": lambda v: v.t().contiguous(),
        }

    def reduction(self, parts):
        rows, columns = self.few(4096), self.few(1024)
        x = self.normal(rows, columns)
        if parts[1] == "layernorm":
            norm = self.torch.nn.functional.layer_norm
            scale, bias = self.normal(columns), self.normal(columns)
            return lambda v, g, b: norm(v, (columns,), g, b), [x, scale, bias]
        function = self.reductions().get(parts[1])
        return function and (function, [x])

    def small(self, parts):
        x, y = self.torch.full((4,), 0.5, device=self.device), self.normal(4)

        def chain10(a, b):
            for _ in range(5):
                a = (a + b) * b
            return a

        return {"add4": lambda a, b: a + b, "chain10": chain10}[parts[1]], [x, y]

    def scan(self, parts):
        cumsum = self.torch.cumsum
        x = self.normal(self.few(4096), self.few(1024))
        if parts[1] == "long":
            return lambda v: cumsum(v, 0), [x.reshape(-1)]
        axis = {"rows": -1, "columns": 0}[parts[1]]
        return lambda v: cumsum(v, axis), [x]

    def scattered(self, rows, width, words):
        torch = self.torch
        index = torch.arange(rows, device=self.device) * 7919 % words
        zeros = torch.zeros(words, width, device=self.device)
        return lambda v, i: torch.index_add(zeros, 0, i, v), [self.normal(rows, width), index]

    def lookup(self, parts):
        torch = self.torch
        words, width, rows = self.few(50000), self.few(256), self.few(4096)
        if parts[1] == "scatter":
            return self.scattered(rows, width, words)
        if parts[1] == "set":
            n = self.few(10**6)
            half = torch.randperm(n, device=self.device)[: n // 2]
            given = [self.normal(n), half, self.normal(n // 2)]
            return lambda x, i, v: torch.index_put(x, (i,), v), given
        if parts[1] == "along":
            rows, columns = self.few(4096), self.few(1024)
            index = torch.randint(0, columns, (rows, self.few(256)), device=self.device)
            return lambda x, i: torch.gather(x, 1, i), [self.normal(rows, columns), index]
        table = self.normal(words, width)
        index = torch.arange(rows, device=self.device) * 7919 % words
        return (lambda v, i: v[i], [table, index]) if parts[1] == "rows" else None

    def integers(self, most, n):
        return self.torch.randint(0, most, (n,), device=self.device)

    def ordered(self, parts):
        """bench/order.cpp."""
        torch, n = self.torch, self.few(10**6)
        kind = ".".join(part for part in parts[1:] if part != "n1e6")
        line = lambda: self.normal(n)  # noqa: E731
        many = lambda: self.normal(self.few(10**7))  # noqa: E731
        if kind == "bincount":
            return self.bins(parts)
        makers = {
            "sort": lambda: (lambda x: torch.sort(x).values, [line()]),
            "sort.i64": lambda: (lambda x: torch.sort(x).values, [self.integers(1 << 40, n)]),
            "argsort": lambda: (lambda x: torch.argsort(x, stable=True), [line()]),
            "sort.rows": lambda: (
                lambda x: torch.sort(x, -1).values,
                [self.normal(self.few(4096), self.few(1024))],
            ),
            "topk": lambda: (
                lambda x: torch.topk(x, 50).values,
                [self.normal(64, self.few(50257))],
            ),
            "median": lambda: (
                lambda x: torch.quantile(x, 0.5, -1),
                [self.normal(self.few(1000), self.few(10000))],
            ),
            "unique.few": lambda: (torch.unique, [self.integers(1000, n)]),
            "unique.many": lambda: (torch.unique, [self.integers(1 << 40, n)]),
            "searchsorted": lambda: (torch.searchsorted, [line().sort().values, line()]),
            "mask": lambda: (lambda x: torch.masked_select(x, x > 0), [many()]),
            "nonzero": lambda: (lambda x: torch.nonzero(x > 0), [many()]),
        }
        return makers[kind]() if kind in makers else None

    def contracted(self, parts):
        einsum = self.torch.einsum
        heads, square = (8, 12, self.few(128), 64), (self.few(256),) * 2
        vectors = (self.few(1000), self.few(200))
        makers = {
            "attention": ("bhqd,bhkd->bhqk", [heads] * 2),
            "chain": ("ij,jk,kl->il", [square] * 3),
            "outer": ("bi,bj->bij", [vectors] * 2),
        }
        text, shapes = makers[parts[1]]
        return lambda *given: einsum(text, *given), [self.normal(*shape) for shape in shapes]

    def drawn(self, parts):
        torch, device = self.torch, self.device
        n = self.few(10**6)
        makers = {
            "normal": lambda: (torch.randn_like, [torch.zeros(self.few(10**7), device=device)]),
            "permutation": lambda: (
                lambda x: torch.randperm(n, device=device),
                [torch.zeros(1, device=device)],
            ),
            "categorical": lambda: (
                lambda x: torch.multinomial(x, 1, replacement=True),
                [torch.rand(self.few(10**5), 100, device=device)],
            ),
        }
        return makers[parts[1]]() if parts[1] in makers else None

    def bins(self, parts):
        torch, n = self.torch, self.few(262144)
        places = (torch.randn(n, device=self.device) * 1e4).floor().long() % 256
        zeros = torch.zeros(256, device=self.device)
        ones = torch.ones(n, device=self.device)
        return lambda x, i: torch.index_add(zeros, 0, i, x), [ones, places]

    def product(self, parts):
        torch = self.torch
        if parts[1].startswith("mm"):
            n = self.few(int(parts[1][2:]))
            return lambda a, b: torch.matmul(a, b), [self.normal(n, n), self.normal(n, n)]
        if not parts[1].startswith("mbg"):
            return None
        m, k, n = (self.few(int(size)) for size in parts[1][3:].split("x"))
        gelu = torch.nn.functional.gelu
        layer = lambda x, w, b: gelu(torch.addmm(b, x, w), approximate="tanh")  # noqa: E731
        return layer, [self.normal(m, k), self.normal(k, n), self.normal(n)]

    def shapes(self, parts):
        if parts[1:] != ["shapes"]:
            return None
        w1b = self.chain("W1b", 1, None)[0]
        inputs = [self.normal(1000 + 31 * i) for i in range(32)]
        compiled = {}

        class Pass:
            is_whole_step = True

            def __call__(self):
                for x in inputs:
                    w1b(x)

            def compiled(self, mode):
                options = {} if mode == "compile" else {"mode": mode}
                f = compiled.setdefault(mode, outer.compile(w1b, **options))

                def every():
                    for x in inputs:
                        f(x)

                return every

        outer = self.torch
        return Pass(), []

    def looking(self, parts):
        """Functions that look at data: branches, loops and numbers that are read."""
        name = parts[1]

        def newton(x):
            y = x * 0.5 + 0.5
            while (y * y - x).abs().max().item() > 1e-3 * x.max().item():
                y = 0.5 * (y + x / y) + 0.0 * y.tanh()
                y = y - (y * y - x) * 0.01 / (y + 1.0)
            return y

        def branches(x):
            y = x.tanh() * 1.5 + x
            y = y * y - 0.5 if y.sum() > 0.0 else y.exp() - y
            y = y * 0.25 + x
            y = y / 2.0 + 1.0 if y.max() > 1.0 else y * 2.0 - x
            return y.tanh() + 0.5 * x

        def item(x):
            y = x
            for _ in range(10):
                y = y.tanh() + x * 0.5
            k = y.abs().max().item()
            for _ in range(10):
                y = y / k + 0.1 * y
            return y

        def worst(x):
            y = x
            for _ in range(20):
                y = y * 0.99
                if y[0].item() > 1e9:
                    y = x
            return y

        if name == "newton":
            return newton, [self.normal(int(parts[2][1:])).abs() + 1.0]
        if name == "branch" and parts[0] == "W8":
            return branches, [self.normal(int(parts[2][1:]))]
        if name == "item":
            return item, [self.normal(16 if parts[2:] else 4096)]
        return (worst, [self.normal(16)]) if name == "worst" else None

    def along(self, parts):
        """softmax, norm, entropy, and their gradients."""
        torch, functional = self.torch, self.torch.nn.functional
        dtype, columns = self.dtype(parts), int(parts[3])
        rows = 4 if self.is_quick else (1 << 26) // columns
        kind, *gradient = parts[1].split("-")
        x = self.normal(rows, columns, dtype=dtype)
        seed = self.normal(rows, columns, dtype=dtype)
        classes = torch.arange(rows, device=self.device) * 7919 % columns
        if kind == "softmax":
            function, inputs, wanted = lambda v: torch.softmax(v, -1), [x], [x]
        elif kind == "entropy":
            function, inputs, wanted = functional.cross_entropy, [x, classes], [x]
        else:
            scale, bias = (self.normal(columns, dtype=dtype) for _ in range(2))
            inputs = wanted = [x, scale, bias]

            def function(v, g, b):
                return functional.layer_norm(v, (columns,), g, b)

        if not gradient:
            return function, inputs
        for tensor in wanted:
            tensor.requires_grad_()
        if kind == "entropy":
            return self.with_gradient(function, len(wanted), None), inputs
        return self.with_gradient(function, len(wanted), seed), inputs + [seed]

    def with_gradient(self, function, count, seed):
        """Forward and backward; the compiler takes the forward part, and makes the backward one of it."""
        torch = self.torch

        class Both:
            is_whole_step = True

            def __init__(self, forward):
                self.forward = forward

            def __call__(self, *inputs):
                weights = None if seed is None else inputs[-1]
                of = inputs if seed is None else inputs[:-1]
                return torch.autograd.grad(self.forward(*of), inputs[:count], weights)

            def compiled(self, mode):
                options = {} if mode == "compile" else {"mode": mode}
                return Both(torch.compile(function, dynamic=False, **options))

        return Both(function)

    def large(self, parts):
        torch, kind = self.torch, parts[1]
        if kind.split("-")[0] in ("softmax", "norm", "entropy"):
            return self.along(parts)
        if kind == "matmul":
            n, dtype = self.few(int(parts[3]), 16), self.dtype(parts)
            both = [self.normal(n, n, dtype=dtype) for _ in range(2)]
            return lambda a, b: torch.matmul(a, b), both
        if kind.startswith("conv"):
            dtype, images, size = self.dtype(parts), self.few(64, 1), self.few(56, 8)
            x = self.normal(images, 64, size, size, dtype=dtype)
            w = self.normal(64, 64, 3, 3, dtype=dtype)
            conv = lambda v, k: torch.nn.functional.conv2d(v, k, padding=1)  # noqa: E731
            if kind == "conv":
                return conv, [x, w]
            seed = x.clone()
            return self.with_gradient(conv, 2, seed), [x.requires_grad_(), w.requires_grad_(), seed]
        n = 1 << (12 if self.is_quick else 26)
        if kind == "W1b":
            return self.chain("W1b", n, torch.bfloat16)
        if kind == "adam200":
            return self.adam()
        if kind == "scatter":
            width = self.few(256, 8)
            return self.scattered(n // width, width, self.few(50000, 50))
        function = self.reductions().get(kind)
        shape = (
            (1000, 1000)
            if kind == "few-columns"
            else (n // 64, 64)
            if self.is_quick
            else (n // 1024, 1024)
        )
        return function and (function, [self.normal(*shape)])

    def adam(self):
        torch = self.torch
        sizes = [8 if self.is_quick else 64 << (i % 8) for i in range(200)]
        parameters = [self.normal(size, 64).requires_grad_() for size in sizes]
        for p in parameters:
            p.grad = torch.randn_like(p)

        class Step:
            is_whole_step = True

            def __init__(self):
                self.step = torch.optim.Adam(parameters, fused=True).step

            def __call__(self):
                self.step()

            def compiled(self, mode):
                optimizer = torch.optim.Adam(parameters, foreach=True, capturable=mode != "compile")
                options = {} if mode == "compile" else {"mode": mode}
                return torch.compile(lambda: optimizer.step(), **options)

        return Step(), []

    def model(self, parts):
        torch, nn = self.torch, self.torch.nn
        functional, kind = nn.functional, parts[0]
        batch = 128
        classes = None
        if kind == "W4i":
            batch = int(parts[2][1:])
            net = nn.Sequential(nn.Linear(100, 128), nn.ReLU(), nn.Linear(128, 10))
            x = self.normal(batch, 100)
        elif kind == "W4ii":
            layers = []
            for size, to in ((784, 256), (256, 128)):
                layers += [nn.Linear(size, to), nn.BatchNorm1d(to), nn.ReLU(), nn.Dropout(0.5)]
            net, x = nn.Sequential(*layers, nn.Linear(128, 10)), self.normal(128, 784)
        elif kind == "W4iii":
            batch, net, x = 32, Recurrent(torch), self.normal(50, 32, 128)
        elif kind == "W4iv":
            batch = 64
            convolutions = [nn.Conv2d(1, 32, 3), nn.ReLU(), nn.MaxPool2d(2)]
            convolutions += [nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2)]
            dense = [nn.Flatten(), nn.Linear(1600, 128), nn.ReLU(), nn.Linear(128, 10)]
            net, x = nn.Sequential(*convolutions, *dense), self.normal(64, 1, 28, 28)
        else:
            net, x = Block(torch), self.normal(4, 128, 768)
        if parts[1] == "infer":
            return self.inference(net, x, net.sequence if kind == "W4iii" else net)
        if kind != "W4vii":
            classes = torch.arange(batch, device=self.device) * 7 % 10

        def loss_of(out):
            if classes is None:
                return out.square().mean()
            return functional.cross_entropy(out, classes)

        return self.training(net, loss_of, [x], parts[1] == "bf16")

    def zoo(self, parts):
        """bench/zoo.cpp: models of tests/reference, beside which the bundle puts this file."""
        sys.path.insert(1, str(pathlib.Path(__file__).parents[1] / "reference"))
        models, name = importlib.import_module("torch_models"), ".".join(parts)
        torch, nn = self.torch, self.torch.nn
        if name == "W4v.infer":
            return self.inference(
                models.ResNet([3, 4, 6, 3], True, 1000, 64), self.normal(1, 3, 224, 224)
            )
        if name == "W4vi.infer":
            layer = nn.TransformerEncoderLayer(768, 12, 3072, 0.0, "gelu", batch_first=True)
            return self.inference(nn.TransformerEncoder(layer, 12), self.normal(1, 128, 768))
        count = lambda n: torch.arange(n, device=self.device)  # noqa: E731
        cross_entropy = nn.functional.cross_entropy
        if name == "W4.vit":
            net, x = models.VisionTransformer(224, 16, 192, 12, 3, 1000), [(4, 3, 224, 224)]
            return self.training(net, lambda out: cross_entropy(out, count(4) * 7 % 10), x)
        if name == "W4.unet":
            pixels = count(128 * 128).reshape(1, 128, 128) % 2
            net, x = models.UNet(3, 2, 64, 4), [(1, 3, 128, 128)]
            return self.training(net, lambda out: cross_entropy(out, pixels), x)
        if name == "W4.gru":
            lengths, place = count(16) % 12 + 1, count(12).reshape(1, 12)
            words = (count(16 * 12).reshape(16, 12) * 97 % 19999 + 1) * (place < lengths[:, None])
            tags = (words > 0) * (words % 17 + 1)
            net = models.Tagger(20000, 18, 128, 256)
            loss = lambda out: models.loss_of("tagger", out, tags)  # noqa: E731
            return self.training(net, loss, [words, lengths.cpu()])
        return None

    def inference(self, net, x, function=None):
        torch = self.torch
        net.to(self.device).eval()

        def infer(v):
            with torch.no_grad():
                return (function or net)(v)

        return infer, [x]

    def training(self, net, loss_of, inputs, is_autocast=False):
        """A step of Adam; an input given as a shape is random numbers."""
        torch, device = self.torch, self.torch.device(self.device).type
        net = net.to(self.device)
        inputs = [self.normal(*x) if isinstance(x, tuple) else x for x in inputs]

        def forward(*given):
            with torch.autocast(device, torch.bfloat16, is_autocast):
                return loss_of(net(*given))

        class Train:
            is_whole_step = True

            def __init__(self, loss):
                self.loss = loss
                fused = device == "cuda"
                self.optimizer = torch.optim.Adam(net.parameters(), fused=fused or None)

            def __call__(self, *given):
                self.optimizer.zero_grad()
                self.loss(*given).backward()
                self.optimizer.step()

            def compiled(self, mode):
                options = {} if mode == "compile" else {"mode": mode}
                return Train(torch.compile(forward, dynamic=False, **options))

        return Train(forward), inputs


def Recurrent(torch):  # noqa: N802: a class that needs the module
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm, self.out = torch.nn.LSTM(128, 256), torch.nn.Linear(256, 10)

        def sequence(self, x):
            return self.lstm(x)[0]

        def forward(self, x):
            return self.out(self.lstm(x)[0][-1])

    return Net()


def Block(torch):  # noqa: N802
    functional, nn = torch.nn.functional, torch.nn

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.LayerNorm(768), nn.LayerNorm(768)
            self.qkv, self.proj = nn.Linear(768, 2304), nn.Linear(768, 768)
            self.up, self.down = nn.Linear(768, 3072), nn.Linear(3072, 768)

        def attention(self, x):
            n, t, w = x.shape
            q, k, v = self.qkv(x).view(n, t, 3, 12, w // 12).permute(2, 0, 3, 1, 4)
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.proj(out.transpose(1, 2).reshape(n, t, w))

        def forward(self, x):
            x = x + self.attention(self.first(x))
            return x + self.down(functional.gelu(self.up(self.second(x)), approximate="tanh"))

    return Net()


def cold(options):
    """In a fresh process: the first calls of a function, and a later one."""
    rows = Torch(options)
    name, mode = options.cold.split("=")
    function, inputs = rows.row(name if "." in name else name + ".n1e5")
    if mode != "eager":
        function = rows.torch.compile(
            function, dynamic=False, **({} if mode == "compile" else {"mode": mode})
        )
    times = []
    for _ in range(8):
        start = time.perf_counter()
        function(*inputs)
        rows.clock.wait()
        times.append(time.perf_counter() - start)
    # Compiled when a call takes no longer than the last does, by and large.
    ready = next(i for i in range(8) if times[i] < 3 * times[-1] + 1e-3) if mode != "eager" else 0
    for kind, seconds in (
        (".first", times[0]),
        (".ready", sum(times[: ready + 1])),
        (".warm", times[-1]),
    ):
        emit({"workload": f"W6.{name}{kind}", "mode": mode, "host_s": seconds})


def emit(line):
    print(json.dumps({"peer": "torch", **line}), flush=True)


def serve(options):
    rows = StandIn(options) if options.stand_in else Torch(options)
    emit({"workload": "torch", "mode": "version", "notes": rows.version or "stand-in"})
    for line in sys.stdin:
        name = line.strip()
        kind = {"notes": "stand-in"} if options.stand_in else {}
        end = {"end": name}
        if name.startswith("W6.") and not options.stand_in:
            for mode in options.modes if name[3:] in COLD else ():
                command = [
                    sys.executable,
                    __file__,
                    "--cold",
                    f"{name[3:]}={mode}",
                    "--device",
                    options.device,
                ]
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
                print(done.stdout, end="", flush=True)
        else:
            try:
                modes = rows.modes(name)
                while True:
                    mode = None
                    try:
                        mode, call, check = next(modes)
                        times = rows.clock.time(call, options.quick)
                        emit(
                            {
                                "workload": name,
                                "mode": mode,
                                **times,
                                "check": check and check(),
                                **kind,
                            }
                        )
                    except StopIteration:
                        break
                    except (
                        Exception
                    ) as error:  # torch.compile without a compiler, say: the rest goes on
                        text = f"{type(error).__name__}: {str(error)[:300]}"
                        emit({"workload": name, "mode": mode, "failed": text})
                        if mode is None:
                            break
            except KeyError as error:
                end["failed"] = f"no row {error}"
        emit(end)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--quick", action="store_true", help="few and short samples")
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(MODES))
    parser.add_argument("--cold", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.cold:
        cold(options)
    else:
        serve(options)


if __name__ == "__main__":
    main()
