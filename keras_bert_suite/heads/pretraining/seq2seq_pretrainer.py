"""Pretrains an encoder-decoder: it writes texts, or parts of them, from corrupted texts."""

from typing import Any, Self

import keras
import keras_hub

from keras_bert_suite.annotations import PathLike, Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.heads import pretraining
from keras_bert_suite.heads.base.input_checks import EncoderInputs
from keras_bert_suite.heads.base.keras_presets import holds_encoder_decoder
from keras_bert_suite.heads.base.preset_task import FURTHER_ARGUMENTS
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.heads.masks.masked_lm import MaskedLM
from keras_bert_suite.heads.masks.masked_lm_head import add_perplexity, make_masked_lm_head
from keras_bert_suite.models import BertEncoderDecoder
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.training import MaskedLMAccuracy, MaskedLMLoss


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class Seq2SeqPretrainer(Task, keras_hub.models.Task):
    """An encoder-decoder that learns to write texts from corrupted texts, as BART and MASS.

    `fit` takes the batches of `PretrainingBatches` with a `DenoisingCorruption`, a
    `MassCorruption`, or a `Corruption` of yours with the same arrays. After pretraining,
    `Seq2Seq.from_preset` opens it with its head.

    Inputs, a dictionary: the inputs of the backbone, int32 (B, L) for the sources, and int32 (B, T)
    for the targets; with `decoder_positions` also these, int32 (B, T). Outputs, a dictionary:
    `mlm`, logits float (B, T, V). Labels and sample weights: `mlm`, the tokens to write, int32
    (B, T), and their weights float32 (B, T).

    Args:
        backbone: `BertEncoderDecoder`, or another backbone with a `Decoder` that reads source and
            target in two rows.
        decoder_positions: bool, whether the batches say at which positions the decoder reads, as
            those of a `MassCorruption`. Else each row of the decoder begins at position 0.
        preprocessor: `SegmentPacker` or None. Presets hold its tokenizer.

    Example:
    ```python
    batches = PretrainingBatches(corpus, DenoisingCorruption(tokenizer), 128, 32, "doc_sentences")
    pretrainer = Seq2SeqPretrainer.from_preset("path/to/bert")
    pretrainer.fit(batches, epochs=10)
    pretrainer.save_to_preset("bart")
    writer = Seq2Seq.from_preset("bart")
    ```

    Raises:
        ValueError: if the backbone has no decoder, or reads source and target in one row.

    Source: Lewis et al., 2020, BART (https://arxiv.org/abs/1910.13461), and Song et al., 2019, MASS
    (https://arxiv.org/abs/1905.02450).
    """

    HEAD = pretraining.SEQ2SEQ_HEAD
    takes_encoder_decoders = True
    are_tokens = True

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        decoder_positions: bool = False,
        preprocessor: keras.layers.Layer | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        _check_encoder_decoder(backbone)

        # === Layers ===
        self.backbone = backbone
        self.masked_lm = make_masked_lm_head(backbone)
        self.decoder = backbone.make_decoder(self.masked_lm)

        # === Functional Model ===
        self.unused_paths = Encoder.of(self.decoder.encoder).find_unused()
        connect = self.decoder.connect_parts if decoder_positions else self.decoder.connect
        inputs, logits = connect()

        # === Data and Answers ===
        self.make_parts(
            preprocessor,
            EncoderInputs.of(self.decoder.encoder),
            decoder_positions=decoder_positions,
        )
        super().__init__(inputs=inputs, outputs={"mlm": logits}, **kwargs)

        # === Config ===
        self.decoder_positions = decoder_positions

    @classmethod
    def from_preset(
        cls,
        preset: PathLike,
        *,
        decoder: PathLike | None = None,
        decoder_positions: bool | None = None,
        **kwargs: Any,
    ) -> Self:
        """Builds a pretrainer from a checkpoint, or from those of one or two BERTs.

        Args:
            preset: as for `Task.from_preset`: an encoder-decoder, such as a BART or the preset of
                a `Seq2SeqPretrainer`, or a BERT, which then reads.
            decoder: the preset of the BERT that writes, if `preset` is a BERT; "shared" for the
                same weights. None copies the weights of `preset`. The attention of the decoder to
                the source is new.
            decoder_positions: as for the constructor. None takes the value of a preset.
            **kwargs: as for `Task.from_preset`. `load_weights`, `dtype` and `compile` are for both
                presets, the others for `preset`.

        Raises:
            ValueError: as `Task.from_preset`; if there is a `decoder` for an encoder-decoder; and
                if a preset is an encoder and no BERT.
        """
        given: dict[str, Any] = {}
        if decoder_positions is not None:
            given["decoder_positions"] = decoder_positions
        if holds_encoder_decoder(preset):
            if decoder is not None:
                raise ValueError(
                    f"{preset} holds an encoder and a decoder, got decoder={decoder!r}. Leave it "
                    "out, or take the preset of a BERT."
                )
            return super().from_preset(preset, **given, **kwargs)
        compiles = kwargs.pop("compile", True)
        further = {name: kwargs.pop(name) for name in FURTHER_ARGUMENTS if name in kwargs}
        reader = MaskedLM.from_preset(preset, compile=False, **kwargs)
        writer = reader
        if decoder not in (None, "shared"):
            both = {name: kwargs[name] for name in ("load_weights", "dtype") if name in kwargs}
            writer = MaskedLM.from_preset(decoder, compile=False, preprocessor=None, **both)
        backbone = BertEncoderDecoder.from_backbones(
            reader.backbone, None if decoder == "shared" else writer.backbone
        )
        task = cls(backbone, preprocessor=reader.preprocessor, compile=compiles, **given, **further)
        task.masked_lm.set_weights(writer.masked_lm.get_weights())
        task.card.update(reader.card)
        return task

    def make_loss(self) -> dict[str, Any]:
        """The mean over the tokens that are written."""
        return {"mlm": MaskedLMLoss()}

    def make_metrics(self) -> dict[str, Any]:
        """The accuracy over these tokens. `mlm_loss` and `perplexity` are always logged."""
        return {"weighted_metrics": {"mlm": [MaskedLMAccuracy(name="mlm_accuracy")]}}

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, with `mlm_loss` and `perplexity`."""
        results = super().get_metrics_result()
        loss = results.get("loss")
        return add_perplexity(results if loss is None else {**results, "mlm_loss": loss})


def _check_encoder_decoder(backbone):
    """Checks that a backbone has a decoder that reads rows of its own."""
    if not hasattr(backbone, "encode_sources"):
        raise ValueError(
            "A Seq2SeqPretrainer trains an encoder-decoder, got "
            f"{with_article(backbone)}. Join two BERTs by BertEncoderDecoder.from_backbones(bert, "
            "bert), or open a checkpoint by Seq2SeqPretrainer.from_preset."
        )
