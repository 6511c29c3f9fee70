"""Mutates JSON by its structure: keys, types, numbers, references. Also makes it smaller, to minimise findings."""
import copy
import dataclasses
import json

from . import values

DEPTHS = (10, 500, 20_000, 500_000)


class Object(list):
    """An object as a list of pairs, so that keys can repeat."""


@dataclasses.dataclass
class Pair:
    """A key and its value."""

    key: str
    value: object


class Raw(str):
    """Text that is written as it is, JSON or not; numbers are kept like this."""


def parse(content):
    """Returns the tree of `content`; numbers stay as they were written."""
    pairs = lambda found: Object(Pair(key, value) for key, value in found)
    return json.loads(content, object_pairs_hook=pairs, parse_int=Raw, parse_float=Raw, parse_constant=Raw)


def serialise(tree):
    """Returns the bytes of a tree. Characters from U+0080 on stay as they are, as in a file of a user."""
    return _text(tree).encode("utf-8", "surrogatepass")


def _text(tree):
    if isinstance(tree, Raw):
        return str(tree)
    if isinstance(tree, Pair):
        return f"{_text(tree.key)}:{_text(tree.value)}"
    if isinstance(tree, list):
        brackets = "{}" if isinstance(tree, Object) else "[]"
        return brackets[0] + ",".join(map(_text, tree)) + brackets[1]
    return json.dumps(tree, ensure_ascii=False)


def value_at(container, index):
    """Returns the value of an element, whether it has a key or not."""
    item = container[index]
    return item.value if isinstance(item, Pair) else item


def put(container, index, value):
    """Changes the value of an element; a key stays."""
    item = container[index]
    container[index] = Pair(item.key, value) if isinstance(item, Pair) else value


def places(tree):
    """Returns (container, index) of every element below `tree`, which is a list."""
    found, waiting = [], [tree]
    while waiting:
        container = waiting.pop()
        for index in range(len(container)):
            found.append((container, index))
            if isinstance(value_at(container, index), list):
                waiting.append(value_at(container, index))
    return found


def mutate(rng, content):
    """Returns `content` with one to three changes; bytes that are no JSON are damaged as bytes."""
    try:
        tree = [parse(content)]  # A list around the root makes the root an element like any other.
    except (ValueError, RecursionError):
        return values.damaged(rng, content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        found = places(tree)
        if found:
            rng.choice(CHANGES)(rng, *rng.choice(found), found)
    changed = serialise(tree[0]) if tree else b""
    return values.damaged(rng, changed) if rng.random() < 0.1 else changed


def _drop(rng, container, index, found):
    del container[index]


def _repeat(rng, container, index, found):
    container[index:index] = [copy.deepcopy(container[index]) for _ in range(rng.choice((1, 1, 2, 30)))]


def _rename(rng, container, index, found):
    item = container[index]
    if isinstance(item, Pair):
        others = [each[i].key for each, i in found if isinstance(each[i], Pair)]
        item.key = rng.choice((values.name(rng), item.key.upper(), item.key + "s", rng.choice(others)))


def _retype(rng, container, index, found):
    value = value_at(container, index)
    put(container, index, rng.choice((None, True, False, "text", Raw("1.5"), Raw("7"), [], Object(), [value])))


def _take_another(rng, container, index, found):
    """Puts a value of another place here: references dangle, cycles close, names repeat."""
    put(container, index, copy.deepcopy(value_at(*rng.choice(found))))


def _nest(rng, container, index, found):
    depth = rng.choice(DEPTHS)
    put(container, index, Raw(rng.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth))))


def _exaggerate(rng, container, index, found):
    put(container, index, _extreme(rng, value_at(container, index)))


def _extreme(rng, value):
    """Returns an unusual value of the same type."""
    if isinstance(value, Raw):
        near = int(value) + rng.choice((-1, 1)) if value.lstrip("-").isdigit() else 0
        return Raw(rng.choice((values.number(rng), values.number(rng), str(near))))
    if isinstance(value, str):
        return values.name(rng)
    if isinstance(value, list):
        return type(value)(rng.choice((value * 2, value[::-1], value[: len(value) // 2])))
    return Raw(values.number(rng))


CHANGES = (_drop, _repeat, _rename, _retype, _take_another, _nest, _exaggerate, _exaggerate, _exaggerate)


def reductions(content):
    """Yields smaller files, each without one element; nothing if `content` is no JSON."""
    try:
        count = len(places([parse(content)]))
    except (ValueError, RecursionError):
        return
    for number in range(1, count):  # 0 is the root.
        tree = [parse(content)]
        container, index = places(tree)[number]
        del container[index]
        yield serialise(tree[0])
