"""Makes the file of a finding smaller while the finding stays (delta debugging, Zeller and Hildebrandt 2002)."""
import itertools
import time

from . import json_file

LARGEST_STRUCTURE = 20_000  # Bytes of JSON up to which every element is tried.


def minimise(content, fails, seconds=20.0):
    """Returns the smallest content found within `seconds` for which `fails(content)` holds; it holds for `content`."""
    deadline = time.monotonic() + seconds
    shrunk = True
    while shrunk and time.monotonic() < deadline:
        shrunk = False
        for smaller in itertools.chain(_structural(content), _chunks(content)):
            if time.monotonic() > deadline:
                break
            if len(smaller) < len(content) and fails(smaller):
                content, shrunk = smaller, True
                break
    return content


def _structural(content):
    """Returns JSON with one element less, the largest savings first; nothing for large files and other formats."""
    return sorted(json_file.reductions(content), key=len) if len(content) < LARGEST_STRUCTURE else []


def _chunks(content):
    """Yields the content without a half, a quarter, … of its bytes."""
    size = len(content) // 2
    while size >= 1:
        for start in range(0, len(content), size):
            yield content[:start] + content[start + size :]
        size //= 2
