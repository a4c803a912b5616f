"""A function in a process of its own."""

import pickle

import pytest

from keras_bert_suite.corpus.worker_process import WorkerProcess

pytestmark = pytest.mark.backend_free


def test_calls_errors_and_the_end():
    with WorkerProcess(eval) as worker:
        assert worker("6 * 7") == 42
        # What is printed does not come between the answers.
        assert worker("print('hello')") is None
        with pytest.raises(ValueError, match="invalid literal for int.*'x'"):
            worker("int('x')")
        with pytest.raises(FileNotFoundError) as error:
            worker("open('absent')")
        assert error.value.filename == "absent"
        assert worker("__import__('keras').config.backend()") == "numpy"
        assert worker("__import__('sys').modules.get('tensorflow')") is None
        with pytest.raises(RuntimeError, match="ended with status 7 at __import__.*fewer workers"):
            worker("__import__('os')._exit(7)")
        with pytest.raises(RuntimeError, match="ended with status 7"):
            worker("1")


def test_it_ends_in_the_middle_of_its_work():
    """When the parent ends, which closes the pipe."""
    with WorkerProcess(eval) as worker:
        worker("1")
        pickle.dump(("__import__('time').sleep(600)",), worker._process.stdin)
        worker._process.stdin.close()
        assert worker._process.wait(60) == 0
        worker._process.stdin = None  # `communicate` would flush it
