"""Reads ALBERT's tokenizer from the files of a checkpoint."""


def refuse_albert_pieces(directory):
    """Raises a ValueError: ALBERT's own tokenizer is SentencePiece."""
    raise ValueError(
        f"{directory} holds an ALBERT without a vocab.txt, whose tokenizer is SentencePiece. This "
        "package has none. Pass `preprocessor`, such as KerasHub's "
        "AlbertTextClassifierPreprocessor, or None to bring packed arrays."
    )
