"""Writes the files beside it, of which ../npz_test.cpp and ../image_test.cpp know the values: with NumPy
2.4.6 and Pillow 13.0.0. They are also what the fuzzers of these readers begin with."""

import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image

folder = Path(__file__).parent

# ---- NumPy's

arrays = {
    "f32": np.arange(6, dtype="f4").reshape(2, 3) / 2,
    "layer/weight": np.asfortranarray(np.arange(6, dtype="f8").reshape(3, 2)),
    "größe": np.array([[1, -2], [3, -4]], dtype=">i4"),
    "bool": np.array([True, False, True]),
    "scalar": np.int64(-7),
    "empty": np.zeros((0, 3), "u1"),
    "f16": np.array([1.5, -2, np.inf], "f2"),
}
np.savez(folder / "npz/several", **arrays)
np.savez_compressed(folder / "npz/compressed", zeros=np.zeros((40, 50), "f4"), **arrays)
np.savez(folder / "npz/nothing")
np.savez(folder / "npz/object", good=np.zeros(1), bad=np.array([None, {}], dtype=object))

# ---- Pillow's; pixel [y, x], channel c of lossless images is (40 y + 7 x + 60 c) mod 256


def pixels(channels: int) -> np.ndarray:
    y, x, c = np.mgrid[:5, :6, :channels]
    return ((40 * y + 7 * x + 60 * c) % 256).astype("u1")


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(
    width: int, height: int, depth: int, kind: int, interlaced: int, rows: bytes, *more: bytes
) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, interlaced)
    parts = (
        chunk(b"IHDR", header),
        *more,
        chunk(b"IDAT", zlib.compress(rows)),
        chunk(b"IEND", b""),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


for name, channels in (("grey", 1), ("grey_alpha", 2), ("rgb", 3), ("rgba", 4)):
    image = pixels(channels)
    Image.fromarray(image[..., 0] if channels == 1 else image).save(folder / f"image/{name}.png")

indices = np.add.outer(np.arange(5), np.arange(6)).astype("u1") % 8
palette = Image.fromarray(indices, mode="P")
palette.putpalette([v for i in range(8) for v in (30 * i, 255 - 30 * i, 10 * i)])
palette.save(folder / "image/palette.png")
palette.save(folder / "image/palette_alpha.png", transparency=bytes([0, 128]))
Image.fromarray(indices % 2 == 1).save(folder / "image/one_bit.png")
wide = pixels(1)[..., 0].astype("u2") * 257 + 100
Image.fromarray(wide).save(folder / "image/grey16.png")

passes = (
    (0, 0, 8, 8),
    (0, 4, 8, 8),
    (4, 0, 8, 4),
    (0, 2, 4, 4),
    (2, 0, 4, 2),
    (0, 1, 2, 2),
    (1, 0, 2, 1),
)
rows = b""
for y, x, dy, dx in passes:
    part = pixels(3)[y::dy, x::dx]
    rows += b"".join(b"\0" + row.tobytes() for row in part if row.size)
(folder / "image/interlaced.png").write_bytes(png(6, 5, 8, 2, 1, rows))
linear = chunk(b"gAMA", struct.pack(">I", 100000))
(folder / "image/linear.png").write_bytes(png(3, 1, 8, 0, 0, bytes([0, 0, 55, 255]), linear))

y, x, c = np.mgrid[:16, :24, :3]
smooth = (20 + 6 * y + 3 * x + 20 * c).astype("u1")
colours = Image.fromarray(smooth)
colours.save(folder / "image/rgb.jpg", quality=95, subsampling=0)
colours.save(folder / "image/halved.jpg", quality=95, subsampling=2)
colours.save(folder / "image/progressive.jpg", quality=95, subsampling=0, progressive=True)
exif = Image.Exif()
exif[274] = 6  # to be turned by a quarter
colours.save(folder / "image/turned.jpg", quality=95, subsampling=0, exif=exif)
Image.fromarray(smooth[..., 0]).save(folder / "image/grey.jpg", quality=95)
colours.convert("CMYK").save(folder / "image/cmyk.jpg", quality=95)
