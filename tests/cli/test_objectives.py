"""`keras-bert pretrain --objective`, and what a user does next with the folder of a run."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli.small_files import MODEL, SETTINGS, write_reviews
from family import MEMBERS
from peer_weights import to_numpy
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_cli import main, masker_flags, pretrain
from keras_bert_cli.command_flags import Flags, UsageError
from keras_bert_cli.masker_flags import read_noises
from keras_bert_cli.model_paths import check_model
from keras_bert_cli.new_models import make_backbone
from keras_bert_cli.objectives import (
    build_pretrainer,
    choose_objective,
    list_choices,
    list_flags,
    list_idle_flags,
)
from keras_bert_suite.corpus import open_corpus, read_tokenizer
from keras_bert_suite.masking import BART_NOISES, token_masker
from keras_bert_suite.pretraining import objectives
from keras_bert_suite.pretraining.objectives import CONTEXT_MODE, MODES, OBJECTIVES

STEPS = ("--steps=2", "--report_every=1", "--checkpoint_every=2", "--evaluation_batches=2")
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


@pytest.mark.parametrize(
    "objective",
    short_for(
        [name for name in OBJECTIVES if name != "masked_lm"],
        # A second head, two encoders, one direction, and an encoder that is no transformer.
        *("span_boundary", "replaced_tokens", "left_to_right", "bidirectional_language_model"),
        part="combinations",
    ),
)
def test_a_run_is_evaluated_and_fills_masks(run, runs, objective):
    output = runs(objective)
    with open(output / "log.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["1", "2"]
    loss = "forward_loss" if objective == "bidirectional_language_model" else "mlm_loss"
    for name in (loss, f"val_{loss}", "perplexity", *COLUMNS[objective]):
        assert all(float(row[name]) >= 0 for row in rows), name
    assert (output / "curves.png").read_bytes().startswith(b"\x89PNG")
    settings = json.loads((output / "settings.json").read_text())
    for name, value in list_flags(OBJECTIVES[objective]).items():
        assert settings[name] == value
    mask = "<mask>" if objective == "permutation" else "[MASK]"
    guess = ("fill-mask", "--model", output / "model", f"--text=the {mask} was good")
    status, out, err = run(*guess)
    if objective == "left_to_right":
        assert status == 1 and "reads in one direction" in err
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


@pytest.mark.filterwarnings("ignore:.*this head of the pretrainer is new and random")
@pytest.mark.parametrize(
    ("objective", "modes"),
    [
        pytest.param(*("unilm", ("relations", "pairs")), marks=pytest.mark.long("combinations")),
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

    backbone = open_checkpoint(objective, runs("span_boundary") / "model", modes[0])
    expected = OBJECTIVES[objective].backbone_arguments
    assert {name: getattr(backbone, name) for name in expected} == expected
    backbone = open_checkpoint("masked_lm", runs(objective) / "model", modes[1])
    assert (backbone.attention_pattern, backbone.num_segments) == ("bidirectional", 2)


@pytest.mark.long("combinations")
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
    again = [*common, "--steps=1", "--output", tmp_path / "again", "--objective=left_to_right"]
    again += ["--checkpoint", tmp_path / "run" / "model"]
    status, _, err = run("pretrain", *again)
    assert status == 1 and "Pass --memory_length 12, or another length." in err
    status, _, err = run("pretrain", *again, "--memory_length=20")
    assert (status, err) == (0, "")
    backbone = kbs.Pretrainer.from_preset(tmp_path / "again" / "model").backbone
    assert (backbone.memory_length, backbone.attention_pattern) == (20, "left_to_right")
    assert (backbone.reuse_length, backbone.reversed_rows) == (None, False)


@pytest.mark.parametrize(
    "objective", short_for(["denoising", "mass"], "denoising", part="combinations")
)
def test_an_encoder_decoder_begins_with_a_bert_and_learns_to_write(run, runs, corpus, objective):
    output = runs("span_boundary").parent / f"{objective} of a BERT"
    model = runs("span_boundary") / "model"
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
    if objective == "mass":
        status, _, err = run("pretrain", *given, "--masking_rate=0", "--output", output / "new")
        assert status == 1 and "--masking_rate must be over 0 and at most 1, got 0.0" in err
    if objective == "denoising":
        status, _, err = run("pretrain", *given, "--noises=infilling=1", "--output", output / "new")
        assert status == 2 and "--noises must name noises with their rates" in err
        given = (*given, "--noises=token_deletion=0.2", "--output", output / "new")
        for flag in ("--span_length", "--random_token_rate"):
            status, _, err = run("pretrain", *given, f"{flag}=0.5", "--unit=token")
            assert status == 2 and "no noise of --noises has a use for --" in err
        status, _, err = run("pretrain", *given, "--span_length=0")
        assert status == 2 and "--span_length must be above 0, got 0.0" in err


@pytest.fixture(scope="module")
def bart_corpus(corpus, tmp_path_factory):
    """Folder of `bart`, a checkpoint of transformers, and `shards` of its tokens."""
    folder = tmp_path_factory.mktemp("bart")
    MEMBERS["bart"].save_peer(folder / "bart", "ForConditionalGeneration")
    texts, shards = corpus.parent / "corpus.txt", folder / "shards"
    prepare = ("prepare", "--input", texts, "--vocab", folder / "bart", "--output", shards)
    assert main([*map(str, prepare), "--workers=1"]) == 0
    return folder


def test_a_bart_of_transformers_is_denoised_and_given_back(run, bart_corpus, tmp_path):
    transformers = pytest.importorskip("transformers")
    import keras_bert_suite as kbs

    pretrain = ("pretrain", "--corpus", bart_corpus / "shards", "--objective=denoising")
    sizes = ("--steps=2", "--batch_size=4", "--sequence_length=16", "--held_out=0")
    given = (*pretrain, *sizes, "--checkpoint", bart_corpus / "bart", "--output")
    status, _, err = run(*given, tmp_path / "run", "--noises=text_infilling=0.3")
    assert status == 0, err
    model = tmp_path / "run" / "model"
    convert = ("convert", "--input", model, "--to=huggingface", "--output", tmp_path / "bart")
    assert run(*convert)[::2] == (0, "")
    peer = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "bart")
    pretrainer = kbs.Seq2SeqPretrainer.from_preset(model)
    x, _, _ = make_batch(pretrainer)
    names = {"token_ids": "input_ids", "padding_mask": "attention_mask"}
    names["decoder_token_ids"] = "decoder_input_ids"
    outputs = peer(**{theirs: torch_ids(x[name]) for name, theirs in names.items()})
    is_token = x["decoder_padding_mask"] == 1
    got = to_numpy(pretrainer(x, training=False)["mlm"])[is_token]
    expected = outputs.logits.detach().numpy()[is_token]
    assert np.ptp(expected) > 0.01
    np.testing.assert_allclose(got, expected, atol=1e-5)
    # It has learned, and a second phase may begin with the folder.
    first = transformers.AutoModelForSeq2SeqLM.from_pretrained(bart_corpus / "bart")
    assert (first.model.shared.weight != peer.model.shared.weight).any()
    # MASS has other rows.
    status, _, err = run(*given, tmp_path / "mass", "--objective=mass")
    assert status == 1 and "reads an end token first, and its positions are not" in err


def torch_ids(array):
    import torch

    return torch.from_numpy(array.astype("int64"))


def make_batch(pretrainer):
    """A batch for the decoder of a task."""
    import keras_bert_suite as kbs
    from keras_bert_suite.corpus.token_corpus import TokenCorpus

    tokenizer = pretrainer.preprocessor.tokenizer
    starts_with_end = pretrainer.decoder.starts_with_end
    masker = objectives.get("denoising").make_masker(tokenizer, starts_with_end=starts_with_end)
    ids = tokenizer.tokenize(["the good film", "a low bad", "lower the the film"])
    corpus = TokenCorpus.from_documents([ids, ids[::-1]])
    return kbs.pretraining.PretrainingBatches(corpus, masker, 16, 2, "doc_sentences")[0]


@pytest.mark.parametrize("flags", [[], ["--model=bart"]])
def test_a_new_bart(bart_corpus, flags):
    """Byte pairs have one kind of model that reads and writes. Rows are those of fairseq."""
    flags = [*flags, f"--corpus={bart_corpus / 'shards'}", "--objective=denoising", "--size=tiny"]
    flags += ["--output=run", "--steps=1", "--sequence_length=16", "--batch_size=4", "--held_out=0"]
    values = Flags("pretrain", pretrain).parse([*flags, "--random_token_rate=0.2"])
    row, tokenizer = choose_objective(values), read_tokenizer(bart_corpus / "shards")
    task = pretrain.build_pretrainer(values, row, tokenizer)
    assert type(task.backbone).__name__ == "BartBackbone"
    corpora = [open_corpus(bart_corpus / "shards")]
    batches, _ = pretrain.make_batches(values, row, corpora, tokenizer, task)
    task.check_dataset(batches)
    x, y, weights = batches[0]
    assert [noise.random_token_rate for noise in read_noises(values)[1:]] == [0.2]
    for read, written, is_token in zip(
        x["decoder_token_ids"], y["mlm"], weights["mlm"] > 0, strict=True
    ):
        # `collate` of fairseq: the decoder reads the target with its last token in front.
        target = written[is_token]
        assert (target[0], target[-1]) == (tokenizer.start_token_id, tokenizer.end_token_id)
        np.testing.assert_array_equal(read[is_token], [target[-1], *target[:-1]])


def test_parts_of_tokens(corpus):
    tokenizer = read_tokenizer(corpus)
    flags = ["--corpus=a", "--output=b", "--steps=1", "--size=tiny", "--token_parts=characters"]
    values = Flags("pretrain", pretrain).parse(flags)
    parts = make_backbone(values, choose_objective(values), tokenizer).part_embeddings
    spelled = kbs.spell_tokens(tokenizer)
    assert (parts.parts, parts.num_parts) == (spelled.parts, spelled.num_parts)
    electra = Flags("pretrain", pretrain).parse([*flags, "--objective=replaced_tokens"])
    task = build_pretrainer(electra, choose_objective(electra), tokenizer)
    assert task.backbone.part_embeddings.num_parts == spelled.num_parts
    for objective in ("bidirectional_language_model", "denoising"):
        values = Flags("pretrain", pretrain).parse([*flags, f"--objective={objective}"])
        with pytest.raises(UsageError, match="--token_parts is for encoders"):
            make_backbone(values, choose_objective(values), tokenizer)


def test_the_training_of_the_original_elmo_goes_on(corpus, runs, tmp_path):
    """Its files have no softmax. The corpus says which tokens it is for."""
    original = Path(__file__).parents[1] / "models" / "elmo_bilm"
    check_model(str(original))
    arguments = [f"--corpus={corpus}", f"--output={tmp_path / 'run'}", f"--checkpoint={original}"]
    arguments += ["--objective=bidirectional_language_model", "--sequence_length=16", "--steps=1"]
    tokenizer = read_tokenizer(corpus)
    values = Flags("pretrain", pretrain).parse(arguments)
    with pytest.raises(ValueError, match="Pass --max_characters 50"):
        build_pretrainer(values, choose_objective(values), tokenizer)
    values = Flags("pretrain", pretrain).parse([*arguments, "--max_characters=50"])
    with pytest.warns(UserWarning, match="has no softmax"):
        task = build_pretrainer(values, choose_objective(values), tokenizer)
    assert task.output["forward"].shape[-1] == tokenizer.vocabulary_size()
    assert task.vocabulary_sha256 == kbs.BidirectionalTargets(tokenizer).vocabulary_sha256
    wanted = kbs.ElmoBackbone.from_preset(original).weights
    for weight, other in zip(task.backbone.weights, wanted, strict=True):
        np.testing.assert_array_equal(to_numpy(weight), to_numpy(other))
    words = runs("bidirectional_language_model") / "model"
    arguments[2] = f"--checkpoint={words}"
    values = Flags("pretrain", pretrain).parse([*arguments, "--max_characters=9"])
    with pytest.raises(ValueError, match="reads no characters of a token"):
        build_pretrainer(values, choose_objective(values), tokenizer)


@pytest.mark.long("combinations")
def test_an_elmo_of_characters_is_a_tagger_of_words(run, runs, corpus, tmp_path):
    elmo = ("pretrain", "--objective=bidirectional_language_model", "--steps=2", "--batch_size=2")
    elmo += ("--corpus", corpus, "--sequence_length=16", "--held_out=0")
    first = tmp_path / "elmo"
    status, _, err = run(*elmo, "--size=tiny", "--max_characters=9", "--output", first)
    assert status == 0, err
    again = (*elmo, "--checkpoint", first / "model", "--output", tmp_path / "again")
    status, _, err = run(*again)
    assert status == 1 and "reads 9 characters of a token, got --max_characters None" in err
    status, _, err = run(*again, "--max_characters=9", "--output", tmp_path / "second")
    assert status == 0, err
    saved = kbs.ElmoPretrainer.from_preset(first / "model")
    tokenizer = read_tokenizer(corpus)
    assert saved.vocabulary_sha256 == kbs.BidirectionalTargets(tokenizer).vocabulary_sha256
    words = runs("bidirectional_language_model") / "model"
    status, _, err = run(
        *(*elmo, "--checkpoint", words, "--max_characters=9", "--output", tmp_path / "words")
    )
    assert status == 1 and "reads no characters of a token" in err
    table = tmp_path / "words.txt"
    table.write_text("Ann B-PER\nknows O\nUlm B-LOC\n\nno O\none O\n")
    status, _, err = run(
        *("finetune", "--task=ner", "--checkpoint", first / "model", "--train", table),
        *("--epochs=1", "--sequence_length=16", "--output", tmp_path / "tagger"),
    )
    assert status == 0, err
    table.write_text("text\nZoe knows Ulm.\n")
    status, _, err = run("predict", "--model", tmp_path / "tagger", "--input", table)
    assert status == 0, err


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
    values = Flags("pretrain", pretrain).parse(["--corpus=a", "--output=b", "--steps=1"])
    assert tuple(read_noises(values)) == BART_NOISES  # With the defaults of the flags.
    described = ",".join(
        f"{name}={noise.rate:g}"
        for noise in BART_NOISES
        for name, cls in masker_flags.NOISES.items()
        if type(noise).__name__ == cls
    )
    explained = " ".join(Flags("pretrain", pretrain).format_help().split())
    assert f"as in BART, {described}." in explained
    for name, objective in OBJECTIVES.items():
        assert set(objective.modes) <= {*MODES, CONTEXT_MODE}, name
        flags = {"mode": "pairs", **list_flags(objective)}
        for flag, choices in list_choices(objective).items():
            # The corpus or --checkpoint may say which model it is.
            assert flag == "model" or flags[flag] in choices, (name, flag)
        assert not set(flags) & set(list_idle_flags(objective)), name
    with pytest.raises(ValueError, match="name must be one of masked_lm, .*, got 'mlm'"):
        objectives.get("mlm")
