"""Tables of the names of our weights in the checkpoints of other libraries.

A row is (our path, their name, transform). `{i}` and `{j}` stand for the numbers of a layer. Every
transform is its own inverse, so a row serves both loading and saving.
"""

import re
from dataclasses import dataclass, replace

import numpy as np


def same(tensor):
    """The transform of tensors that are stored as in Keras."""
    return tensor


def transposed(tensor):
    """The transform of kernels that are stored as (output, input), as in PyTorch."""
    return np.transpose(tensor)


@dataclass(frozen=True)
class NameTable:
    """The names of one kind of checkpoint.

    Args:
        rows: tuple of (our path, their name, transform).
        aliases: tuple of (pattern, replacement). Each is applied in turn to the names in a file.
            Afterwards the names are spelled as in `rows`.
        ignored: tuple of patterns of names in a file that our models do not need.
        optional: tuple of patterns of our paths. A file may lack the tensors of all paths that
            match one pattern, but not some of them.
        heads: tuple of patterns of our paths of heads. A file may have heads that a model lacks.
        copies: tuple of (their name, their name of the tensor that it must equal, pattern of our
            paths). Our model has one weight for both tensors. They must be equal if the model has
            a path that matches the pattern.
    """

    rows: tuple
    aliases: tuple = ()
    ignored: tuple = ()
    optional: tuple = ()
    heads: tuple = ()
    copies: tuple = ()

    def their_name(self, path):
        """Their (name, transform) for our weight at `path`, or None if it has no row."""
        return _translate(path, ((ours, theirs, how) for ours, theirs, how in self.rows))

    def our_path(self, name):
        """Our (path, transform) for their tensor `name`, or None if it has no row."""
        return _translate(name, ((theirs, ours, how) for ours, theirs, how in self.rows))

    def spell(self, name):
        """The spelling in `rows` of a name in a file."""
        for pattern, replacement in self.aliases:
            name = re.sub(pattern, replacement, name)
        return name


def part_of(name):
    """The part of a model that a tensor belongs to: its encoder, or one of its heads.

    >>> part_of("bert.encoder.layer.0.output.dense.bias"), part_of("cls/predictions/output_bias")
    ('bert', 'cls/predictions')
    """
    return re.match(r"cls[./][^./]*|[^./]*", name).group()


def matches_any(name, patterns):
    """Whether one of the regular expressions matches the whole name."""
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def _translate(name, rows):
    for source, target, transform in rows:
        pattern = re.sub(r"\\{([ij])\\}", r"(?P<\1>\\d+)", re.escape(source))
        match = re.fullmatch(pattern, name)
        if match:
            return target.format(**match.groupdict()), transform
    return None


def within(ours, theirs, rows):
    """The rows with the prefix `ours` before our paths, and `theirs` before their names."""
    return tuple((ours + path, theirs + name, transform) for path, name, transform in rows)


#: Parts that a file may lack. A model that has such a part keeps its values.
OPTIONAL = (
    *(r"pooler/.*", r"masked_lm/.*", r"next_sentence/.*"),
    *(r"span_labeler/.*", r"choice_scorer/.*", r"replaced_tokens/.*"),
)

#: Parts that a model may lack.
HEADS = (
    *(r"classifier/.*", r"token_classifier/.*", r"span_labeler/.*", r"choice_scorer/.*"),
    *(r"masked_lm/.*", r"next_sentence/.*", r"replaced_tokens/.*"),
)

GOOGLE_TF1 = NameTable(
    rows=(
        *within(
            "embeddings/",
            "bert/embeddings/",
            (
                ("token_embedding/embeddings", "word_embeddings", same),
                ("position_embedding/embeddings", "position_embeddings", same),
                ("segment_embedding/embeddings", "token_type_embeddings", same),
                ("layer_norm/gamma", "LayerNorm/gamma", same),
                ("layer_norm/beta", "LayerNorm/beta", same),
            ),
        ),
        # bert4keras has these tensors if embeddings and hidden states differ in width.
        ("embeddings/projection/kernel", "bert/encoder/embedding_hidden_mapping_in/kernel", same),
        ("embeddings/projection/bias", "bert/encoder/embedding_hidden_mapping_in/bias", same),
        *within(
            "transformer_layer_{i}/",
            "bert/encoder/layer_{i}/",
            (
                ("self_attention/query/kernel", "attention/self/query/kernel", same),
                ("self_attention/query/bias", "attention/self/query/bias", same),
                ("self_attention/key/kernel", "attention/self/key/kernel", same),
                ("self_attention/key/bias", "attention/self/key/bias", same),
                ("self_attention/value/kernel", "attention/self/value/kernel", same),
                ("self_attention/value/bias", "attention/self/value/bias", same),
                ("self_attention/output_projection/kernel", "attention/output/dense/kernel", same),
                ("self_attention/output_projection/bias", "attention/output/dense/bias", same),
                ("self_attention_norm/gamma", "attention/output/LayerNorm/gamma", same),
                ("self_attention_norm/beta", "attention/output/LayerNorm/beta", same),
                ("intermediate/kernel", "intermediate/dense/kernel", same),
                ("intermediate/bias", "intermediate/dense/bias", same),
                ("feedforward_output/kernel", "output/dense/kernel", same),
                ("feedforward_output/bias", "output/dense/bias", same),
                ("feedforward_norm/gamma", "output/LayerNorm/gamma", same),
                ("feedforward_norm/beta", "output/LayerNorm/beta", same),
            ),
        ),
        ("pooler/kernel", "bert/pooler/dense/kernel", same),
        ("pooler/bias", "bert/pooler/dense/bias", same),
        ("masked_lm/transform/kernel", "cls/predictions/transform/dense/kernel", same),
        ("masked_lm/transform/bias", "cls/predictions/transform/dense/bias", same),
        ("masked_lm/layer_norm/gamma", "cls/predictions/transform/LayerNorm/gamma", same),
        ("masked_lm/layer_norm/beta", "cls/predictions/transform/LayerNorm/beta", same),
        ("masked_lm/bias", "cls/predictions/output_bias", same),
        ("next_sentence/kernel", "cls/seq_relationship/output_weights", transposed),
        ("next_sentence/bias", "cls/seq_relationship/output_bias", same),
        ("span_labeler/kernel", "cls/squad/output_weights", transposed),
        ("span_labeler/bias", "cls/squad/output_bias", same),
        # run_classifier.py writes its head at the root.
        ("classifier/kernel", "output_weights", transposed),
        ("classifier/bias", "output_bias", same),
    ),
    ignored=(  # states of optimizers
        r"(.*/)?((adam|lamb)_[mv]|(Adam|LAMB)(_1)?)",
        r"global_step|beta[12]_power|loss_scale|good_steps",
    ),
    optional=OPTIONAL,
    heads=HEADS,
)


def hugging_face_encoder(model):
    """The rows of an encoder. Hugging Face puts the name of the model, such as "bert", first."""
    return (
        *within(
            "embeddings/",
            f"{model}.embeddings.",
            (
                ("token_embedding/embeddings", "word_embeddings.weight", same),
                ("position_embedding/embeddings", "position_embeddings.weight", same),
                ("segment_embedding/embeddings", "token_type_embeddings.weight", same),
                ("layer_norm/gamma", "LayerNorm.weight", same),
                ("layer_norm/beta", "LayerNorm.bias", same),
            ),
        ),
        *within(
            "transformer_layer_{i}/",
            model + ".encoder.layer.{i}.",
            (
                ("self_attention/query/kernel", "attention.self.query.weight", transposed),
                ("self_attention/query/bias", "attention.self.query.bias", same),
                ("self_attention/key/kernel", "attention.self.key.weight", transposed),
                ("self_attention/key/bias", "attention.self.key.bias", same),
                ("self_attention/value/kernel", "attention.self.value.weight", transposed),
                ("self_attention/value/bias", "attention.self.value.bias", same),
                (
                    "self_attention/output_projection/kernel",
                    "attention.output.dense.weight",
                    transposed,
                ),
                ("self_attention/output_projection/bias", "attention.output.dense.bias", same),
                ("self_attention_norm/gamma", "attention.output.LayerNorm.weight", same),
                ("self_attention_norm/beta", "attention.output.LayerNorm.bias", same),
                ("intermediate/kernel", "intermediate.dense.weight", transposed),
                ("intermediate/bias", "intermediate.dense.bias", same),
                ("feedforward_output/kernel", "output.dense.weight", transposed),
                ("feedforward_output/bias", "output.dense.bias", same),
                ("feedforward_norm/gamma", "output.LayerNorm.weight", same),
                ("feedforward_norm/beta", "output.LayerNorm.bias", same),
            ),
        ),
        ("pooler/kernel", f"{model}.pooler.dense.weight", transposed),
        ("pooler/bias", f"{model}.pooler.dense.bias", same),
    )


def hugging_face_aliases(model):
    """The aliases of the names of an encoder that Hugging Face calls `model`."""
    return (
        # PyTorch's DataParallel puts a prefix before all names. The names of an encoder that was
        # saved by itself have no prefix. Files of 2018 name norms as Google did.
        (r"^module\.", ""),
        (r"^(embeddings|encoder|pooler)\.", rf"{model}.\1."),
        (r"LayerNorm\.gamma$", "LayerNorm.weight"),
        (r"LayerNorm\.beta$", "LayerNorm.bias"),
    )


HUGGING_FACE = NameTable(
    rows=(
        *hugging_face_encoder("bert"),
        ("masked_lm/transform/kernel", "cls.predictions.transform.dense.weight", transposed),
        ("masked_lm/transform/bias", "cls.predictions.transform.dense.bias", same),
        ("masked_lm/layer_norm/gamma", "cls.predictions.transform.LayerNorm.weight", same),
        ("masked_lm/layer_norm/beta", "cls.predictions.transform.LayerNorm.bias", same),
        ("masked_lm/bias", "cls.predictions.bias", same),
        ("next_sentence/kernel", "cls.seq_relationship.weight", transposed),
        ("next_sentence/bias", "cls.seq_relationship.bias", same),
        ("classifier/kernel", "classifier.weight", transposed),
        ("classifier/bias", "classifier.bias", same),
        # The heads for texts, tokens and choices have the same name. A checkpoint has one of them.
        ("token_classifier/kernel", "classifier.weight", transposed),
        ("token_classifier/bias", "classifier.bias", same),
        ("choice_scorer/kernel", "classifier.weight", transposed),
        ("choice_scorer/bias", "classifier.bias", same),
        ("span_labeler/kernel", "qa_outputs.weight", transposed),
        ("span_labeler/bias", "qa_outputs.bias", same),
    ),
    aliases=hugging_face_aliases("bert"),
    ignored=(r"bert\.embeddings\.(position_ids|token_type_ids)",),
    optional=OPTIONAL,
    heads=HEADS,
    copies=(
        (
            "cls.predictions.decoder.weight",
            "bert.embeddings.word_embeddings.weight",
            r"masked_lm/.*",
        ),
        ("cls.predictions.decoder.bias", "cls.predictions.bias", r"masked_lm/.*"),
    ),
)

#: The names in RobertaModel, RobertaForMaskedLM, RobertaForTokenClassification,
#: RobertaForQuestionAnswering and RobertaForMultipleChoice.
ROBERTA = NameTable(
    rows=(
        *hugging_face_encoder("roberta"),
        ("masked_lm/transform/kernel", "lm_head.dense.weight", transposed),
        ("masked_lm/transform/bias", "lm_head.dense.bias", same),
        ("masked_lm/layer_norm/gamma", "lm_head.layer_norm.weight", same),
        ("masked_lm/layer_norm/beta", "lm_head.layer_norm.bias", same),
        ("masked_lm/bias", "lm_head.bias", same),
        ("token_classifier/kernel", "classifier.weight", transposed),
        ("token_classifier/bias", "classifier.bias", same),
        ("choice_scorer/kernel", "classifier.weight", transposed),
        ("choice_scorer/bias", "classifier.bias", same),
        ("span_labeler/kernel", "qa_outputs.weight", transposed),
        ("span_labeler/bias", "qa_outputs.bias", same),
    ),
    aliases=hugging_face_aliases("roberta"),
    ignored=(r"roberta\.embeddings\.(position_ids|token_type_ids)",),
    optional=tuple(pattern for pattern in OPTIONAL if pattern != r"next_sentence/.*"),
    heads=HEADS,
    copies=(
        ("lm_head.decoder.weight", "roberta.embeddings.word_embeddings.weight", r"masked_lm/.*"),
        ("lm_head.decoder.bias", "lm_head.bias", r"masked_lm/.*"),
    ),
)

#: The names in RobertaForSequenceClassification. Its head has two layers; the first is our pooler.
ROBERTA_CLASSIFIER = replace(
    ROBERTA,
    rows=(
        *(
            row
            for row in ROBERTA.rows
            if not row[0].startswith(("pooler/", "token_classifier/", "choice_scorer/"))
        ),
        ("pooler/kernel", "classifier.dense.weight", transposed),
        ("pooler/bias", "classifier.dense.bias", same),
        ("classifier/kernel", "classifier.out_proj.weight", transposed),
        ("classifier/bias", "classifier.out_proj.bias", same),
    ),
)
