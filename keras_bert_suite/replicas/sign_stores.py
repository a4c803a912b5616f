"""Where processes leave short texts for each other, without a collective that waits for all."""

import datetime
from typing import Any, Protocol

from keras_bert_suite.replicas.groups import find_torch_processes


class SignStore(Protocol):
    """Texts by key, which process 0 keeps. Its methods raise RuntimeError if process 0 has ended.

    Several threads may call them.
    """

    def write(self, key: str, text: str) -> None:
        """Writes the text of a key, also over another one."""

    def read(self, key: str) -> str:
        """The text of a key, "" if there is none."""


def open_store(timeout: float) -> SignStore:
    """Opens the store of the processes that share each batch.

    Args:
        timeout: float, seconds to wait for an answer of PyTorch's store. JAX's has its own timeout.
    """
    return _JaxStore() if find_torch_processes() is None else _TorchStore(timeout)


class _TorchStore:
    """The store by which the processes of PyTorch have found each other, on a new connection."""

    def __init__(self, timeout: float) -> None:
        import torch

        self._store = torch.distributed.distributed_c10d._get_default_store().clone()
        self._store.set_timeout(datetime.timedelta(seconds=timeout))

    def write(self, key: str, text: str) -> None:
        self._store.set(key, text)

    def read(self, key: str) -> str:
        return self._store.get(key).decode() if self._store.check([key]) else ""


class _JaxStore:
    """The service by which the processes of JAX have found each other."""

    def __init__(self) -> None:
        from jax._src import distributed

        self._client: Any = distributed.global_state.client

    def write(self, key: str, text: str) -> None:
        self._client.key_value_set(key, text, allow_overwrite=True)

    def read(self, key: str) -> str:
        # `key_value_try_get` would raise an error for a key without a text.
        folder, _, _ = key.rpartition("/")
        return dict(self._client.key_value_dir_get(folder)).get(key, "")
