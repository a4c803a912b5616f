"""What `pip` installs works: the wheel with all dependencies, and the list without TensorFlow."""

import importlib.metadata
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

REPOSITORY = Path(__file__).resolve().parents[1]
CONSTRAINTS = REPOSITORY / "constraints" / "test.txt"

#: What the package needs for exports only, and what asks for TensorFlow.
TENSORFLOW = {"tensorflow", "tensorflow-text", "tensorflow-serving-api"}


def plain_name(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def read_project():
    return tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read_requirements(name):
    lines = (REPOSITORY / "constraints" / name).read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line and line[0] not in "#-"]


def is_needed(requirement, extras):
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def find_needed(requirements, extras, found):
    """Adds the names of requirements, and of theirs, as the metadata of what is installed say."""
    for requirement in requirements:
        key = (plain_name(requirement.name), *sorted(requirement.extras))
        if key[0] in TENSORFLOW or key in found or not is_needed(requirement, extras):
            continue
        found.add(key)
        further = map(Requirement, importlib.metadata.requires(key[0]) or [])
        find_needed(further, requirement.extras, found)


def test_the_list_without_tensorflow_is_whole():
    project = read_project()
    found = set()
    find_needed(map(Requirement, project["dependencies"]), (), found)
    listed = read_requirements("without_tensorflow.txt")
    assert {plain_name(r.name) for r in listed if is_needed(r, ())} == {key[0] for key in found}
    pinned = {plain_name(requirement.name) for requirement in read_requirements("test.txt")}
    assert not {name for name, *_ in found} - pinned, "give them a version in constraints/test.txt"


def test_the_badges_are_true():
    readme = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    badges = dict(re.findall(r"shields\.io/badge/(\w+)-(.*)-\w+\)", readme.replace(") !", ")\n!")))
    project = read_project()
    classified = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert badges["python"].split("_%7C_") == classified
    (keras,) = (r for r in map(Requirement, project["dependencies"]) if r.name == "keras")
    assert f"{badges['keras']}.1" in keras.specifier and f"{badges['keras']}.99" in keras.specifier
    assert badges["licence"].replace("--", "-") == project["license"]


def try_wheel(*arguments):
    command = [sys.executable, REPOSITORY / "scripts" / "try_wheel.py", *arguments]
    process = subprocess.run(
        [*command, "--constraint", CONSTRAINTS], capture_output=True, text=True, timeout=1500
    )
    assert process.returncode == 0, process.stdout + process.stderr


@pytest.mark.long("examples")
@pytest.mark.backend("tensorflow")
def test_the_wheel_works_in_an_empty_environment(tmp_path):
    try_wheel("--dist", tmp_path)


@pytest.mark.long("examples")
@pytest.mark.backend("jax", "torch")
def test_the_list_without_tensorflow_works(tmp_path):
    import keras

    try_wheel("--without", keras.config.backend())
