"""The targets of a `Seq2Seq` in the graph of a SavedModel."""

import re

import keras_hub

from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.base.served_texts import make_segment
from keras_bert_suite.heads.targets.beam_search import BeamSearch
from keras_bert_suite.heads.targets.writing_rules import find_rules
from keras_bert_suite.preprocessing.packing import tensorflow_namespace
from keras_bert_suite.tokenizers import joining
from keras_bert_suite.tokenizers.unicode_rules import re2_class

#: The samplers that write the same target of the same source.
_SAMPLERS = (keras_hub.samplers.GreedySampler, keras_hub.samplers.BeamSampler, BeamSearch)


class ServedTargets(ServedTask):
    """A `Seq2Seq`: the answers are the texts that its `predict` writes."""

    needs_graph = (
        "other runtimes have no loop that writes token by token. Export a SavedModel, which takes "
        "sources and answers with targets."
    )

    @property
    def encoder(self):
        return self.task.decoder.encoder

    @property
    def max_length(self):
        """int, the most tokens that are written."""
        return self.task.max_target_length

    def find_rules(self):
        """The `WritingRules` of the texts."""
        return find_rules(self.task)[1]

    def check(self):
        sampler = self.task.sampler
        if not isinstance(sampler, _SAMPLERS):
            raise ValueError(
                f"A server gives the same answer to the same text, got {with_article(sampler)}, "
                "which draws tokens at random. Compile with sampler='greedy' or 'beam' before the "
                "export."
            )
        tokenizer = self.task.preprocessor.tokenizer
        if not hasattr(tokenizer, "list_bytes"):
            _list_piece_texts(tokenizer)  # The error comes before the export.

    def pack(self, texts):
        """Packs sources, with room for a target after them."""
        import tensorflow as tf

        (sources,) = texts
        for mark, plain in self.task.data.marks.items():
            sources = tf.strings.regex_replace(sources, re.escape(mark), plain)
        ids, _, lengths = make_segment(self.task.preprocessor.tokenizer.tokenize(sources))
        packed = self.task.target_rows.pack_sources(
            tensorflow_namespace(), ids, lengths, self.max_length
        )
        return self.data.encoder.select(packed)

    def join(self, first, ids, is_kept):
        """The texts, string (B,), of int32 (B, T); `first`, (B, 1), are the tokens before them."""
        return join_tokens(self.task.preprocessor.tokenizer, ids, is_kept)

    def answer_ids(self, packed):
        """Writes the targets of packed sources, dict of int32 (B, L); see `make_signatures`.

        `target_ids` has padding after the end of a target. `num_tokens` leaves out the last [SEP].
        """
        import tensorflow as tf

        task, tokenizer = self.task, self.task.preprocessor.tokenizer
        first = task.target_rows.find_first_tokens(tensorflow_namespace(), packed)[:, None]
        rest = tf.fill([tf.shape(first)[0], self.max_length], tokenizer.pad_token_id)
        targets = tf.concat([first, rest], axis=1)
        targets.set_shape([None, 1 + self.max_length])
        inputs = {"source": packed, "targets": targets}
        ids = task.generate_step(inputs, (tokenizer.end_token_id, self.find_rules()))[:, 1:]
        is_kept = tf.cumsum(tf.cast(ids == tokenizer.end_token_id, tf.int32), axis=1) == 0
        is_special = tf.reduce_any(ids[..., None] == tokenizer.special_token_ids, axis=-1)
        return {
            "texts": self.join(first, ids, is_kept & ~is_special),
            "target_ids": tf.where(is_kept, ids, tokenizer.pad_token_id),
            "num_tokens": tf.reduce_sum(tf.cast(is_kept, tf.int32), axis=1),
        }


#: A text is written of frames in the same way. Requests bring packed frames, without `pack`.
ServedTargets.of_frames = ServedTargets


def join_tokens(tokenizer, ids, is_kept):
    """`tokenizer.detokenize` in a graph: int32 (B, T) -> string (B,).

    `is_kept`, bool (B, T), are the tokens that are written.
    """
    import tensorflow as tf

    if hasattr(tokenizer, "list_bytes"):
        pieces = tf.gather(tf.constant(tokenizer.list_bytes()), ids)
        texts = tf.strings.reduce_join(tf.where(is_kept, pieces, b""), axis=1)
        return tf.strings.unicode_transcode(texts, "UTF-8", "UTF-8", errors="replace")
    kept = tf.ragged.boolean_mask(ids, is_kept)
    ids, is_kept = kept.to_tensor(tokenizer.pad_token_id), tf.sequence_mask(kept.row_lengths())
    texts, later_texts = map(tf.constant, _list_piece_texts(tokenizer))
    pieces = tf.gather(later_texts, ids)
    is_close = tf.gather(tf.constant(tokenizer.find_openings()), ids)[:, :-1]
    is_close = tf.pad(is_close, [[0, 0], [1, 0]])
    pieces = tf.where(is_close, tf.strings.regex_replace(pieces, "^ ", ""), pieces)
    is_first = tf.range(tf.shape(ids)[1]) == 0
    pieces = tf.where(is_first, tf.gather(texts, ids), pieces)
    texts = tf.strings.reduce_join(tf.where(is_kept, pieces, ""), axis=1)
    return correct_spaces(texts) if tokenizer.corrects_spaces else texts


def correct_spaces(texts):
    """`joining.correct_spaces` in a graph: string (B,) -> string (B,)."""
    import tensorflow as tf

    for pattern, replacement in joining.RULES:
        for _ in range(2):
            texts = tf.strings.regex_replace(texts, pattern, replacement)
    script = re2_class(joining.WITHOUT_SPACES)
    characters = tf.strings.regex_replace(texts, f"[^{script}]", "")
    # A word becomes a space, and what is no word anything else.
    words = tf.strings.regex_replace(texts, " ", ".")
    words = tf.strings.regex_replace(words, joining.OTHER_WORDS.format(script), " ")
    words = tf.strings.regex_replace(words, "[^ ]", "")
    corrected = texts
    for pattern, replacement in joining.RULES_WITHOUT_SPACES:
        corrected = tf.strings.regex_replace(corrected, pattern, replacement)
    has_no_spaces = tf.strings.length(characters, "UTF8_CHAR") > tf.strings.length(words)
    return tf.where(has_no_spaces, corrected, texts)


def _list_piece_texts(tokenizer):
    """The text of each token of a vocabulary at the beginning of a text, and after other tokens.

    A token that may be a part of a character is a ValueError.
    """
    tokens = tokenizer.get_vocabulary()
    alone = [tokenizer.join_tokens([token]) for token in tokens]
    if any("\ufffd" in text for text in alone):
        raise ValueError(
            f"The pieces of {with_article(tokenizer)} may be parts of characters, so a graph "
            "cannot join them to a text. Serve `predict` of the task instead."
        )
    # A special token stands for any token before another one.
    begin = len(alone[tokenizer.pad_token_id])
    return alone, [tokenizer.join_tokens([tokenizer.pad_token, token])[begin:] for token in tokens]
