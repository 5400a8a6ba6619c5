"""A small PNG reader and writer, so that no library judges its own work."""

import struct
import zlib

import numpy as np

CHANNELS = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def encode(array, palette=None, bits=None, transparent=None):
    """Rows x columns [x channels] of uint8 or uint16; a palette of triples; 1, 2 or 4 bits for grey."""
    rows, columns = array.shape[:2]
    channels = array.shape[2] if array.ndim == 3 else 1
    kind = 3 if palette is not None else {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    bits = bits or 8 * array.dtype.itemsize
    if bits < 8:
        padded = np.zeros((rows, -(-columns * bits // 8) * 8 // bits), np.uint8)
        padded[:, :columns] = array
        unpacked = (padded[..., None] >> np.arange(bits)[::-1]) & 1
        lines = np.packbits(unpacked.reshape(rows, -1), axis=1)
    else:
        lines = array.astype(array.dtype.newbyteorder(">")).reshape(rows, -1)
    raw = b"".join(b"\0" + line.tobytes() for line in lines)
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", columns, rows, bits, kind, 0, 0, 0))
    if palette is not None:
        data += chunk(b"PLTE", np.asarray(palette, np.uint8).tobytes())
    if transparent is not None:
        data += chunk(b"tRNS", transparent)
    return data + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def paeth(a, b, c):
    p = a + b - c
    distances = abs(p - a), abs(p - b), abs(p - c)
    return (a, b, c)[distances.index(min(distances))]


def decode(data):
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body = 8, b""
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        content = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + content)
        if kind == b"IHDR":
            columns, rows, bits, colour, _, _, interlace = struct.unpack(">IIBBBBB", content)
            assert bits in (8, 16) and interlace == 0
        body += content if kind == b"IDAT" else b""
        at += 12 + length
    channels = CHANNELS[colour]
    step, raw = channels * bits // 8, bytearray(zlib.decompress(body))
    stride = columns * step
    before, lines = bytearray(stride), []
    for y in range(rows):
        method, line = raw[y * (stride + 1)], raw[y * (stride + 1) + 1:(y + 1) * (stride + 1)]
        for x in range(stride):
            a, b = line[x - step] if x >= step else 0, before[x]
            c = before[x - step] if x >= step else 0
            line[x] = (line[x] + [0, a, b, (a + b) // 2, paeth(a, b, c)][method]) & 255
        lines.append(bytes(line))
        before = line
    array = np.frombuffer(b"".join(lines), ">u2" if bits == 16 else "u1").reshape(rows, columns, channels)
    return array[..., 0] if channels == 1 else array
