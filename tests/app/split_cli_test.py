"""Models in parts, through the real command. Usage: DOPPLER=path/to/doppler split_cli_test.py"""
import json
import math
import pathlib
import random
import re
import struct
import subprocess
import unittest

from command import CommandCase

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / "tests" / "data" / "onnx"
CLOSE = 1e-5  # of the largest element: sums of other orders


def read_npy(path):
    """The shape and the numbers of a little-endian file."""
    content = path.read_bytes()
    length = struct.unpack("<H", content[8:10])[0]
    header = content[10:10 + length].decode("latin1")
    shape = [int(n) for n in re.search(r"'shape': \(([^)]*)\)", header).group(1).split(",") if n.strip()]
    code = {"<f4": "f", "<f8": "d", "<i8": "q", "<i4": "i", "|b1": "?", "|u1": "B"}[re.search(r"'descr': '([^']*)'", header).group(1)]
    count = math.prod(shape)
    return shape, struct.unpack(f"<{count}{code}", content[10 + length:])


def fields(content):
    """The fields of a protobuf message as (number, value): whole numbers, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    found = []
    while at < len(content):
        key = varint()
        if key & 7 == 0:
            found.append((key >> 3, varint()))
            continue
        size = {1: 8, 5: 4}.get(key & 7) or varint()
        found.append((key >> 3, content[at:at + size]))
        at += size
    return found


def encode(number, payload):
    """A field of bytes."""
    def varint(value):
        return bytes([value & 127 | 128]) + varint(value >> 7) if value > 127 else bytes([value])
    return varint(number << 3 | 2) + varint(len(payload)) + payload


def entry(key, value):
    return encode(1, key.encode()) + encode(2, value.encode())


def of(content, number):
    return [value for key, value in fields(content) if key == number]


class SplitCase(CommandCase):
    def place(self, model, *arguments):
        placement = self.directory / "p.json"
        self.ok("place", model, "-m", "uniform:2", "--method", "round_robin", "-o", placement, *arguments)
        return placement

    def split(self, model, placement, *arguments):
        parts = self.directory / "parts"
        self.ok("split", model, placement, "-m", "uniform:2", "-o", parts, *arguments)
        return parts, json.loads((parts / "manifest.json").read_text())

    def bert(self):
        """Two layers, in stages on two devices, as a pipeline has them."""
        model, placement = self.directory / "bert.onnx", self.directory / "map.json"
        self.ok("generate", "bert-base", "--layers", 2, "--sequence", 16, "--weights", 1, "-o", model)
        placement.write_text('{"": 0, "encoder.layer.1": 1}')
        return model, placement

    def resnet(self):
        model, placement = self.directory / "resnet.onnx", self.directory / "resnet.json"
        self.ok("generate", "resnet50", "--image", 32, "--weights", 1, "-o", model)
        placement.write_text('{"": 0, "layer2": 1, "layer4": 1}')
        return model, placement

    def values(self, directory, name):
        return read_npy(directory / (name.replace("/", "%2F") + ".npy"))

    def assert_close(self, found, expected):
        self.assertEqual(found[0], expected[0])
        largest = max(map(abs, expected[1]))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(found[1], expected[1])), CLOSE * largest)


class Parts(SplitCase):
    def chained(self, model, placement, *arguments):
        """Runs the model whole and in parts by our own engine; returns the manifest."""
        parts, manifest = self.split(model, placement, *arguments)
        whole, between = self.directory / "whole", self.directory / "between"
        run = ["-m", "uniform:1", "--repeat", 1, "--warmup", 0, "--no-one-device", "-q"]
        between.mkdir()
        rng = random.Random(7)
        feeds = []
        for value in manifest["inputs"]:
            code, form = {"f32": ("<f4", "f"), "i64": ("<i8", "q")}[value["dtype"]]
            count = math.prod(value["shape"])
            numbers = [rng.uniform(-1, 1) if form == "f" else rng.randrange(2) for _ in range(count)]
            shape = ", ".join(map(str, value["shape"])) + ("," if len(value["shape"]) == 1 else "")
            header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({shape}), }}"
            header += " " * (63 - (10 + len(header)) % 64) + "\n"
            path = between / (value["name"].replace("/", "%2F") + ".npy")
            path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                             struct.pack(f"<{count}{form}", *numbers))
            feeds += ["--input", f"{value['name']}={path}"]
        self.ok("run", model, *run, *feeds, "--output", whole)
        there = {value["name"] for value in manifest["inputs"]}
        for part in manifest["parts"]:
            self.assertLessEqual({value["name"] for value in part["inputs"]}, there, "in the order of the manifest")
            inputs = [word for value in part["inputs"]
                      for word in ("--input", f"{value['name']}={between / (value['name'].replace('/', '%2F') + '.npy')}")]
            self.ok("run", parts / part["file"], *run, *inputs, "--output", between)
            there |= {value["name"] for value in part["outputs"]}
        for value in manifest["outputs"]:
            self.assert_close(self.values(between, value["name"]), self.values(whole, value["name"]))
        return manifest

    def test_of_a_transformer_give_what_the_whole_gives(self):
        model, placement = self.bert()
        manifest = self.chained(model, placement)
        self.assertEqual(len(manifest["parts"]), 3)  # before, the layer on the other device, after it
        self.assertEqual([part["level"] for part in manifest["parts"]], [0, 1, 2])
        self.assertEqual([part["device"] for part in manifest["parts"]], ["device0", "device1", "device0"])
        self.assertNotIn("unchecked", manifest)
        # Weights are where they are used, and together as many as the whole has.
        sizes = [(self.directory / "parts" / part["file"]).stat().st_size for part in manifest["parts"]]
        self.assertLess(abs(sum(sizes) - model.stat().st_size), 0.01 * model.stat().st_size)

    def test_of_convolutions_give_what_the_whole_gives(self):
        manifest = self.chained(*self.resnet())
        self.assertEqual([part["device"] for part in manifest["parts"]],
                         ["device0", "device1", "device0", "device1", "device0"])

    def test_keep_what_bodies_of_control_flow_read(self):
        for name in ("control_flow", "recurrent", "quantized", "attention", "movement", "conv", "function"):
            with self.subTest(name):
                model = MODELS / f"{name}.onnx"
                sizes = ["--dim", "batch=2"] if name == "attention" else []
                for rewrite in (sizes, sizes + ["--no-rewrite"]):
                    placement = self.place(model, *rewrite)
                    parts, manifest = self.split(model, placement, *rewrite)
                    self.assertNotIn("unchecked", manifest)
                    made = {value["name"] for value in manifest["inputs"]}
                    for part in manifest["parts"]:
                        self.assertLessEqual({value["name"] for value in part["inputs"]}, made)
                        made |= {value["name"] for value in part["outputs"]}
                    self.assertLessEqual({value["name"] for value in manifest["outputs"]}, made)

    def test_have_external_data_of_their_own(self):
        # The tensor's bytes go to another file: external_data (13) and data_location (14) of TensorProto.
        weights = struct.pack("<4f", 1, 2, 3, 4)
        (self.directory / "w.bin").write_bytes(b"\0" * 8 + weights * 2)
        model = self.two_products(lambda offset: encode(13, entry("location", "w.bin")) +
                                  encode(13, entry("offset", str(8 + offset))) + encode(13, entry("length", "16")) + b"\x70\x01")
        manifest = self.chained(model, self.place(model, "--no-rewrite"), "--no-rewrite")
        self.assertEqual(len(manifest["parts"]), 2)
        for part in manifest["parts"]:
            self.assertEqual((self.directory / "parts" / (part["file"] + ".data")).read_bytes(), weights)

    def test_leave_sizes_open_that_were_given_for_placing(self):
        model = self.two_products(lambda offset: encode(9, struct.pack("<4f", 1, 2, 3, 4)), encode(2, b"batch"))
        given = ["--no-rewrite", "--dim", "batch=3"]
        parts, manifest = self.split(model, self.place(model, *given), *given)
        self.assertEqual(manifest["parts"][1]["inputs"][0]["shape"], [3, 2])
        graph = of((parts / "part1.onnx").read_bytes(), 7)[0]
        tensor = of(of(of(graph, 11)[0], 2)[0], 1)[0]  # the type of its first input
        self.assertEqual(of(of(tensor, 2)[0], 1), [b"", b""])

    # z = (x w0) w1, all [2, 2]. `data` makes the fields of a tensor that hold its data, by its offset.
    def two_products(self, data, first=b"\x08\x02"):
        def tensor(name, offset):
            return b"\x08\x02\x08\x02\x10\x01" + encode(8, name) + data(offset)

        def value(name):
            return encode(1, name) + encode(2, encode(1, b"\x08\x01" + encode(2, encode(1, first) + encode(1, b"\x08\x02"))))

        def product(a, b, out):
            return encode(1, a) + encode(1, b) + encode(2, out) + encode(3, b"n" + out) + encode(4, b"MatMul")
        graph = (encode(1, product(b"x", b"w0", b"y")) + encode(1, product(b"y", b"w1", b"z")) + encode(2, b"g") +
                 encode(5, tensor(b"w0", 0)) + encode(5, tensor(b"w1", 16)) + encode(11, value(b"x")) + encode(12, value(b"z")))
        model = self.directory / "model.onnx"
        model.write_bytes(b"\x08\x08" + encode(7, graph) + encode(8, b"\x10\x0d"))
        return model

    def test_run_in_onnx_runtime_as_the_whole_does(self):
        runtime = ROOT / "build" / "onnxruntime"
        made = subprocess.run([ROOT / "tools" / "onnxruntime"], capture_output=True, text=True, timeout=300)
        if made.returncode == 77:
            self.skipTest(made.stderr.strip())
        self.assertEqual(made.returncode, 0, made.stderr)
        for model, placement in (self.bert(), self.resnet()):
            parts, _ = self.split(model, placement)
            done = subprocess.run(["node", ROOT / "tests" / "app" / "chain_parts.js", model, parts, runtime],
                                  capture_output=True, text=True, timeout=300)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLessEqual(json.loads(done.stdout)["error"], CLOSE)


class Refusals(SplitCase):
    def test_say_what_is_wrong_and_write_nothing(self):
        conv, parts = MODELS / "conv.onnx", self.directory / "parts"
        placement = self.place(conv)
        self.fails("a graph of other ops or edges", "split", MODELS / "recurrent.onnx", placement, "-m", "uniform:2", "-o", parts)
        self.fails("required an ONNX model", "split", ROOT / "examples" / "blocks.json", self.place(ROOT / "examples" / "blocks.json"),
                   "-m", "uniform:2", "-o", parts)
        cut = self.place(conv, "--shard", 2)
        self.fails("cut by --shard 2", "split", conv, cut, "-m", "uniform:2", "-o", parts)
        self.fails("required an existing directory", "split", conv, placement, "-m", "uniform:2", "-o", parts / "deeper")
        self.assertFalse(parts.exists())
        placement = self.place(conv)
        parts.mkdir()
        (parts / "mine.txt").write_text("keep")
        self.fails("found 'mine.txt' and 0 more in it", "split", conv, placement, "-m", "uniform:2", "-o", parts)
        self.assertEqual([entry.name for entry in parts.iterdir()], ["mine.txt"])
        self.assertEqual([entry.name for entry in self.directory.iterdir() if entry.name.startswith(".doppler")], [])

    def test_an_earlier_split_is_replaced_as_a_whole(self):
        conv = MODELS / "conv.onnx"
        parts, manifest = self.split(conv, self.place(conv, "--no-rewrite"), "--no-rewrite")
        one = self.directory / "one.json"
        self.ok("place", conv, "-m", "uniform:2", "--method", "single", "-o", one)
        _, again = self.split(conv, one)
        self.assertGreater(len(manifest["parts"]), 1)
        self.assertEqual(len(again["parts"]), 1)
        self.assertEqual({entry.name for entry in parts.iterdir()}, {"manifest.json", again["parts"][0]["file"]})


class MultiDevice(SplitCase):
    def test_configurations_name_a_device_for_every_tensor(self):
        # onnx.proto of ONNX 1.18: ModelProto.configuration = 26 (name 1, num_devices 2, device 3),
        # NodeProto.device_configurations = 10 (configuration_id 1, sharding_spec 2: tensor_name 1, device 2;
        # pipeline_stage 3).
        model, out = MODELS / "conv.onnx", self.directory / "out.onnx"
        placement = self.place(model, "--no-rewrite")
        self.ok("place", model, "-m", "uniform:2", "--method", "round_robin", "--no-rewrite", "--export", "onnx-multi-device", "-o", out)
        content = out.read_bytes()
        self.assertGreaterEqual(of(content, 1)[0], 11)
        configuration, = of(content, 26)
        self.assertEqual((of(configuration, 1), of(configuration, 2), of(configuration, 3)),
                         ([b"doppler"], [2], [b"device0", b"device1"]))
        nodes = of(of(content, 7)[0], 1)
        self.assertEqual(len(nodes), len(of(of(model.read_bytes(), 7)[0], 1)))
        used = set()
        for node in nodes:
            own, = of(node, 10)
            self.assertEqual(of(own, 1), [b"doppler"])
            specs = of(own, 2)
            self.assertEqual({of(spec, 1)[0] for spec in specs}, {name for name in of(node, 1) + of(node, 2) if name})
            devices = {of(spec, 2)[0] for spec in specs}
            self.assertEqual(len(devices), 1)
            used |= devices
        self.assertEqual(used, {0, 1})
        # It is still the same model, and a second export replaces the first.
        self.ok("place", out, "-m", "uniform:2", "--method", "round_robin", "--no-rewrite", "--export", "onnx-multi-device", "-o", self.directory / "again.onnx")
        self.assertEqual((self.directory / "again.onnx").read_bytes(), content)
        self.fails("found a model cut by --shard", "place", model, "-m", "uniform:2", "--shard", 2, "--export", "onnx-multi-device", "-o", out)


if __name__ == "__main__":
    unittest.main()
