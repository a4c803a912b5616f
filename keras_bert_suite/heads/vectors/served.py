"""Prompts, and the comparison of texts, in the graph of a SavedModel."""

import functools

from keras_bert_suite.heads.base.served import ServedTask, order_candidates


class ServedVectors(ServedTask):
    """A `TextEmbedder`, with the signatures `similarity` and `rank`, and one for each prompt."""

    def more_signatures(self):
        prompted = {}
        for name, prompt in self.task.prompts.items():
            length = None if self.task.pools_prompts else self.task.count_prompt_tokens(prompt)
            answer = functools.partial(self.answer_prompted, prompt, length)
            prompted[f"prompt_{name}"] = (answer, {"text": 1})
        return {
            **prompted,
            "similarity": (self.compare, {"text_a": 1, "text_b": 1}),
            # Candidates have a row for each query, so a server can join requests.
            "rank": (self.rank, {"query": 1, "candidates": 2}),
        }

    def answer_prompted(self, prompt, length, texts):
        """dict of `embedding` float32 (B, H), of texts (B,) with a prompt before each.

        `length` counts its tokens, if the pooling leaves them out; else it is None.
        """
        import tensorflow as tf

        texts = (tf.strings.join([prompt, *texts]),)
        if length is None:
            return self.answer_texts(texts)
        packed = self.pack_once_traced(texts)
        lengths = tf.fill(tf.shape(texts[0]), length)
        return self.answer_ids({**packed, "prompt_length": lengths})

    def compare(self, texts):
        """dict of `similarity` float32 (B,), the cosines of two string tensors (B,)."""
        import tensorflow as tf

        first, second = tf.split(self._encode(tf.concat(texts, axis=0)), 2)
        return {"similarity": tf.reduce_sum(first * second, axis=-1)}

    def rank(self, texts):
        """Orders the candidates, string tensor (B, N), of queries, string tensor (B,).

        The result has `order` int32 (B, N), the positions of the candidates, the best first, and
        their `scores` float32 (B, N), the cosines in this order.
        """
        import tensorflow as tf

        queries, candidates = texts
        shape = tf.shape(candidates)
        vectors = self._encode(tf.concat([queries, tf.reshape(candidates, [-1])], axis=0))
        of_queries, of_candidates = tf.split(vectors, [shape[0], shape[0] * shape[1]])
        of_candidates = tf.reshape(of_candidates, [*tf.unstack(shape), vectors.shape[-1]])
        cosines = tf.einsum("bh,bnh->bn", of_queries, of_candidates)
        return order_candidates(cosines)

    def _encode(self, texts):
        """float32 (N, H), vectors of the length 1 of a string tensor (N,)."""
        import tensorflow as tf

        packed = self.pack_once_traced((texts,))
        return tf.math.l2_normalize(self.task(packed, training=False), axis=-1)
