"""`MBartTokenizer` beside the library `sentencepiece` and the tokenizers of transformers."""

import gzip
import json

import numpy as np
import pytest
import sentencepiece
import transformers
from family import MBART
from peer_weights import to_numpy
from small_sentence_pieces import PIECES, XLM_ROBERTA_TOKENS, make_xlm_roberta, train
from tokenizer_checks import SAMPLES, check_engines, random_texts

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face
from keras_bert_suite.checkpoints.tokenizer_files.find_kind import read_folder_tokenizer
from keras_bert_suite.checkpoints.tokenizer_files.languages import MBART_LANGUAGES
from keras_bert_suite.checkpoints.tokenizer_files.sentence_piece import read_hugging_face_mbart
from keras_bert_suite.checkpoints.tokenizer_files.word_piece import write_tokenizer

MODEL = make_xlm_roberta()
TEXTS = ["The good film", "  un café ,  9 2009, ", "", "x</s> <s><mask> y", "一二 가 ② ½"]
#: No spaces at the end: the library leaves them out, and `MBart50Tokenizer` of transformers 5 not.
SOURCES = [text.strip() for text in TEXTS[:2]]
PEERS = {25: transformers.MBartTokenizer, 50: transformers.MBart50Tokenizer}


def make_oracle(model):
    """The rule of `MBartTokenizer` of transformers 4: ids are shifted by 1, and 3 is unknown."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return lambda text: [i + 1 if i else 3 for i in processor.encode(text)]


def make_tokenizer(num_languages=25, model=MODEL, **languages):
    return kbs.MBartTokenizer(model, num_languages=num_languages, **languages)


@pytest.fixture(scope="module", params=[25, 50])
def pair(request, tmp_path_factory):
    """(a tokenizer from English to Romanian, that of transformers with the same files)."""
    languages = {"source_language": "en_XX", "target_language": "ro_RO"}
    tokenizer = make_tokenizer(request.param, **languages)
    path = tmp_path_factory.mktemp("mbart")
    write_tokenizer(tokenizer, 16, path)
    return tokenizer, PEERS[request.param].from_pretrained(path)


def test_both_engines_equal_the_rule():
    texts = [*TEXTS, *(text for batch in random_texts(200, [*PIECES, *" ab.é"]) for text in batch)]
    oracle = make_oracle(MODEL)
    check_engines(make_tokenizer(), texts, [oracle(text) for text in texts])


@pytest.mark.parametrize("step", SAMPLES)
def test_texts_in_the_wild(shared_data, step):
    with gzip.open(shared_data / "golden" / "wild.jsonl.gz", "rt") as file:
        texts = [json.loads(line)["text"] for line in file]
    model = train(texts[::8], 3000, XLM_ROBERTA_TOKENS)
    oracle, texts = make_oracle(model), texts[::step]
    check_engines(make_tokenizer(50, model), texts, [oracle(text) for text in texts])


def test_ids_of_languages_as_in_transformers(pair):
    tokenizer, peer = pair
    codes = MBART_LANGUAGES[tokenizer.num_languages]
    assert tokenizer.vocabulary_size() == len(peer)
    for token in ("<s>", "<pad>", "</s>", "<unk>", "<mask>", "▁good", *codes):
        assert tokenizer.token_to_id(token) == peer.convert_tokens_to_ids(token), token
    assert not tokenizer.find_ordinary()[[tokenizer.token_to_id(code) for code in codes]].any()
    assert tokenizer.tokenize("en_XX") != [tokenizer.token_to_id("en_XX")]


def test_rows_as_in_transformers(pair):
    """Sources, pairs, and the targets that a decoder reads and writes."""
    tokenizer, peer = pair
    packer = kbs.SegmentPacker(tokenizer, 16)
    sources, targets = SOURCES, ["bad", "the plot was"]
    expected = peer(sources, text_target=targets, padding=True)
    packed = packer.pack(sources)
    np.testing.assert_array_equal(packed["token_ids"], expected["input_ids"])
    np.testing.assert_array_equal(packed["padding_mask"], expected["attention_mask"])
    together = peer(sources, targets, padding=True)["input_ids"]
    np.testing.assert_array_equal(packer.pack(sources, targets)["token_ids"], together)
    writer = make_writer(packer)
    x, labels, weights = writer.target_rows.pack(sources, targets)
    label_ids = np.array(expected["labels"])
    np.testing.assert_array_equal(labels, label_ids)
    assert (weights == (label_ids != 1)).all()
    shift = transformers.models.mbart.modeling_mbart.shift_tokens_right
    read = shift(as_torch(expected["labels"]), 1).numpy()
    is_read = x["decoder_padding_mask"] == 1
    np.testing.assert_array_equal(x["decoder_token_ids"][is_read], read[is_read])
    # A decoder that writes begins so, and a translation is forced to its language.
    assert writer.target_rows.first_token_id == read[0, 0]
    forced = tokenizer.token_to_id("ro_RO") if tokenizer.num_languages == 50 else None
    assert writer.target_rows.forced_token_id == forced


def as_torch(rows):
    import torch

    return torch.tensor(rows)


def make_writer(packer, **arguments):
    size = packer.tokenizer.vocabulary_size()
    sizes = {"num_layers": 1, "num_heads": 2, "hidden_dim": 8, "intermediate_dim": 8}
    sizes = {**sizes, "max_sequence_length": 16, "pre_norm": True, "scale_embeddings": True}
    backbone = kbs.BartBackbone(size, **sizes, initializer_range=0.5)
    return kbs.Seq2Seq(backbone, preprocessor=packer, max_target_length=6, **arguments)


def test_translations_as_in_transformers(pair, tmp_path):
    """From the folder that is written, with the languages of the tokenizer."""
    tokenizer, _ = pair
    writer = make_writer(kbs.SegmentPacker(tokenizer, 16))
    writer.masked_lm.bias.assign(np.where(np.arange(len(tokenizer.get_vocabulary())) == 2, -9, 0))
    save_hugging_face(writer, tmp_path / "mbart")
    opened = kbs.Seq2Seq.from_preset(tmp_path / "mbart", max_target_length=6)
    again = opened.preprocessor.tokenizer
    assert again.settings == tokenizer.settings
    peer = transformers.AutoTokenizer.from_pretrained(tmp_path / "mbart")
    model = transformers.MBartForConditionalGeneration.from_pretrained(tmp_path / "mbart").eval()
    assert type(peer) is PEERS[tokenizer.num_languages]
    code, is_50 = again.token_to_id("ro_RO"), tokenizer.num_languages == 50
    settings = {"forced_bos_token_id": code} if is_50 else {"decoder_start_token_id": code}
    rows = model.generate(
        **peer(SOURCES, padding=True, return_tensors="pt"),
        **{"max_length": 7, "num_beams": 1, "do_sample": False, "forced_eos_token_id": None},
        **settings,
    )
    expected = peer.batch_decode(rows, skip_special_tokens=True)
    got = opened.predict(SOURCES)
    assert [text.split() for text in got] == [text.split() for text in expected]
    assert any(got) and not any("_" in text for text in got)


def test_a_folder_that_transformers_saved(tmp_path):
    """It has a tokenizer.json, and no model of SentencePiece."""
    tokenizer = make_tokenizer(source_language="de_DE", target_language="ro_RO")
    write_tokenizer(tokenizer, 16, tmp_path)
    peer = transformers.MBartTokenizer.from_pretrained(tmp_path)
    peer.save_pretrained(tmp_path / "theirs")
    again = kbs.open_tokenizer(tmp_path / "theirs")
    assert again.settings == tokenizer.settings
    assert again.get_vocabulary() == tokenizer.get_vocabulary()
    assert again.tokenize(SOURCES) == peer(SOURCES, add_special_tokens=False)["input_ids"]


def test_denoising_reads_whole_rows():
    """The decoder reads the row of its language with the last token in front, as fairseq's."""
    for num_languages in (25, 50):
        tokenizer = make_tokenizer(num_languages, source_language="de_DE")
        ids = tokenizer.tokenize(["the good film", "the plot was bad"])
        corpus = kbs.corpus.TokenCorpus.from_documents([ids, ids[::-1]])
        corruption = kbs.DenoisingCorruption(tokenizer, starts_with_end=True)
        batches = kbs.pretraining.PretrainingBatches(corpus, corruption, 16, 2, "doc_sentences")
        x, y, weights = batches[0]
        packed = kbs.SegmentPacker(tokenizer, 16)
        start, end = tokenizer.start_token_id, tokenizer.end_token_id
        for read, written, weight in zip(
            x["decoder_token_ids"], y["mlm"], weights["mlm"], strict=True
        ):
            row = written[weight > 0].tolist()
            text = row[:-2] if num_languages == 25 else row[1:-1]
            assert sorted(text) == sorted(sum(ids, []))
            assert row == ([*text, end, start] if num_languages == 25 else [start, *text, end])
            assert read[: len(row)].tolist() == [row[-1], *row[:-1]]
        assert packed.row_template.start_token_id == start


def test_errors(tmp_path):
    with pytest.raises(ValueError, match="source_language must be one of ar_AR, .*, got 'xx'"):
        make_tokenizer(source_language="xx")
    with pytest.raises(ValueError, match="target_language must be one of .*, got 'uk_UA'"):
        make_tokenizer(target_language="uk_UA")
    assert make_tokenizer(50, target_language="uk_UA").target_language == "uk_UA"
    with pytest.raises(ValueError, match="num_languages must be 25, as in mBART, or 50"):
        make_tokenizer(100)
    with pytest.raises(ValueError, match="got start_token='<s>'. Pass source_language"):
        make_tokenizer(start_token="<s>")


@pytest.mark.parametrize("file", ["config.json", "generation_config.json"])
def test_an_mbart_50_that_writes_one_language(file, tmp_path):
    tokenizer = make_tokenizer(50)
    config = {"vocab_size": tokenizer.vocabulary_size(), "decoder_start_token_id": 2}
    (tmp_path / "config.json").write_text(json.dumps(config))
    forced = {"forced_bos_token_id": tokenizer.token_to_id("uk_UA")}
    (tmp_path / file).write_text(json.dumps({**config, **forced}))
    (tmp_path / "sentencepiece.bpe.model").write_bytes(MODEL)
    opened = read_hugging_face_mbart(tmp_path)
    assert (opened["target_language"], opened["num_languages"]) == ("uk_UA", 50)


@pytest.mark.parametrize(
    ("cls", "wanted"),
    [("MBartTokenizer", 25), ("MBart50Tokenizer", 50), ("XLMRobertaTokenizer", None)],
)
def test_a_folder_of_a_tokenizer_alone(cls, wanted, tmp_path):
    """Its classes share the name of their file, and `tokenizer_config.json` tells them apart."""
    (tmp_path / "sentencepiece.bpe.model").write_bytes(MODEL)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": cls}))
    name, arguments = read_folder_tokenizer(tmp_path)
    assert name == ("XLMRobertaTokenizer" if wanted is None else "MBartTokenizer")
    assert arguments.get("num_languages") == wanted


def test_logits_of_a_checkpoint_with_its_tokenizer(tmp_path):
    """A folder of transformers, whose decoder begins with a language."""
    tokenizer = make_tokenizer()
    romanian = tokenizer.token_to_id("ro_RO")
    sizes = {"vocab_size": tokenizer.vocabulary_size(), "decoder_start_token_id": romanian}
    config = transformers.MBartConfig(**{**MBART.config, **sizes})
    peer = transformers.MBartForConditionalGeneration(config).eval()
    peer.save_pretrained(tmp_path)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(MODEL)
    task = kbs.Seq2Seq.from_preset(tmp_path, max_target_length=4)
    assert task.preprocessor.tokenizer.target_language == "ro_RO"
    x, _, _ = task.target_rows.pack(TEXTS[:2], ["bad", "the plot"])
    names = {"token_ids": "input_ids", "padding_mask": "attention_mask"}
    names["decoder_token_ids"] = "decoder_input_ids"
    expected = peer(**{theirs: as_torch(x[ours]) for ours, theirs in names.items()}).logits
    is_read = x["decoder_padding_mask"] == 1
    got = to_numpy(task(x, training=False))[is_read]
    np.testing.assert_allclose(got, expected.detach().numpy()[is_read], atol=1e-5)
