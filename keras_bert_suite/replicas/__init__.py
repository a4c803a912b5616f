"""Replicas: copies of a model that share each batch.

The backends bring the engines: `torch.distributed`, `tf.distribute`, and `keras.distribution` under
JAX. This package says which rows of a batch a replica takes, and sums over the replicas. Without
replicas its functions return their arguments.
"""

from keras_bert_suite.replicas.find_replicas import (
    Member,
    count_replicas,
    drop_copies,
    find_local_replicas,
    find_process,
    find_replica,
    has_joint_variables,
    in_scope_of_model,
    take_first_share,
)
from keras_bert_suite.replicas.sums import gather_rows, sum_over_replicas
from keras_bert_suite.replicas.whole_batches import join_rows, split_rows, take_share, whole_batches
