"""Continues texts, from left to right, and measures how much they surprise it."""

from collections.abc import Sequence
from typing import Any

import keras
import keras_hub
import numpy as np

from keras_bert_suite.annotations import Config, Inputs
from keras_bert_suite.argument_checks import check_integer, with_article
from keras_bert_suite.data.input_dataset import is_dataset
from keras_bert_suite.heads import continuations
from keras_bert_suite.heads.base.input_checks import EncoderInputs, check_in_memory
from keras_bert_suite.heads.base.task import part_attribute
from keras_bert_suite.heads.continuations.answers import cut_at, list_stops
from keras_bert_suite.heads.continuations.perplexity import measure_losses
from keras_bert_suite.heads.masks.masked_lm_head import make_masked_lm_head
from keras_bert_suite.heads.targets.decoding import write_dataset, write_rows
from keras_bert_suite.heads.targets.sampling import check_no_draws, choose_sampling
from keras_bert_suite.heads.targets.writing_task import WritingTask
from keras_bert_suite.models import BACKBONES
from keras_bert_suite.models.encoder import Encoder
from keras_bert_suite.runs.batches import choose_size, read


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class CausalLM(WritingTask):
    """A text encoder that reads from left to right and continues a text, as GPT does.

    A row is [CLS] text [SEP]. Each token sees itself and the tokens before it, and predicts the
    next one. The head is that for masked tokens, so all weights are those of a BERT.

    `fit` and `evaluate` take texts without labels: in memory, or datasets of batches. A corpus that
    does not fit in memory is read by `PretrainingBatches` with `NextTokenTargets`, for this task or
    for a `Pretrainer`, whose preset opens as a `CausalLM`. `predict` takes texts and returns what
    follows them.

    Args:
        backbone: `BertBackbone` with `attention_pattern="left_to_right"`, or another backbone with
            `make_causal_decoder`.
        preprocessor: `SegmentPacker`, or None for packed arrays only.
        max_length: int, the maximum number of tokens that `predict` writes after a text, the last
            [SEP] included. The tokens of the text are not counted.
        sampler: how `predict` and an export choose tokens, as for `Seq2Seq`. `compile` may replace
            it, and `predict` can draw tokens by arguments of its own.
        input_names: the name of the texts; see `TextClassifier`.

    Raises:
        ValueError: if tokens of the backbone see later tokens; if `max_length` leaves no room for a
            text in the packer's `sequence_length` or the backbone's positions; and as the other
            tasks.

    Inputs, a dictionary: the inputs of the backbone, and `mask_positions`, int32 (B, P), the tokens
    that predict the next one. Outputs: float (B, P, V), logits.

    Example:
    ```python
    model = CausalLM.from_preset("path/to/checkpoint", sequence_length=128)
    model.fit(texts, epochs=3)
    model.predict("The film was", max_length=20, top_p=0.9, seed=1)   # " a gripping story ..."
    model.score(other_texts)["perplexity"]
    ```

    Source: Radford et al., 2018, "Improving language understanding by generative pre-training".
    """

    HEAD = continuations.HEAD
    attention_pattern = "left_to_right"

    max_length = part_attribute("data", "max_length")
    target_rows = part_attribute("data", "target_rows")

    def __init__(
        self,
        backbone: keras_hub.models.Backbone,
        *,
        preprocessor: keras.layers.Layer | None = None,
        max_length: int = 32,
        sampler: Any = "greedy",
        input_names: Sequence[str] | None = None,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_integer("max_length", max_length, at_least=1)
        self.set_sampler(sampler)

        # === Layers ===
        self.backbone = backbone
        self.masked_lm = make_masked_lm_head(backbone)
        if not hasattr(backbone, "make_causal_decoder"):
            raise ValueError(
                "A CausalLM needs a BertBackbone with attention_pattern='left_to_right', or "
                f"another backbone with `make_causal_decoder`, got {with_article(backbone)}."
            )
        self.decoder = backbone.make_causal_decoder(self.masked_lm)

        # === Functional Model ===
        self.unused_paths = Encoder.of(self.decoder.encoder).find_unused(transformed=True)
        inputs, logits = self.decoder.connect()

        # === Data and Answers ===
        self.make_parts(
            preprocessor,
            EncoderInputs.of(self.decoder.encoder),
            backbone=backbone,
            max_length=max_length,
            input_names=input_names,
        )
        super().__init__(inputs=inputs, outputs=logits, **kwargs)

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        if not hasattr(BACKBONES[checkpoint.model_type.backbone], "make_causal_decoder"):
            raise ValueError(
                f"{checkpoint.path} holds weights of {checkpoint.model_type.title}, which cannot "
                "read from left to right alone. Load a checkpoint of a BERT."
            )
        return super().arguments_of(checkpoint, arguments)

    def predict(
        self,
        x: Inputs = None,
        batch_size: int | None = None,
        steps: int | None = None,
        *,
        max_length: int | None = None,
        stop: str | Sequence[str] | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        temperature: float | None = None,
        seed: int | None = None,
        **kwargs: Any,
    ) -> Any:
        """Continues each text, until [SEP] or `max_length`.

        The answer has the space that stands before it: `text + model.predict(text)`.

        Args:
            x: texts: a list, an array or a pandas Series, a dataset of batches of them, or a single
                str. Or packed arrays by name, with `mask_positions`.
            batch_size, steps: as for `Task.predict`.
            max_length: int, the maximum number of tokens that are written, the last [SEP] included.
                A text has the rest of the packer's `sequence_length`, and loses its beginning if it
                is longer. None is the task's `max_length`.
            stop: str or list of str. The answer ends before the first of them in it.
            top_k, top_p, temperature, seed: as for `Seq2Seq.predict`. With any of them, tokens are
                drawn at random.
            **kwargs: `verbose` and `callbacks` of Keras, for packed arrays only.

        Returns:
            list of str, or str for a single text. For packed arrays the logits, float (N, P, V).

        Raises:
            ValueError: if there is no preprocessor, or text and continuation have no room in the
                packer's `sequence_length` or the backbone's positions; if `batch_size` is no
                integer of at least 1; if an argument of the draws is out of its range, or the
                sampler is a beam search.
            TypeError: for further arguments.
        """
        self.check_predict_arguments(kwargs)
        sampling = choose_sampling(self.sampler, top_k, top_p, temperature, seed)
        length = self.max_length if max_length is None else max_length
        check_integer("max_length", length, at_least=1)
        stops = list_stops(stop)
        if is_dataset(x):
            answers = write_dataset(self, x, steps, length, sampling=sampling)
        else:
            rows = read(self, [x] if isinstance(x, str) else x)
            if rows.is_packed:
                check_no_draws(sampling)
                return super().predict(x, batch_size, steps, **kwargs)
            answers = write_rows(self, rows, batch_size, steps, length, sampling=sampling)
        if isinstance(answers, list):
            answers = [cut_at(answer, stops) for answer in answers]
        return answers[0] if isinstance(x, str) else answers

    def perplexity(self, texts: Inputs, batch_size: int | None = None) -> np.ndarray:
        """The perplexity of each text: the exponential of the mean of -log(probability).

        The mean is over the tokens of the text and the [SEP] at its end.

        Args:
            texts: list of str. A text that is longer than `sequence_length` is cut.
            batch_size: int, 32 by default.

        Returns:
            float64 (N,), at least 1.

        Raises:
            ValueError: for packed arrays, or if `batch_size` is no integer of at least 1.
        """
        check_in_memory(texts)
        losses, counts = measure_losses(self, texts, choose_size(batch_size))
        return np.exp(losses / counts)

    def score(self, x: Inputs, batch_size: int | None = None) -> dict[str, float]:
        """Scores the model by the perplexity of a corpus.

        Args:
            x: texts in memory, as for `perplexity`.
            batch_size: int, 32 by default.

        Returns:
            dict: `perplexity`, the exponential of the loss of all tokens together; `loss`, its
            logarithm; `tokens`, how many tokens were predicted; `rows`.

        Raises:
            ValueError: for packed arrays, for no texts, or as `fit`.
        """
        check_in_memory(x)
        losses, counts = measure_losses(self, x, choose_size(batch_size))
        if not len(counts):
            raise ValueError("A score needs at least one text, got none.")
        loss = float(losses.sum() / counts.sum())
        perplexity = float(np.exp(loss))
        tokens = int(counts.sum())
        return {"perplexity": perplexity, "loss": loss, "tokens": tokens, "rows": len(counts)}

    def generate(self, inputs: Inputs, max_length: int | None = None, **kwargs: Any) -> Any:
        """KerasHub's name of `predict`, which does not count the tokens of the text, either."""
        return self.predict(inputs, max_length=max_length, **kwargs)
