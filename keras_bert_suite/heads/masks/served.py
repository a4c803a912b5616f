"""The guesses for masked tokens in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.base.served_texts import make_segment
from keras_bert_suite.heads.masks.data import find_masks
from keras_bert_suite.preprocessing.packing import pack_segments, tensorflow_namespace
from keras_bert_suite.tokenizers.engines import drop_invalid


class ServedMasks(ServedTask):
    """A `MaskedLM`: the answers are guesses for masks, as its `predict` makes them.

    A text without a mask has no guesses, and so has a mask that is beyond `sequence_length`.
    """

    @property
    def short_text(self):
        return self.task.preprocessor.tokenizer.mask_token

    def pack(self, texts):
        """Packs texts in which the tokenizer's mask token stands in the place of tokens."""
        return self._pack_decoded(drop_invalid(*texts))

    def answer_texts(self, texts):
        """The guesses for the masks of one string tensor (B,), as `answer_ids`.

        The positions are `starts` and `byte_starts`, int32 (B, P), where each mask is in its text,
        in characters and in bytes; -1 after the last mask.
        """
        import tensorflow as tf

        texts = drop_invalid(*texts)
        answers = self.answer_ids(self._pack_decoded(texts))
        del answers["mask_positions"]
        mask = self.task.preprocessor.tokenizer.mask_token
        parts = tf.strings.split(texts, mask)
        is_slot = tf.sequence_mask(answers["num_masks"], tf.shape(answers["tokens"])[1])

        def place(unit):
            """Where the masks begin: after the parts and the masks before them."""
            lengths = parts.with_values(tf.strings.length(parts.values, unit)).to_tensor()
            size = tf.strings.length(mask, unit)
            starts = tf.cumsum(lengths + size, axis=1) - size
            return tf.where(is_slot, starts[:, : tf.shape(is_slot)[1]], -1)

        return {**answers, "starts": place("UTF8_CHAR"), "byte_starts": place("BYTE")}

    def answer_ids(self, packed):
        """The guesses for the mask tokens of packed texts; see `make_signatures`."""
        import tensorflow as tf

        task, tokenizer = self.task, self.task.preprocessor.tokenizer
        positions, is_slot, num_masks = find_masks(
            tensorflow_namespace(), packed["token_ids"], tokenizer.mask_token_id
        )
        logits = task({**packed, "mask_positions": positions}, training=False)
        vocabulary = tokenizer.get_vocabulary()
        # There may be more logits than tokens.
        probabilities = tf.nn.softmax(tf.cast(logits, tf.float32))[..., : len(vocabulary)]
        probabilities, best = tf.math.top_k(probabilities, min(task.top_k, len(vocabulary)))
        return {
            "tokens": tf.where(is_slot[:, :, None], tf.gather(tf.constant(vocabulary), best), ""),
            "probabilities": tf.where(is_slot[:, :, None], probabilities, 0.0),
            "mask_positions": tf.where(is_slot, positions, -1),
            "num_masks": num_masks,
        }

    def _pack_decoded(self, texts):
        """`pack` of a string tensor (B,) from `drop_invalid`."""
        import tensorflow as tf

        tokenizer = self.task.preprocessor.tokenizer
        parts = tokenizer.split_at_masks(texts)
        ids = tokenizer.tokenize(parts.values)
        # Each part gets a mask before it. A text begins without a mask.
        masks = tf.fill([ids.nrows(), 1], tokenizer.mask_token_id)
        rows = parts.with_values(tf.concat([masks, ids], axis=1)).merge_dims(1, 2)[:, 1:]
        packed = pack_segments(
            tensorflow_namespace(),
            [make_segment(rows)],
            sequence_length=self.task.preprocessor.sequence_length,
            template=self.task.preprocessor.row_template,
        )
        return self.data.encoder.select(packed)
