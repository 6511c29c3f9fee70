"""Runs the commands of documents, in order, in an empty directory. Usage: DOPPLER=path/to/doppler docs_test.py"""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIMIT = 300  # seconds for one command; sanitizer builds share two cores


def commands(path):
    """Lines that begin with `$ ` in blocks without a language."""
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.M | re.S)
    lines = [line for language, block in blocks if not language for line in block.splitlines()]
    return [line[2:] for line in lines if line.startswith("$ ")]


class Documents(unittest.TestCase):
    def run_all(self, path):
        found = commands(path)
        self.assertTrue(found, path)
        with tempfile.TemporaryDirectory() as directory:
            bin_directory = pathlib.Path(directory) / "bin"
            bin_directory.mkdir()
            (bin_directory / "doppler").symlink_to(os.path.abspath(os.environ["DOPPLER"]))
            work = pathlib.Path(directory) / "work"
            work.mkdir()
            environment = {**os.environ, "PATH": f"{bin_directory}:{os.environ['PATH']}"}
            for command in found:
                done = subprocess.run(command, shell=True, cwd=work, env=environment, capture_output=True, text=True,
                                      timeout=LIMIT)
                self.assertEqual(done.returncode, 0, (command, done.stdout, done.stderr))
                yield command, done.stdout

    def test_the_tutorial_runs_as_written(self):
        outputs = dict(self.run_all(ROOT / "docs" / "tutorial.md"))
        text = "\n".join(outputs.values())
        self.assertIn("one device will do", text)
        self.assertIn("cutting ops helps: --shard 4", text)
        self.assertIn("over the best single device", text)
        self.assertIn("would help", text)
        self.assertRegex(text, r"the second takes ")


if __name__ == "__main__":
    unittest.main()
