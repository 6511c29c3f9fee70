"""tools/check_layers accepts this checkout and finds what it is there to find."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(root):
    done = subprocess.run([sys.executable, ROOT / "tools" / "check_layers", root], capture_output=True, text=True)
    return done.returncode, done.stdout


class CheckLayers(unittest.TestCase):
    def expect(self, module, source, message):
        with tempfile.TemporaryDirectory() as root:
            directory = pathlib.Path(root) / "doppler" / module
            directory.mkdir(parents=True)
            (directory / "a.cpp").write_text(source)
            code, output = check(root)
            if message is None:
                self.assertEqual(code, 0, output)
            else:
                self.assertEqual(code, 1, output)
                self.assertIn(message, output)

    def test_accepts_this_checkout(self):
        code, output = check(ROOT)
        self.assertEqual(code, 0, output)

    def test_refuses_an_include_from_a_higher_layer(self):
        self.expect("graph", '\n#include "doppler/timeline.h"\n', "a.cpp:2: 'graph' includes 'sim'; required only")
        self.expect("report", '#include "doppler/method.h"\n', "'report' includes 'place'")

    def test_accepts_lower_layers_and_their_layers(self):
        self.expect("place", '#include "doppler/graph.h"\n#include "doppler/sim/simulator.h"\n', None)

    def test_keeps_torch_out(self):
        self.expect("place", "#include <torch/torch.h>\n", "'place' includes torch")
        self.expect("learn", "#include <torch/torch.h>\n", None)

    def test_lets_only_the_app_talk(self):
        for call in ["std::cout << 1;", "fmt::print(\"x\");", "printf(\"x\");", "std::getenv(\"X\");", "std::exit(1);",
                     "::abort();", "fprintf(stderr, \"x\");"]:
            self.expect("sim", f"void f() {{ {call} }}\n", "only 'app' prints")
            self.expect("app", f"void f() {{ {call} }}\n", None)

    def test_ignores_comments_and_strings(self):
        self.expect("sim", '// std::cout\nconst char* a = "exit(1)"; /* printf( */ int exit_code; f.exit(1);\n', None)

    def test_refuses_an_unknown_module(self):
        self.expect("misc", "", "unknown module 'misc'")


if __name__ == "__main__":
    unittest.main()
