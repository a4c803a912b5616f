"""Answers slices by processes of Ray."""

import dataclasses
import logging
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from keras_bert_suite.files.messages import shorten
from keras_bert_suite.many_texts.input_slices import InputSlice


class RayWorkers:
    """Calls a worker in actors of Ray Data, which starts an actor that is lost again.

    Args:
        ray: the module, connected to a cluster.
        workers: int, actors; None for one for each GPU, or each processor.
    """

    def __init__(self, ray, workers):
        self._ray, self._workers = ray, workers

    def __call__(
        self, worker: Callable[[InputSlice], dict[str, Any]], slices: Sequence[InputSlice]
    ) -> Iterator[dict[str, Any]]:
        """Yields the results of a worker, as they come, for slices. It gets them by pickle."""
        if not slices:
            return
        data, there = self._ray.data, self._ray.cluster_resources()
        gpus = int(there.get("GPU", 0))
        wanted = self._workers or gpus or int(there.get("CPU", 1))
        rows = [dataclasses.asdict(part) for part in slices]
        logging.getLogger("ray.data").setLevel(logging.WARNING)  # Not each plan of an execution.
        answers = data.from_items(rows, override_num_blocks=len(rows)).map(
            _RayWorker,
            fn_constructor_args=(worker,),
            compute=data.ActorPoolStrategy(size=min(wanted, len(rows))),
            num_cpus=1,
            num_gpus=1 if gpus else 0,
        )
        try:
            yield from answers.iter_rows()
        except Exception as error:  # Those of Ray Data have no base of their own.
            raise RuntimeError(
                f"A worker of Ray has failed: {_find_last_line(error)}. The parts that are whole "
                "stay. Give the job again, and it writes those that are missing."
            ) from error


def _find_last_line(error):
    """What a worker says, without its traceback and that of Ray."""
    lines = str(error.__cause__ or error).strip().splitlines()
    return shorten(lines[-1] if lines else type(error).__name__, 300).rstrip(".")


class _RayWorker:
    """An actor of Ray Data."""

    def __init__(self, worker: Callable[[InputSlice], dict[str, Any]]) -> None:
        self._worker = worker

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        return self._worker(InputSlice(**row))
