"""Divides a corpus into documents to train on and documents to evaluate on."""

import functools

import numpy as np

from keras_bert_suite.argument_checks import check_share
from keras_bert_suite.corpus.token_corpus import TokenCorpus


def hold_out(corpus: TokenCorpus, share: float, seed: int = 0) -> tuple[TokenCorpus, TokenCorpus]:
    """Divides a corpus by documents. The same arguments give the same parts.

    Each document is drawn by itself, from the seed and its number. So documents that are added at
    the end do not move the others. On average `share` of the documents is held out.

    Args:
        corpus: `TokenCorpus`.
        share: float over 0 and at most 1, the share of the documents to hold out.
        seed: int, not negative.

    Returns:
        two `TokenCorpus`: the documents to train on, and the documents that are held out.

    Raises:
        ValueError: if `share` is out of its range, or either part has no document.
    """
    check_share("share", share, positive=True)
    held = np.random.default_rng(seed).random(corpus.num_documents) < share
    if held.all() or not held.any():
        raise ValueError(
            f"share={share} holds {held.sum()} of {len(held)} documents out, but both parts need "
            "at least one document. Use another share or seed, or split very long documents."
        )
    return select_documents(corpus, ~held), select_documents(corpus, held)


def select_documents(corpus: TokenCorpus, chosen: np.ndarray) -> TokenCorpus:
    """The corpus of the documents where `chosen`, bool (D,), is true."""
    num_sentences = np.diff(corpus.document_starts)
    lengths = corpus.sentence_lengths[np.repeat(chosen, num_sentences)]
    starts = np.append(0, np.cumsum(num_sentences[chosen]))
    read_tokens = functools.partial(_read_selected, corpus, np.flatnonzero(chosen))
    return TokenCorpus(lengths, starts, read_tokens)


def _read_selected(corpus: TokenCorpus, documents: np.ndarray, document: int) -> np.ndarray:
    return corpus.tokens(int(documents[document]))
