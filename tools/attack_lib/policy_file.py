"""Mutates policies and checkpoints (learn/train/policy_file.h): a line of magic, one of JSON, numbers, training state.

A wrong checksum is noticed at once and nothing behind it is read, so sizes and checksum are mostly repaired.
"""
import json
import struct

from . import json_file, values

FLOATS = [struct.pack("<f", value)
          for value in (0.0, -0.0, 1e-45, 3.4e38, -3.4e38, float("inf"), float("nan"), 1e20, 20.0)]


def checksum(content):
    """FNV-1a of 64 bits, in hexadecimal."""
    value = 0xCBF29CE484222325
    for byte in content:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def split(content):
    """Returns (magic line, header, numbers, training state)."""
    magic, header, body = content.split(b"\n", 2)
    training = json.loads(header)["training_bytes"]
    return magic, header, body[: len(body) - training], body[len(body) - training :]


def join(magic, header, numbers, training, repair=True):
    """Returns the file of its parts; `repair` makes the header fit the rest again, if it still is an object."""
    if repair:
        try:
            fields = json.loads(header)
            fields["training_bytes"] = len(training)
            fields["checksum"] = checksum(numbers + training)
            header = json.dumps(fields).encode()
        except (ValueError, TypeError, RecursionError):
            pass
    return b"\n".join((magic, header, numbers + training))


def mutate(rng, content):
    """Returns a changed policy or checkpoint; nine of ten have a right checksum."""
    if rng.random() < 0.1:
        return values.damaged(rng, content)
    magic, header, numbers, training = split(content)
    part = rng.randrange(3 if training else 2)
    if part == 0:
        header = json_file.mutate(rng, header)
    elif part == 1:
        numbers = _change_numbers(rng, numbers)
    else:
        training = json_file.mutate(rng, training)
    return join(magic, header.replace(b"\n", b" "), numbers, training, repair=rng.random() < 0.9)


def _change_numbers(rng, numbers):
    if not numbers or rng.random() < 0.2:
        return values.damaged(rng, numbers)
    changed, value = bytearray(numbers), rng.choice(FLOATS)
    start = rng.randrange(len(numbers) // 4)
    for index in range(start, min(len(numbers) // 4, start + rng.choice((1, 1, 32, 1_000_000)))):
        changed[4 * index : 4 * index + 4] = value
    return bytes(changed)
