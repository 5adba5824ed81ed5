"""Cases of convolutions of other axes and of images of another size, as in function_cases.py."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
from function_cases import Case, F, between, f, normal, one, random, torch


def with_torch(function: Callable[..., Any]) -> Callable[..., Any] | None:
    return function if torch is not None else None


def each(value: Any, count: int) -> tuple[int, ...]:
    return (value,) * count if isinstance(value, int) else tuple(value)


def products(
    x: Any, weight: Any, y: Any, stride: Any, padding: Any, dilation: Any, groups: int
) -> Any:
    """For each tap of the kernel, where x and y meet: indices of both, without batch and channels."""
    axes = weight.ndim - 2
    strides, pads, dilations = each(stride, axes), each(padding, axes), each(dilation, axes)
    for tap in itertools.product(*(range(n) for n in weight.shape[2:])):
        for to in itertools.product(*(range(n) for n in y.shape[2:])):
            at = [t * s + k * d - p for t, s, k, d, p in zip(to, strides, tap, dilations, pads)]
            if all(0 <= i < n for i, n in zip(at, x.shape[2:])):
                yield (..., *at), (..., *tap), (..., *to)


def np_conv(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, dilation: Any = 1,
    groups: int = 1, padding_after: Any = None, is_same: bool = False,
) -> Any:  # fmt: skip
    axes = weight.ndim - 2
    after = each(padding if padding_after is None else padding_after, axes)
    pads, sizes = [], []
    for n, p, q, d, k, s in zip(x.shape[2:], each(padding, axes), after, each(dilation, axes),
                                weight.shape[2:], each(stride, axes)):  # fmt: skip
        if is_same:
            more = max(0, ((n + s - 1) // s - 1) * s + d * (k - 1) + 1 - n)
            p, q = more // 2, more - more // 2
        pads.append(p)
        sizes.append((n + p + q - d * (k - 1) - 1) // s + 1)
    y = np.zeros((x.shape[0], weight.shape[0], *sizes))
    per, seen = weight.shape[0] // groups, weight.shape[1]
    for at, tap, to in products(x, weight, y, stride, pads, dilation, groups):
        for g in range(groups):
            a, w = x[at][:, g * seen : (g + 1) * seen], weight[tap][g * per : (g + 1) * per]
            y[to][:, g * per : (g + 1) * per] += a @ w.T
    return y if bias is None else y + bias.reshape(-1, *[1] * axes)


def np_conv_transpose(
    x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    output_padding: Any = 0, dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    axes = weight.ndim - 2
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + more + 1
        for n, s, p, d, k, more in zip(x.shape[2:], each(stride, axes), each(padding, axes),
                                       each(dilation, axes), weight.shape[2:],
                                       each(output_padding, axes))
    ]  # fmt: skip
    y = np.zeros((x.shape[0], weight.shape[1] * groups, *sizes))
    seen, per = weight.shape[0] // groups, weight.shape[1]
    for at, tap, to in products(y, weight, x, stride, padding, dilation, groups):
        for g in range(groups):
            a, w = x[to][:, g * seen : (g + 1) * seen], weight[tap][g * seen : (g + 1) * seen]
            y[at][:, g * per : (g + 1) * per] += a @ w
    return y if bias is None else y + bias.reshape(-1, *[1] * axes)


def np_keys(d: Any) -> Any:
    d = np.abs(d)
    near, far = (1.25 * d - 2.25) * d * d + 1, ((-0.75 * d + 3.75) * d - 6) * d + 3
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


def np_interpolate(x: Any, size: Any, mode: str = "nearest", aligns_corners: bool = False) -> Any:
    if mode == "area":
        return np_adaptive_avg_pool(x, size)
    for axis, to in enumerate(size, 2):
        n = x.shape[axis]
        i = np.arange(to)
        at = i * ((n - 1) / max(to - 1, 1)) if aligns_corners else (i + 0.5) * n / to - 0.5
        weights = np.zeros((to, n))
        for k in i:
            if mode == "nearest":
                weights[k, k * n // to] = 1
                continue
            place = np.clip(at[k], 0, n - 1) if mode == "linear" else at[k]
            for tap in range(int(np.floor(place)) - 1, int(np.floor(place)) + 3):
                d = place - tap
                share = max(0.0, 1 - abs(d)) if mode == "linear" else np_keys(d)
                weights[k, np.clip(tap, 0, n - 1)] += share
        x = np.moveaxis(np.moveaxis(x, axis, -1) @ weights.T, -1, axis)
    return x


def pooled(x: Any, size: Any, join: Callable[..., Any]) -> Any:
    for axis, to in enumerate(size, 2):
        n = x.shape[axis]
        windows = [slice(i * n // to, -(-(i + 1) * n // to)) for i in range(to)]
        parts = [join(x[(slice(None),) * axis + (w,)], axis=axis) for w in windows]
        x = np.stack(parts, axis)
    return x


def np_adaptive_avg_pool(x: Any, size: Any) -> Any:
    return pooled(x, size, np.mean)


def np_adaptive_max_pool(x: Any, size: Any) -> Any:
    return pooled(x, size, np.max)


def np_pixel_shuffle(x: Any, factor: int) -> Any:
    n, c, h, w = x.shape
    parts = x.reshape(n, c // factor**2, factor, factor, h, w).transpose(0, 1, 4, 2, 5, 3)
    return parts.reshape(n, c // factor**2, h * factor, w * factor)


def np_pixel_unshuffle(x: Any, factor: int) -> Any:
    n, c, h, w = x.shape
    parts = x.reshape(n, c, h // factor, factor, w // factor, factor).transpose(0, 1, 3, 5, 2, 4)
    return parts.reshape(n, c * factor**2, h // factor, w // factor)


def np_grid_sample(
    x: Any, grid: Any, mode: str = "linear", border: str = "zeros", aligns_corners: bool = False
) -> Any:
    def place(at: Any, n: int) -> Any:
        return (at + 1) / 2 * (n - 1) if aligns_corners else ((at + 1) * n - 1) / 2

    def within(found: Any, n: int) -> Any:
        if border == "zeros":
            return found
        if border == "reflection":
            low, high = (0, n - 1) if aligns_corners else (-0.5, n - 0.5)
            while ((found < low) | (found > high)).any():
                found = np.where(found < low, 2 * low - found, found)
                found = np.where(found > high, 2 * high - found, found)
        return np.clip(found, 0, n - 1)

    def shares(at: Any, n: int) -> Any:
        """Of each of n elements in what is found at a place."""
        there = place(at, n)
        if mode != "cubic":
            there = within(there, n)
            there = np.round(there) if mode == "nearest" else there
            return np.maximum(0, 1 - np.abs(there[..., None] - np.arange(n)))
        sums = np.zeros((*at.shape, n))
        for step in (-1, 0, 1, 2):
            tap = np.floor(there) + step
            d = np.abs(there - tap)
            weight = np.where(
                d <= 1, (1.25 * d - 2.25) * d * d + 1, -0.75 * (((d - 5) * d + 8) * d - 4)
            )
            sums += weight[..., None] * (np.round(within(tap, n))[..., None] == np.arange(n))
        return sums

    of_columns, of_rows = shares(grid[..., 0], x.shape[3]), shares(grid[..., 1], x.shape[2])
    return np.einsum("nchw,nijh,nijw->ncij", x, of_rows, of_columns)


def columns_of(shape: Any, kernel: Any, stride: Any, padding: Any, dilation: Any) -> Any:
    """Row and column of each element of the columns, and which lie in the image."""
    (h, w), (a, b) = shape, each(kernel, 2)
    (sh, sw), (ph, pw), (dh, dw) = each(stride, 2), each(padding, 2), each(dilation, 2)
    rows = np.arange(0, h + 2 * ph - dh * (a - 1), sh) - ph
    lines = np.arange(0, w + 2 * pw - dw * (b - 1), sw) - pw
    i = (np.arange(a) * dh)[:, None, None, None] + rows[:, None] + np.zeros((1, b, 1, 1), int)
    j = (np.arange(b) * dw)[:, None, None] + lines + np.zeros((a, 1, len(rows), 1), int)
    i, j = (np.broadcast_to(z, (a, b, len(rows), len(lines))).reshape(a * b, -1) for z in (i, j))
    return i, j, (i >= 0) & (i < h) & (j >= 0) & (j < w)


def np_unfold(x: Any, kernel: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1) -> Any:
    i, j, inside = columns_of(x.shape[2:], kernel, stride, padding, dilation)
    found = x[:, :, np.where(inside, i, 0), np.where(inside, j, 0)] * inside
    return found.reshape(x.shape[0], -1, i.shape[1])


def np_fold(
    columns: Any, size: Any, kernel: Any, stride: Any = 1, padding: Any = 0, dilation: Any = 1
) -> Any:
    size = each(size, 2)
    i, j, inside = columns_of(size, kernel, stride, padding, dilation)
    parts = columns.reshape(columns.shape[0], -1, *i.shape)
    image = np.zeros((*parts.shape[:2], *size))
    for k in np.argwhere(inside):
        image[:, :, i[tuple(k)], j[tuple(k)]] += parts[:, :, k[0], k[1]]
    return image


def np_pool(join: str, axes: int) -> Callable[..., Any]:
    """Largest numbers ("max"), their places ("place"), or means, of windows one by one."""

    def pool(
        x: Any, kernel: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
        is_ceil: bool = False, counts_padding: bool = True,
    ) -> Any:  # fmt: skip
        k, p, d = each(kernel, axes), each(padding, axes), each(dilation, axes)
        s, sizes = each(kernel if stride is None else stride, axes), x.shape[2:]
        counts = []
        for a in range(axes):
            rest = sizes[a] + 2 * p[a] - d[a] * (k[a] - 1) - 1
            count = (-(-rest // s[a]) if is_ceil else rest // s[a]) + 1
            if is_ceil and (count - 1) * s[a] >= sizes[a] + p[a]:
                count -= 1
            counts.append(count)
        y: Any = np.zeros((*x.shape[:2], *counts))
        flat = np.arange(np.prod(sizes)).reshape(sizes)
        for to in itertools.product(*(range(n) for n in counts)):
            inside, padded = [], 0
            for tap in itertools.product(*(range(n) for n in k)):
                at = tuple(t * q + i * g - o for t, q, i, g, o in zip(to, s, tap, d, p))
                padded += all(i < n + o for i, n, o in zip(at, sizes, p))
                if all(0 <= i < n for i, n in zip(at, sizes)):
                    inside.append(at)
            numbers = np.stack([x[(..., *at)] for at in inside], -1)
            if join == "max":
                y[(..., *to)] = numbers.max(-1)
            elif join == "place":
                y[(..., *to)] = np.array([flat[at] for at in inside])[numbers.argmax(-1)]
            else:
                y[(..., *to)] = numbers.sum(-1) / (padded if counts_padding else len(inside))
        return y

    return pool


def np_max_pool2d_with_indices(x: Any, kernel: Any, **given: Any) -> Any:
    return (np_pool("max", 2)(x, kernel, **given),
            np_pool("place", 2)(x, kernel, **given).astype(np.int64))  # fmt: skip


def np_max_unpool2d(values: Any, indices: Any, size: Any) -> Any:
    image = np.zeros((*values.shape[:2], size[0] * size[1]), values.dtype)
    flat = (*values.shape[:2], -1)
    np.put_along_axis(image, indices.reshape(flat), values.reshape(flat), 2)
    return image.reshape(*values.shape[:2], *size)


def torch_of_pool(name: str) -> Callable[..., Any] | None:
    def call(x: Any, kernel: Any, stride: Any = None, padding: Any = 0, **given: Any) -> Any:
        words = {"is_ceil": "ceil_mode", "counts_padding": "count_include_pad"}
        named = {words.get(key, key): value for key, value in given.items()}
        return getattr(F, name)(x, kernel, stride, padding, **named)

    return with_torch(call)


def torch_interpolate(
    x: Any, size: Any, mode: str = "nearest", aligns_corners: bool = False
) -> Any:
    word = {"cubic": "bicubic", "linear": {3: "linear", 4: "bilinear", 5: "trilinear"}[x.ndim]}
    may_align = mode in ("linear", "cubic")
    return F.interpolate(
        x, size, mode=word.get(mode, mode), align_corners=aligns_corners if may_align else None
    )


def torch_grid_sample(
    x: Any, grid: Any, mode: str = "linear", border: str = "zeros", aligns_corners: bool = False
) -> Any:
    words = {"linear": "bilinear", "cubic": "bicubic", "edge": "border"}
    return F.grid_sample(
        x, grid, words.get(mode, mode), words.get(border, border), align_corners=aligns_corners
    )


def torch_pool(name: str) -> Callable[..., Any] | None:
    def call(x: Any, size: Any) -> Any:
        return getattr(F, f"adaptive_{name}_pool{x.ndim - 2}d")(x, size)

    return with_torch(call)


LINE, IMAGES, VOLUME = normal(2, 4, 9), normal(2, 4, 5, 6), normal(1, 2, 3, 4, 3)
DISTINCT = random.permutation(2 * 4 * 5 * 6).reshape(2, 4, 5, 6) / 50 - 2

SMALL = random.permutation(2 * 2 * 4 * 5 * 4).reshape(2, 2, 4, 5, 4) / 50 - 2

RESAMPLE_CASES = [
    Case("max_pool1d", [one(LINE, 2), one(LINE, 3, stride=2, padding=1, is_ceil=True), one(LINE, kernel=2, dilation=3)],
         np_pool("max", 1), torch_of_pool("max_pool1d"), has_gradient=True),
    Case("avg_pool1d", [one(LINE, 2), one(LINE, 3, stride=2, padding=1, is_ceil=True), one(LINE, 3, padding=1, counts_padding=False)],
         np_pool("mean", 1), torch_of_pool("avg_pool1d"), has_gradient=True, scale=4),
    Case("max_pool3d", [one(SMALL, 2), one(SMALL, (2, 3, 2), stride=(1, 2, 2), padding=(0, 1, 1), is_ceil=True), one(SMALL, 2, dilation=2, stride=1)],
         np_pool("max", 3), torch_of_pool("max_pool3d"), has_gradient=True),
    Case("avg_pool3d", [one(SMALL, 2), one(SMALL, (2, 3, 2), stride=2, padding=(1, 1, 0), counts_padding=False), one(SMALL, 3, stride=2, is_ceil=True)],
         np_pool("mean", 3), torch_of_pool("avg_pool3d"), has_gradient=True, scale=20),
    Case("max_pool2d_with_indices", [one(DISTINCT, 2), one(DISTINCT, (2, 3), stride=2, padding=1, is_ceil=True), one(DISTINCT, 2, dilation=2)],
         np_max_pool2d_with_indices, dtypes=("float32", "float64")),
    Case("max_unpool2d", [one(normal(1, 2, 2, 2), np.array([[[[0, 3], [9, 14]], [[1, 6], [8, 15]]]]), (4, 4))],
         np_max_unpool2d),
    Case("conv1d", [one(LINE, normal(3, 4, 3)), one(LINE, normal(6, 2, 2), normal(6), stride=2, padding=1, groups=2),
                    one(LINE, weight=normal(2, 4, 3), dilation=2), one(LINE, normal(3, 4, 4), stride=2, is_same=True),
                    one(LINE, normal(3, 4, 2), padding=1, padding_after=3)],
         np_conv, f("conv1d"), has_gradient=True, scale=50),
    Case("conv3d", [one(VOLUME, normal(3, 2, 2, 2, 2)),
                    one(VOLUME, normal(4, 1, 2, 3, 1), normal(4), stride=(2, 1, 1), padding=1, groups=2),
                    one(VOLUME, normal(1, 2, 2, 1, 2), dilation=(2, 1, 1)),
                    one(VOLUME, normal(3, 2, 2, 3, 2), stride=(1, 2, 1), is_same=True),
                    one(VOLUME, normal(1, 2, 2, 2, 2), padding=(1, 0, 2), padding_after=(0, 1, 2))],
         np_conv, f("conv3d"), has_gradient=True, scale=50),
    Case("conv_transpose1d", [one(LINE, normal(4, 3, 3)),
                              one(LINE, normal(4, 2, 3), normal(4), stride=2, padding=1, output_padding=1, groups=2),
                              one(LINE, normal(4, 2, 3), normal(4), padding=1, output_padding=1, dilation=2, groups=2)],
         np_conv_transpose, f("conv_transpose1d"), has_gradient=True, scale=50),
    Case("conv_transpose2d", [one(IMAGES, normal(4, 3, 2, 3)),
                              one(IMAGES, normal(4, 1, 3, 2), normal(2), stride=(2, 1), padding=(1, 0),
                                  output_padding=(1, 0), groups=2),
                              one(IMAGES, normal(4, 2, 2, 2), dilation=2),
                              one(IMAGES, normal(4, 2, 3, 1), padding=(1, 0), output_padding=(2, 1), dilation=(3, 2))],
         np_conv_transpose, f("conv_transpose2d"), has_gradient=True, scale=50),
    Case("conv_transpose3d", [one(VOLUME, normal(2, 3, 2, 2, 2)),
                              one(VOLUME, normal(2, 2, 2, 1, 3), normal(4), stride=(2, 1, 2), padding=(1, 0, 1),
                                  output_padding=(1, 0, 0), groups=2)],
         np_conv_transpose, f("conv_transpose3d"), has_gradient=True, scale=50),
    Case("interpolate", [one(IMAGES, (7, 3)), one(IMAGES, (10, 12), mode="linear"), one(IMAGES, (3, 9), mode="linear", aligns_corners=True),
                         one(IMAGES, (8, 4), mode="cubic"), one(IMAGES, (4, 11), mode="cubic", aligns_corners=True),
                         one(IMAGES, (2, 4), mode="area"), one(LINE, (5,), mode="linear"), one(VOLUME, (2, 6, 5), mode="linear")],
         np_interpolate, with_torch(torch_interpolate), has_gradient=True, scale=20),
    Case("adaptive_avg_pool", [one(IMAGES, (2, 4)), one(LINE, (4,)), one(IMAGES, (1, 1)), one(VOLUME, (2, 2, 2))],
         np_adaptive_avg_pool, torch_pool("avg"), has_gradient=True, scale=20),
    Case("adaptive_max_pool", [one(DISTINCT, (2, 3)), one(DISTINCT, (1, 1)), one(DISTINCT, (3, 4))],
         np_adaptive_max_pool, torch_pool("max")),
    Case("pixel_shuffle", [one(IMAGES, 2), one(IMAGES, factor=1)], np_pixel_shuffle,
         with_torch(lambda x, factor: F.pixel_shuffle(x, factor)), has_gradient=True),
    Case("pixel_unshuffle", [one(normal(2, 3, 4, 6), 2)], np_pixel_unshuffle,
         with_torch(lambda x, factor: F.pixel_unshuffle(x, factor)), has_gradient=True),
    Case("grid_sample", [one(IMAGES, between(-0.9, 0.9, 2, 3, 2, 2)), one(IMAGES, between(-1.5, 1.5, 2, 3, 2, 2), aligns_corners=True),
                         one(IMAGES, between(-2, 2, 2, 4, 2, 2), border="edge"),
                         one(IMAGES, between(-2, 2, 2, 4, 2, 2), border="reflection"),
                         one(IMAGES, between(-2, 2, 2, 4, 2, 2), border="reflection", aligns_corners=True),
                         one(IMAGES, between(-1.5, 1.5, 2, 3, 2, 2), mode="cubic"),
                         one(IMAGES, between(-1.5, 1.5, 2, 3, 2, 2), mode="cubic", border="edge", aligns_corners=True),
                         one(IMAGES, between(-1.5, 1.5, 2, 3, 2, 2), mode="cubic", border="reflection")],
         np_grid_sample, with_torch(torch_grid_sample), dtypes=("float32", "float64"), scale=200),
    Case("unfold", [one(IMAGES, 2), one(IMAGES, (3, 2), stride=(2, 1), padding=(1, 2), dilation=(1, 2))], np_unfold,
         with_torch(lambda x, kernel, **given: F.unfold(x, kernel, **given)), has_gradient=True),
    Case("fold", [one(normal(2, 12, 20), (5, 6), 2), one(normal(1, 6, 21), (5, 4), (3, 2), padding=(1, 2), dilation=(1, 1), stride=(2, 1))],
         np_fold, with_torch(lambda x, size, kernel, **given: F.fold(x, size, kernel, **given)), has_gradient=True, scale=4),
]  # fmt: skip
