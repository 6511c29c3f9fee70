"""Good files of every kind, from which the campaign starts: those of the checkout and some that the command makes."""
import pathlib
import shutil
import subprocess

TRAINING = ("--machine", "p100x4", "--episodes", "96", "--seed", "3")
SYSTEM = (*TRAINING, "--stages", "simulation,system", "--devices", "emulated", "--time-scale", "0.1", "--runs", "60")


class Corpus:
    """Directories and files by name. `path(name)` is absolute, so that trials can use it from anywhere."""

    def __init__(self, binary, checkout, directory):
        self.binary, self.directory = binary, pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.files = {}
        for path in [*(checkout / "tests/data/good").iterdir(), *(checkout / "tests/data/onnx").glob("*.onnx"),
                     checkout / "examples/attention.ein", checkout / "models/doppler.policy"]:
            self.files[path.name] = path
        self._make()

    def path(self, name):
        """Returns where a file is."""
        return str(self.files[name])

    def read(self, name):
        """Returns a file's bytes."""
        return self.files[name].read_bytes()

    def matching(self, *endings):
        """Returns the names of the files that start or end like one of `endings`, sorted."""
        return sorted(name for name in self.files if name.startswith(endings) or name.endswith(endings))

    def copy_training(self, name, destination):
        """Copies the directory of a finished training."""
        shutil.copytree(self.directory / name, destination)

    def _make(self):
        for name, *words in (
            ("layered.json", "generate", "layered", "--ops", 30, "--width", 5, "--seed", 1),
            ("large.json", "generate", "layered", "--ops", 3000, "--width", 20, "--seed", 2),
            ("ffnn.json", "generate", "ffnn", "--batch", 8, "--input", 4, "--hidden", 8, "--output-width", 4,
             "--parts", 2),
            ("chainmm.json", "generate", "chainmm", "--size", 8, "--parts", 4, "--dtype", "f64"),
        ):
            self._command(*words, "-o", self._new(name))
        for name, graph, machine in (("layered.placement", "layered.json", "p100x4"),
                                     ("ffnn.placement", "ffnn.json", "cpu2")):
            self._command("place", self.path(graph), "--machine", machine, "--method", "heft", "-o", self._new(name))
        self._new("layered.result").write_bytes(self._command(
            "place", self.path("layered.json"), "--machine", "p100x4", "--method", "heft", "--json"))
        self._command("train", self.path("layered.json"), *TRAINING, "--out", self.directory / "training")
        self._command("train", self.path("layered.json"), *SYSTEM, "--out", self.directory / "system")
        self._new("checkpoint", "training/checkpoint")
        self._new("metrics.jsonl", "training/metrics.jsonl")
        self._new("measurements.jsonl", "system/measurements.jsonl")
        self._command("run", self.path("ffnn.json"), self.path("ffnn.placement"), "--machine", "cpu2", "--repeat", 1,
                      "--warmup", 0, "--output", self.directory / "arrays")
        for path in (self.directory / "arrays").glob("*.npy"):
            self.files["array.npy"] = path

    def _new(self, name, path=None):
        self.files[name] = self.directory / (path or name)
        return self.files[name]

    def _command(self, *words):
        done = subprocess.run([str(self.binary), *map(str, words)], capture_output=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))}: exit code {done.returncode}, {done.stderr!r}; required 0")
        return done.stdout
