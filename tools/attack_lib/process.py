"""Runs the command once, with faults: closed or full streams, resource limits, a signal at a given moment."""
import dataclasses
import os
import resource
import shlex
import signal
import subprocess
import time

HANDLER_WAIT = 2.0  # Seconds in which a process installs its handlers, even on a busy machine.
ULIMIT_FLAG = {"AS": "-v", "NOFILE": "-n", "STACK": "-s", "CPU": "-t", "FSIZE": "-f"}
ULIMIT_UNIT = {"AS": 1024, "NOFILE": 1, "STACK": 1024, "CPU": 1, "FSIZE": 1024}


@dataclasses.dataclass
class Invocation:
    """What is run, and what goes wrong around it."""

    arguments: list
    closed: tuple = ()  # Descriptors that are closed.
    full: tuple = ()  # Descriptors that are /dev/full.
    limits: dict = dataclasses.field(default_factory=dict)  # "AS": bytes, and so on.
    signal: int = 0  # Sent `after` seconds, once the process has a handler for it; 0: none.
    after: float = 0.0
    timeout: float = 20.0

    def shell(self, binary):
        """Returns a line of shell that does the same, as nearly as a shell can."""
        line = shlex.join([str(binary), *map(str, self.arguments)])
        line += "".join(f" {fd}<&-" if fd == 0 else f" {fd}>&-" for fd in self.closed)
        line += "".join(f" {fd}>/dev/full" for fd in self.full)
        if self.signal:
            line = f"timeout -s {signal.Signals(self.signal).name[3:]} {max(self.after, 0.001):.3f} {line}"
        limits = [f"ulimit {ULIMIT_FLAG[name]} {-(-value // ULIMIT_UNIT[name])}" for name, value in self.limits.items()]
        if "FSIZE" in self.limits:
            limits.insert(0, "trap '' XFSZ")
        return f"({'; '.join([*limits, line])})" if limits else line


@dataclasses.dataclass
class Outcome:
    """What came of an invocation. A death by signal is a negative code, as in subprocess."""

    code: int
    stdout: bytes
    stderr: bytes
    seconds: float
    hung: bool = False
    signalled: bool = False  # It still ran when the signal was sent.
    after_signal: float = 0.0  # Seconds from the signal to the end.


def execute(binary, invocation, directory):
    """Runs `invocation` in `directory` and returns its outcome; a hang ends with SIGKILL."""
    streams = {fd: subprocess.PIPE for fd in (0, 1, 2)}
    full = open("/dev/full", "r+b", buffering=0) if invocation.full else None
    for fd in invocation.full:
        streams[fd] = full
    for fd in invocation.closed:
        streams[fd] = subprocess.DEVNULL
    start = time.monotonic()
    try:
        process = subprocess.Popen([str(binary), *map(str, invocation.arguments)], cwd=directory, stdin=streams[0],
                                   stdout=streams[1], stderr=streams[2], preexec_fn=lambda: _become(invocation))
    finally:
        if full:
            full.close()
    with process:
        outcome = _wait(process, invocation, start)
    return outcome


def _become(invocation):
    """Runs in the child: it takes on the limits and loses the descriptors of `invocation`."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it, and doppler respects that
    if "FSIZE" in invocation.limits:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # A full disk sends no signal; it makes writes short.
    for name, value in invocation.limits.items():
        kind = getattr(resource, f"RLIMIT_{name}")
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
    for fd in invocation.closed:
        os.close(fd)


def _wait(process, invocation, start):
    signalled, sent = False, 0.0
    if invocation.signal:
        if invocation.signal != signal.SIGKILL:
            _wait_for_handler(process, invocation.signal)
        try:
            stdout, stderr = process.communicate(timeout=invocation.after)
        except subprocess.TimeoutExpired:
            process.send_signal(invocation.signal)
            signalled, sent = True, time.monotonic()
    hung = False
    if signalled or not invocation.signal:
        try:
            stdout, stderr = process.communicate(timeout=invocation.timeout)
        except subprocess.TimeoutExpired:
            hung = True
            process.kill()
            stdout, stderr = process.communicate()
    end = time.monotonic()
    return Outcome(process.returncode, stdout or b"", stderr or b"", end - start, hung, signalled,
                   end - sent if signalled else 0.0)


def _wait_for_handler(process, number):
    """Returns once the process catches the signal: before that nobody can expect it to. Gives up after a while."""
    deadline = time.monotonic() + HANDLER_WAIT
    while time.monotonic() < deadline and process.poll() is None:
        if caught_signals(process.pid) >> (number - 1) & 1:
            return


def caught_signals(pid):
    """Returns the mask of the signals for which the process has a handler."""
    try:
        with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("SigCgt:"):
                    return int(line.split()[1], 16)
    except (OSError, ValueError):
        pass
    return 0
