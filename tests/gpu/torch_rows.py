"""The rows of nitinol_gpu_kernels by PyTorch, eager and compiled, on the same GPU: microseconds."""

import json
import math
import sys

import torch
import torch.nn.functional as functional


def polynomial(x, a, b, c):
    return (x * a + b) * x + c


def gelu(x):
    return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


def microseconds(function, *arguments):
    for _ in range(5):
        function(*arguments)
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    best = math.inf
    for _ in range(5):
        begin.record()
        for _ in range(50):
            function(*arguments)
        end.record()
        end.synchronize()
        best = min(best, begin.elapsed_time(end) * 1000 / 50)
    return best


def main():
    torch.manual_seed(0)
    n = 1 << 24
    rows = {}
    for dtype, suffix in ((torch.float32, ""), (torch.bfloat16, ".bf16"), (torch.float16, ".f16")):
        x, a, b, c = (torch.randn(n, device="cuda").to(dtype) for _ in range(4))
        rows["W1a" + suffix] = (polynomial, x, a, b, c)
        rows["W1b" + suffix] = (gelu, x)
    x = torch.randn(4096, 1024, device="cuda")
    scale, bias = torch.randn(1024, device="cuda"), torch.randn(1024, device="cuda")
    rows["W2.sum"] = (torch.sum, x)
    rows["W2.mean"] = (lambda v: torch.mean(v, -1), x)
    rows["W2.softmax"] = (lambda v: torch.softmax(v, -1), x)
    rows["W2.layernorm"] = (lambda v, g, b: functional.layer_norm(v, (1024,), g, b), x, scale, bias)
    rows["W2.var"] = (lambda v: torch.var(v, -1), x)
    rows["W2.argmax"] = (lambda v: torch.argmax(v, -1), x)
    rows["columns.1000x1000"] = (lambda v: torch.sum(v, 0), torch.randn(1000, 1000, device="cuda"))
    rows["columns.32x128"] = (lambda v: torch.sum(v, 0), torch.randn(32, 128, device="cuda"))
    table = torch.randn(50000, 256, device="cuda")
    index = torch.arange(32768, device="cuda") * 7919 % 50000
    rows["take.rows"] = (lambda v, i: v[i], table, index)
    results = []
    for name, (function, *arguments) in rows.items():
        eager = microseconds(function, *arguments)
        compiled = microseconds(torch.compile(function), *arguments)
        print(f"{name:18} {eager:9.1f} eager {compiled:9.1f} compiled")
        results.append(
            {"row": name, "torch_microseconds": eager, "torch_compile_microseconds": compiled}
        )
    if len(sys.argv) > 1:
        with open(sys.argv[1], "w", encoding="utf-8") as out:
            json.dump({"torch": torch.__version__, "rows": results}, out, indent=2)


if __name__ == "__main__":
    main()
