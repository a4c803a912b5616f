"""The common base of tasks that learn from rows of words, and find entities in texts."""

from typing import Any

from keras_bert_suite.annotations import Config
from keras_bert_suite.heads.base.task import part_attribute
from keras_bert_suite.heads.base.token_task import TokenTask


class WordTask(TokenTask):
    """The base of taggers and of tasks that find spans of words."""

    head_defaults: dict[str, Any] = {
        "input_names": None,
        "head_layers": None,
        "word_cutting": None,
    }

    #: `WordCutting`, how texts are cut into words; None as the tokenizer cuts them. The first `fit`
    #: on rows of words in memory sets it. A later `fit` keeps it.
    word_cutting = part_attribute("data", "word_cutting")

    def get_config(self) -> Config:
        cutting = self.word_cutting
        return {**super().get_config(), "word_cutting": cutting and cutting.get_config()}
