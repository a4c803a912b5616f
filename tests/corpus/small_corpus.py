"""A corpus of a few kilobytes, whose documents are known."""

import json

import numpy as np
from small_texts import VOCABULARY, make_reviews

import keras_bert_suite as kbs
from keras_bert_suite.corpus.preparation import prepare_corpus
from keras_bert_suite.corpus.token_corpus import TokenCorpus


def make_tokenizer(**options):
    return kbs.WordPieceTokenizer(VOCABULARY, **options)


def make_documents(num_documents, seed=0):
    """Lists of one to five sentences, each of which ends with a full stop."""
    sentences, _ = make_reviews(5 * num_documents, seed)
    return [
        [f"{sentence.capitalize()}." for sentence in sentences[5 * i : 5 * i + 1 + i % 5]]
        for i in range(num_documents)
    ]


def write_sentences(path, documents):
    path.write_text("\n".join("\n".join([*d, ""]) for d in documents), encoding="utf-8")


def write_jsonl(path, documents, key="text"):
    lines = (json.dumps({"id": i, key: " ".join(d)}) for i, d in enumerate(documents))
    path.write_text("\n".join(lines), encoding="utf-8")


def tokenize_in_memory(documents, tokenizer):
    """The `TokenCorpus` that a corpus on disk must equal."""
    return TokenCorpus.from_documents([tokenizer.tokenize(document) for document in documents])


class DividedCorpus(TokenCorpus):
    """The documents of another corpus in shards, each up to one of `ends`."""

    def __init__(self, corpus, ends):
        self._corpus = corpus
        self._bounds = [0, *ends]
        starts = corpus.document_starts[self._bounds]
        super().__init__(np.diff(self._bounds), np.diff(starts))

    def read_lengths(self, shard):
        first, end = self._bounds[shard : shard + 2]
        starts = self._corpus.document_starts[first : end + 1]
        return self._corpus.sentence_lengths[starts[0] : starts[-1]], np.diff(starts)

    def tokens(self, document):
        return self._corpus.tokens(document)


def prepare_three_shards(folder, documents):
    """Prepares documents in a folder, and returns the folder of the shards."""
    write_sentences(folder / "a.txt", documents)
    size = (folder / "a.txt").stat().st_size
    prepare_corpus(folder / "a.txt", make_tokenizer(), folder / "out", slice_bytes=size // 3)
    assert len(list((folder / "out").glob("*.array_record"))) == 3
    return folder / "out"


def check_same_corpus(corpus, expected):
    assert corpus.num_documents == expected.num_documents
    assert corpus.num_sentences == expected.num_sentences
    for document in range(expected.num_documents):
        for found, wanted in (
            (corpus.tokens(document), expected.tokens(document)),
            (corpus.sentences(document), expected.sentences(document)),
        ):
            assert found.dtype == "int32" and found.tolist() == wanted.tolist()


def read_folder(folder):
    """dict, name -> bytes, of all files in a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}
