"""Batches that are packed and masked already."""

import numpy as np

from keras_bert_suite.heads.base.labels import ClassIds
from keras_bert_suite.heads.base.text_data import TextData


class PretrainingData(TextData):
    """Packed and masked batches, as `PretrainingBatches` makes them, or pairs of texts to predict.

    Args:
        packer, encoder: as for `TextData`.
        num_relations: int, the relations between two texts that the head for pairs knows; None
            without such a head.
    """

    def __init__(self, packer, encoder, num_relations=None):
        super().__init__(packer, encoder, ClassIds())
        self.num_relations = num_relations

    def pack(self, rows, labelled=False):
        if not rows.is_packed:
            return self._pack_pairs(rows.inputs, labelled), None, rows.weights
        labels = rows.labels
        relations = labels.get("nsp") if isinstance(labels, dict) else None
        if relations is not None and self.num_relations is None:
            raise ValueError(
                "The batches have labels for pairs of texts, `nsp`, and this Pretrainer has no "
                "head for pairs. Make the batches with PretrainingBatches(mode='full_sentences'), "
                "or make a new head with Pretrainer.from_preset(..., next_sentence=True)."
            )
        if (
            self.num_relations is not None
            and isinstance(relations, np.ndarray)
            and relations.max(initial=0) >= self.num_relations
        ):
            raise ValueError(
                f"A pair has the relation {relations.max()}, and this Pretrainer has "
                f"sentence_relations={self.num_relations}. For mode='relations' pass 3."
            )
        return super().pack(rows, labelled)

    def _pack_pairs(self, texts, labelled):
        """Packs pairs of texts in which no token is masked."""
        if labelled or self.num_relations is None or len(texts) != 2:
            raise ValueError(
                "A pretraining task takes packed and masked batches, got texts. Make the batches "
                "with PretrainingBatches, or pack with a SegmentPacker and mask with a "
                "TokenMasker. `predict` of a Pretrainer with a head for pairs takes pairs of texts."
            )
        packed = self.pack_texts(texts)
        return {**packed, "mask_positions": np.zeros((len(texts[0]), 0), "int32")}
