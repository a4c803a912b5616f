"""The members of a class that its page shows: what users call, in the order of their work."""

import re

from keras_bert_suite.heads.base.head import Head
from keras_bert_suite.heads.base.labelled_task import LabelledTask
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.models import Encoder, TextEncoder
from keras_bert_suite.training import Technique

#: Bases, whose pages are for authors of subclasses and show every method.
BASES = (Encoder, Head, LabelledTask, Task, Technique, TextEncoder)

#: Beginnings of names: make a model, train, ask, score, improve and keep it; then the rest.
ORDER = (
    "from_preset$",
    "from_(?!adapter)",
    "compile$",
    "fit$",
    "fit",
    "adapt|count_trained",
    "evaluate$",
    "predict(?!_on_batch)|generate$|fill_mask|rank$|search$|index$|similarity",
    "score|(pseudo_)?perplexity",
    "inspect|tune_",
    "save|load|from_adapter|merge_|quantize",
    "",
)

#: A method of classes of every room that only the package itself calls.
OF_EVERY_ROOM = ("is_fixed",)

#: Methods and properties that only the package itself and authors of subclasses need, by room.
INTERNAL = {
    "heads": """
        activation backbone_arguments_of backbone_cls call check_dataset check_embedder
        check_further_arguments check_new_head check_parts check_predict_arguments column_names
        compile_from_config compute_loss compute_metrics count_prompt_tokens drop_functions
        drop_scores encode_entities encode_for_head encode_rows export features find_divergence
        find_inner_states find_output_form find_part_settings find_prompt_length find_rule
        find_stages generate_step get_metrics_result has_movable_embeddings has_new_head
        has_own_adapter jax_state_sync load_checkpoint load_keras_preset load_own_variables
        load_task_weights make_inputs make_loss make_masked_lm make_metrics make_outputs make_parts
        make_predict_function make_test_function make_train_function marker_ids note_data
        pooling_layers pooling_names pools_prompts predict_step predict_with preprocessor_cls
        preset_classes read_loss read_metric relabel replace_head replace_modules save_own_variables
        save_task_weights score_pairs score_with split_at_vectors split_towers splits_batches
        takes_buckets target_rows taught_output test_step train_own_adapter train_step
    """,
    "layers": """
        add_adapter add_bias_of_tokens attend check_heads choose_kernel close combine embed_tokens
        feed_forward find_adapter finish make_attention make_table merge place_keys place_queries
        prepare project project_queries project_source read_scores run score_vocabulary sum_tables
        usual_adapter weigh
    """,
    "masking": "check_task count_context draw_kinds make_arrays separator_id",
    "models": """
        call check_summary choose_width compare_tokens count_positions describe_adapters embed
        encode encode_rows encode_sources encode_summary find_prompt_length find_start find_unused
        list_calls list_unused make_block make_causal_decoder make_decoder make_embeddings
        make_inputs make_layer_model make_layers masked_lm_activation name_blocks new_paths of
        packs_sequences pooler_activation prompt_length reads_few_tokens restore_adapters
        save_own_variables show_tokens take_tokens takes_buckets token_transform trace_summary
        train_adapter transform_tokens weights_of_adapter
    """,
    "preprocessing": "backbone_cls tokenizer_cls",
    "runs": """
        batches_of_epoch close_epoch find_progress give_back_states recognize resumes
        resumes_within_epoch save_after_batch skipped thaw within_epoch
    """,
    "tokenizers": """
        asset_contents backbone_cls eager_engine find_blanks find_continuations find_endings
        find_openings find_ordinary graph_engine hugging_face_config hugging_face_files
        join_tokens list_bytes settings split_at_masks tokenize_flat
    """,
    "training": """
        activate adam_update add_variable check_length check_rows check_scores compares_rows
        count_batches decay_of drop_idle_patterns has_length is_endless is_excluded
        load_own_variables measure read_schedule reads_schedule step update_all
    """,
}


def find_room(cls):
    """The room of a class of the package, such as "heads"."""
    return cls.__module__.split(".")[1]


def list_members(cls):
    """(name, whether it is a property) of what users call, own and inherited from the package."""
    hidden = {*INTERNAL.get(find_room(cls), "").split(), *OF_EVERY_ROOM}
    found = {}
    for base in cls.__mro__:
        if base.__module__.startswith("keras_bert_suite."):
            for name, value in vars(base).items():
                found.setdefault(name, value)
    shown = [
        (name, isinstance(value, property))
        for name, value in found.items()
        if name[0] != "_" and name not in hidden and is_described(value)
    ]
    return sorted(shown, key=lambda member: find_stage(member[0]))


def is_described(value):
    """Whether a member is a method or a property with a docstring."""
    value = getattr(value, "__func__", value)
    return bool(value.__doc__) and (isinstance(value, property) or callable(value))


def find_stage(name):
    return next(stage for stage, begin in enumerate(ORDER) if re.match(begin, name))
