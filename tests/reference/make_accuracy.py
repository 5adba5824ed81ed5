"""Errors of PyTorch's var, std and layer_norm (CPU, float32) on hard inputs: the table in
tests/eager/ops/accuracy_test.cpp. Needs torch and numpy.

    python tests/reference/make_accuracy.py
"""

import math

import numpy as np
import torch


def uniform(n):
    state, out = 12345, np.empty(n)
    for i in range(n):
        state = (state * 1664525 + 1013904223) & 0xFFFFFFFF
        out[i] = (state >> 8) / 2.0**24
    return out


def numbers(name):
    u = uniform(4096 * 8)
    row = np.arange(4096 * 8) // 8
    if name == "alternating":
        return np.where(row % 2 == 0, 1e4, -1e4) + u
    if name == "outlier":
        return np.where(row == 1000, 1e6, u)
    if name == "first outlier":
        return np.where(row == 0, 1e6, u)
    if name == "ramp":
        return row * 0.1
    if name == "tiny":
        return 1e-20 * (u - 0.5)
    offset = float(name)
    return offset + (u - 0.5) * (100 if offset == 1e8 else 3.5)


def largest(x):
    up = math.ceil(float(x.max()) * 1e10) / 1e10
    return f"{up:.10g}"


names = ["1e2", "1e3", "1e4", "1e5", "1e6", "1234567.8", "1e7", "1.7e7", "1e8"]
for name in names + ["alternating", "outlier", "first outlier", "ramp", "tiny"]:
    x = numbers(name).astype(np.float32).reshape(4096, 8)
    wide = x.astype(np.longdouble)
    var, std = wide.var(axis=0), wide.std(axis=0)
    errors = []
    for axis, given in ((0, x), (1, np.ascontiguousarray(x.T))):
        t = torch.from_numpy(given)
        for got, want in (
            (torch.var(t, axis, correction=0), var),
            (torch.std(t, axis, correction=0), std),
        ):
            errors.append(np.abs(got.numpy().astype(np.longdouble) - want) / want)
    rows = torch.from_numpy(np.ascontiguousarray(x.T))
    got = torch.nn.functional.layer_norm(rows, (4096,), eps=0.0).numpy().astype(np.longdouble)
    want = ((wide - wide.mean(axis=0)) / std).T
    var_error = np.maximum(errors[0], errors[2])
    std_error = np.maximum(errors[1], errors[3])
    print(
        f'    {{"{name}", {largest(var_error)}, {largest(std_error)}, {largest(np.abs(got - want))}}},'
    )
