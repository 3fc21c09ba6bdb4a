#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""images.json: JPEG and PNG files, and the pixels that Pillow decodes of them; and the seeds of the fuzzer.

Pillow writes no interlaced PNG, and none of 16 bits in several channels or of few bits of grey: those files
are put together here, and their pixels are known.
"""

import io
import struct
import zlib

import numpy as np
from PIL import Image, ImageOps
from reference import FOLDER, number, write


def picture(height: int, width: int, channels: int, seed: int) -> np.ndarray:
    """Smooth colors with some noise, uint8 [H, W, C]: what a decoder meets."""
    y, x = np.mgrid[0:height, 0:width] / 8.0
    layers = []
    for c in range(channels):
        noise = np.array([[number(seed, c, i, j) for j in range(width)] for i in range(height)])
        layers.append(127 + 90 * np.sin(x * (0.3 + c / 5) + y * (0.7 - c / 5) + seed) + 25 * noise)
    return np.clip(np.stack(layers, axis=2), 0, 255).astype(np.uint8)


def pillow(array: np.ndarray, mode: str) -> Image.Image:
    return Image.fromarray(array if array.shape[2] > 1 else array[:, :, 0]).convert(mode)


def saved(image: Image.Image, kind: str, **how) -> bytes:
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


# x and y of the first pixel, and the steps, of the passes (PNG specification, section 8.2).
ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png_rows(values: np.ndarray, bits: int) -> bytes:
    """Unfiltered rows of samples [H, W, C] of 1 to 16 bits."""
    out = b""
    for row in values.reshape(len(values), -1):
        if bits == 16:
            packed = row.astype(">u2").tobytes()
        elif bits == 8:
            packed = row.astype(np.uint8).tobytes()
        else:
            text = "".join(format(v, f"0{bits}b") for v in row)
            text += "0" * (-len(text) % 8)
            packed = bytes(int(text[i : i + 8], 2) for i in range(0, len(text), 8))
        out += b"\0" + packed
    return out


def png(values: np.ndarray, bits: int, interlaced: bool = False, extra: bytes = b"") -> bytes:
    height, width, channels = values.shape
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    if interlaced:
        parts = [values[y::dy, x::dx] for x, y, dx, dy in ADAM7]
        data = b"".join(png_rows(part, bits) for part in parts if part.size)
    else:
        data = png_rows(values, bits)
    head = struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, int(interlaced))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + chunk(b"IDAT", zlib.compress(data))
            + chunk(b"IEND", b""))


def case(name: str, file: bytes, pixels: np.ndarray, channels: str, exact: bool, at_least: int = 0,
         bits: int = 8) -> dict:
    pixels = pixels if pixels.ndim == 3 else pixels[:, :, None]
    return {"name": name, "channels": channels, "at_least": at_least, "bits": bits, "exact": exact,
            "shape": list(pixels.shape), "file": file.hex(), "pixels": pixels.reshape(-1).tolist()}


def decoded(file: bytes, mode: str) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(file)).convert(mode))


def jpeg_cases() -> list[dict]:
    rgb = picture(19, 29, 3, 1)
    grey = picture(19, 29, 1, 2)
    cases = []
    for name, how in {"420": {"subsampling": 2}, "422": {"subsampling": 1}, "444": {"subsampling": 0},
                      "progressive": {"progressive": True},
                      "restarts": {"restart_marker_blocks": 2}}.items():
        file = saved(pillow(rgb, "RGB"), "JPEG", quality=85, **how)
        cases.append(case(f"jpeg {name}", file, decoded(file, "RGB"), "rgb", False))
    file = saved(pillow(grey, "L"), "JPEG", quality=85)
    cases.append(case("jpeg grey", file, decoded(file, "L"), "as_stored", False))
    cases.append(case("jpeg grey as rgb", file, decoded(file, "RGB"), "rgb", False))
    cases.append(case("jpeg grey as rgba", file, decoded(file, "RGBA"), "rgba", False))
    file = saved(Image.fromarray(picture(19, 29, 4, 3), "CMYK"), "JPEG", quality=85)
    cases.append(case("jpeg cmyk", file, decoded(file, "RGB"), "as_stored", False))
    file = saved(pillow(rgb, "RGB"), "JPEG", quality=85)
    y_only = Image.open(io.BytesIO(file))
    y_only.draft("L", y_only.size)
    cases.append(case("jpeg colors as grey", file, np.asarray(y_only), "grey", False))
    large = saved(pillow(picture(50, 70, 3, 4), "RGB"), "JPEG", quality=85)
    for at_least in (50, 26, 25, 13, 12, 7, 6, 1):
        image = Image.open(io.BytesIO(large))
        image.draft("RGB", (at_least, at_least))
        cases.append(case(f"jpeg at least {at_least}", large, np.asarray(image), "rgb", False, at_least))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        file = saved(pillow(rgb[:9, :11], "RGB"), "JPEG", quality=95, exif=exif)
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(file)))
        cases.append(case(f"jpeg orientation {orientation}", file, np.asarray(upright), "rgb", False))
    return cases


def png_cases() -> list[dict]:
    rgb, rgba, grey = picture(7, 13, 3, 5), picture(7, 13, 4, 6), picture(7, 13, 1, 7)
    cases = []
    for mode, array in {"RGB": rgb, "RGBA": rgba, "L": grey, "LA": rgba, "1": grey}.items():
        file = saved(pillow(array, mode), "PNG")
        for want, as_mode in {"as_stored": "L" if mode == "1" else mode, "rgb": "RGB", "rgba": "RGBA",
                              "grey": "L"}.items():
            cases.append(case(f"png {mode} {want}", file, decoded(file, as_mode), want, True))
    palette = pillow(rgb, "RGB").quantize(13)
    file = saved(palette, "PNG")
    cases.append(case("png palette", file, decoded(file, "RGB"), "as_stored", True))
    file = saved(palette, "PNG", transparency=bytes(range(0, 13 * 19, 19)))
    cases.append(case("png palette with alpha", file, decoded(file, "RGBA"), "as_stored", True))
    file = saved(pillow(rgb, "RGB"), "PNG", transparency=tuple(int(v) for v in rgb[3, 4]))
    cases.append(case("png transparent color", file, decoded(file, "RGBA"), "as_stored", True))
    for bits in (1, 2, 4):
        few = grey >> (8 - bits)
        cases.append(case(f"png {bits} bits", png(few, bits), few * (255 // (2**bits - 1)), "as_stored", True))
    for channels in (1, 2, 3, 4):
        high = picture(7, 13, channels, 8).astype(np.uint16) * 256 + picture(7, 13, channels, 9)
        for interlaced in (False, True):
            file = png(high, 16, interlaced)
            what = f"png 16 bits of {channels}" + (" interlaced" if interlaced else "")
            rounded = np.floor(high / 257 + 0.5).astype(np.uint8)
            cases.append(case(what, file, rounded, "as_stored", True))
            cases.append(case(what + ", kept", file, high, "as_stored", True, bits=16))
    for height, width in ((7, 13), (1, 1), (3, 2), (8, 8), (9, 1)):
        file = png(rgb[:height, :width] if height < 8 else picture(height, width, 3, 10), 8, True)
        cases.append(case(f"png interlaced {height} x {width}", file, decoded(file, "RGB"), "rgb", True))
    for orientation in (3, 6):
        block = struct.pack(">2sHIHHHIHHI", b"MM", 42, 8, 1, 0x0112, 3, 1, orientation, 0, 0)
        file = png(rgb, 8, extra=chunk(b"eXIf", block))
        upright = ImageOps.exif_transpose(Image.open(io.BytesIO(file)))
        cases.append(case(f"png orientation {orientation}", file, np.asarray(upright), "rgb", True))
    return cases


CASES = jpeg_cases() + png_cases()
write("images.json", "make_images.py", {
    "pillow": Image.__version__,
    "fields": "file: hexadecimal; channels, at_least, bits: what is asked for; shape [H, W, C] and pixels: what "
              "Pillow gives (numpy for 16 bits); exact: bit for bit, else within 1",
    "cases": CASES,
})

# The fuzzer begins at one file of each kind; its first byte chooses options.
SEEDS = FOLDER.parent / "fuzz" / "seeds" / "images"
SEEDS.mkdir(parents=True, exist_ok=True)
for old in SEEDS.iterdir():
    old.unlink()
for number_of, each in enumerate(CASES):
    if (each["name"].endswith((" rgba", " rgb", " grey", ", kept")) and "png" in each["name"]) or "at least" in each["name"]:
        continue
    name = each["name"].replace(" ", "_").replace(",", "")
    (SEEDS / name).write_bytes(bytes([number_of * 37 % 256]) + bytes.fromhex(each["file"]))
