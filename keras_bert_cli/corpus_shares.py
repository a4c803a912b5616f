"""The flag --corpus of keras-bert pretrain: a folder, or several folders and their shares."""

import math
import os

from .command_flags import UsageError

CORPUS_EXPLANATION = (
    "Folder that keras-bert prepare wrote; or several, with their shares of the rows of each "
    "batch, such as wikipedia=0.7,books=0.3."
)


def read_shares(text):
    """Reads the value of --corpus, a single folder unless it ends with a share.

    >>> read_shares("wikipedia=0.7,books=0.3")
    {'wikipedia': 0.7, 'books': 0.3}
    >>> read_shares("shards")
    {'shards': 1.0}

    A sum of the shares other than 1 is a `UsageError`.
    """
    # The name of a folder may end like a share, as "shards/date=20261124".
    if _read_share(text)[1] is None or os.path.isdir(os.path.expanduser(text)):
        return {os.path.expanduser(text): 1.0}
    pairs = [_read_share(part) for part in text.split(",")]
    shares = {os.path.expanduser(path): share for path, share in pairs}
    if None in shares.values() or len(shares) < len(pairs) or "" in shares:
        raise UsageError(
            f"--corpus={text} must name different folders, each with its share, such as "
            "wikipedia=0.7,books=0.3"
        )
    if not all(0 < share <= 1 for share in shares.values()) or not math.isclose(
        sum(shares.values()), 1
    ):
        raise UsageError(
            f"--corpus={text} has shares whose sum is {sum(shares.values()):g}; the shares must be "
            "over 0, and their sum must be 1"
        )
    return shares


def _read_share(text):
    """The path and the share of `path=share`; the share is None if there is no number."""
    path, _, share = text.rpartition("=")
    try:
        return path, float(share)
    except ValueError:
        return text, None
