"""Numbers, names and bytes that break what was written for reasonable ones."""

NUMBERS = ["0", "-0", "-0.0", "-1", "1", "2", "1e-320", "5e-324", "1e-9", "0.5", "1e17", "1e18", "1.0000001e18", "1e19",
           "1e308", "-1e308", "1e309", "1e999", "NaN", "Infinity", "-Infinity", "nan", "inf", "255", "256", "1024",
           "1025", "65536", "2147483647", "2147483648", "4294967295", "4294967296", "9007199254740993",
           "9223372036854775807", "9223372036854775808", "-9223372036854775808", "18446744073709551615",
           "18446744073709551616", "1e", "0x10", "01", "+1", ".5", "1_000", "1" + "0" * 400]
NAMES = ["", " ", "a", "op0", "*", "cpu", "gpu0", "never", "accelerator", "a\nb", "\r", "\t", "a\ndoppler: all is well",
         "\x1b[31mred", "\x1b]0;title\x07", "nul\0nul", "\x7f", "\x9b31m", "\u202ertl", "\u2028", "\ud7ff", "\uffff",
         "../../etc/passwd", "/", "a/b", "a_b", "%s%n{}", "{0}", "<script>alert(1)</script>", "'\"\\", "-o", "--json",
         "x" * 300, "x" * 100_000, "é" * 5000, "🚀", "a=b", "a@b", "CON", ".", "..", "-"]


def number(rng):
    """Returns a number as text, not always one that its format allows."""
    return rng.choice(NUMBERS)


def name(rng):
    """Returns a name that terminals, paths or formats treat in a special way."""
    return rng.choice(NAMES)


def damaged(rng, content):
    """Returns `content` cut short, with flipped bits, or with a part removed, repeated, or made up."""
    if not content:
        return bytes(rng.randrange(256) for _ in range(rng.randint(1, 64)))
    damage = rng.randrange(6)
    at = rng.randrange(len(content))
    end = min(len(content), at + rng.choice((1, 2, 8, 64, 1024)))
    if damage == 0:
        return content[:at]
    if damage == 1:
        changed = bytearray(content)
        for _ in range(rng.choice((1, 1, 2, 8))):
            changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if damage == 2:
        return content[:at] + content[end:]
    if damage == 3:
        return content[:end] + content[at:end] * rng.choice((1, 2, 50)) + content[end:]
    if damage == 4:
        return content[:at] + bytes(rng.randrange(256) for _ in range(end - at)) + content[end:]
    strange = rng.choice((b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\r\n", b"\xc0\x80", b"\x1b[2J"))
    return content[:at] + strange + content[at:]
