"""An `EarlyExitClassifier` in the graph of a SavedModel."""

from keras import ops

from keras_bert_suite.heads.base.served import ServedTask
from keras_bert_suite.heads.exits.stages import split_outputs, take_inputs
from keras_bert_suite.preprocessing.packing import tensorflow_namespace


class ServedExits(ServedTask):
    """Rows leave the batch in the graph, too: each stage gets the rows that go on."""

    needs_graph = (
        "other runtimes have no batch that rows leave. Export a SavedModel, or a TextClassifier "
        "on the same encoder."
    )

    def check(self):
        self.task.find_rule()

    def answer_ids(self, packed):
        """The answers, and `layers` int32 (B,), the layers that each row has used."""
        logits, layers = self._run_stages(packed)
        answers = self.task.answers
        served = answers.serve(ops, logits, packed)
        return {**answers.name_served(tensorflow_namespace(), served), "layers": layers}

    def _run_stages(self, packed):
        """(float32 (B, C), int32 (B,)). A stage without rows computes empty tensors."""
        import tensorflow as tf

        stages, rule = self.task.find_stages(), self.task.find_rule()
        num_rows = tf.shape(packed["padding_mask"])[0]
        rows, kept, states = tf.range(num_rows), None, None
        logits = tf.zeros([num_rows, self.task.num_classes])
        layers = tf.zeros([num_rows], tf.int32)
        for model, layer in zip(stages.models, stages.layers, strict=True):
            states, found = split_outputs(model(take_inputs(packed, states), training=False))
            found = tf.cast(found, tf.float32)
            leaves, kept = rule.step(found, kept, ops)
            if states is None:
                leaves = tf.ones_like(leaves)
            leaving = tf.boolean_mask(rows, leaves)[:, None]
            used = tf.fill([tf.size(leaving)], tf.constant(layer))
            logits = tf.tensor_scatter_nd_update(logits, leaving, tf.boolean_mask(found, leaves))
            layers = tf.tensor_scatter_nd_update(layers, leaving, used)
            if states is None:
                break
            rows, states, packed, kept = tf.nest.map_structure(
                lambda tensor, stay=~leaves: tf.boolean_mask(tensor, stay),
                (rows, states, packed, kept),
            )
        return logits, layers
