"""Mutates protobuf messages (ONNX) by their wire format, with lengths that stay right unless they are the target."""
from . import values

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
NUMBERS = (0, 1, 2, 3, 7, 127, 128, 255, 1 << 31, (1 << 31) - 1, (1 << 32) - 1, 1 << 62, (1 << 63) - 1, 1 << 63,
           (1 << 64) - 1)


def parse(content):
    """Returns the message as a list of [field, wire type, value], where a value is a number, bytes, or a message of its
    own if its bytes can be read as one. Raises ValueError for what is no message."""
    fields, at = [], 0
    while at < len(content):
        key, at = _read_varint(content, at)
        field, wire = key >> 3, key & 7
        if field == 0:
            raise ValueError("field 0")
        if wire == VARINT:
            value, at = _read_varint(content, at)
        elif wire == BYTES:
            length, at = _read_varint(content, at)
            value, at = _take(content, at, length)
            value = _message_or_bytes(value)
        elif wire in (FIXED64, FIXED32):
            value, at = _take(content, at, 8 if wire == FIXED64 else 4)
        else:
            raise ValueError(f"wire type {wire}")
        fields.append([field, wire, value])
    return fields


def _take(content, at, length):
    if at + length > len(content):
        raise ValueError("ends early")
    return content[at : at + length], at + length


def _message_or_bytes(value):
    if len(value) < 2 or value.isascii() and value.decode("ascii").isprintable():
        return value
    try:
        return parse(value)
    except (ValueError, RecursionError):
        return value


def _read_varint(content, at):
    value = shift = 0
    while at < len(content) and shift < 70:
        value |= (content[at] & 127) << shift
        at += 1
        if content[at - 1] < 128:
            return value, at
        shift += 7
    raise ValueError("ends in a number")


def _varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def serialise(fields):
    """Returns the bytes of a message."""
    out = b""
    for field, wire, value in fields:
        out += _varint(field << 3 | wire)
        if wire == VARINT:
            out += _varint(value)
        elif wire == BYTES:
            inner = serialise(value) if isinstance(value, list) else value
            out += _varint(len(inner)) + inner
        else:
            out += value
    return out


def messages(fields):
    """Returns the message and all inside it that have fields."""
    found, waiting = [], [fields]
    while waiting:
        message = waiting.pop()
        if message:
            found.append(message)
        waiting.extend(value for _, _, value in message if isinstance(value, list))
    return found


def mutate(rng, content):
    """Returns `content` with one to three fields changed; bytes that are no message are damaged as bytes."""
    try:
        tree = parse(content)
    except (ValueError, RecursionError):
        return values.damaged(rng, content)
    for _ in range(rng.choice((1, 1, 2, 3))):
        found = messages(tree)
        if found:
            _change(rng, rng.choice(found), found)
    changed = serialise(tree)
    return values.damaged(rng, changed) if rng.random() < 0.1 else changed


def _change(rng, message, found):
    at = rng.randrange(len(message))
    field, wire, value = message[at]
    change = rng.randrange(7)
    if change == 0:
        del message[at]
    elif change == 1:
        message[at:at] = [[field, wire, value]] * rng.choice((1, 2, 100))
    elif change == 2:
        message[at] = [rng.choice((field + 1, max(1, field - 1), rng.randint(1, 30))), wire, value]
    elif change == 3:
        other = rng.choice(rng.choice(found))
        message[at] = [field, other[1], _flat(other[2])]
    elif wire == VARINT:
        message[at] = [field, wire, rng.choice(NUMBERS)]
    elif wire == BYTES:
        text = values.name(rng).encode("utf-8", "replace")
        message[at] = [field, wire, rng.choice((text, text, b"", values.damaged(rng, _flat(value))))]
    else:
        message[at] = [field, wire, bytes(rng.choice((0, 0x7F, 0x80, 0xFF)) for _ in value)]


def _flat(value):
    """Returns a value without structure, so that no message ever holds itself."""
    return serialise(value) if isinstance(value, list) else value
