"""Finds the settings of transformers' `generate` in a checkpoint, which nobody applies here."""

from keras_bert_suite.checkpoints.model_types.config_values import read_json

#: Settings that change texts -> the value without effect, beside None.
_SETTINGS = {
    "do_sample": False,
    "num_beams": 1,
    "length_penalty": 1.0,
    "early_stopping": False,
    "min_length": 0,
    "max_length": 20,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
    "repetition_penalty": 1.0,
    "bad_words_ids": None,
    "task_specific_params": None,
}
#: Forced tokens -> the token of a row that stands there in any case.
_FORCED = {"forced_bos_token_id": "bos_token_id", "forced_eos_token_id": "eos_token_id"}

#: The file of newer checkpoints. Older ones have the settings in config.json.
FILE = "generation_config.json"


def read_generation_settings(path, config):
    """dict of the settings of `generate` that change texts.

    Args:
        path: `pathlib.Path` of the directory.
        config: `ConfigValues` of its config.json.
    """
    newer = read_json(path / FILE) if (path / FILE).is_file() else {}

    def find(name):
        return newer.get(name, config.get(name))

    idle = {**_SETTINGS, **{name: find(own) for name, own in _FORCED.items()}}
    said = {name: find(name) for name in idle}
    return {name: value for name, value in said.items() if value not in (None, idle[name])}
