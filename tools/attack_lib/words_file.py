"""Mutates formats made of lines and words: published graphs, STG, programs, JSON lines."""
import re

from . import values

WORD = re.compile(r"\w+(?:\.\d+)?|\s+|[^\w\s]")
NUMBER = re.compile(r"\d")


def mutate(rng, content):
    """Returns `content` with one to three lines or words changed."""
    text = content.decode("utf-8", "surrogateescape")
    for _ in range(rng.choice((1, 1, 2, 3))):
        text = rng.choice((_change_line, _change_word, _change_word))(rng, text)
    changed = text.encode("utf-8", "surrogateescape")
    return values.damaged(rng, changed) if rng.random() < 0.1 else changed


def _change_line(rng, text):
    lines = text.splitlines(keepends=True) or [""]
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    change = rng.randrange(4)
    if change == 0:
        del lines[at]
    elif change == 1:
        lines[at:at] = [lines[other]] * rng.choice((1, 1, 2, 300))
    elif change == 2:
        lines[at], lines[other] = lines[other], lines[at]
    else:
        lines[at] = lines[at].rstrip("\n")
    return "".join(lines)


def _change_word(rng, text):
    words = WORD.findall(text) or [""]
    at = rng.randrange(len(words))
    word, other = words[at], rng.choice(words)
    unusual = values.number(rng) if NUMBER.match(word) else values.name(rng)
    nested = rng.choice(("(", "[", "-", "if(")) * rng.choice((10, 1000, 100_000))
    words[at] = rng.choice((unusual, unusual, unusual, other, "", word + word, f"{word} {other} {word}", nested + word))
    return "".join(words)
