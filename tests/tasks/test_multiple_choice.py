import keras
import keras_hub
import numpy as np
import pandas
import pytest
import scipy.special
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    LinearWarmupDecay,
    MultipleChoice,
    SegmentPacker,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import save_hugging_face

NUM_CHOICES = 3


def make_rows(num_rows):
    """The right ending is the one with "good"."""
    prompts = make_reviews(num_rows, seed=1)[0]
    rng = np.random.default_rng(0)
    labels = rng.integers(0, NUM_CHOICES, num_rows)
    texts = [text.replace("good", "bad") for text in make_reviews(num_rows * NUM_CHOICES)[0]]
    endings = [texts[NUM_CHOICES * row : NUM_CHOICES * (row + 1)] for row in range(num_rows)]
    for row, label in zip(endings, labels, strict=True):
        row[label] = f"good {row[label]}"
    return (prompts, endings), labels


ROWS, LABELS = make_rows(48)


def make_chooser(**kwargs):
    # One length, so that JAX compiles each step once.
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 28, padding_lengths=(28,))
    return MultipleChoice(BertBackbone(**ONE_LAYER), preprocessor=packer, **kwargs)


@pytest.fixture(scope="module")
def chooser():
    keras.utils.set_random_seed(0)
    chooser = make_chooser()
    chooser.compile(AdamW(LinearWarmupDecay(5e-3)))
    chooser.history_of_fit = chooser.fit(
        ROWS, LABELS, batch_size=8, epochs=12, validation_split=0.25, verbose=0
    ).history
    return chooser


def test_it_learns(chooser):
    assert set(chooser.history_of_fit) == {"accuracy", "loss", "val_accuracy", "val_loss"}
    loss, accuracy = chooser.evaluate(ROWS, LABELS, verbose=0)
    assert accuracy > 0.9
    logits = chooser.predict(ROWS, verbose=0)
    assert logits.shape == (48, NUM_CHOICES) and logits.dtype == "float32"
    assert np.mean(logits.argmax(axis=-1) == LABELS) == pytest.approx(accuracy)


def test_each_ending_is_a_pair_with_its_prompt(chooser):
    """The scores of a row are those of its pairs by themselves."""
    wanted = chooser.predict(ROWS, verbose=0)
    prompts, endings = ROWS
    for choice in range(NUM_CHOICES):
        alone = chooser.predict((prompts, [[row[choice]] for row in endings]), verbose=0)
        np.testing.assert_allclose(alone[:, 0], wanted[:, choice], atol=1e-5)


def test_rows_with_different_numbers_of_endings(chooser):
    """Scores, probabilities and the loss are those of each row alone."""
    prompts, endings = ROWS[0][:4], [ROWS[1][0], ROWS[1][1][:1], ["", *ROWS[1][2][:1]], ROWS[1][3]]
    labels = [2, 0, 1, 0]
    alone = [((prompts[i : i + 1], endings[i : i + 1]), labels[i : i + 1]) for i in range(4)]
    scores = chooser.predict((prompts, endings), verbose=0)
    shares = chooser.predict_probabilities((prompts, endings), batch_size=2, verbose=0)
    for (row, _), found, share in zip(alone, scores, shares, strict=True):
        (wanted,) = chooser.predict(row, verbose=0)
        np.testing.assert_allclose(found, wanted, atol=1e-5)
        np.testing.assert_allclose(share, scipy.special.softmax(wanted), atol=1e-5)
    losses = [chooser.evaluate(*row, verbose=0)[0] for row in alone]
    loss, _ = chooser.evaluate((prompts, endings), labels, verbose=0)
    assert loss == pytest.approx(np.mean(losses), abs=1e-5)
    before = chooser.get_weights()
    assert np.isfinite(chooser.fit((prompts, endings), labels, verbose=0).history["loss"]).all()
    assert all(np.isfinite(weight).all() for weight in chooser.get_weights())
    chooser.set_weights(before)


def test_every_form_of_rows(chooser):
    wanted = chooser.predict(ROWS, verbose=0)
    table = pandas.DataFrame({"endings": ROWS[1], "prompt": ROWS[0]})
    for x in (table, dict(table), (np.array(ROWS[0]), np.array(ROWS[1]))):
        np.testing.assert_allclose(chooser.predict(x, batch_size=8, verbose=0), wanted, atol=1e-5)
    packed = chooser.data.pack(chooser.data.read(ROWS))[0]
    assert packed["token_ids"].shape == (48, NUM_CHOICES, 28)
    np.testing.assert_allclose(chooser.predict(packed, verbose=0), wanted, atol=1e-5)
    scores = chooser.evaluate(ROWS, LABELS, verbose=0)
    assert chooser.evaluate(packed, LABELS, verbose=0) == pytest.approx(scores, abs=1e-5)


def test_datasets(chooser):
    import torch

    scores = chooser.evaluate(ROWS, LABELS, verbose=0)
    wanted = chooser.predict(ROWS, verbose=0)
    rows = [((p, tuple(e)), y) for p, e, y in zip(*ROWS, LABELS, strict=True)]
    batches = [
        ((ROWS[0][i : i + 8], ROWS[1][i : i + 8]), LABELS[i : i + 8]) for i in range(0, 48, 8)
    ]

    def collate(rows):
        columns = ([prompt for (prompt, _), _ in rows], [endings for (_, endings), _ in rows])
        return columns, [label for _, label in rows]

    loader = torch.utils.data.DataLoader(rows, 8, collate_fn=collate)
    datasets = [loader, (batch for batch in batches)]
    if keras.config.backend() == "tensorflow":
        tf = pytest.importorskip("tensorflow")
        columns = {"prompt": ROWS[0], "endings": ROWS[1]}
        datasets.append(tf.data.Dataset.from_tensor_slices((columns, LABELS)).batch(8))
    for dataset in datasets:
        got = chooser.evaluate(dataset, steps=6, verbose=0)
        assert got == pytest.approx(scores, abs=1e-4)
    inputs = ((x,) for x, _ in batches)
    np.testing.assert_allclose(chooser.predict(inputs, steps=6, verbose=0), wanted, atol=1e-5)
    before = chooser.get_weights()
    assert np.isfinite(chooser.fit(loader, verbose=0).history["loss"]).all()
    chooser.set_weights(before)


def test_a_batch_that_pytorch_has_transposed(chooser):
    import torch

    num_endings = len(ROWS[1][0])
    names = ("prompt", "endings")
    rows = list(zip(*ROWS, strict=True))
    for samples in (rows, [dict(zip(names, row, strict=True)) for row in rows]):
        # As many rows as endings, so that no number would show the mistake.
        loader = torch.utils.data.DataLoader([(x, 0) for x in samples], batch_size=num_endings)
        with pytest.raises(ValueError, match="another `collate_fn`"):
            chooser.evaluate(loader, verbose=0)


def test_a_checkpoint_of_hugging_face(chooser, tmp_path):
    save_hugging_face(chooser, tmp_path / "hf")
    twin = MultipleChoice.from_preset(tmp_path / "hf", sequence_length=28)
    assert twin.dropout == chooser.dropout
    wanted = chooser.predict(ROWS, verbose=0)
    np.testing.assert_allclose(twin.predict(ROWS, verbose=0), wanted, atol=1e-5)


def test_checkpoints_without_this_head(chooser, tmp_path):
    save_hugging_face(chooser.backbone, tmp_path / "hf", chooser.preprocessor.tokenizer)
    with pytest.warns(UserWarning, match="no weights for choice_scorer.* Train them"):
        MultipleChoice.from_preset(tmp_path / "hf")


def test_any_kerashub_encoder():
    backbone = keras_hub.models.DistilBertBackbone(
        vocabulary_size=len(VOCABULARY), num_layers=1, num_heads=2, hidden_dim=8, intermediate_dim=8
    )
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 28, padding_lengths=(28,))
    chooser = MultipleChoice(backbone, preprocessor=packer)
    rows = (ROWS[0][:8], ROWS[1][:8])
    chooser.fit(rows, LABELS[:8], verbose=0)
    assert chooser.predict(rows, verbose=0).shape == (8, NUM_CHOICES)


@pytest.mark.parametrize(
    ("x", "y", "error"),
    [
        ((["a", "b"], [["c", "d"], ["e"]]), [0, 1], "an integer from 0 to 0, got 1 at row 1"),
        ((["a"], [["c", "d"]]), [2], "an integer from 0 to 1, got .*2"),
        ((["a"], [["c", "d"]]), [-1], "an integer from 0 to 1, got .*-1"),
        ((["a"], [["c", "d"]]), [0.5], "got float64"),
        ((["a"], [["c", "d"]]), ["c"], "index of the right ending for each of 1 rows"),
        ((["a"], ["c"]), [0], "Row 0 of 'endings' is 'c', wanted a list"),
        ((["a"], [[]]), [0], "Row 0 of 'endings' is"),
        ((["a"], [["c", None]]), [0], "at row 0 of 'endings'"),
        ((["a", "b"], [["c", "d"]]), [0, 1], "the same number of rows, got 2 and 1"),
        (["a"], [0], "Wanted a tuple of two columns"),
        ({"prompt": ["a"], "choices": [["b"]]}, [0], "got prompt of the shape"),
        ((["a"], [["c", "d"]]), None, "a label for each row"),
        (([], []), [], "at least one row"),
    ],
)
def test_wrong_input_takes_no_step(chooser, x, y, error):
    before = chooser.get_weights()
    with pytest.raises(ValueError, match=error):
        chooser.fit(x, y, verbose=0)
    assert all(map(np.array_equal, before, chooser.get_weights()))


def test_scores_in_float32_under_the_policy_of_the_process():
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        chooser = make_chooser()
    finally:
        keras.config.set_dtype_policy("float32")
    assert chooser.backbone.compute_dtype == "bfloat16"
    assert chooser.predict(ROWS, verbose=0).dtype == "float32"
    assert {tensor.dtype for tensor in chooser.input.values()} == {"int32"}
