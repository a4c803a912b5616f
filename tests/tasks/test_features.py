"""Columns beside the texts: pandas encodes them alike, and every way to a task reads them."""

import re
import warnings

import grain
import keras
import numpy as np
import pandas as pd
import pytest
from small_tasks import assert_close
from small_texts import ONE_LAYER, VOCABULARY, make_reviews
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face, save_keras_hub
from keras_bert_suite.heads.base.feature_columns import MOST_CATEGORIES
from keras_bert_suite.heads.base.features import Features

TEXTS, LABELS = make_reviews(12)
#: Each column has a missing value, and the shop a category that is not listed.
TABLE = pd.DataFrame(
    {
        "price": [3.0, None, *np.linspace(-1e6, 5e6, 10)],
        "text": TEXTS,
        "shop": ["a", "b", "c", None, *"ababbaab"],
        "year": [2020, 2021, None, *[2019] * 9],
        "is_new": [True, False, None, *[True] * 9],
    }
)
KINDS = {"price": "number", "shop": ["a", "b"], "year": "category", "is_new": "boolean"}
SETS = np.array([["good" in text, "bad" in text] for text in TEXTS], "float32")
NUMBERS = np.array([len(text.split()) / 4 for text in TEXTS], "float32")
YES_NO = {"label_names": ["no", "yes"]}

#: class and arguments of a task -> its labels.
TASKS = {
    "classes": (kbs.TextClassifier, YES_NO, LABELS),
    "sets": (
        kbs.TextClassifier,
        {"num_classes": 2, "problem_type": "multi_label_classification"},
        SETS,
    ),
    "numbers": (kbs.TextClassifier, {"num_classes": 1, "problem_type": "regression"}, NUMBERS),
    "documents": (kbs.DocumentClassifier, {**YES_NO, "training_windows": 2}, LABELS),
}


def make_task(name, features=KINDS, dtype=None):
    cls, arguments, labels = TASKS[name]
    keras.utils.set_random_seed(0)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16, padding_lengths=(16,))
    backbone = kbs.BertBackbone(**{**ONE_LAYER, "dropout": 0.0}, dtype=dtype)
    task = cls(backbone, preprocessor=packer, features=features, **arguments)
    task.compile()
    return task, labels


def randomize(task):
    """A new feature layer is 0, so that no column is seen."""
    kernel = task.feature_layer.kernel
    kernel.assign(np.random.default_rng(0).normal(size=kernel.shape))


def learned():
    features = Features.of(KINDS)
    _, columns = features.split(TABLE)
    features.learn(columns)
    return features, columns


def encode_by_pandas(table):
    """float (N, D): the columns by their names, missing values last, categories as dummies."""
    price = table["price"]
    is_new = table["is_new"].map(lambda value: np.nan if pd.isna(value) else float(value))
    z = (price - TABLE["price"].mean()) / TABLE["price"].std(ddof=0)
    years = [*map(str, sorted(TABLE["year"].dropna().astype(int).unique()))]
    parts = [pd.DataFrame({"value": is_new.fillna(0), "missing": is_new.isna()})]
    parts.append(pd.DataFrame({"value": z.fillna(0), "missing": price.isna()}))
    for names, room, column in ((["a", "b"], 0, table["shop"]), (years, 97, table["year"])):
        strings = column.map(lambda v: "" if pd.isna(v) else str(v).removesuffix(".0"))
        strings = strings.astype("object").where(strings.isin([*names, ""]), "unknown")
        free = [f"free {i}" for i in range(room)]
        places = pd.CategoricalDtype([*names, *free, "unknown", ""])
        parts.append(pd.get_dummies(strings.astype(places)))
    return np.concatenate([part.to_numpy("float64") for part in parts], axis=1)


def test_rows_are_encoded_as_pandas_does():
    features, columns = learned()
    assert features.names == ("is_new", "price", "shop", "year")
    assert features.size == 2 + 2 + 4 + MOST_CATEGORIES + 2
    found = features.encode(columns)
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, encode_by_pandas(TABLE), atol=1e-6)
    others = TABLE.assign(shop="other", year=1999, price=np.arange(12))
    found = Features.of(features.describe()).split(others)[1]
    np.testing.assert_allclose(features.encode(found), encode_by_pandas(others), atol=1e-6)


@pytest.mark.backend("tensorflow")
def test_a_graph_encodes_as_arrays():
    import tensorflow as tf

    features, columns = learned()
    tensors = {
        name: tf.constant(column.tolist(), "string" if column.dtype == object else "float64")
        for name, column in columns.items()
    }
    found = tf.function(features.encode)(tensors)
    np.testing.assert_allclose(found, features.encode(columns), atol=1e-6)


@pytest.mark.backend("tensorflow")
def test_tensors_of_another_type_are_refused():
    import tensorflow as tf

    _, columns = learned()
    features = Features.of({**KINDS, "year": ["2019", "2020"]})
    features.learn(columns)
    tensors = {
        name: tf.constant(column.tolist(), "string" if column.dtype == object else "float64")
        for name, column in columns.items()
    }
    years = tf.constant([2019, 2021] * 6)
    found = features.encode({**tensors, "year": years})
    wanted = features.encode({**columns, "year": np.array(["2019", "2021"] * 6, object)})
    np.testing.assert_allclose(found, wanted, atol=1e-6)
    with pytest.raises(
        ValueError, match="'price' is a number, got a tensor of strings. .*to_number"
    ):
        features.encode({**tensors, "price": tf.constant(["3"] * 12)})
    with pytest.raises(
        ValueError, match="'shop' is a category, got a tensor of float32.*as_string"
    ):
        features.encode({**tensors, "shop": tf.constant([1.0] * 12)})


def test_rare_categories_share_a_place():
    features = Features.of({"shop": "category"})
    shops = np.array([f"{i:03}" for i in [*range(150), *range(100, 150)]], object)
    assert "150 categories" in features.learn({"shop": shops})
    kept = features.describe()["shop"]["categories"]
    # The frequent ones, and the first of the others.
    assert kept == [f"{i:03}" for i in [*range(50), *range(100, 150)]]
    assert features.encode({"shop": shops})[:, -2].sum() == 50


WRONG_TABLES = {
    "no columns": (
        TEXTS,
        "reads the columns is_new, price, shop, year beside the texts, got a list",
    ),
    "missing": (TABLE.drop(columns=["price", "shop"]), "lack price, shop"),
    "text": (TABLE.assign(price=["cheap", *[1.0] * 11]), "'price' is a number, got 'cheap'.*row 0"),
    "infinite": (TABLE.assign(price=np.inf), "'price' is a number, got 'inf'"),
    "date": (TABLE.assign(price=pd.Timestamp("2020")), "'price' is a number, got an array of date"),
    "boolean": (TABLE.assign(is_new=2), "'is_new' is a boolean, got '2.0'"),
    "lists": (TABLE.assign(shop=[["a"]] * 12), "'shop' is a category, got .*row 0"),
    "dates": (
        TABLE.assign(shop=[{1, 2}] * 12),
        r"'shop' is a category, got '.1, 2.' \(set\) at row 0. Wanted strings, whole",
    ),
    "stranger": (TABLE.assign(color="red"), "the texts text .* and also got color"),
}


@pytest.mark.parametrize("name", WRONG_TABLES)
def test_wrong_rows_are_named(name):
    table, message = WRONG_TABLES[name]
    task, _ = make_task("classes")
    task.input_names = ("text",)
    task.learn_features(TABLE)
    with pytest.raises(ValueError, match=message):
        task.predict(table, verbose=0)


WRONG_TRAINING = {
    "constant": (TABLE.assign(price=0.1), "'price' has the value 0.1 in all 12 training rows"),
    "empty": (TABLE.assign(price=None), "'price' has no value in all"),
    "one category": (TABLE.assign(year=2020), "'year' has the category '2020' in all"),
}


@pytest.mark.parametrize("name", WRONG_TRAINING)
def test_columns_without_content_are_named(name):
    table, message = WRONG_TRAINING[name]
    with pytest.raises(ValueError, match=message):
        make_task("classes")[0].fit(table, LABELS, verbose=0)


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (["price"], "must be a dict"),
        ({}, "must be a dict"),
        ({"price": "float"}, "'price' must be 'number', 'boolean', 'category' or a list"),
        ({"shop": ["a", "a"]}, "different names"),
        ({"shop": ["a", None]}, "different names"),
        ({"features": "number"}, "Rename the column"),
    ],
)
def test_wrong_kinds_are_named(features, message):
    with pytest.raises(ValueError, match=message):
        make_task("classes", features)


@pytest.mark.parametrize("name", short_for(TASKS, "sets", "documents", part="combinations"))
def test_tasks_learn_and_keep_the_columns(name, tmp_path):
    task, labels = make_task(name)
    # The last rows are held out, so the mean is of the first.
    task.fit(TABLE, labels, batch_size=4, validation_split=0.25, verbose=0)
    assert task.features["price"]["mean"] == pytest.approx(TABLE["price"][:9].mean())
    assert keras.ops.max(keras.ops.abs(task.feature_layer.kernel)) > 0
    randomize(task)
    wanted = task.predict(TABLE, verbose=0)
    for column in KINDS:
        changed = task.predict(TABLE.assign(**{column: None}), verbose=0)
        assert np.abs(changed - wanted).max() > 1e-3, column
    scores = task.score(TABLE.to_dict("list"), labels)
    assert scores.keys() & {"accuracy", "micro_f1", "pearson"}
    assert {answer.texts for answer in task.inspect(TABLE, labels)} <= {(text,) for text in TEXTS}
    task.save(tmp_path / "task.keras")
    task.save_to_preset(tmp_path / "preset")
    for twin in (
        keras.saving.load_model(tmp_path / "task.keras"),
        type(task).from_preset(tmp_path / "preset"),
    ):
        assert twin.features == task.features
        assert_close(twin.predict(TABLE[TABLE.columns[::-1]], verbose=0), wanted)


@pytest.mark.parametrize(
    "arguments",
    [
        {"sequence_packing": True},
        {"class_weight": {"no": 1.0, "yes": 2.0}},
        {"technique": kbs.FGM(1.0)},
        {"gradient_accumulation_steps": 2},
        {"dtype": "mixed_bfloat16"},
    ],
    ids=lambda arguments: next(iter(arguments)),
)
def test_ways_to_train(arguments):
    arguments = dict(arguments)
    task, _ = make_task("classes", dtype=arguments.pop("dtype", None))
    steps = arguments.pop("gradient_accumulation_steps", None)
    optimizer = kbs.AdamW(1e-3, gradient_accumulation_steps=steps)
    task.compile(optimizer, technique=arguments.pop("technique", None))
    task.fit(TABLE, LABELS, batch_size=4, verbose=0, **arguments)
    kernel = keras.ops.convert_to_numpy(task.feature_layer.kernel)
    # Places that no training row has stay 0.
    assert np.abs(kernel).max() > 0 and np.abs(kernel[12:108]).max() == 0


def test_features_of_a_dataset():
    task, _ = make_task("classes")
    rows = TABLE.to_dict("list")
    batches = [
        ({name: c[i : i + 4] for name, c in rows.items()}, LABELS[i : i + 4]) for i in (0, 4)
    ]
    with pytest.raises(ValueError, match="price, year are not known yet.*learn_features"):
        task.fit(grain.MapDataset.source(batches), verbose=0)
    task.learn_features(TABLE)
    task.fit(grain.MapDataset.source(batches), verbose=0)
    randomize(task)
    found = task.predict(grain.MapDataset.source([x for x, _ in batches]), verbose=0)
    assert_close(found, task.predict(TABLE[:8], verbose=0))
    packed = task.preprocess_samples(TABLE)
    assert_close(task.predict(packed, verbose=0)[:8], found)
    with pytest.raises(ValueError, match=r"'features', float32 \(N, 110\), got none"):
        task.predict({name: packed[name] for name in packed if name != "features"}, verbose=0)


def test_augmented_rows_keep_the_columns():
    task, _ = make_task("classes")
    task.learn_features(TABLE)
    rows = kbs.AugmentedRows(TABLE, LABELS, kbs.edit_words, 12, share=1.0, features=task.features)
    x, _ = rows[0]
    known = dict(zip(TABLE["price"], TABLE["shop"], strict=True))
    found = zip(x["price"], x["shop"], strict=True)
    assert all(
        known[price] == shop for price, shop in found if price == price and type(shop) is str
    )
    task.fit(rows, verbose=0)


def test_the_head_alone():
    task, _ = make_task("classes")
    task.fit_on_features(TABLE, LABELS, epochs=2, verbose=0)
    assert keras.ops.max(keras.ops.abs(task.feature_layer.kernel)) > 0


@pytest.mark.parametrize("save", [save_hugging_face, save_keras_hub])
def test_formats_without_columns_refuse_them(save, tmp_path):
    task, _ = make_task("classes")
    with pytest.raises(ValueError, match="feature_layer"):
        save(task, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
@pytest.mark.parametrize("name", ["classes", "documents"])
def test_exports_answer_as_the_task(name, tmp_path):
    import tensorflow as tf

    task, labels = make_task(name)
    task.fit(TABLE, labels, verbose=0)
    randomize(task)
    wanted = keras.ops.softmax(task.predict(TABLE, verbose=0))
    path = kbs.export_saved_model(task, tmp_path / "model")
    signatures = tf.saved_model.load(str(path)).signatures
    _, columns = task.data.features.split(TABLE)
    beside = {
        name: tf.constant(column.tolist(), "string" if column.dtype == object else "float32")
        for name, column in columns.items()
    }
    served = signatures["serving_default"](text=tf.constant(TEXTS), **beside)
    assert_close(served["probabilities"], wanted)
    packed = {key: tf.constant(array) for key, array in task.data.pack_texts((TEXTS,)).items()}
    assert_close(signatures["serve_ids"](**packed, **beside)["probabilities"], wanted)
    example = tf.train.Example()
    example.features.feature["text"].bytes_list.value.append(TEXTS[0].encode())
    served = signatures["serve_examples"](examples=tf.constant([example.SerializeToString()]))
    nothing = {name: [None] for name in KINDS}
    alone = keras.ops.softmax(task.predict({"text": TEXTS[:1], **nothing}, verbose=0))
    assert_close(served["probabilities"], alone)

    kbs.export_onnx(task, tmp_path / "onnx")
    runtime = kbs.open_runtime(tmp_path / "onnx")
    assert_close(runtime.predict(TABLE, batch_size=5), wanted)
    assert runtime.predict_labels(TABLE) == task.predict_labels(TABLE, verbose=0)


def test_the_rates_of_columns():
    """By default, and with an optimizer of the user; without a rate for columns there is advice."""
    task, _ = make_task("classes")
    advice = "columns beside the texts learn at the same rate as the encoder"
    with pytest.warns(UserWarning, match=advice):
        task.compile(kbs.AdamW(kbs.LinearWarmupDecay(2e-5)))
    for optimizer, peak in (("auto", 5e-5), (kbs.AdamW(kbs.LinearWarmupDecay(2e-5)), 2e-5)):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            task.compile(optimizer, head_learning_rate=None if optimizer == "auto" else 1e-3)
        rows = task.optimizer.rate_multipliers
        for layer, rate in ((task.feature_layer, 1e-2), (task.classifier, 1e-3)):
            for weight in layer.trainable_variables:
                factor = next(f for pattern, f in rows if re.search(pattern, weight.path))
                assert factor * peak == pytest.approx(rate)
