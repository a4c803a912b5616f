"""`keras-bert finetune --augment`."""

import functools

import keras
import pytest
from cli.small_files import write_reviews
from small_texts import ONE_LAYER, VOCABULARY

import keras_bert_suite as kbs


@pytest.fixture
def finetune(run, workshop, tmp_path, monkeypatch):
    """Function: flags -> the result of a `finetune` on few texts."""
    monkeypatch.chdir(tmp_path)
    write_reviews(tmp_path / "few.tsv", 8, seed=3)

    def run_finetune(*flags):
        arguments = ["finetune", "--train=few.tsv", "--text_column=sentence", "--epochs=2"]
        return run(*arguments, "--output=model.keras", *flags)

    return run_finetune


def test_words(finetune, workshop, monkeypatch):
    seen = []
    edit = kbs.edit_words
    monkeypatch.setattr(
        kbs, "edit_words", lambda texts, rng: seen.append(texts) or edit(texts, rng)
    )
    status, out, err = finetune("--checkpoint", workshop / "checkpoint", "--augment=words")
    assert (status, err) == (0, "") and "8 training texts" in out
    assert sum(map(len, seen)) > 0
    assert keras.saving.load_model("model.keras").input_names == ("text",)


def test_a_masked_lm(finetune, tmp_path, monkeypatch):
    backbone = kbs.BertBackbone(**ONE_LAYER)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    kbs.MaskedLM(backbone, preprocessor=packer).save_to_preset("guesser")
    asked = []
    predict = kbs.MaskedLM.predict

    @functools.wraps(predict)
    def note(self, texts, *args, **kwargs):
        asked.append((self.preprocessor.sequence_length, [*texts]))
        return predict(self, texts, *args, **kwargs)

    monkeypatch.setattr(kbs.MaskedLM, "predict", note)
    flags = ("--augment=masked_lm", "--sequence_length=auto")
    status, out, err = finetune("--checkpoint=guesser", *flags)
    assert (status, err) == (0, "") and "\nsequence_length 16\n" in out
    assert asked and all(length == 16 and "[MASK]" in texts[0] for length, texts in asked)
    assert keras.saving.load_model("model.keras").preprocessor.sequence_length == 16


def test_a_checkpoint_without_guesses_is_refused(finetune, workshop):
    flags = ("--checkpoint", workshop / "checkpoint", "--augment=masked_lm")
    status, _, err = finetune(*flags)
    assert status == 1 and "it has no head that guesses masked tokens" in err
    status, _, err = finetune("--checkpoint", workshop / "checkpoint", "--task=ner", flags[-1])
    assert status == 2 and "--augment is for --task classify, multilabel, regress, attr" in err
