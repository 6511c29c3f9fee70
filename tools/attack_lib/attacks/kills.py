"""kill -9 at random moments of a training, and two trainings on one directory: nothing is lost, nothing is mixed."""
import json
import signal
import subprocess

EPISODES = {"imitation": 640, "simulation": 640, "imitation,simulation": 960, "simulation,system": 64}
LONGEST = 2.0  # Seconds until the kill; trainings that end before are not killed, and must have ended well.


def attack(one):
    """Kills a training once to three times and resumes it to its end, or starts two at once."""
    if one.rng.random() < 0.15:
        return two_at_once(one)
    stages = one.rng.choice(sorted(EPISODES))
    command = training(one, stages, "run")
    kills = one.rng.choice((1, 1, 2, 3))
    measured = []
    for kill in range(kills):
        moment = one.rng.choice((one.rng.uniform(0, 0.05), one.rng.uniform(0, 0.5), one.rng.uniform(0, LONGEST)))
        killed = one.run(*command, *again(one), outputs=("run",), deaths=(signal.SIGKILL,),
                         signal=int(signal.SIGKILL), after=moment)
        check_lines(one, "run/measurements.jsonl", measured)
        if killed.code == 0:
            break
    finished = one.run(*command, *again(one), outputs=("run",), timeout=4 * one.bench.patience)
    if finished.code != 0:
        return one.complain("lost", "a killed training cannot be resumed, or begun again if it has learned nothing")
    check_lines(one, "run/measurements.jsonl", measured)
    if "system" not in stages:
        compare_with_undisturbed(one, stages)


def training(one, stages, out):
    """Returns the command of a reproducible training."""
    emulated = ["--devices", "emulated", "--time-scale", "0.1", "--runs", 60] if "system" in stages else []
    return ["train", one.bench.corpus.path("layered.json"), "--machine", "p100x4", "--episodes", EPISODES[stages],
            "--seed", 7, "--stages", stages, "--checkpoint-every", one.rng.choice(("1ms", "20ms")), *emulated,
            "--out", out]


def again(one, directory="run"):
    """How a killed training goes on. As soon as there is a directory it can be resumed; until there is something to
    lose it can also be begun again."""
    if not (one.directory / directory).exists():
        return []
    if (one.directory / directory / "checkpoint").exists():
        return ["--resume"]
    return one.rng.choice(([], ["--resume"]))


def started(one, directory="run"):
    """Whether there is a training that others are to be kept out of."""
    return (one.directory / directory / "checkpoint").exists()


def check_lines(one, name, before):
    """Complains if lines that were there before are gone; the last line may be cut short by the kill."""
    lines = (one.read(name) or b"").split(b"\n")[:-1]
    if lines[: len(before)] != before:
        one.complain("lost", f"{name} has lost lines")
    before[:] = lines


def compare_with_undisturbed(one, stages):
    """A training that was killed ends with the bytes of one that was not."""
    whole = one.run(*training(one, stages, "whole"), outputs=("whole",), timeout=4 * one.bench.patience)
    if whole.code == 0 and one.read("run/policy") != one.read("whole/policy"):
        one.complain("lost", "the policy differs from that of an undisturbed training")
    updates = lambda name: [json.loads(line)["update"] for line in (one.read(name) or b"").splitlines()]
    try:
        if whole.code == 0 and updates("run/metrics.jsonl") != updates("whole/metrics.jsonl"):
            one.complain("lost", "the metrics have lines too many or too few")
    except (ValueError, KeyError) as error:
        one.complain("json", f"metrics.jsonl: {error}")


def two_at_once(one):
    """Of two trainings on one directory the second is refused, and the first is as if it had been alone."""
    command = [str(word) for word in training(one, "imitation,simulation", "run")]
    first = subprocess.Popen([str(one.bench.binary), *command], cwd=one.directory, stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL)
    try:
        while first.poll() is None and not started(one):
            pass
        still_running = first.poll() is None
        second = one.run(*command, *one.rng.choice(([], ["--resume"])), outputs=("run",), check_files=False)
        overlapped = still_running and first.poll() is None
        first.wait(timeout=4 * one.bench.patience)
    finally:
        first.kill()
        first.wait()
    if overlapped and second.code != 2:
        one.complain("lost", f"a second training on one directory is not refused: exit code {second.code}")
    if overlapped and first.returncode != 0:
        one.complain("lost", f"a second training ends the first: exit code {first.returncode}")
    if overlapped:
        compare_with_undisturbed(one, "imitation,simulation")
