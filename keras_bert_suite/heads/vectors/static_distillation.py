"""Makes static vectors of a trained embedder."""

import numbers
from collections.abc import Sequence

import numpy as np

from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.checkpoints import UNCUT_LENGTH
from keras_bert_suite.heads.base.split_models import TaskPart
from keras_bert_suite.heads.vectors.text_embedder import TextEmbedder
from keras_bert_suite.models import StaticBackbone
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.preprocessing import SegmentPacker
from keras_bert_suite.preprocessing.keras_hub_packer import find_segment_packer


def distill_static(
    teacher: TextEmbedder,
    dimensions: int | None = 256,
    *,
    texts: Sequence[str] | None = None,
    sif_coefficient: float | None = 1e-4,
    batch_size: int = 256,
    verbose: str | int = "auto",
) -> TextEmbedder:
    """Makes an embedder with one vector for each token of the vocabulary of another embedder.

    The teacher encodes each token alone, as a text, and pools it in its own way. The vectors are
    projected to their principal components. Then each is multiplied by the weight a / (a + p) of a
    token of the share p, so that frequent tokens say little. No labels and no texts are needed. The
    new embedder is some hundred times as fast, and less accurate: it does not know the order of
    words. It is trained further by `fit`, as any embedder.

    The rows of special tokens and of the unknown token are 0. So unknown tokens, and texts of them
    alone, say nothing: such a text has the vector 0, as a text without tokens.

    ```python
    teacher = TextEmbedder.from_preset("path/to/all-MiniLM-L6-v2")
    embedder = distill_static(teacher, dimensions=256)
    embedder.predict(["some text"])  # float32 (1, 256)
    ```

    Args:
        teacher: `TextEmbedder` with a `SegmentPacker`, such as a sentence encoder.
        dimensions: int, the width of the vectors, at most the teacher's. None keeps the teacher's.
        texts: texts of the kind that will be encoded, which say how frequent each token is. None
            takes Zipf's law for the order of the vocabulary, which in most vocabularies is by
            frequency: the token of rank r, from 0 on, has a share in proportion to 1 / (r + 2).
        sif_coefficient: float a. None leaves out the weights.
        batch_size, verbose: for the teacher, as for `predict`.

    Returns:
        `TextEmbedder` on a `StaticBackbone`, with the tokenizer of the teacher, normalized.

    Raises:
        ValueError: if the teacher is no embedder of texts, `dimensions` is more than the width of
            its vectors or the number of tokens, or `sif_coefficient` is not between 0 and 1.

    Source: model2vec (https://github.com/MinishLab/model2vec) and Arora et al., 2017, SIF
    (https://openreview.net/forum?id=SyK00v5xx). model2vec also counts the special tokens in the
    ranks, keeps their rows, and then leaves out unknown tokens.
    """
    packer = _find_packer(teacher)
    tokenizer = packer.tokenizer
    token_ids = np.flatnonzero(tokenizer.find_ordinary()).astype("int32")
    is_number = isinstance(sif_coefficient, numbers.Real)
    if sif_coefficient is not None and not (is_number and 0 < sif_coefficient < 1):
        raise ValueError(
            f"sif_coefficient must be between 0 and 1, got {sif_coefficient!r}. None leaves out "
            "the weights."
        )
    pooled = teacher.vectors.input  # Not yet scaled to the length 1.
    width = int(pooled.shape[-1])
    dimensions = width if dimensions is None else dimensions
    check_integer("dimensions", dimensions, at_least=1)
    most = min(width, len(token_ids))
    if dimensions > most:
        raise ValueError(
            f"dimensions must be at most {most}, the smaller of the width of the teacher's vectors "
            f"({width}) and the number of its tokens ({len(token_ids)}), got {dimensions}."
        )
    ones = np.ones(len(token_ids), "int32")
    packed = packer.pack_tokens(token_ids, np.arange(len(token_ids), dtype="int32"), ones)
    encoder = TaskPart.of(teacher, teacher.input, pooled, "token_encoder")
    vectors = encoder.predict(
        teacher.data.encoder.select(packed), batch_size=batch_size, verbose=verbose
    )
    rows = project(vectors, dimensions)
    if sif_coefficient is not None:
        shares = _find_shares(tokenizer, token_ids, texts)
        rows *= (sif_coefficient / (sif_coefficient + shares))[:, None]
    table = np.zeros((tokenizer.vocabulary_size(), dimensions), "float32")
    table[token_ids] = rows
    backbone = StaticBackbone(*table.shape)
    backbone.token_embedding.embeddings.assign(table)
    return TextEmbedder(
        backbone,
        preprocessor=SegmentPacker(tokenizer, UNCUT_LENGTH, add_special_tokens=False),
    )


def project(vectors, dimensions):
    """The principal components of vectors (N, H), float64 (N, dimensions), the largest first.

    Of each axis, the number that is largest without its sign is positive.
    """
    centered = np.asarray(vectors, "float64")
    centered = centered - centered.mean(axis=0)
    _, axes = np.linalg.eigh(centered.T @ centered)
    axes = axes[:, ::-1][:, :dimensions]
    largest = np.abs(axes).argmax(axis=0)
    return centered @ (axes * np.sign(axes[largest, np.arange(dimensions)]))


def _find_shares(tokenizer, token_ids, texts):
    """float64 (N,), the shares of tokens among all tokens: of texts, or by Zipf's law."""
    if texts is None:
        shares = 1 / np.arange(2, len(token_ids) + 2)
    else:
        if isinstance(texts, str):
            raise ValueError(f"texts must be a list of texts, got the text {texts[:40]!r}.")
        found, _ = tokenizer.tokenize_flat(list(texts))
        shares = np.bincount(found, minlength=tokenizer.vocabulary_size())[token_ids]
        if not shares.sum():
            raise ValueError(
                f"The {len(texts)} texts have no known token, so they do not say how frequent "
                "tokens are. Pass other texts, or texts=None."
            )
    return shares / shares.sum()


def _find_packer(teacher):
    """The packer of a teacher that reads tokens one by one."""
    if not isinstance(teacher, TextEmbedder):
        raise ValueError(
            f"distill_static takes a TextEmbedder, got {with_article(teacher)}. Build one on its "
            "encoder: TextEmbedder(task.backbone, preprocessor=task.preprocessor)."
        )
    packer = find_segment_packer(teacher.preprocessor)
    if packer is None or Encoder.of(teacher.backbone).vocabulary_size is None:
        raise ValueError(
            "distill_static encodes each token of a vocabulary, got a teacher "
            f"on {with_article(teacher.backbone)} with the preprocessor "
            f"{type(teacher.preprocessor).__name__}. Set `preprocessor` to a SegmentPacker with "
            "the tokenizer of an encoder of token ids."
        )
    return packer
