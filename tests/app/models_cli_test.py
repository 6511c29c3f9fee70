"""Whole models through the real command, beside ONNX Runtime. Usage: DOPPLER=path/to/doppler models_cli_test.py"""
import array
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

from command import DOPPLER, CommandCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench" / "models"))
import models  # noqa: E402

# Every architecture, with sizes that take a second: the graphs are those of the published models.
SIZES = {
    "resnet50": ["--image", "64"],
    "inception-v3": ["--image", "96"],
    "mobilenet-v3": ["--image", "64"],
    "vit-b16": ["--image", "64", "--layers", "2", "--width", "64", "--heads", "4", "--hidden", "96"],
    "bert-base": ["--sequence", "16", "--layers", "2", "--width", "64", "--heads", "4", "--hidden", "96",
                  "--vocabulary", "50"],
    "llama-decoder": ["--sequence", "16", "--layers", "2", "--width", "64", "--heads", "4", "--hidden", "96",
                      "--vocabulary", "50"],
}
SWIN = str(ROOT / "tests" / "data" / "swin" / "model.onnx")


class BesideOnnxRuntime(CommandCase):
    @classmethod
    def setUpClass(cls):
        made = subprocess.run([ROOT / "tools" / "onnxruntime"], capture_output=True, text=True)
        if made.returncode == 77:
            raise unittest.SkipTest(made.stderr.strip())
        if made.returncode:
            raise AssertionError(made.stderr)
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.bench = models.Bench(DOPPLER, directory.name, SIZES, ROOT / made.stdout.strip())

    def agrees(self, name, *flags):
        one, two, same = self.bench.compare(name, *flags)
        self.assertLessEqual(one, models.MOST_ERROR, name)
        self.assertLessEqual(two, models.MOST_ERROR, name)
        self.assertTrue(same, f"{name}: two runs gave other bits")

    def macs(self, model):
        return json.loads(self.ok("info", model, "--no-rewrite", "--json").stdout)["macs"]

    def test_models_compute_what_onnx_runtime_does(self):
        for name in SIZES:
            with self.subTest(name):
                self.agrees(name)

    def test_a_swin_transformer_does(self):
        self.agrees(SWIN, "--dim", "batch=1")

    def test_models_that_onnx_runtime_has_optimised_run_too(self):
        for name in ["resnet50", "vit-b16", "bert-base"]:
            with self.subTest(name):
                optimised = self.directory / f"{name}.onnx"
                self.bench.theirs(name, level="extended", optimized=optimised)
                self.assertIn(b"com.microsoft", optimised.read_bytes())  # the domain of its own operators
                self.agrees(str(optimised))
                self.assertEqual(self.macs(optimised), self.macs(self.bench.model(name)))


class Memory(CommandCase):
    @unittest.skipIf(os.environ.get("SANITIZED"), "sanitizers need memory of their own")
    def test_weights_are_in_memory_once(self):
        bench = models.Bench(DOPPLER, self.directory, SIZES, runtime=self.directory)
        placement = bench.place("resnet50", bench.one, "single")
        bench.ours("resnet50", bench.one, placement, "--repeat", 1, "--warmup", 0)
        # 98 MiB of weights are nearly all of the file. The command and its libraries add 40 to 70 MiB, by the build, so
        # that twice the weights would be more than twice the file.
        self.assertLess(bench.peak, 2 * bench.model("resnet50").stat().st_size)


def varint(value):
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def tensor_pb(shape, data, kind=1):
    """ONNX's TensorProto: dims (field 1), data_type (2) and raw_data (9)."""
    fields = b"".join(b"\x08" + varint(size) for size in shape)
    return fields + b"\x10" + varint(kind) + b"\x4a" + varint(len(data)) + data


class TensorFiles(CommandCase):
    """Of a model that has one input."""
    SHAPE = [1, 3, 24, 24]

    def setUp(self):
        super().setUp()
        self.values = array.array("f", [0.001 * i - 0.3 for i in range(3 * 24 * 24)])
        self.placement = self.directory / "placement.json"
        self.model = [SWIN, "--dim", "batch=1", "--machine", "cpu2"]
        self.ok("place", *self.model, "--method", "single", "--quiet", "-o", self.placement)

    def run_model(self, path, *flags):
        return ["run", *self.model, self.placement, "--repeat", "1", "--warmup", "0", "--no-one-device", "--quiet",
                "--input", f"input={path}", *flags]

    def written(self, name, content):
        path = self.directory / name
        path.write_bytes(content)
        return path

    def npy(self, values):
        header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(self.SHAPE)}, }}".encode()
        header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
        return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + values.tobytes()

    def test_inputs_and_results_are_the_same_as_npy_and_as_pb(self):
        pb = self.written("x.pb", tensor_pb(self.SHAPE, self.values.tobytes()))
        npy = self.written("x.npy", self.npy(self.values))
        self.ok(*self.run_model(pb, "--output", self.directory / "a"))
        self.ok(*self.run_model(npy, "--output", self.directory / "b"))
        self.ok(*self.run_model(npy, "--output", self.directory / "c", "--output-format", "pb"))
        names = [path.stem for path in (self.directory / "a").iterdir()]
        self.assertEqual(len(names), 1)
        first = models.read_npy(self.directory / "a" / f"{names[0]}.npy")
        self.assertEqual(first, models.read_npy(self.directory / "b" / f"{names[0]}.npy"))
        self.assertGreater(len(set(first)), 1)
        # raw_data is the last thing but the name that the file holds.
        self.assertIn(first.tobytes(), (self.directory / "c" / f"{names[0]}.pb").read_bytes())
        self.assertEqual([path.suffix for path in (self.directory / "c").iterdir()], [".pb"])

    def test_a_file_that_is_no_tensor_of_the_input_is_refused_before_anything_runs(self):
        good = self.values.tobytes()
        for name, content, message in [
                ("other_shape.pb", tensor_pb([1, 3, 48, 12], good), "required f32 [1, 3, 24, 24] for input 'input'"),
                ("other_type.pb", tensor_pb(self.SHAPE, good, kind=6), "found i32 [1, 3, 24, 24]; required f32"),
                ("short.pb", tensor_pb(self.SHAPE, good[:-4]), "required as many"),
                ("text.pb", tensor_pb(self.SHAPE, good, kind=8), "text"),
                ("no_tensor.pb", b"\xff\xff\xff", "found no tensor in it"),
                ("x.txt", good, "required")]:
            with self.subTest(name):
                self.fails(message, *self.run_model(self.written(name, content), "--output", self.directory / "out"))
                self.assertFalse((self.directory / "out").exists())
        self.fails("missing.pb: cannot open", *self.run_model(self.directory / "missing.pb"))
        self.fails("required the name of an input", "run", *self.model, self.placement, "--input",
                   f"nobody={self.written('x.pb', tensor_pb(self.SHAPE, good))}")


if __name__ == "__main__":
    unittest.main()
