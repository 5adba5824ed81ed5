"""Readers of data as others publish them."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nitinol as nt


def test_idx_and_csv(tmp_path: Path) -> None:
    digits = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    header = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4])
    (tmp_path / "digits").write_bytes(header + digits.tobytes())
    read = nt.load_idx(tmp_path / "digits")
    assert read.dtype == nt.uint8 and (np.asarray(read) == digits).all()
    table = np.random.default_rng(0).normal(size=(50, 7))
    np.savetxt(tmp_path / "table.csv", table, delimiter=",", header="a,b,c,d,e,f,g", comments="")
    found = nt.load_csv(tmp_path / "table.csv", header=True, dtype=nt.float64)
    assert found.names == list("abcdefg")
    assert (
        np.asarray(found.values) == np.loadtxt(tmp_path / "table.csv", delimiter=",", skiprows=1)
    ).all()
    (tmp_path / "bad.csv").write_text("1;2\n3;x\n")
    with pytest.raises(nt.Error, match='line 2, field 2 of .*got "x"'):
        nt.load_csv(tmp_path / "bad.csv", separator=";")
    wrong: tuple[dict[str, Any], ...] = (
        {"separator": ", "},
        {"separator": 3},
        {"header": 1},
        {"dtype": "text"},
        {"dtype": nt.uint8},
    )
    for options in wrong:
        with pytest.raises((TypeError, nt.Error), match="load_csv"):
            nt.load_csv(tmp_path / "table.csv", **options)


PIXEL = nt.zeros((1, 1), dtype=nt.uint8)


def has(part: str) -> bool:
    """Whether the library was built with it."""
    try:
        nt.load_npz(__file__) if part == "zip files" else nt.save_image("/none/x.png", PIXEL)
    except nt.Error as error:
        return f"without {part}" not in str(error)
    return True


needs_zip = pytest.mark.skipif(not has("zip files"), reason="a library without zip files")
needs_images = pytest.mark.skipif(not has("images"), reason="a library without images")


@needs_zip
@pytest.mark.parametrize("compressed", (False, True))
def test_npz_files_go_to_and_come_from_numpy(tmp_path: Path, compressed: bool) -> None:
    random = np.random.default_rng(0)
    arrays: dict[str, np.ndarray[Any, Any]] = {
        kind: (random.normal(size=(3, 4)) * 5).astype(kind)
        for kind in ("?", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f2", "f4", "f8")
    }
    arrays |= {
        "columns first": np.asfortranarray(arrays["f4"]),
        "big-endian": arrays["i4"].astype(">i4"),
        "every second": arrays["f8"][::2, ::-1],
        "number": np.array(2.5),
        "nothing": np.zeros((2, 0, 3)),
        "in/a/folder": np.arange(3),
        "größe": np.arange(2),
        "ends.npy": np.arange(4),
    }
    (np.savez_compressed if compressed else np.savez)(tmp_path / "theirs.npz", **arrays)  # type: ignore[arg-type]
    ours = nt.load_npz(tmp_path / "theirs.npz")
    assert list(ours) == list(arrays)
    for name, array in arrays.items():
        read = np.asarray(ours[name])
        assert read.dtype == array.dtype.newbyteorder("=") and read.shape == array.shape, name
        assert (read == array).all(), name
    ours["a view"] = nt.asarray(arrays["f4"]).T
    nt.save_npz(tmp_path / "ours.npz", ours, compressed=compressed)
    with np.load(tmp_path / "ours.npz") as theirs:
        assert list(theirs) == list(ours)
        for name, tensor in ours.items():
            assert theirs[name].dtype == np.asarray(tensor).dtype, name
            assert (theirs[name] == np.asarray(tensor)).all(), name


@needs_zip
def test_npz_files_that_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, good=np.ones(2), bad=np.array([None]))
    with pytest.raises(nt.Error, match='load_npz: "bad.npy" in ".*bad.npz" holds Python objects'):
        nt.load_npz(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("read.me", "text")
    with pytest.raises(nt.Error, match='"read.me" in .*expected a .npy file'):
        nt.load_npz(path)
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        with zipfile.ZipFile(path, "w", method) as file:
            file.writestr("x.npy", bytes(1000))
        with pytest.raises(nt.Error, match=f"compression of .*got method {method}"):
            nt.load_npz(path)
    with pytest.raises(ValueError, match="UTF-8 without NUL"):
        nt.save_npz(path, {"a\0b": nt.ones(2)})
    wrong: tuple[tuple[Any, ...], ...] = ((path, {"x": "text"}), (path, {1: nt.ones(2)}), (3, {}))
    for arguments in wrong:
        with pytest.raises(TypeError, match="save_npz"):
            nt.save_npz(*arguments)


@needs_images
def test_images(tmp_path: Path) -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (7, 5, 3), np.uint8)
    path = tmp_path / "image.png"
    nt.save_image(path, nt.asarray(pixels))
    assert (np.asarray(nt.load_image(path)) == pixels).all()
    assert nt.load_image(path, channels=4).shape == (7, 5, 4)
    assert (np.asarray(nt.load_image(path, channels=4))[..., 3] == 255).all()
    nt.save_image(path, nt.asarray(pixels).permute_dims((1, 0, 2))[..., 0])
    assert (np.asarray(nt.load_image(path))[..., 0] == pixels[..., 0].T).all()
    with pytest.raises(nt.Error, match="at most 34, got 35"):
        nt.load_image(path, most_pixels=34)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(nt.Error, match="load_image: .*image.png. cannot be decoded"):
        nt.load_image(path)
    wrong: tuple[dict[str, Any], ...] = ({"channels": 5}, {"channels": "3"}, {"most_pixels": None})
    for options in wrong:
        with pytest.raises((TypeError, ValueError), match="load_image"):
            nt.load_image(path, **options)
    for bad in (nt.ones((2, 2)), nt.ones((2, 2, 5), dtype=nt.uint8)):
        with pytest.raises(nt.Error, match="save_image: the image"):
            nt.save_image(path, bad)


@needs_images
def test_images_of_and_for_pillow(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    y, x, c = np.mgrid[:40, :50, :3]
    pixels = (y * 3 + x * 2 + c * 10).astype(np.uint8)
    for name, options in (
        ("a.png", {}),
        ("b.jpg", {"quality": 90}),
        ("c.jpg", {"quality": 90, "subsampling": 0, "progressive": True}),
    ):
        image.fromarray(pixels).save(tmp_path / name, **options)
        theirs = np.asarray(image.open(tmp_path / name)).astype(int)
        difference = np.abs(np.asarray(nt.load_image(tmp_path / name)).astype(int) - theirs)
        assert difference.max() <= (0 if name == "a.png" else 1)  # of other versions of the decoder
    nt.save_image(tmp_path / "ours.png", nt.asarray(pixels))
    assert (np.asarray(image.open(tmp_path / "ours.png")) == pixels).all()
