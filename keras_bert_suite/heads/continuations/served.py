"""The continuations of a `CausalLM` in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served_texts import make_segment
from keras_bert_suite.heads.targets.served import ServedTargets, join_tokens
from keras_bert_suite.heads.targets.writing_rules import NO_RULES
from keras_bert_suite.preprocessing.packing import tensorflow_namespace


class ServedContinuations(ServedTargets):
    """A `CausalLM`: the answers are the texts that its `predict` writes."""

    needs_graph = (
        "other runtimes have no loop that writes token by token. Export a SavedModel, which takes "
        "texts and answers with what follows them."
    )

    @property
    def max_length(self):
        return self.task.max_length

    def find_rules(self):
        return NO_RULES

    def pack(self, texts):
        """Packs texts, with room for a continuation after them."""
        ids, _, lengths = make_segment(self.task.preprocessor.tokenizer.tokenize(texts[0]))
        packed = self.task.target_rows.pack_sources(
            tensorflow_namespace(), ids, lengths, self.max_length
        )
        return self.data.encoder.select(packed)

    def join(self, first, ids, is_kept):
        """The texts without the text of `first`, as `ContinuationAnswers.detokenize`."""
        import tensorflow as tf

        tokenizer = self.task.preprocessor.tokenizer
        is_text = first != tokenizer.start_token_id
        before = join_tokens(tokenizer, first, is_text)
        tokens, kept = tf.concat([first, ids], axis=1), tf.concat([is_text, is_kept], axis=1)
        texts = join_tokens(tokenizer, tokens, kept)
        begins = tf.strings.length(before)
        return tf.strings.substr(texts, begins, tf.strings.length(texts) - begins)
