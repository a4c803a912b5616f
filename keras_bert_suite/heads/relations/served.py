"""Relations between two marked entities in the graph of a SavedModel."""

from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.base.served_texts import make_segment
from keras_bert_suite.heads.relations.data import cut_around
from keras_bert_suite.preprocessing.packing import tensorflow_namespace


class ServedRelations(ServedTask):
    """A `RelationClassifier`: texts are cut around their markers, as its data cuts them.

    A request is refused if a row does not have each marker.
    """

    @property
    def short_text(self):
        first, end, second, last = self.task.markers
        return f"{first}a{end} {second}b{last}"

    def pack(self, texts):
        """Packs a tuple of one string tensor (B,)."""
        import tensorflow as tf

        xp = tensorflow_namespace()
        tokens = self.data.packer.tokenizer.tokenize(texts[0])
        ids, text_starts, lengths = make_segment(tokens)
        places = tf.cast(tf.ragged.range(lengths).flat_values, tf.int32)
        is_marker = tf.reduce_any(ids[:, None] == tf.constant(self.task.marker_ids), axis=-1)

        def find_place(reduce, otherwise):
            found = tokens.with_flat_values(tf.where(is_marker, places, otherwise))
            # A row without a token has no place, and is refused later.
            return tf.clip_by_value(reduce(found, axis=1), 0, tf.maximum(lengths - 1, 0))

        first = find_place(tf.reduce_min, tf.int32.max)
        last = find_place(tf.reduce_max, -1)
        room = self.data.packer.count_places()
        offsets = cut_around(xp, lengths, first, last, room)
        packed = self.data.packer.pack_tokens(ids, text_starts + offsets, tf.minimum(lengths, room))
        return self.data.encoder.select(packed)

    def check_packed(self, packed):
        """The inputs. Running the graph fails if a row lacks a marker, or repeats one."""
        import tensorflow as tf

        markers = tf.constant(self.task.marker_ids)
        is_marker = packed["token_ids"][:, None, :] == markers[:, None]
        is_marked = tf.math.count_nonzero(is_marker, axis=-1) == 1
        names = ", ".join(self.task.markers)
        message = (
            f"Each row must have the markers {names} once, near enough for the model, an entity's "
            "start before its end. Rows with them:"
        )
        places = tf.argmax(tf.cast(is_marker, tf.int32), axis=-1)
        first, end, second, last = tf.unstack(places, axis=-1)
        is_whole = tf.reduce_all(is_marked, axis=-1) & (first < end) & (second < last)
        check = tf.debugging.Assert(tf.reduce_all(is_whole), [message, is_whole], summarize=32)
        with tf.control_dependencies([check]):
            return {name: tf.identity(array) for name, array in packed.items()}
