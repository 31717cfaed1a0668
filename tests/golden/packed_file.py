"""How the reference data lies in the repository: NAME.json.xz is xz of the file, NAME.gguf.xz is xz of its even bytes, then its odd ones.

Sign and exponent of a float stand apart from its mantissa then, which alone cannot be compressed.
"""
import lzma
from pathlib import Path

# Literal bits of neighbours tell nothing here; the container is as reproducible as liblzma.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "lc": 0, "lp": 0, "pb": 0}]


def write(data, target):
    """Packs the content of a file into target + ".xz"."""
    packed = Path(f"{target}.xz")
    packed.parent.mkdir(parents=True, exist_ok=True)
    if packed.suffixes[-2] == ".gguf":
        data = data[0::2] + data[1::2]
        packed.write_bytes(lzma.compress(data, filters=_FILTERS))
    else:
        packed.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))


def read(packed):
    """The content that write() was given."""
    data = lzma.decompress(Path(packed).read_bytes())
    if Path(packed).suffixes[-2] != ".gguf":
        return data
    content = bytearray(len(data))
    half = (len(data) + 1) // 2
    content[0::2], content[1::2] = data[:half], data[half:]
    return bytes(content)
