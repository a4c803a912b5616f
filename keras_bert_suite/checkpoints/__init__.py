"""Opens, checks, loads and writes the checkpoints of other libraries."""

from keras_bert_suite.checkpoints.checkpoint import head_arguments
from keras_bert_suite.checkpoints.formats import is_keras_preset, open_checkpoint, preset_name
from keras_bert_suite.checkpoints.google_tf1.writer import save_google_tf1
from keras_bert_suite.checkpoints.hugging_face.peft import PEFT_CONFIG, read_peft, save_peft
from keras_bert_suite.checkpoints.hugging_face.sentence_transformers import embedder_arguments
from keras_bert_suite.checkpoints.hugging_face.sentence_transformers_writer import (
    save_sentence_transformers,
)
from keras_bert_suite.checkpoints.hugging_face.writer import save_hugging_face
from keras_bert_suite.checkpoints.keras_hub.writer import save_keras_hub
from keras_bert_suite.checkpoints.left_out import log_left_out
from keras_bert_suite.checkpoints.load_weights import (
    count_sentence_relations,
    find_other_heads,
    find_task,
    has_part,
    load_weights,
    may_have_next_sentence,
)
from keras_bert_suite.checkpoints.model_types.table import check_backbone
from keras_bert_suite.checkpoints.sealed_preset import SealedPreset
from keras_bert_suite.checkpoints.static.reader import UNCUT_LENGTH
from keras_bert_suite.checkpoints.tokenizer_files.find_kind import (
    read_folder_tokenizer,
    read_json_tokenizer,
)
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import (
    check_case,
    check_vocabulary,
    write_tokenizer,
)

__all__ = [
    "PEFT_CONFIG",
    "UNCUT_LENGTH",
    "SealedPreset",
    "check_backbone",
    "check_case",
    "check_vocabulary",
    "count_sentence_relations",
    "embedder_arguments",
    "find_other_heads",
    "find_task",
    "has_part",
    "head_arguments",
    "is_keras_preset",
    "load_weights",
    "log_left_out",
    "may_have_next_sentence",
    "open_checkpoint",
    "preset_name",
    "read_folder_tokenizer",
    "read_json_tokenizer",
    "read_peft",
    "save_google_tf1",
    "save_hugging_face",
    "save_keras_hub",
    "save_peft",
    "save_sentence_transformers",
    "write_tokenizer",
]
