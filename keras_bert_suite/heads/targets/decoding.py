"""Writes targets token by token, by a decoder and a sampler."""

import itertools
from typing import Any

import keras
import keras_hub
import numpy as np
from keras import ops

from keras_bert_suite.annotations import Tensor
from keras_bert_suite.argument_checks import with_article
from keras_bert_suite.data.passes import read_batches
from keras_bert_suite.heads.targets.beam_search import BeamSearch
from keras_bert_suite.heads.targets.choice_search import ChoiceSearch, choose_most_probable
from keras_bert_suite.heads.targets.sampling import check_no_draws, draw_next
from keras_bert_suite.heads.targets.writing_rules import NO_RULES, WritingRules, score_only
from keras_bert_suite.layers.eager_pass import eager_pass
from keras_bert_suite.models.decoder import Decoder
from keras_bert_suite.preprocessing.packing import NUMPY
from keras_bert_suite.runs.batches import choose_size
from keras_bert_suite.runs.weight_lock import lock_weights


def find_decoder(backbone: keras_hub.models.Backbone, head: keras.layers.Layer) -> Decoder:
    """The `Decoder` of a backbone with a head on its token embedding."""
    if not hasattr(backbone, "make_decoder"):
        raise ValueError(
            "A Seq2Seq needs a BertBackbone with attention_pattern='seq2seq', or another backbone "
            f"with `make_decoder`, got {with_article(backbone)}."
        )
    return backbone.make_decoder(head)


def get_sampler(sampler: Any) -> keras_hub.samplers.Sampler:
    """The sampler of a name, a configuration or a sampler.

    "top_p" is nucleus sampling with p = 0.9. KerasHub's default, 0.1, nearly always draws the most
    probable token.
    """
    if sampler == "top_p":
        return keras_hub.samplers.TopPSampler(p=0.9)
    found = keras_hub.samplers.get(sampler)
    if not isinstance(found, keras_hub.samplers.Sampler):
        raise ValueError(
            f"sampler must be 'greedy', 'beam', 'top_k', 'top_p', 'random' or a sampler of "
            f"KerasHub, got {sampler!r}."
        )
    return found


def write_rows(task, rows, batch_size, steps, max_target_length, rules=NO_RULES, sampling=None):
    """list of str, a target for each of the `Rows` of sources; see `Seq2Seq.predict`.

    `rules` are `WritingRules`. `sampling` is a `Sampling`; None for the sampler of the task.
    """
    size = choose_size(batch_size)
    if steps is not None:
        rows = rows.take(slice(steps * size))
    # Sources of similar length share a batch.
    order = np.argsort(-task.data.lengths(rows), kind="stable")
    targets = [""] * len(rows)
    for start in range(0, len(rows), size):
        numbers = order[start : start + size]
        draws = sampling and sampling.make_inputs(numbers, max_target_length)
        texts = _write_texts(task, rows.take(numbers), max_target_length, rules, draws)
        for number, text in zip(numbers, texts, strict=True):
            targets[number] = text
    return targets


def write_dataset(task, dataset, steps, max_target_length, rules=NO_RULES, sampling=None):
    """The targets, or the logits, of the batches of a dataset; see `Seq2Seq.predict`."""
    answers = []
    for batch in itertools.islice(read_batches(dataset), steps):
        rows = task.data.read_batch(task.data.unpack(batch)[0])
        if rows.is_packed:
            check_no_draws(sampling)
            with lock_weights(task):
                answers.append(keras.Model.predict_on_batch(task, rows.inputs))
        else:
            numbers = len(answers) + np.arange(len(rows))
            draws = sampling and sampling.make_inputs(numbers, max_target_length)
            answers += _write_texts(task, rows, max_target_length, rules, draws)
    is_text = not answers or isinstance(answers[0], str)
    return answers if is_text else np.concatenate(answers)


def _write_texts(task, rows, max_target_length, rules, draws):
    """list of str, the targets of a batch of sources."""
    packed = task.data.pack_sources(rows.inputs[0], max_target_length)
    packed = task.data.add_columns(packed, rows.features)
    ids = write_ids(task, packed, max_target_length, rules, draws)
    return task.answers.detokenize(ids, task.preprocessor.tokenizer)


def write_ids(task, packed, max_target_length, rules=NO_RULES, draws=None):
    """int (B, 1 + T), the tokens of the targets of packed sources, with padding behind each end.

    The first column is the token that the decoder reads first. `draws` are as for `write_targets`.
    """
    tokenizer = task.preprocessor.tokenizer
    targets = np.full((len(packed["padding_mask"]), 1 + max_target_length), tokenizer.pad_token_id)
    targets[:, 0] = task.target_rows.find_first_tokens(NUMPY, packed)
    inputs = {"source": packed, "targets": targets.astype("int32")}
    if draws is not None:
        inputs["draws"] = draws
    inputs = keras.tree.map_structure(ops.convert_to_tensor, inputs)
    write = task.make_generate_function()
    with lock_weights(task), eager_pass(task, training=False, has_steps=True):
        written = write(inputs, stop_token_ids=(tokenizer.end_token_id, rules))
    return ops.convert_to_numpy(written)


def write_targets(
    task: Any,
    source: dict[str, Tensor],
    targets: Tensor,
    stop_token_id: int,
    rules: WritingRules = NO_RULES,
    draws: dict[str, Tensor] | None = None,
) -> Tensor:
    """Writes the targets of a batch of packed sources, int32 (B, L), until a stop token.

    The first column of `targets`, int32 (B, 1 + T), is the first token that the decoder reads. The
    result is `targets` filled in. Tokens are drawn by `draws`, see `draw_next`; with None the
    sampler of the task chooses them.
    """
    length = targets.shape[1] - 1
    state = task.decoder.start(source, length)
    state = state._replace(source=_keep_row_major(state.source))
    is_first = ops.arange(1 + length) == 0
    tokenizer = task.preprocessor.tokenizer
    pad_token_id, num_tokens = tokenizer.pad_token_id, tokenizer.vocabulary_size()
    sampler = _choose_search(task.sampler, draws, pad_token_id)
    if rules.length_penalty is not None:
        sampler = sampler.with_length_penalty(rules.length_penalty)

    def score_next(targets, cache, index):
        newest = ops.take(targets, index - 1, axis=1)
        before = state._replace(cache=cache, num_read=index - 1)
        logits, after = task.decoder.step(newest, before)
        if logits.shape[-1] > num_tokens:  # Some embeddings have more rows than there are tokens.
            is_token = ops.arange(logits.shape[-1]) < num_tokens
            logits = ops.where(is_token, ops.cast(logits, "float32"), -1e9)
        scores = ops.cast(logits, "float32")
        if isinstance(sampler, BeamSearch):  # The rules take no probability to other tokens.
            scores = ops.log_softmax(scores, axis=-1)
        scores = rules.apply(scores, targets, index, stop_token_id)
        if not isinstance(sampler, ChoiceSearch):
            has_ended = ops.any((targets == stop_token_id) & ~is_first, axis=1)
            scores = force_padding(scores, has_ended, pad_token_id)
        return scores, None, after.cache

    return sampler(
        next=score_next,
        prompt=targets,
        cache=state.cache,
        index=1,
        mask=ops.zeros_like(targets) + ops.cast(is_first, "int32"),
        stop_token_ids=(stop_token_id,),
        model=task,
    )


def _choose_search(
    sampler: Any, draws: dict[str, Tensor] | None, pad_token_id: int
) -> keras_hub.samplers.Sampler:
    """A `ChoiceSearch` that draws, or that does as a greedy sampler; else the sampler itself."""
    if draws is not None:
        return ChoiceSearch(lambda scores, index: draw_next(scores, draws, index - 1), pad_token_id)
    if type(sampler) is keras_hub.samplers.GreedySampler:
        return ChoiceSearch(choose_most_probable, pad_token_id)
    return sampler


def _keep_row_major(tensors: Any) -> Any:
    """A structure of tensors that a loop reads, in the order of their axes in memory.

    The keys and values of sources come from products whose axes were swapped since then. PyTorch
    multiplies such views four times slower for a single query. XLA hands them to a loop as they
    were computed, and on a CPU each step of the loop would copy them into the order that its
    products need. A flat tensor has one order, and the barrier keeps it flat.
    """
    backend = keras.config.backend()
    if backend == "torch":
        return keras.tree.map_structure(lambda x: x.contiguous(), tensors)
    if backend != "jax":
        return tensors
    import jax

    parts = keras.tree.flatten(tensors)
    flat = jax.lax.optimization_barrier([x.reshape(-1) for x in parts])
    shaped = [x.reshape(part.shape) for x, part in zip(flat, parts, strict=True)]
    return keras.tree.pack_sequence_as(tensors, shaped)


def force_padding(scores: Tensor, has_ended: Tensor, pad_token_id: int) -> Tensor:
    """float32 (B, V), scores by which a target that has ended continues with padding alone.

    A beam pays nothing for it.
    """
    forced = score_only(pad_token_id, scores.shape[-1], -1e9)
    return ops.where(has_ended[:, None], forced[None, :], scores)
