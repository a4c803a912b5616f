"""The files of a Hugging Face tokenizer, with the checks that all kinds of tokenizers share."""

from dataclasses import dataclass

from keras_bert_suite.checkpoints.tokenizer_files.added_tokens import read_added_tokens
from keras_bert_suite.checkpoints.tokenizer_files.fast_settings import (
    check_fast_settings,
    check_template,
    list_steps,
)
from keras_bert_suite.checkpoints.tokenizer_files.settings import (
    CONFIG_FILE,
    FAST_CLASSES,
    FAST_FILE,
    check_sides,
    name_missing,
    read_settings,
    read_special_tokens,
    refuse,
)


@dataclass(frozen=True)
class TokenizerKind:
    """A kind of tokenizer.

    Args:
        owner: str, the model whose tokenizer it is, a key of `UNDERSTOOD`.
        classes: tuple of str, the values of `tokenizer_class` beside `FAST_CLASSES`.
        special_tokens: dict from `name_special_tokens`.
        num_separators: int, how many end tokens stand between two texts.
        has_segments: bool, whether two texts have different segments.
        summary_place: "first" or "last", the place of the start token in a row. In the last place
            it is in segment 2.
        padding_side: "right" or "left".
        has_template: bool, whether all rows have the same special tokens, which a tokenizer.json
            then must have, too.
    """

    owner: str
    classes: tuple[str, ...]
    special_tokens: dict
    num_separators: int = 1
    has_segments: bool = False
    summary_place: str = "first"
    padding_side: str = "right"
    has_template: bool = True


class TokenizerFiles:
    """The files of a tokenizer that splits text as ours of a kind does.

    `vocabulary` has the names of the files with the tokens; () for tokenizer.json alone.

    Attributes:
        config, fast: dict of tokenizer_config.json and of tokenizer.json; empty if there is none.
        paths: list of `pathlib.Path` of the vocabulary.
        has_vocabulary: bool, whether all of them are there.
        special: dict of our name -> special token that differs from the usual one.
        tokens: dict of our name -> special token, all of them.
        added: dict of content -> token, see `read_added_tokens`.

    Raises:
        FileNotFoundError: if there is neither the vocabulary nor a tokenizer.json.
        ValueError: if a setting says that text is split otherwise.
    """

    def __init__(self, directory, kind, vocabulary=()):
        self.directory, self.kind = directory, kind
        self.config, self.fast = read_settings(directory)
        self.paths = [directory / name for name in vocabulary]
        self.has_vocabulary = bool(vocabulary) and all(path.is_file() for path in self.paths)
        if not self.has_vocabulary and not self.fast:
            wanted = " or ".join(filter(None, (" with ".join(vocabulary), FAST_FILE)))
            raise name_missing(directory, wanted)
        self.require("tokenizer_class", None, *FAST_CLASSES, *kind.classes)
        self.require("split_special_tokens", None, False)
        check_sides(directory, kind.owner, self.config, self.fast, kind.padding_side)
        check_fast_settings(directory, kind.owner, self.fast)
        self.special = read_special_tokens(self.config, kind.special_tokens)
        self.tokens = {**dict(kind.special_tokens.values()), **self.special}
        self._check_post_processor()
        self.added = read_added_tokens(directory, self.config, self.fast)

    def require(self, field, *values):
        """Refuses another value of a field of tokenizer_config.json. The first is its default."""
        self.expect(CONFIG_FILE, field, self.config.get(field, values[0]), *values)

    def expect(self, file, setting, got, *values):
        """Refuses a setting of a file that has none of some values."""
        if got not in values:
            refuse(self.directory, self.kind.owner, file, setting, got, values[-1])

    def follows_fast(self, setting):
        """Whether transformers takes a setting of tokenizer_config.json from tokenizer.json alone.

        A class that is named for a model asks tokenizer_config.json, and has defaults. If no file
        names a class, the model in config.json has one. Without these files, a tokenizer.json is
        alone.
        """
        cls = self.config.get("tokenizer_class")
        alone = self.config.get(setting) is None and not (self.directory / "config.json").is_file()
        return cls in FAST_CLASSES or (cls is None and alone)

    def read_steps(self, part):
        """The settings of all steps of a part of tokenizer.json, dict."""
        return {key: v for step in list_steps(self.fast.get(part)) for key, v in step.items()}

    def list_arguments(self, control=()):
        """dict of the special tokens and of the `added_tokens` of our tokenizer, if there are some.

        `control` has further tokens that are found without being added.
        """
        control = {*self.tokens.values(), *control}
        added = [token for content, token in self.added.items() if content not in control]
        return {**self.special, **({"added_tokens": added} if added else {})}

    def _check_post_processor(self):
        kind = self.kind
        if not kind.has_template:
            return
        steps = [step.get("type") for step in list_steps(self.fast.get("post_processor"))]
        follows = self.config.get("tokenizer_class") in FAST_CLASSES and self.fast
        if follows and not {*steps} - {"ByteLevel"}:
            got = steps or None
            refuse(
                self.directory, kind.owner, FAST_FILE, "post_processor", got, "TemplateProcessing"
            )
        edges = self.tokens["start_token"], self.tokens["end_token"]
        check_template(
            *(self.directory, kind.owner, self.fast, edges),
            *(kind.num_separators, kind.has_segments, kind.summary_place),
        )
