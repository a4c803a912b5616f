"""ELECTRA's pretraining task: a generator replaces tokens, and a discriminator finds them."""

import warnings
from typing import Any

import keras
import keras_hub
from keras import ops

from keras_bert_suite.annotations import Config, Tensor
from keras_bert_suite.argument_checks import check_integer, check_share, with_article
from keras_bert_suite.heads import pretraining
from keras_bert_suite.heads.base.task import Task
from keras_bert_suite.heads.masks.masked_lm_head import add_perplexity, make_masked_lm_head
from keras_bert_suite.heads.pretraining.pretrainer import Pretrainer
from keras_bert_suite.layers import ReplacedTokenHead, ReplacementSampler
from keras_bert_suite.layers.heads.replaced_tokens import write_tokens
from keras_bert_suite.models import ElectraBackbone
from keras_bert_suite.models.electra_generator import ElectraGenerator
from keras_bert_suite.training import (
    MaskedLMAccuracy,
    MaskedLMLoss,
    OutputForm,
    ReplacedTokenAccuracy,
    ReplacedTokenLoss,
    ReplacedTokenRecall,
)

#: The weight of the discriminator's loss; the generator's is 1. Lambda in the paper.
DISCRIMINATOR_WEIGHT = 50.0


@keras.saving.register_keras_serializable(package="keras_bert_suite")
class ElectraPretrainer(Task, keras_hub.models.Task):
    """A discriminator that learns which tokens of a text a generator has replaced.

    The generator guesses the masked tokens. Each masked token is replaced by a token that is drawn
    from the guesses. The discriminator predicts for every token whether it is the original. A drawn
    token that equals the original counts as the original. Both models train together, with shared
    embeddings. After pretraining, fine-tune the discriminator.

    Inputs, a dictionary: the inputs of the backbone, int32 (B, L), and `mask_positions`, int32
    (B, P). Outputs, a dictionary: `mlm`, the generator's logits (B, P, V); `rtd`, the
    discriminator's logits (B, L), positive for a token that was replaced; and `token_ids`,
    int32 (B, L), the input of the discriminator. Labels and sample weights: `mlm`, the original
    tokens int32 (B, P), and their weights float32 (B, P).

    `fit` takes the batches of `PretrainingBatches`, or any dataset of such batches. ELECTRA's code
    masks 85% of the chosen tokens, keeps the rest, and replaces no token at random:
    `TokenMasker(tokenizer, mask_token_rate=0.85, random_token_rate=0.0)`.

    Args:
        backbone: `ElectraBackbone`, the discriminator. The generator takes over its `remat`
            when the task is built, and whenever it is compiled.
        generator_width: float above 0, at most 1, the generator's share of the discriminator's
            attention heads and widths. The paper has 1/4 for the small and the large model and 1/3
            for the base model.
        preprocessor: `SegmentPacker` or None. Presets hold its tokenizer.
        seed: int from 0 to 2^31 - 1, of the tokens that are drawn. A draw depends only on the seed
            and on the number of the training step.

    Example:
    ```python
    pretrainer = ElectraPretrainer(ElectraBackbone.from_size("small", vocabulary_size=30522))
    pretrainer.compile(AdamW(LinearWarmupDecay(5e-4, total_steps=1_000_000)))
    pretrainer.fit(batches)
    pretrainer.backbone.save_to_preset("electra")
    checkpoints.save_hugging_face(pretrainer.discriminator, "electra_discriminator")
    ```

    Source: Clark et al., 2020 (https://arxiv.org/abs/2003.10555), and google-research/electra,
    run_pretraining.py.
    """

    backbone_cls = ElectraBackbone
    are_tokens = True
    HEAD = pretraining.ELECTRA_HEAD

    def __init__(
        self,
        backbone: ElectraBackbone,
        generator_width: float = 0.25,
        preprocessor: keras.layers.Layer | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> None:
        self.check_further_arguments(kwargs)
        check_share("generator_width", generator_width, positive=True)
        check_integer("seed", seed, below=2**31)
        if not isinstance(backbone, ElectraBackbone):
            raise ValueError(
                f"An ElectraPretrainer trains an ElectraBackbone, got {with_article(backbone)}. "
                "Build one with ElectraBackbone.from_size, or train with a Pretrainer."
            )

        # === Layers ===
        self.backbone = backbone
        self.generator = ElectraGenerator(backbone, generator_width)
        self.masked_lm = make_masked_lm_head(self.generator)
        self.sampler = ReplacementSampler(seed, name="sampler")
        self.replaced_tokens = ReplacedTokenHead(
            backbone.hidden_dim,
            backbone.activation,
            backbone.initializer_range,
            dtype=backbone.dtype_policy,
            name="replaced_tokens",
        )

        # === Functional Model ===
        inputs = dict(backbone.input)
        mask_positions = keras.Input(shape=(None,), dtype="int32", name="mask_positions")
        guesses = self.masked_lm(self.generator.encode_tokens_at(inputs, mask_positions))
        token_ids = self.sampler(inputs["token_ids"], mask_positions, guesses)
        encoded = backbone.encode_tokens({**inputs, "token_ids": token_ids})
        outputs = {"mlm": guesses, "rtd": self.replaced_tokens(encoded), "token_ids": token_ids}
        self.unused_paths = backbone.find_unused() | self.generator.find_unused()

        # === Data and Answers ===
        self.make_parts(preprocessor)
        super().__init__(
            inputs={**inputs, "mask_positions": mask_positions}, outputs=outputs, **kwargs
        )

        # === Config ===
        self.generator_width = generator_width
        self.seed = seed

    @classmethod
    def arguments_of(cls, checkpoint: Any, arguments: Config) -> tuple[Config, list[str]]:
        # A checkpoint holds a discriminator or a generator, and this is its discriminator.
        arguments, new_parts = super().arguments_of(checkpoint, arguments)
        warnings.warn(
            f"{checkpoint.path} holds one encoder, which is the discriminator here. The generator "
            "is new and random. Train it before you use its guesses.",
            stacklevel=4,
        )
        return arguments, ["generator/.*", "masked_lm/.*", *new_parts]

    @property
    def discriminator(self) -> keras.Model:
        """The discriminator with its head, which `save_hugging_face` writes.

        It has the inputs of the backbone. Its output has a logit for each token, float (B, L). A
        positive logit says that the token was replaced. It shares the weights of this task.
        """
        scores = self.replaced_tokens(self.backbone.encode_tokens())
        model = keras.Model(self.backbone.input, scores, name="discriminator")
        model.backbone, model.preprocessor = self.backbone, self.preprocessor
        return model

    def make_masked_lm(self) -> Pretrainer:
        """A copy of the generator with its head, which `save_hugging_face` writes."""
        backbone = self.generator.to_backbone()
        task = Pretrainer(backbone, next_sentence=False, preprocessor=self.preprocessor)
        task.masked_lm.set_weights(self.masked_lm.get_weights())
        return task

    def compile(
        self,
        optimizer: str | keras.optimizers.Optimizer = "auto",
        loss: Any = "auto",
        **kwargs: Any,
    ) -> None:
        """See `Task.compile`. The small model of the paper had the rate 5e-4."""
        self.generator.remat = self.backbone.remat
        super().compile(optimizer, loss, **kwargs)

    def make_loss(self) -> dict[str, Any]:
        """The means over the masked tokens, and over all tokens for the discriminator."""
        return {"mlm": MaskedLMLoss(), "rtd": ReplacedTokenLoss()}

    def make_metrics(self) -> dict[str, Any]:
        """`mlm_accuracy`, `rtd_accuracy` and `rtd_recall`, and the weights of the losses."""
        # Keras puts the name of the output before the metric's name.
        return {
            "loss_weights": {"mlm": 1.0, "rtd": DISCRIMINATOR_WEIGHT},
            "weighted_metrics": {
                "mlm": [MaskedLMAccuracy(name="accuracy")],
                "rtd": [ReplacedTokenAccuracy(name="accuracy"), ReplacedTokenRecall(name="recall")],
            },
        }

    def find_output_form(self, output: str | None = None) -> OutputForm:
        if output == "rtd":
            return OutputForm("label sets", size=1, are_tokens=True)
        return super().find_output_form(output)

    def relabel(self, x: Any, y: Any, y_pred: Any, sample_weight: Any) -> tuple[Any, ...]:
        """Makes the labels of the discriminator: 1 for a token that is not the original."""
        seen, positions = y_pred["token_ids"], x["mask_positions"]
        replaced = ops.not_equal(seen, write_tokens(seen, positions, y["mlm"]))
        predictions = ops.ones_like(positions, dtype="float32")
        if sample_weight is not None:
            predictions = sample_weight["mlm"]
        return (
            {"mlm": y["mlm"], "rtd": ops.cast(replaced, "float32")},
            {"mlm": y_pred["mlm"], "rtd": y_pred["rtd"]},
            {"mlm": predictions, "rtd": ops.cast(x["padding_mask"] > 0, "float32")},
        )

    def get_metrics_result(self) -> dict[str, Tensor]:
        """dict of the metrics, with `perplexity`."""
        results = super().get_metrics_result()
        return add_perplexity(results) if "mlm_loss" in results else results
