"""What the command-line tests share: the real command, a directory of one's own, and how it succeeds and fails."""
import os
import pathlib
import subprocess
import tempfile
import unittest

DOPPLER = os.environ["DOPPLER"]
LIMIT = 300  # seconds; generous, because sanitizer builds share two cores


def run(*arguments):
    return subprocess.run([DOPPLER, *map(str, arguments)], capture_output=True, text=True, timeout=LIMIT)


class CommandCase(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = pathlib.Path(directory.name)

    def ok(self, *arguments):
        done = run(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def fails(self, message, *arguments, code=2):
        done = run(*arguments)
        self.assertEqual(done.returncode, code, (arguments, done.stdout, done.stderr))
        self.assertTrue(done.stderr.startswith("doppler: "), done.stderr)
        self.assertIn(message, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        return done
