"""From presets and checkpoints to tasks, and back."""

import contextlib
import shutil
import zipfile
from types import SimpleNamespace

import keras
import keras_hub
import numpy as np
import pytest
from kerashub_models import MODELS
from peer_weights import randomize, to_numpy
from small_texts import ONE_LAYER, VOCABULARY, make_reviews
from tables import short_for

from keras_bert_suite import (
    BertBackbone,
    CharacterTokenizer,
    CrfTokenClassifier,
    DocumentClassifier,
    ElmoBackbone,
    EntitySpanClassifier,
    MaskedLM,
    MultipleChoice,
    Pretrainer,
    QuestionAnswerer,
    RobertaBackbone,
    SegmentPacker,
    TextClassifier,
    TextEmbedder,
    TokenClassifier,
    WordPieceTokenizer,
)
from keras_bert_suite.checkpoints import save_hugging_face

TEXTS, LABELS = make_reviews(16)
PAIRS = (TEXTS, make_reviews(16, seed=1)[0])


def make_classifier(**kwargs):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16, padding_lengths=(16,))
    kwargs = {"label_names": ["no", "yes"], "preprocessor": packer, **kwargs}
    return TextClassifier(BertBackbone(**ONE_LAYER), **kwargs)


@pytest.fixture(scope="module")
def preset(tmp_path_factory):
    """Folder of a classifier of pairs."""
    folder = tmp_path_factory.mktemp("presets") / "pairs"
    make_classifier(input_names=["premise", "hypothesis"]).save_to_preset(str(folder))
    return folder


def test_paths_need_not_be_strings(preset):
    for cls in (TextClassifier, Pretrainer, BertBackbone, SegmentPacker, WordPieceTokenizer):
        with pytest.warns(UserWarning) if cls is Pretrainer else contextlib.nullcontext():
            assert isinstance(cls.from_preset(preset), cls)


@pytest.mark.parametrize("save", [TextClassifier.save_to_preset, save_hugging_face])
def test_weights_are_loaded_unless_told_otherwise(save, tmp_path):
    classifier = randomize(make_classifier())
    save(classifier, str(tmp_path / "saved"))
    wanted = to_numpy(classifier.backbone.token_embedding.embeddings)
    for cls in (TextClassifier, BertBackbone):
        for load_weights in (True, False):
            model = cls.from_preset(tmp_path / "saved", load_weights=load_weights)
            backbone = model if cls is BertBackbone else model.backbone
            got = to_numpy(backbone.token_embedding.embeddings)
            assert np.array_equal(got, wanted) == load_weights


def test_a_damaged_preset_is_refused(preset, tmp_path):
    """Whichever of its files has a flipped bit, and whichever class reads it."""
    copy = shutil.copytree(preset, tmp_path / "copy")
    lines = (copy / "SHA256SUMS").read_text().splitlines()
    names = [line.partition("  ")[2] for line in lines]
    files = [path for path in preset.rglob("*") if path.is_file()]
    assert {copy / name for name in names} == {
        copy / path.relative_to(preset)
        for path in files
        if path.name not in ("SHA256SUMS", "model_card.md")
    }
    for name in names:
        content = bytearray((copy / name).read_bytes())
        content[len(content) // 2] ^= 1
        (copy / name).write_bytes(content)
        for cls in (TextClassifier, BertBackbone, SegmentPacker, WordPieceTokenizer):
            with pytest.raises(ValueError, match=f"{name} does not have its SHA-256 in .*SHA256"):
                cls.from_preset(copy)
        shutil.copy(preset / name, copy / name)
    # Parts that are saved later are listed, too.
    WordPieceTokenizer(VOCABULARY, lowercase=False).save_to_preset(copy)
    assert not WordPieceTokenizer.from_preset(copy).lowercase


def test_weights_that_were_cut_short_are_named(preset, tmp_path):
    copy = shutil.copytree(preset, tmp_path / "copy")
    (copy / "SHA256SUMS").unlink()  # Presets of KerasHub have none.
    weights = copy / "model.weights.h5"
    weights.write_bytes(weights.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"copy cannot be read: .*truncated file"):
        TextClassifier.from_preset(copy)


def test_a_damaged_archive_is_refused(tmp_path):
    """Newer versions of Python than 3.11 do not compare what Keras reads piece by piece."""
    task = make_classifier()
    task.save(tmp_path / "task.keras")
    content = bytearray((tmp_path / "task.keras").read_bytes())
    with zipfile.ZipFile(tmp_path / "task.keras") as archive:
        info = archive.getinfo("model.weights.h5")
        task.load_own_variables(SimpleNamespace(archive=archive, keys=dict))
    content[info.header_offset + info.file_size // 2] ^= 1
    (tmp_path / "task.keras").write_bytes(content)
    with zipfile.ZipFile(tmp_path / "task.keras") as archive:
        with pytest.raises(ValueError, match="model.weights.h5 in .*task.keras .* damaged: rest"):
            task.load_own_variables(SimpleNamespace(archive=archive, keys=dict))
    with pytest.raises((ValueError, zipfile.BadZipFile)):
        keras.saving.load_model(tmp_path / "task.keras")


def test_arguments_override_an_own_preset(preset):
    classifier = TextClassifier.from_preset(preset, sequence_length=12, lowercase=False)
    tokenizer = classifier.preprocessor.tokenizer
    assert not tokenizer.lowercase and tokenizer.get_vocabulary() == VOCABULARY
    assert classifier.preprocessor.sequence_length == 12
    packer = SegmentPacker.from_preset(preset, sequence_length=12, lowercase=False)
    assert not packer.tokenizer.lowercase and packer.sequence_length == 12
    assert TextClassifier.from_preset(preset, preprocessor=packer).preprocessor is packer
    assert TextClassifier.from_preset(preset, preprocessor=None).preprocessor is None
    with pytest.raises(ValueError, match="sequence_length=400 .* positions for 64"):
        TextClassifier.from_preset(preset, sequence_length=400)
    with pytest.raises(ValueError, match="on the `preprocessor` that you pass"):
        TextClassifier.from_preset(preset, preprocessor=packer, lowercase=True)


def test_arguments_override_a_checkpoint_of_another_library(preset, tmp_path):
    from keras_bert_suite.checkpoints import save_hugging_face

    classifier = TextClassifier.from_preset(preset)
    save_hugging_face(classifier, tmp_path / "theirs")
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 10)
    twin = TextClassifier.from_preset(tmp_path / "theirs", preprocessor=packer)
    assert twin.preprocessor is packer and twin.label_names == ["no", "yes"]
    (tmp_path / "theirs" / "vocab.txt").unlink()
    twin = TextClassifier.from_preset(tmp_path / "theirs", preprocessor=packer)
    assert twin.preprocessor is packer


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"num_class": 2}, "no argument 'num_class'. Did you mean 'num_classes'"),
        ({"sequence_lenght": 12}, "Did you mean 'sequence_length'"),
        ({"quux": 12}, "no argument 'quux'. Wanted one of"),
        ({"num_labels": 2}, "Did you mean 'num_classes'"),
        ({"num_lables": 2}, "Did you mean 'num_classes'"),
        ({"id2label": {}}, "Did you mean 'label_names'"),
        ({"max_seq_length": 2}, "Did you mean 'sequence_length'"),
        ({"do_lower_case": True}, "Did you mean 'lowercase'"),
        ({"model_name": "bert"}, "Did you mean 'preset'"),
        ({"lr": 2e-5}, "The rate belongs to `compile`"),
        ({"application": "unilm"}, "attention_pattern` of a backbone"),
        ({"with_pool": True}, "A backbone has a pooled output"),
        ({"num_train_epochs": 2}, "is `epochs` of `fit`"),
    ],
)
def test_misspelt_arguments(preset, arguments, error):
    with pytest.raises(TypeError, match=error):
        TextClassifier.from_preset(preset, **arguments)


def test_tokenizers_and_packers_know_the_names_of_other_libraries():
    with pytest.raises(TypeError, match="WordPieceTokenizer has .* Did you mean 'lowercase'"):
        WordPieceTokenizer(VOCABULARY, do_lower_case=True)
    with pytest.raises(TypeError, match="SegmentPacker has .* Did you mean 'sequence_length'"):
        SegmentPacker(WordPieceTokenizer(VOCABULARY), maxlen=12)


def test_a_number_of_classes_is_a_number(preset):
    with pytest.raises(ValueError, match="num_classes must be an integer of at least 0, got '2'"):
        TextClassifier.from_preset(preset, num_classes="2")


def test_a_model_of_pairs_remembers(preset, tmp_path):
    classifier = TextClassifier.from_preset(preset)
    assert classifier.input_names == ("premise", "hypothesis")
    for use in (
        lambda: classifier.predict(TEXTS),
        lambda: classifier.evaluate(TEXTS, LABELS),
        lambda: classifier.fit(TEXTS, LABELS),
        lambda: classifier.predict_on_batch(TEXTS),
    ):
        with pytest.raises(ValueError, match="rows of 2 texts, premise, hypothesis; got rows of 1"):
            use()
    with pytest.raises(ValueError, match="named a, b, .* trained on premise, hypothesis"):
        classifier.predict({"a": TEXTS, "b": TEXTS})
    straight = classifier.predict(PAIRS, verbose=0)
    turned = classifier.predict({"hypothesis": PAIRS[1], "premise": PAIRS[0]}, verbose=0)
    np.testing.assert_allclose(straight, turned, atol=1e-6)
    single = make_classifier()
    single.fit(TEXTS, LABELS, verbose=0)
    with pytest.raises(ValueError, match="single texts, text; got rows of 2"):
        single.predict(PAIRS)
    single.save(tmp_path / "single.keras")
    assert keras.saving.load_model(tmp_path / "single.keras").input_names == ("text",)
    with pytest.warns(UserWarning, match="left out"):
        assert TextClassifier.from_preset(preset, num_classes=3).input_names is None
    with pytest.raises(ValueError, match="num_classes=3, but label_names="):
        TextClassifier.from_preset(preset, num_classes=3, label_names=["a", "b"])


def test_kerashub_opens_our_presets(preset):
    opened = keras_hub.models.TextClassifier.from_preset(str(preset), num_classes=4)
    assert isinstance(opened, TextClassifier)
    assert opened.predict(PAIRS, verbose=0).shape == (16, 4)
    opened = keras_hub.models.TextClassifier.from_preset(str(preset))
    assert opened.label_names == ["no", "yes"]
    packer = keras_hub.models.TextClassifierPreprocessor.from_preset(str(preset))
    assert isinstance(packer, SegmentPacker) and packer.sequence_length == 16


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name == "DistilBERT" else pytest.mark.long("combinations"))
        for name in MODELS
    ],
)
def test_presets_on_backbones_of_kerashub(name, tmp_path):
    backbone, preprocessor = MODELS[name]()
    classifier = TextClassifier(backbone, label_names=["no", "yes"], preprocessor=preprocessor)
    classifier.fit(PAIRS, LABELS, verbose=0)
    wanted = classifier.predict(PAIRS, verbose=0)
    classifier.save_to_preset(str(tmp_path / "preset"))
    twin = TextClassifier.from_preset(tmp_path / "preset", sequence_length=14)
    assert type(twin.backbone) is type(backbone)
    assert type(twin.preprocessor) is type(preprocessor)
    assert twin.preprocessor.sequence_length == 14
    twin = TextClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(twin.predict(PAIRS, verbose=0), wanted, atol=1e-6)
    theirs = keras_hub.models.TextClassifier.from_preset(str(tmp_path / "preset"), num_classes=2)
    assert type(theirs.backbone) is type(backbone)
    # And a preset of theirs, which has no task of ours.
    backbone.save_to_preset(str(tmp_path / "backbone"))
    preprocessor.save_to_preset(str(tmp_path / "backbone"))
    # A class of ours reads it. The pooler of RoBERTa and DistilBERT is a layer of their heads.
    is_read = pytest.warns(UserWarning, match="no weights for pooler/kernel, pooler/bias")
    with contextlib.nullcontext() if name == "BERT" else is_read:
        fresh = TextClassifier.from_preset(tmp_path / "backbone", num_classes=3)
    assert fresh.predict(PAIRS, verbose=0).shape == (16, 3)
    with pytest.raises(ValueError, match="lowercase=True cannot be set on a"):
        TextClassifier.from_preset(tmp_path / "preset", lowercase=True)


@pytest.mark.parametrize("pairs", [False, True], ids=["single", "pairs"])
def test_a_kerashub_preprocessor_is_as_good_as_ours(pairs):
    _, theirs = MODELS["BERT"]()
    texts = PAIRS if pairs else TEXTS
    outputs = []
    for preprocessor in (SegmentPacker(WordPieceTokenizer(VOCABULARY), 16), theirs):
        keras.utils.set_random_seed(0)
        classifier = make_classifier(preprocessor=preprocessor, dropout=0.0)
        classifier.fit(texts, LABELS, batch_size=8, shuffle=False, verbose=0)
        outputs.append(classifier.predict(texts, verbose=0))
    np.testing.assert_allclose(*outputs, atol=1e-3)


def test_a_backbone_alone_says_that_the_head_is_new(preset):
    with pytest.warns(UserWarning, match="holds a backbone, but no Pretrainer.* new"):
        Pretrainer.from_preset(preset)


def test_a_backbone_without_a_tokenizer(tmp_path):
    make_classifier().backbone.save_to_preset(str(tmp_path))
    with pytest.raises(ValueError, match="no tokenizer. Pass `preprocessor`"):
        TextClassifier.from_preset(tmp_path, num_classes=2)
    with pytest.raises(ValueError, match="num_classes"):
        TextClassifier.from_preset(tmp_path, preprocessor=None)
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16)
    assert TextClassifier.from_preset(tmp_path, num_classes=2, preprocessor=packer).compiled


def test_what_does_not_fit_the_backbone():
    too_many = WordPieceTokenizer([*VOCABULARY, "extra"])
    with pytest.raises(ValueError, match=f"vocabulary has {len(VOCABULARY) + 1} tokens"):
        make_classifier(preprocessor=SegmentPacker(too_many, 16))
    classifier = make_classifier()
    with pytest.raises(ValueError, match="sequence_length=512 .* positions for 64"):
        classifier.preprocessor = SegmentPacker(WordPieceTokenizer(VOCABULARY))
    with pytest.raises(ValueError, match="embeddings for 2 segments, got rows of 3"):
        classifier.predict((TEXTS, TEXTS, TEXTS))
    with pytest.raises(ValueError, match="embeddings for 1 segments, got rows of 2"):
        TextClassifier(
            BertBackbone(**ONE_LAYER, num_segments=1), 2, preprocessor=classifier.preprocessor
        ).predict(PAIRS)
    packed = classifier.preprocessor(TEXTS)
    with pytest.raises(ValueError, match=r"segment_ids must be in \[0, 2\).* got 2 to 2"):
        classifier.predict({**packed, "segment_ids": packed["segment_ids"] + 2})
    # Changed behind its back.
    classifier.preprocessor.sequence_length = 100
    for use in (classifier.predict, classifier.predict_on_batch):
        with pytest.raises(ValueError, match="sequence_length=100"):
            use(TEXTS)


@pytest.mark.parametrize("activation", ["sigmoid", "relu", keras.activations.sigmoid])
def test_other_activations_are_refused(activation):
    with pytest.raises(ValueError, match="'softmax' with problem_type=.*, got '(sigmoid|relu)'"):
        make_classifier(activation=activation)


@pytest.mark.parametrize(
    ("cls", "arguments", "error"),
    [
        (QuestionAnswerer, {"no_answer_treshold": 0.0}, "Did you mean 'no_answer_threshold'"),
        (TextEmbedder, {"normalise": False}, "Did you mean 'normalize'"),
        (TextEmbedder, {"window_pooling": "mean"}, "TextEmbedder has no argument 'window_pooling'"),
        (TextClassifier, {"num_clases": 2}, "Did you mean 'num_classes'"),
        (TokenClassifier, {"num_classes": 2, "features": {"a": "number"}}, "`features` of a `Tex"),
        (TextClassifier, {"num_classes": 2, "trainabel": False}, "Did you mean 'trainable'"),
        (DocumentClassifier, {"num_classes": 2, "window_poling": "max"}, "mean 'window_pooling'"),
        (MultipleChoice, {"pooling": "mean"}, "MultipleChoice has no argument 'pooling'"),
        (TokenClassifier, {"num_classes": 2, "pooling": "mean"}, "no argument 'pooling'"),
        (CrfTokenClassifier, {"num_classes": 2, "shceme": None}, "Did you mean 'scheme'"),
        (EntitySpanClassifier, {"num_classes": 2, "haed": None}, "Did you mean 'head'"),
        (MaskedLM, {"mask": {}}, "Did you mean 'masking'"),
        (Pretrainer, {"next_sentences": False}, "Did you mean 'next_sentence'"),
    ],
)
def test_misspelt_arguments_of_constructors(cls, arguments, error):
    with pytest.raises(TypeError, match=error):
        cls(BertBackbone(**ONE_LAYER), **arguments)


def test_arguments_of_the_packer_are_named_as_such():
    """They are no misspelt arguments of the task."""
    with pytest.raises(TypeError, match=r"'truncation'.* Set `task\.preprocessor\.truncation`"):
        TextClassifier.from_preset("nowhere", num_classes=2, truncation="head_tail")


@pytest.mark.parametrize("cls", [BertBackbone, RobertaBackbone])
def test_misspelt_arguments_of_backbones(cls):
    with pytest.raises(TypeError, match=f"{cls.__name__} has no argument 'dropuot'.*'dropout'"):
        cls(**ONE_LAYER, dropuot=0.2)


@keras.saving.register_keras_serializable(package="tests")
class OwnClassifier(TextClassifier):
    """With arguments of its own, of which the second is read from `kwargs`."""

    # KerasHub looks for the only classifier with the preset's backbone.
    backbone_cls = keras_hub.models.Backbone

    def __init__(self, *args, colour="red", **kwargs):
        self.shape = kwargs.pop("shape", "round")
        super().__init__(*args, **kwargs)
        self.colour = colour

    def get_config(self):
        return {**super().get_config(), "colour": self.colour, "shape": self.shape}


def test_a_subclass_has_arguments_of_its_own(preset, tmp_path):
    own = OwnClassifier(
        BertBackbone(**ONE_LAYER),
        num_classes=2,
        colour="blue",
        shape="flat",
        name="own",
        compile=False,
    )
    own.save(tmp_path / "own.keras")
    twin = keras.saving.load_model(tmp_path / "own.keras")
    assert (twin.colour, twin.shape, twin.name) == ("blue", "flat", "own")
    own = OwnClassifier.from_preset(preset, num_classes=2, dropout=0.2, colour="green")
    assert own.colour == "green" and own.dropout == 0.2
    with pytest.raises(TypeError, match="no argument 'color'. Did you mean 'colour'"):
        OwnClassifier(BertBackbone(**ONE_LAYER), num_classes=2, color="blue")


def test_a_masked_lm_of_a_pretrainers_preset_has_the_wanted_dtype(tmp_path):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16)
    pretrainer = Pretrainer(BertBackbone(**ONE_LAYER), preprocessor=packer)
    pretrainer.save_to_preset(str(tmp_path / "preset"))
    model = MaskedLM.from_preset(tmp_path / "preset", dtype="mixed_bfloat16")
    assert model.backbone.transformer_layers[0].compute_dtype == "bfloat16"


def make_masked_lm(dtype):
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16)
    return MaskedLM(BertBackbone(**ONE_LAYER, dtype=dtype), preprocessor=packer)


@pytest.mark.parametrize(
    ("saved", "now"),
    short_for(
        [
            *(("mixed_float16", "float32"), ("mixed_bfloat16", "float32")),
            *(("bfloat16", "mixed_bfloat16"), ("float32", "mixed_bfloat16")),
        ],
        *(("mixed_float16", "float32"), ("bfloat16", "mixed_bfloat16")),
        part="combinations",
    ),
)
def test_a_preset_opens_in_the_policy_of_the_process(tmp_path, saved, now):
    """KerasHub's rule for all policies of floating-point numbers, see its `_resolve_dtype`."""
    packer = SegmentPacker(WordPieceTokenizer(VOCABULARY), 16, padding_lengths=(16,))
    backbone = BertBackbone(**ONE_LAYER, dtype=saved)
    classifier = TextClassifier(backbone, num_classes=2, preprocessor=packer)
    classifier.save_to_preset(str(tmp_path / "classifier"))
    make_masked_lm(saved).save_to_preset(str(tmp_path / "masked"))
    former = keras.config.dtype_policy()
    keras.config.set_dtype_policy(now)
    try:
        opened = TextClassifier.from_preset(tmp_path / "classifier")
        with pytest.warns(UserWarning, match="holds a classification layer"):
            renewed = TextClassifier.from_preset(tmp_path / "classifier", num_classes=3)
        masked = MaskedLM.from_preset(tmp_path / "masked")
        chosen = MaskedLM.from_preset(tmp_path / "masked", dtype="float32")
    finally:
        keras.config.set_dtype_policy(former)
    assert {task.backbone.dtype_policy.name for task in (opened, renewed, masked)} == {now}
    assert chosen.backbone.dtype_policy.name == "float32"
    assert np.array_equal(to_numpy(opened.weights[0]), to_numpy(classifier.weights[0]))


@pytest.mark.parametrize("name", ["segment_ids", "padding_mask"])
def test_packed_arrays_of_other_shapes_are_refused(name):
    classifier = make_classifier()
    packed = classifier.preprocessor(TEXTS[:2])
    with pytest.raises(ValueError, match=rf"{name} must have the shape of token_ids, \(2, 16\)"):
        classifier.predict({**packed, name: packed[name][:, :1]}, verbose=0)


def test_packed_characters_of_other_shapes_and_numbers_are_refused():
    """Backends read another character in the place of one that is not there, or crash."""
    characters = {"filters": [[1, 4]], "embedding_dim": 4, "max_characters": 8}
    encoder = ElmoBackbone(None, units=6, projection_dim=4, characters=characters)
    classifier = TextClassifier(encoder, num_classes=2)
    packed = SegmentPacker(CharacterTokenizer(max_characters=8), 8)(TEXTS[:2])
    ids, mask = packed["character_ids"], packed["padding_mask"]
    assert np.isfinite(classifier.predict(packed, verbose=0)).all()
    for change, message in (
        ({"padding_mask": mask[:, :1]}, r"the shape of the words of character_ids, \(2, "),
        ({"character_ids": ids + 1}, r"character_ids must be in \[0, 262\).* to 262"),
        ({"character_ids": -ids}, r"character_ids must be in \[0, 262\)"),
    ):
        with pytest.raises(ValueError, match=message):
            classifier.predict({**packed, **change}, verbose=0)


def test_a_preset_whose_class_is_not_known(tmp_path):
    TextClassifier(BertBackbone(**ONE_LAYER), num_classes=2).save_to_preset(tmp_path / "preset")
    file = tmp_path / "preset" / "task.json"
    file.write_text(file.read_text().replace("keras_bert_suite>TextClassifier", "own>Lost"))
    (tmp_path / "preset" / "SHA256SUMS").unlink(missing_ok=True)
    message = "task.json of .*preset: There is no registered class own>Lost. Import the module th"
    with pytest.raises(ValueError, match=message):
        TextClassifier.from_preset(tmp_path / "preset", preprocessor=None)
