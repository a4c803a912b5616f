"""Writes a text from a text, such as a title from an article."""

import logging
from collections.abc import Sequence
from typing import Any, Self

import keras
import keras_hub

from keras_bert_suite.annotations import Config, Inputs, PathLike
from keras_bert_suite.argument_checks import check_integer
from keras_bert_suite.data.input_dataset import is_dataset
from keras_bert_suite.heads import targets
from keras_bert_suite.heads.base.input_checks import EncoderInputs, check_in_memory
from keras_bert_suite.heads.base.preset_task import FURTHER_ARGUMENTS
from keras_bert_suite.heads.base.task import part_attribute
from keras_bert_suite.heads.masks.masked_lm_head import make_masked_lm_head
from keras_bert_suite.heads.pretraining.seq2seq_pretrainer import Seq2SeqPretrainer
from keras_bert_suite.heads.targets.decoding import find_decoder, write_dataset, write_rows
from keras_bert_suite.heads.targets.gaps import fill_gaps
from keras_bert_suite.heads.targets.sampling import check_no_draws, choose_sampling
from keras_bert_suite.heads.targets.scores import score_targets
from keras_bert_suite.heads.targets.writing_rules import RULES, find_rules
from keras_bert_suite.heads.targets.writing_task import WritingTask
from keras_bert_suite.models import BACKBONES, BertEncoderDecoder
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.runs.batches import read


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Seq2Seq(WritingTask):
    """A text encoder that writes a target from a source, such as a title from an article.

    There are three kinds of backbones for it. With a `BertBackbone` a row is packed as a pair,
    [CLS] source [SEP] target [SEP]. The tokens of the source attend to each other. A token of the
    target attends to the source and to the target before it. From the first [SEP] on, each token
    predicts the next token. It has no weights that a BERT lacks. With a `BertEncoderDecoder` source
    and target are two rows, [CLS] source [SEP] and [CLS] target [SEP]. Each has the positions of a
    whole row, and its attention to the source must be learned. A `BartBackbone` was pretrained to
    write. Its decoder reads `</s>` first, and a target is `<s>` target `</s>`. With `frame_dim` its
    sources are rows of frames, arrays (n, D).

    `fit` and `evaluate` take the sources and the targets, two columns of texts or datasets of
    batches of them; or packed arrays, the inputs of the model, with labels int32 (B, P) and sample
    weights float32 (B, P). `predict` takes sources and returns targets.

    Args:
        backbone: `BertBackbone` with `attention_pattern="seq2seq"`, or another backbone with a
            `Decoder`.
        preprocessor: `SegmentPacker`, for frames a `FramePacker` with a `tokenizer`; or None for
            packed arrays only.
        max_target_length: int, the maximum number of tokens that `predict` writes, the last [SEP]
            included, and with a `BartBackbone` the first `<s>`.
        sampler: how `predict` and an export choose tokens: a `keras_hub.samplers.Sampler`, or its
            name: "greedy", "beam", "top_k", "top_p" or "random". A beam that has ended keeps its
            score. A `BeamSearch` has a penalty for lengths. `compile` may replace it.
        min_target_length: int, the minimum number of tokens, counted in the same way.
        no_repeat_ngram_size: int n: no n tokens of a target follow each other twice. 0 for no such
            rule.
        first_token: str, the token that begins each target, such as a code of a language. None with
            a `BartBackbone` is the token that begins a row, and otherwise any token.
        last_token: str, the token at the end of a target of `max_target_length` tokens. None for
            any token. "</s>" is transformers' `forced_eos_token_id`.
        input_names: the name of the sources; see `TextClassifier`.
        plain_marks: bool, whether sources and targets are read with the marks of a keyboard where
            the vocabulary lacks a mark. The vocabulary of bert-base-chinese lacks “ ” ‘ ’ — and …,
            and has " ' - and dots. Words that a vocabulary lacks are left out of written texts.

    Raises:
        ValueError: if `max_target_length` leaves no room for a source in the packer's
            `sequence_length` or the backbone's positions; and as the other tasks.

    Inputs, a dictionary: the inputs of the backbone, and with a `BertBackbone` also
    `mask_positions`, int32 (B, P), the tokens that predict a token. Outputs: float (B, P, V),
    logits; with a `BertEncoderDecoder` or a `BartBackbone` P is the length of the decoder's rows.

    Example:
    ```python
    writer = Seq2Seq.from_preset("path/to/checkpoint", sequence_length=256)
    writer.fit(articles, titles, epochs=3)
    writer.compile(sampler=keras_hub.samplers.BeamSampler(num_beams=3))
    writer.predict(["Scientists have found that ..."])   # ["A discovery"]
    ```

    Source: Dong et al., 2019, UniLM (https://arxiv.org/abs/1905.03197). UniLM masks tokens of the
    target and predicts them; here, as in bert4keras, each token predicts the next one, so that all
    tokens of a target are learned in one step.
    """

    HEAD = targets.HEAD
    attention_pattern = "seq2seq"
    language_models = (*WritingTask.language_models, Seq2SeqPretrainer)
    takes_encoder_decoders = True
    #: The token that begins the rows of the decoder, as a checkpoint says; None if it does not.
    decoder_start_token_id: int | None = None

    max_target_length = part_attribute("data", "max_target_length")
    plain_marks = part_attribute("data", "plain_marks")
    changeable = frozenset({"sampler", *RULES})
    target_rows = part_attribute("data", "target_rows")

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        preprocessor: keras.layers.Layer | None = None,
        max_target_length: int = 32,
        sampler: Any = "greedy",
        min_target_length: int = 0,
        no_repeat_ngram_size: int = 0,
        first_token: str | None = None,
        last_token: str | None = None,
        input_names: Sequence[str] | None = None,
        plain_marks: bool = False,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_integer("max_target_length", max_target_length, at_least=1)
        self.set_sampler(sampler)

        # === Layers ===
        self.backbone = backbone
        self.masked_lm = make_masked_lm_head(backbone)
        self.decoder = find_decoder(backbone, self.masked_lm)

        # === Functional Model ===
        self.unused_paths = Encoder.of(self.decoder.encoder).find_unused()
        inputs, logits = self.decoder.connect()

        # === Data and Answers ===
        self.make_parts(
            preprocessor,
            EncoderInputs.of(self.decoder.encoder),
            backbone=backbone,
            joins_source=self.decoder.joins_source,
            starts_with_end=self.decoder.starts_with_end,
            max_target_length=max_target_length,
            plain_marks=bool(plain_marks),
            input_names=input_names,
        )
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

        # === Config ===
        self.min_target_length = min_target_length
        self.no_repeat_ngram_size = no_repeat_ngram_size
        self.first_token = first_token
        self.last_token = last_token

    @classmethod
    def from_preset(
        cls, preset: PathLike, *, decoder: PathLike | None = None, **kwargs: Any
    ) -> Self:
        """Builds the task from a checkpoint, or from two: of an encoder and of a decoder.

        ```python
        Seq2Seq.from_preset("bert")                      # UniLM: one BERT, no new weights
        Seq2Seq.from_preset("bert", decoder="bert")      # two BERTs, and new cross-attention
        Seq2Seq.from_preset("bert", decoder="shared")    # two BERTs with one set of weights
        Seq2Seq.from_preset("bert2bert")                 # an EncoderDecoderModel of transformers
        Seq2Seq.from_preset("bart")                      # a BART
        ```

        Settings of transformers' `generate` in the files are not applied. The logger
        "keras_bert_suite" names them: choose a `sampler` and the other arguments.

        Args:
            preset: as for the other tasks; also an EncoderDecoderModel of two BERTs, or a BART.
            decoder: the preset of the BERT that writes, with its head for masked tokens. `preset`
                is then the BERT that reads, with its tokenizer. "shared" for the same weights.
                None for the values of `preset`.
            **kwargs: as for the other tasks. `load_weights`, `dtype` and `compile` are for both
                presets, the others for `preset`.

        Raises:
            ValueError: as for the other tasks; and if the decoder of a checkpoint begins with
                another token than the decoder of its kind.
        """
        if decoder is None:
            task = super().from_preset(preset, **kwargs)
            _check_first_token(task, preset)
            return task
        if kwargs.get("keep_tokens") is not None:
            raise ValueError(
                "keep_tokens is for a single BERT, got a decoder. Trim both BERTs, save them as "
                "presets, and join these: MaskedLM.from_preset(..., keep_tokens=...)."
            )
        # The target has another row, and needs no room in the source's.
        length = kwargs.pop("max_target_length", 32)
        reader = super().from_preset(preset, max_target_length=1, **kwargs)
        writer = reader
        if decoder != "shared":
            given = {name: kwargs[name] for name in ("load_weights", "dtype") if name in kwargs}
            writer = super().from_preset(decoder, preprocessor=None, compile=False, **given)
        backbone = BertEncoderDecoder.from_backbones(
            reader.backbone, None if decoder == "shared" else writer.backbone
        )
        task = cls(
            backbone,
            preprocessor=reader.preprocessor,
            max_target_length=length,
            sampler=reader.sampler,
            **{name: getattr(reader, name) for name in ("input_names", "plain_marks", *RULES)},
            **{name: kwargs[name] for name in FURTHER_ARGUMENTS if name in kwargs},
        )
        task.masked_lm.set_weights(writer.masked_lm.get_weights())
        if kwargs.get("compile", True):
            task.compile()
        return task

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        if not hasattr(BACKBONES[checkpoint.model_type.backbone], "make_decoder"):
            raise ValueError(
                f"{checkpoint.path} holds weights of {checkpoint.model_type.title}, which has no "
                "decoder. Load a checkpoint of a BERT or a BART."
            )
        return super().arguments_of(checkpoint, arguments)

    @classmethod
    def load_checkpoint(cls, checkpoint: Any, load_weights: bool, **arguments: Any) -> Self:
        task = super().load_checkpoint(checkpoint, load_weights, **arguments)
        task.decoder_start_token_id = checkpoint.decoder_start_token_id
        if checkpoint.generation_settings:
            settings = (
                f"{name}={value!r}" for name, value in checkpoint.generation_settings.items()
            )
            logging.getLogger("keras_bert_suite").warning(
                "%s: settings of transformers' generate are not applied: %s. Pass a sampler, such "
                "as BeamSearch, and other arguments of Seq2Seq.",
                checkpoint.path,
                ", ".join(settings),
            )
        return task

    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        *,
        max_target_length: int | None = None,
        min_target_length: int | None = None,
        no_repeat_ngram_size: int | None = None,
        first_token: str | None = None,
        last_token: str | None = None,
        length_penalty: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Writes a target for each source.

        Args:
            x: sources: a list, an array or a pandas Series, a dataset of batches of them, or a
                single str. Or packed arrays by name, with `mask_positions`.
            batch_size, steps: as for `Task.predict`.
            max_target_length: int, the maximum number of tokens of a target, the last [SEP]
                included. A source has the rest of the packer's `sequence_length`, and is cut if it
                is longer. None is the task's `max_target_length`.
            min_target_length, no_repeat_ngram_size, first_token, last_token: as for the task. None
                are the task's.
            length_penalty: float, in place of that of a `BeamSearch`. None is its own.
            top_k: int, only so many of the most probable tokens are drawn. With `top_k`, `top_p`,
                `temperature` or `seed`, tokens are drawn at random. A limit that is None is then
                that of the sampler, such as p = 0.9 of "top_p".
            top_p: float over 0 and at most 1. Only the most probable tokens are drawn, as few as
                have this probability together.
            temperature: float above 0, 1 by default, by which logits are divided. Less than 1 draws
                probable tokens more often.
            seed: int. None draws a seed from NumPy, which `keras.utils.set_random_seed` seeds.
            **kwargs: `verbose` and `callbacks` of Keras, for packed arrays only.

        Returns:
            list of str, or str for a single source. For packed arrays the logits, float (N, P, V).

        Raises:
            ValueError: if there is no preprocessor; if source and target have no room in the
                packer's `sequence_length` or the backbone's positions; if `batch_size` is no
                integer of at least 1; if the minimum is above the maximum, the vocabulary lacks a
                token, or the sampler has no penalty for lengths; if an argument of the draws is out
                of its range, or the sampler is a beam search.
            TypeError: for further arguments.
        """
        self.check_predict_arguments(kwargs)
        sampling = choose_sampling(self.sampler, top_k, top_p, temperature, seed)
        length, rules = find_rules(
            self,
            max_target_length=max_target_length,
            min_target_length=min_target_length,
            no_repeat_ngram_size=no_repeat_ngram_size,
            first_token=first_token,
            last_token=last_token,
            length_penalty=length_penalty,
        )
        if isinstance(x, str):
            return write_rows(self, read(self, [x]), None, None, length, rules, sampling)[0]
        if is_dataset(x):
            return write_dataset(self, x, steps, length, rules, sampling)
        rows = read(self, x)
        if rows.is_packed:
            check_no_draws(sampling)
            return super().predict(x, batch_size, steps, **kwargs)
        return write_rows(self, rows, batch_size, steps, length, rules, sampling)

    def score(self, x: Inputs, y: Any, batch_size: int | None = None) -> dict[str, float]:
        """Scores the targets that `predict` writes by ROUGE and exact match; see `score_targets`.

        Args:
            x: sources in memory, as for `predict`.
            y: their N targets.
            batch_size: int, 32 by default.

        Returns:
            dict: `rouge_1`, `rouge_2`, `rouge_l` and `exact_match` in percent, and `rows`.

        Raises:
            ValueError: for packed arrays, or as `fit`.
        """
        check_in_memory(x)
        rows = read(self, x, y, labelled=True)
        if rows.is_packed:
            raise ValueError("`score` compares texts, got packed arrays. Pass sources and targets.")
        return score_targets(rows.labels, self.predict(x, batch_size))

    def fill_mask(
        self, x: str | Sequence[str], batch_size: int | None = None, max_gap_length: int = 8
    ) -> list[Any]:
        """Fills the gaps of texts, each of one token or several, with a BART.

        The decoder writes the whole text, as it has learned to. So a gap depends on the others, and
        on both sides of it. Compile with a `BeamSearch` for better texts. The task's
        `min_target_length` and `no_repeat_ngram_size` do not hold here.

        >>> writer.fill_mask("Paris <mask> of France.")
        ["is the capital"]

        Args:
            x: list of str, or a single str. In each text the tokenizer's `mask_token` stands for
                one gap.
            batch_size: int, 32 by default.
            max_gap_length: int, the most tokens of a gap, on average over the gaps of a text.

        Returns:
            for each text a list of str, one for each of its gaps. They are None if the decoder has
            not written the words around the gaps as they are. For a single text its list. `predict`
            gives the texts that are written of other sources.

        Raises:
            ValueError: if a text has no mask, there is no preprocessor, the backbone is no BART, or
                `batch_size` is no integer of at least 1.

        Source: `fill_mask` of fairseq, `models/bart/hub_interface.py`. It stops at the length of
            the source unless `match_source_len=False`, and returns whole texts.
        """
        if isinstance(x, str):
            return fill_gaps(self, [x], batch_size, max_gap_length)[0]
        return fill_gaps(self, list(x), batch_size, max_gap_length)

    def generate(self, inputs: Inputs, max_length: int | None = None, **kwargs: Any) -> Any:
        """KerasHub's name of `predict`. `max_length` is `max_target_length`."""
        return self.predict(inputs, max_target_length=max_length, **kwargs)


def _check_first_token(task, preset):
    """Checks that the decoder of a checkpoint begins with the token with which a row begins."""
    if task.decoder_start_token_id is None or task.preprocessor is None:
        return
    first = task.target_rows.first_token_id
    if task.decoder_start_token_id != first:
        raise ValueError(
            f"The decoder of {preset} was trained on rows that begin with the token "
            f"{task.decoder_start_token_id} (decoder_start_token_id), and the tokenizer begins "
            f"rows with {first}. Train the decoder anew: take its encoder and decoder out of it, "
            "and pass them to Seq2Seq.from_preset(..., decoder=...)."
        )
