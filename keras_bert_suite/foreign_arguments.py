"""Names of arguments in other libraries, and of their counterparts here.

The other libraries are transformers, sentence-transformers, simpletransformers, bert4keras and
KerasHub; Google's scripts are among them, too.
"""

import difflib
from collections.abc import Sequence

_CLASSES = (
    ("num_classes", "label_names"),
    (
        "Heads with classes take `num_classes` or `label_names`, in `from_preset` and in the "
        "constructor."
    ),
)
_LABELS = (
    ("label_names", "y"),
    (
        "The names of classes are `label_names`, of a constructor or of `from_preset`. The labels "
        "of rows are `y` of `fit`."
    ),
)
_LENGTH = (
    ("sequence_length",),
    ("The most tokens in a row are `sequence_length` of `from_preset` or of a `SegmentPacker`."),
)
_LOWERCASE = ("lowercase",), "The case is `lowercase` of `from_preset` or of a tokenizer."
_CHECKPOINT = ("preset", "checkpoint"), "A checkpoint is the first argument of `from_preset`."
_RATE = (
    ("learning_rate", "peak_learning_rate"),
    ("The rate belongs to `compile`: `compile(optimizer=kbs.AdamW(kbs.LinearWarmupDecay(2e-5)))`."),
)
_WARMUP = (
    ("warmup_ratio", "warmup_steps"),
    (
        "The warm-up belongs to the schedule: "
        "`compile(optimizer=kbs.AdamW(kbs.LinearWarmupDecay(2e-5, warmup_ratio=0.1)))`."
    ),
)
_OPTIMIZER = (
    ("optimizer",),
    (
        "The optimizer belongs to `compile`: `compile(optimizer=kbs.AdamW(2e-5, weight_decay=0.01, "
        "gradient_accumulation_steps=2, global_clipnorm=1.0))`."
    ),
)
_EPOCHS = ("epochs", "steps_per_epoch"), "The length of a training is `epochs` of `fit`."
_BATCH = ("batch_size",), "The rows of a batch are `batch_size` of `fit` and of `predict`."
_ROWS = ("x", "train"), "Rows are the first arguments of `fit`: `fit(texts, labels)`."
_DEV = (
    ("validation_data", "dev"),
    ("Rows to validate on are `validation_data=(dev_texts, dev_labels)` of `fit`."),
)
_CLASS_WEIGHT = (
    ("class_weight",),
    ("Weights of classes are `class_weight` of `fit`, and weights of rows `sample_weight`."),
)
_METRICS = ("metrics",), "Scores of a training are `metrics` of `compile`."
_PRECISION = (
    ("dtype",),
    ("The precision is `dtype` of `from_preset` or of a backbone, such as dtype='mixed_bfloat16'."),
)
_OUTPUT = (
    ("output",),
    (
        "A training writes to `callbacks=[kbs.TrainingCheckpoint(folder)]` of `fit`. "
        "`save_to_preset(folder)` writes a model."
    ),
)
_SEED = ("seed",), "Call `keras.utils.set_random_seed(0)` before the model is made."
_VERBOSE = ("verbose",), "The progress bar is `verbose` of `fit` and of `predict`."
_PROMPT = ("prompt", "prompts"), "The name of a prompt is `prompt` of `predict` of a TextEmbedder."
_UNIT_LENGTH = (
    ("normalize",),
    "Vectors of length 1 are `normalize` of `from_preset` of a TextEmbedder.",
)
_DIMENSIONS = (
    ("dimensions",),
    "The numbers of a vector that are kept are `dimensions` of `from_preset` of a TextEmbedder.",
)
_ARRAYS = (), "Answers are arrays of NumPy, or lists."
_PATTERN = (
    ("attention_pattern",),
    "Which tokens a token sees is `attention_pattern` of a backbone. Seq2Seq is UniLM.",
)
_ATTENTION = (), "It belongs to a backbone with attention, such as a BertBackbone."
_WIDTH = (
    ("projection_dim",),
    "The width is `hidden_dim` of a backbone, of an ELMo `projection_dim`.",
)
_HEADS = (
    (),
    "A backbone has a pooled output. MaskedLM and Pretrainer have the heads of pretraining.",
)
_CONDITION = (
    ("norm_condition",),
    "The backbone makes norms with a condition: `norm_condition=NormCondition(width)`.",
)
_DEVICE = (), "Keras chooses the device. To choose it, work within `keras.device('cpu')`."
_FEATURES = (
    ("features", "feature_columns"),
    "Columns beside the texts are `features` of a `TextClassifier` or a `DocumentClassifier`.",
)
_DELIMITER = ("delimiter",), "The separator of fields is `delimiter` of `read_table`."
_SIZES = {
    ("vocab_size",): "vocabulary_size",
    ("hidden_size", "embed_dim", "d_model"): "hidden_dim",
    ("num_hidden_layers", "n_layers"): "num_layers",
    ("num_attention_heads", "n_heads"): "num_heads",
    ("intermediate_size",): "intermediate_dim",
    ("max_position_embeddings", "max_position"): "max_sequence_length",
    ("type_vocab_size", "segment_vocab_size"): "num_segments",
    ("hidden_act", "hidden_activation"): "activation",
    ("hidden_dropout_prob", "dropout_rate", "classifier_dropout"): "dropout",
    ("attention_probs_dropout_prob", "attention_dropout_rate"): "attention_dropout",
    ("layer_norm_eps",): "layer_norm_epsilon",
    ("embedding_size",): "embedding_dim",
}

_GROUPS = {
    "num_labels n_labels num_class n_classes nb_classes classes num_tags": _CLASSES,
    "labels label label_list id2label label2id labels_map class_names": _LABELS,
    "max_length max_len maxlen max_seq_length max_seq_len model_max_length": _LENGTH,
    "do_lower_case do_lowercase lower_case": _LOWERCASE,
    "model_name model_name_or_path pretrained_model_name_or_path config_path checkpoint_path "
    "init_checkpoint bert_config_file": _CHECKPOINT,
    "lr learning_rate peak_learning_rate": _RATE,
    "warmup_steps num_warmup_steps warmup warmup_ratio warmup_proportion": _WARMUP,
    "weight_decay gradient_accumulation_steps accumulation_steps max_grad_norm clipnorm "
    "adam_epsilon optimizer_params optimizer_class": _OPTIMIZER,
    "num_train_epochs num_epochs n_epochs nb_epoch max_steps": _EPOCHS,
    "per_device_train_batch_size per_device_eval_batch_size per_gpu_train_batch_size "
    "train_batch_size eval_batch_size predict_batch_size": _BATCH,
    "train_dataset train_data train_df train_objectives": _ROWS,
    "eval_dataset eval_data eval_df evaluator dev_data test_data validation_dataset": _DEV,
    "class_weights weight": _CLASS_WEIGHT,
    "compute_metrics eval_metrics": _METRICS,
    "torch_dtype fp16 bf16": _PRECISION,
    "output_dir output_path save_steps save_strategy": _OUTPUT,
    "random_state manual_seed": _SEED,
    "show_progress_bar progress_bar": _VERBOSE,
    "prompt_name": _PROMPT,
    "normalize_embeddings": _UNIT_LENGTH,
    "truncate_dim matryoshka_dim": _DIMENSIONS,
    "convert_to_tensor convert_to_numpy": _ARRAYS,
    "application": _PATTERN,
    "attention_pattern num_heads attention_dropout": _ATTENTION,
    "hidden_dim": _WIDTH,
    "with_pool with_mlm with_nsp": _HEADS,
    "layer_norm_cond": _CONDITION,
    "device use_cuda use_gpu device_map no_cuda": _DEVICE,
    "features feature_columns": _FEATURES,
    "sep separator": _DELIMITER,
    **{
        " ".join(names): ((size,), f"The size is `{size}` of a backbone.")
        for names, size in _SIZES.items()
    },
}

#: The name elsewhere -> (names here, the best one first; where it belongs).
FOREIGN_ARGUMENTS: dict[str, tuple[tuple[str, ...], str]] = {
    name: meaning for names, meaning in _GROUPS.items() for name in names.split()
}


def find_meant(name: str, known: Sequence[str]) -> tuple[str | None, str | None]:
    """(the known argument that a name was meant for; where an argument of another library belongs).

    The names of other libraries come first, then the spelling. So `num_labels` is never taken for
    `num_layers`.

    >>> find_meant("num_labels", ["num_layers"])[0], find_meant("num_layer", ["num_layers"])[0]
    (None, 'num_layers')
    """
    spelled = difflib.get_close_matches(name, [*known, *FOREIGN_ARGUMENTS], n=1)
    foreign = name if name in FOREIGN_ARGUMENTS else "".join(spelled)
    if foreign in FOREIGN_ARGUMENTS and foreign not in known:
        names, place = FOREIGN_ARGUMENTS[foreign]
        return next((each for each in names if each in known), None), place
    return next(iter(spelled), None), None
