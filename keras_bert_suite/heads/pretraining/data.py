"""Batches that are packed and masked, or corrupted, already."""

import dataclasses

import numpy as np

from keras_bert_suite.heads.base.input_checks import check_inputs
from keras_bert_suite.heads.base.labels import ClassIds
from keras_bert_suite.heads.base.text_data import TextData


class PretrainingData(TextData):
    """Batches of arrays by name, as `PretrainingBatches` makes them, or pairs of texts to predict.

    Args:
        packer, encoder: as for `TextData`.
        inputs: the names of the inputs of the model that its encoder does not have.
        outputs: the names of the other outputs that learn from labels of the batches.
        num_relations: int, the relations between two texts that an output "nsp" knows; None
            without such an output.
    """

    def __init__(
        self, packer, encoder, inputs=("mask_positions",), outputs=("mlm",), num_relations=None
    ):
        super().__init__(packer, encoder, ClassIds())
        self.inputs = tuple(dict.fromkeys((*encoder.names, *inputs)))
        self.outputs = tuple(outputs) if num_relations is None else (*outputs, "nsp")
        self.num_relations = num_relations

    def pack(self, rows, labelled=False):
        if not rows.is_packed:
            return self._pack_pairs(rows.inputs, labelled), None, rows.weights
        if self.encoder.memory_shape is not None and "memory" not in rows.inputs:
            # No memory: it has no tokens.
            num_layers, width = self.encoder.memory_shape
            memory = np.zeros((len(rows), num_layers, 0, width), "float32")
            rows = dataclasses.replace(rows, inputs={**rows.inputs, "memory": memory})
        check_inputs(rows.inputs, self.inputs)
        if labelled:
            self._check_labels(rows.labels if isinstance(rows.labels, dict) else {})
        return super().pack(rows, labelled)

    def _check_labels(self, labels):
        differing = set(labels) ^ set(self.outputs)
        if differing:
            remedy = (
                "The `labels` of a masker or a corruption of PretrainingBatches name its labels. "
                "Pass one that has these names, or rename the labels by `batches.map(...)`."
            )
            if differing == {"nsp"}:
                remedy = (
                    "The labels nsp are those of pairs of texts. Make batches with them by "
                    "PretrainingBatches(mode='pairs'), and without them by mode='full_sentences'; "
                    "or build the task with next_sentence=True, or False."
                )
            raise ValueError(
                f"This task learns {', '.join(self.outputs)}, and the batches have labels for "
                f"{', '.join(labels) or 'nothing'}. {remedy}"
            )
        relations = labels.get("nsp")
        if isinstance(relations, np.ndarray) and relations.max(initial=0) >= self.num_relations:
            raise ValueError(
                f"A pair has the relation {relations.max()}, and this Pretrainer has "
                f"sentence_relations={self.num_relations}. For mode='relations' pass 3."
            )

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
