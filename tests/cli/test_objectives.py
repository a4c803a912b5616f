"""`keras-bert pretrain --objective`, and what a user does next with the folder of a run."""

import csv
import json

import pytest
from cli.small_files import MODEL, SETTINGS, STEPS, write_reviews

import keras_bert_suite as kbs
from keras_bert_cli import main, masker_flags, pretrain
from keras_bert_cli.command_flags import Flags
from keras_bert_cli.objectives import choose_objective, list_choices, list_flags, list_idle_flags
from keras_bert_suite.corpus import read_tokenizer
from keras_bert_suite.masking import token_masker
from keras_bert_suite.pretraining import objectives
from keras_bert_suite.pretraining.objectives import CONTEXT_MODE, MODES, OBJECTIVES

#: The columns of the log that an objective adds to those of masked tokens.
COLUMNS = {
    "span_boundary": ("sbo_loss", "sbo_accuracy", "val_sbo_accuracy"),
    "word_order": ("nsp_accuracy", "val_nsp_accuracy"),
    "replaced_tokens": ("rtd_accuracy", "rtd_recall", "val_rtd_recall"),
    "unilm": ("nsp_accuracy", "val_nsp_accuracy"),
    "left_to_right": (),
    "permutation": (),
    "bidirectional_language_model": ("forward_accuracy", "val_backward_accuracy"),
    "denoising": (),
    "mass": (),
}


@pytest.fixture(scope="module")
def runs(corpus, xlnet_corpus, tmp_path_factory):
    """Function: objective -> folder of a finished run. Not to be written to."""
    folder = tmp_path_factory.mktemp("objectives")

    def find_run(objective):
        output = folder / objective
        if not output.exists():
            read = xlnet_corpus if objective == "permutation" else corpus
            arguments = ["--corpus", str(read), "--output", str(output), "--held_out=0.3"]
            idle = list_idle_flags(OBJECTIVES[objective])
            settings = [flag for flag in SETTINGS if flag[2:].partition("=")[0] not in idle]
            arguments += [*settings, *MODEL, *STEPS, f"--objective={objective}"]
            assert main(["pretrain", *arguments]) == 0
        return output

    return find_run


@pytest.mark.parametrize("objective", [name for name in OBJECTIVES if name != "masked_lm"])
def test_a_run_is_evaluated_and_fills_masks(run, runs, objective):
    output = runs(objective)
    with open(output / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["2", "4", "6"]
    loss = "forward_loss" if objective == "bidirectional_language_model" else "mlm_loss"
    for name in (loss, f"val_{loss}", "perplexity", *COLUMNS[objective]):
        assert all(float(row[name]) >= 0 for row in rows), name
    assert (output / "curves.png").read_bytes().startswith(b"\x89PNG")
    settings = json.loads((output / "settings.json").read_text())
    for name, value in list_flags(OBJECTIVES[objective]).items():
        assert settings[name] == value
    guess = ("fill-mask", "--model", output / "model", "--text=the [MASK] was good")
    status, out, err = run(*guess)
    if objective == "left_to_right":
        assert status == 1 and "reads in one direction" in err
    elif objective == "permutation":
        assert status == 1 and "predicts tokens without a mask token" in err
    elif objective in ("bidirectional_language_model", "denoising", "mass"):
        assert status == 1 and "has no head that guesses masked tokens" in err
    else:
        assert (status, err) == (0, "") and len(out.splitlines()) == 2


@pytest.mark.long("faults")
def test_a_second_phase_and_a_killed_run_keep_the_objective(run, runs, corpus, tmp_path):
    arguments = ["--corpus", corpus, "--output", tmp_path / "run", "--held_out=0", "--steps=2"]
    arguments += ["--batch_size=4", "--sequence_length=24", "--objective=replaced_tokens"]
    arguments += ["--checkpoint", runs("replaced_tokens") / "model"]
    assert run("pretrain", *arguments)[::2] == (0, "")
    status, out, err = run("pretrain", *arguments[:5], "--steps=4", *arguments[6:])
    assert (status, err) == (0, "") and "step 4/4" in out and "step 2/4" not in out
    status, _, err = run("pretrain", *arguments[:6], "--batch_size=4", "--sequence_length=24")
    assert status == 1 and "--objective was 'replaced_tokens' and is 'masked_lm'" in err


@pytest.mark.parametrize(
    ("objective", "modes"),
    [
        ("unilm", ("relations", "pairs")),
        ("left_to_right", ("full_sentences", "full_sentences")),
    ],
)
def test_a_checkpoint_becomes_a_model_of_another_pattern(runs, corpus, objective, modes):
    """And one of a pattern looks to both sides again."""

    def open_checkpoint(objective, checkpoint, mode):
        flags = ["--output=run", "--steps=1", "--sequence_length=16", f"--mode={mode}"]
        flags += [f"--corpus={corpus}", f"--objective={objective}", f"--checkpoint={checkpoint}"]
        values = Flags("pretrain", pretrain).parse(flags)
        row = choose_objective(values)
        return pretrain.build_pretrainer(values, row, read_tokenizer(corpus)).backbone

    backbone = open_checkpoint(objective, runs("word_order") / "model", modes[0])
    expected = OBJECTIVES[objective].backbone_arguments
    assert {name: getattr(backbone, name) for name in expected} == expected
    backbone = open_checkpoint("masked_lm", runs(objective) / "model", modes[1])
    assert (backbone.attention_pattern, backbone.num_segments) == ("bidirectional", 2)


def test_a_run_with_memory(run, xlnet_corpus, tmp_path):
    """It is trained on lanes, resumed, and begins a Transformer-XL that remembers more."""
    common = ["--corpus", xlnet_corpus, "--held_out=0", "--sequence_length=16", "--batch_size=4"]
    new = [*common, *MODEL, "--size=tiny", "--memory_length=12", "--output", tmp_path / "run"]
    new += ["--objective=permutation", "--both_directions"]
    assert run("pretrain", *new, "--steps=1")[::2] == (0, "")
    status, out, err = run("pretrain", *new, "--steps=2")
    assert (status, err) == (0, "") and "step 2/2" in out and "step 1/2" not in out
    backbone = kbs.Pretrainer.from_preset(tmp_path / "run" / "model").backbone
    assert (backbone.memory_length, backbone.reuse_length, backbone.reversed_rows) == (12, 8, True)
    again = [*common, "--memory_length=20", "--steps=1", "--output", tmp_path / "again"]
    again += ["--objective=left_to_right", "--checkpoint", tmp_path / "run" / "model"]
    status, _, err = run("pretrain", *again)
    assert (status, err) == (0, "")
    backbone = kbs.Pretrainer.from_preset(tmp_path / "again" / "model").backbone
    assert (backbone.memory_length, backbone.attention_pattern) == (20, "left_to_right")
    assert (backbone.reuse_length, backbone.reversed_rows) == (None, False)


@pytest.mark.parametrize("objective", ["denoising", "mass"])
def test_an_encoder_decoder_begins_with_a_bert_and_learns_to_write(run, runs, corpus, objective):
    output = runs("word_order").parent / f"{objective} of a BERT"
    model = runs("word_order") / "model"
    pretrain = ("--corpus", corpus, "--checkpoint", model, "--output", output, "--steps=2")
    sizes = ("--batch_size=4", "--sequence_length=16", "--held_out=0")
    flags = ("--noises=text_infilling=0.3,document_rotation=1", "--span_length=2", "--unit=word")
    flags = flags if objective == "denoising" else ("--masking_rate=0.3",)
    given = (*pretrain, *sizes, *flags, f"--objective={objective}")
    status, _, err = run("pretrain", *given)
    assert status == 0, err
    table = output / "titles.tsv"
    table.write_text("text\ttarget\n" + "the good film\tgood\na bad plot\tbad\n" * 4)
    status, _, err = run(
        *("finetune", "--task=seq2seq", "--checkpoint", output / "model", "--train", table),
        *("--epochs=1", "--sequence_length=16", "--max_target_length=4"),
        *("--output", output / "writer"),
    )
    assert status == 0, err
    status, out, err = run("predict", "--model", output / "writer", "--input", table)
    assert status == 0, err
    if objective == "denoising":
        status, _, err = run("pretrain", *given, "--noises=infilling=1", "--output", output / "new")
        assert status == 2 and "--noises must name noises with their rates" in err
        given = (*given, "--noises=token_deletion=0.2", "--output", output / "new")
        for flag in ("--span_length", "--random_token_rate"):
            status, _, err = run("pretrain", *given, f"{flag}=0.5", "--unit=token")
            assert status == 2 and "no noise of --noises has a use for --" in err


def test_an_encoder_with_a_head_for_spans_is_converted(run, runs, tmp_path):
    model = runs("span_boundary") / "model"
    convert = ("convert", "--input", model, "--to=huggingface", "--output", tmp_path / "model")
    status, _, err = run(*convert)
    assert status == 1 and "keras-bert convert --part masked_lm" in err
    assert run(*convert, "--part=masked_lm")[::2] == (0, "")
    guess = ("fill-mask", "--text=the [MASK] was good", "--model")
    assert run(*guess, tmp_path / "model") == run(*guess, model)


def test_the_parts_of_an_electra(run, runs, tmp_path):
    transformers = pytest.importorskip("transformers")
    model = runs("replaced_tokens") / "model"
    convert = ("convert", "--input", model, "--output")
    for part, cls in (("discriminator", "ForPreTraining"), ("masked_lm", "ForMaskedLM")):
        path = tmp_path / part
        assert run(*convert, path, "--to=huggingface", f"--part={part}")[::2] == (0, "")
        (architecture,) = transformers.AutoConfig.from_pretrained(path).architectures
        assert architecture == f"Electra{cls}"
    guess = ("fill-mask", "--text=the [MASK] was good", "--model")
    assert run(*guess, tmp_path / "masked_lm") == run(*guess, model)
    status, _, err = run(*convert, tmp_path / "both", "--to=huggingface")
    assert status == 1 and "Pass --part discriminator or --part masked_lm" in err
    status, _, err = run(*convert, tmp_path / "both", "--to=preset", "--part=discriminator")
    assert status == 1 and "--to huggingface, got preset" in err
    status, _, err = run("export", "--model", model, "--output", tmp_path / "both")
    assert status == 1 and f"keras-bert finetune --checkpoint {model}" in err
    # The discriminator is fine-tuned.
    write_reviews(tmp_path / "train.tsv", 8, seed=1)
    status, _, err = run(
        *("finetune", "--checkpoint", model, "--train", tmp_path / "train.tsv"),
        *("--text_column=sentence", "--epochs=1", "--output", tmp_path / "classifier"),
    )
    assert status == 0, err


@pytest.mark.parametrize(
    ("flags", "status", "message"),
    [
        (
            ["--objective=replaced_tokens", "--mode=sop"],
            2,
            "takes --mode full_sentences or doc_sentences, got sop",
        ),
        (["--objective=replaced_tokens", "--model=bert"], 2, "takes --model electra, got bert"),
        (["--objective=left_to_right"], 2, "left_to_right has no use for --max_predictions"),
        (["--objective=permutation", "--unit=word"], 2, "permutation has no use for --unit; leave"),
        (["--mode=context_pairs"], 2, "or doc_sentences, got context_pairs"),
        (["--generator_width=0.5"], 2, "masked_lm has no use for --generator_width; leave it out"),
        (["--objective=mass", "--noises=token_deletion=0.1"], 2, "mass has no use for"),
        (["--objective=denoising"], 2, "denoising has no use for --max_predictions"),
        (["--memory_length=8"], 2, "masked_lm has no use for --memory_length"),
        (["--span_unit=word"], 2, "masked_lm has no use for --span_unit"),
        (["--checkpoint=base", "--model=bert"], 2, "--model and --size would have no effect"),
    ],
)
def test_meaningless_combinations(run, corpus, tmp_path, monkeypatch, flags, status, message):
    monkeypatch.chdir(tmp_path)
    arguments = ["--corpus", corpus, "--output", "run", *SETTINGS, "--steps=6", *flags]
    got, _, err = run("pretrain", *arguments)
    assert got == status and message in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--objective=left_to_right"], "are for an XLNet, and the model is a BertBackbone; leave"),
        (["--objective=permutation"], "prepare the corpus with the tokenizer of such a model, for"),
        (["--objective=permutation", "--mode=full_sentences"], "--mode would have no effect"),
        (["--objective=left_to_right", "--sequence_packing"], "--sequence_packing would have no"),
    ],
)
def test_memory_that_no_model_has(run, corpus, tmp_path, flags, message):
    arguments = ["--corpus", corpus, "--output", tmp_path / "run", "--steps=1", "--batch_size=2"]
    status, _, err = run("pretrain", *arguments, "--memory_length=8", *MODEL, *flags)
    assert status == 2 and message in err


def test_the_rows_of_the_table():
    assert masker_flags.UNITS == token_masker.UNITS
    for name, objective in OBJECTIVES.items():
        assert set(objective.modes) <= {*MODES, CONTEXT_MODE}, name
        flags = {"mode": "pairs", **list_flags(objective)}
        for flag, choices in list_choices(objective).items():
            # The corpus or --checkpoint may say which model it is.
            assert flag == "model" or flags[flag] in choices, (name, flag)
        assert not set(flags) & set(list_idle_flags(objective)), name
    with pytest.raises(ValueError, match="name must be one of masked_lm, .*, got 'mlm'"):
        objectives.get("mlm")
