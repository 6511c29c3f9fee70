"""What holds for every invocation, whatever its input: codes, streams, text. Each rule returns its complaints."""
import json
import re
import unicodedata

LONGEST_LINE = 8192  # Bytes of one error; paths alone may have 4096.
SANITIZER = re.compile(rb"AddressSanitizer|LeakSanitizer|ThreadSanitizer|runtime error:|terminate called|Assertion ")
BIDIRECTIONAL = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u2028\u2029")


def documented_codes(json_page):
    """Returns the exit codes that docs/json.md lists, as a set."""
    section = json_page.split("## Exit codes", 1)[1].split("\n## ", 1)[0]
    codes = {int(code) for code in re.findall(r"(?:^|[·|])\s*`?(\d{1,3})`?\s", section, re.MULTILINE)}
    if not {0, 2, 3, 70} <= codes:
        raise ValueError(f"docs/json.md: found the exit codes {sorted(codes)}; required at least 0, 2, 3 and 70")
    return codes


def code_complaints(outcome, codes, deaths=()):
    """Complains about crashes, hangs, our own bugs and codes that no page explains."""
    if outcome.hung:
        return [("hang", f"still running after {outcome.seconds:.1f} s")]
    if SANITIZER.search(outcome.stderr):
        return [("crash", "a sanitizer or the runtime library reports on standard error")]
    if outcome.code < 0:
        return [] if -outcome.code in deaths else [("crash", f"died of signal {-outcome.code}")]
    if outcome.code == 70:
        return [("bug", "exit code 70")]
    return [] if outcome.code in codes else [("exit code", f"exit code {outcome.code}; documented {sorted(codes)}")]


def stderr_complaints(outcome, quiet):
    """Complains about errors that are not one clean line, and about noise in spite of --quiet."""
    text = outcome.stderr.decode("utf-8", "replace")
    complaints = [("raw text", f"standard error has {shown}") for shown in raw_characters(outcome.stderr)]
    lines = text.splitlines() if text.endswith("\n") or not text else [*text.splitlines(), ""]
    strangers = [line for line in lines if not line.startswith("doppler: ")]
    if strangers:
        complaints.append(("several lines", f"a line of standard error is {strangers[0][:80]!r}"))
    if any(len(line) > LONGEST_LINE for line in lines):
        complaints.append(("long line", f"a line of standard error has more than {LONGEST_LINE} characters"))
    errors = [line for line in lines if not line.startswith(("doppler: warning: ", "doppler: note: "))]
    if outcome.code in (2, 3) and len(errors) > 1:
        complaints.append(("several lines", f"{len(errors)} lines of error"))
    if outcome.code in (2, 70) and not lines:
        complaints.append(("silent", f"exit code {outcome.code} without a word"))
    if quiet and outcome.code == 0 and lines:
        complaints.append(("wrong stream", f"--quiet says {lines[0][:80]!r}"))
    return complaints


def stdout_complaints(outcome, as_json):
    """Complains about reports of failures on the wrong stream and about JSON that does not parse."""
    if outcome.code == 2 and outcome.stdout:
        return [("wrong stream", "bad input leaves something on standard output")]
    if not as_json:
        return [("raw text", f"standard output has {shown}") for shown in raw_characters(outcome.stdout)]
    if outcome.code not in (0, 3) or (outcome.code == 3 and not outcome.stdout):
        return []
    return json_complaints("standard output", outcome.stdout)


def json_complaints(where, content):
    """Complains if `content` is not strict JSON in UTF-8."""
    try:
        strict_json(content)
    except (ValueError, RecursionError) as error:
        return [("json", f"{where} does not parse: {error}")]
    return []


def strict_json(content):
    """Parses JSON without the extensions NaN and Infinity that Python allows."""

    def refuse(word):
        raise ValueError(f"found {word}")

    return json.loads(content.decode("utf-8"), parse_constant=refuse)


def raw_characters(content):
    """Yields one description if `content` has characters that change a terminal instead of being shown."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"invalid UTF-8 at byte {error.start}"
        return
    for at, letter in enumerate(text):
        if letter in BIDIRECTIONAL or (unicodedata.category(letter) == "Cc" and letter != "\n"):
            yield f"U+{ord(letter):04X} at {at}"
            return
