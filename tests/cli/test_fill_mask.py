"""`keras-bert fill-mask` and `export` of a `MaskedLM`; see test_pretrain.py for a `Pretrainer`."""

import keras
import pytest
from cli.small_files import save_tiny_checkpoint

import keras_bert_suite as kbs


def make_model(folder):
    save_tiny_checkpoint(folder / "checkpoint")
    backbone = kbs.BertBackbone.from_preset(str(folder / "checkpoint"))
    packer = kbs.SegmentPacker.from_preset(folder / "checkpoint", sequence_length=16)
    keras.utils.set_random_seed(0)
    return kbs.MaskedLM(backbone, preprocessor=packer, top_k=3)


def test_every_format_of_a_masked_lm(run, tmp_path):
    model = make_model(tmp_path)
    model.save(tmp_path / "model.keras")
    model.save_to_preset(str(tmp_path / "preset"))
    text = "a [MASK] film"
    wanted = [token for token, _ in model.predict(text, verbose=0)[0]]
    for path in (tmp_path / "model.keras", tmp_path / "preset"):
        status, out, err = run("fill-mask", "--model", path, f"--text={text}", "--top_k=3")
        assert (status, err) == (0, "")
        assert out.splitlines()[1].split()[::2] == wanted
    out = run("fill-mask", "--model", path, f"--text={text}")[1]
    assert len(out.splitlines()[1].split()[::2]) == 5, "the default of --top_k"


@pytest.mark.long("serving")
@pytest.mark.backend("tensorflow")
def test_a_served_masked_lm(run, tmp_path):
    tf = pytest.importorskip("tensorflow")
    pytest.importorskip("tensorflow_text")
    model = make_model(tmp_path)
    model.save(tmp_path / "model.keras")
    arguments = ("--model", tmp_path / "model.keras", "--output", tmp_path / "saved")
    status, out, err = run("export", *arguments)
    assert (status, err) == (0, "") and "with the inputs text" in out
    loaded = tf.saved_model.load(str(tmp_path / "saved" / "1"))
    answers = loaded.signatures["serving_default"](text=tf.constant(["a [MASK] film"]))
    (guesses,) = model.predict(["a [MASK] film"], verbose=0)
    got = [token.decode() for token in answers["tokens"].numpy()[0, 0]]
    assert got == [token for token, _ in guesses[0]]


def test_a_model_without_the_head_is_refused(run, workshop, finetuned):
    for model, message in (
        (workshop / "checkpoint", "checkpoint has no head that guesses masked tokens"),
        (finetuned / "model.keras", "model.keras holds a TextClassifier, wanted a MaskedLM"),
    ):
        status, out, err = run("fill-mask", "--model", model, "--text=a [MASK] film")
        assert (status, out) == (1, "") and message in err
