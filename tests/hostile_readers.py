"""The readers of the package, each with a valid set of files, for `hostile_files.py`.

What they need is imported when they are called, so that the backend is the one of the process.
"""

import contextlib
import json

import numpy as np
from hostile_files import Reader


def _make_task():
    import keras
    from small_texts import ONE_LAYER, VOCABULARY

    import keras_bert_suite as kbs

    keras.utils.set_random_seed(0)
    packer = kbs.SegmentPacker(kbs.WordPieceTokenizer(VOCABULARY), 16)
    backbone = kbs.BertBackbone(**ONE_LAYER)
    return kbs.TextClassifier(backbone, preprocessor=packer, label_names=["no", "yes"])


def _read_tensors(file):
    shapes = file.tensor_shapes() if hasattr(file, "tensor_shapes") else file.shapes
    for name in shapes:
        np.asarray(file.tensor(name)).tobytes()


def _read_checkpoint(path):
    from keras_bert_suite import SegmentPacker
    from keras_bert_suite.checkpoints import open_checkpoint

    checkpoint = open_checkpoint(path)
    if checkpoint is not None:
        _read_tensors(checkpoint)
        SegmentPacker.from_checkpoint(checkpoint)("the film")


def make_safetensors(folder):
    from safetensors.numpy import save_file

    tensors = {"a": np.zeros((2, 3), "float32"), "b": np.ones(5, "int64")}
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def read_safetensors(folder):
    from keras_bert_suite.checkpoints.tensor_files import SafetensorsFile

    _read_tensors(SafetensorsFile(folder / "model.safetensors"))


def make_torch(folder):
    import torch

    torch.save({"a": torch.zeros(2, 3), "b": torch.ones(4)}, folder / "pytorch_model.bin")


def read_torch(folder):
    from keras_bert_suite.checkpoints.tensor_files import TorchFile

    _read_tensors(TorchFile(folder / "pytorch_model.bin"))


def make_hdf5(folder):
    import h5py

    with h5py.File(folder / "model.weights.h5", "w") as file:
        file["layers/dense/vars/0"] = np.zeros((4, 3), "float32")
        file.create_dataset("layers/norm/vars/0", data=np.ones(100), compression="gzip")


def read_hdf5(folder):
    from keras_bert_suite.checkpoints.tensor_files import HDF5File

    _read_tensors(HDF5File(folder / "model.weights.h5"))


def make_bundle(folder):
    from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import write_bundle

    tensors = [(name, np.ones((2, 3), "float32")) for name in ("a/b", "a/c", "d")]
    write_bundle(folder / "model.ckpt", tensors)


def read_bundle(folder):
    from keras_bert_suite.checkpoints.google_tf1.tensor_bundle import TensorBundle

    _read_tensors(TensorBundle(folder / "model.ckpt"))


def make_hugging_face(folder):
    from keras_bert_suite.checkpoints import save_hugging_face

    save_hugging_face(_make_task(), folder / "model")


def make_google(folder):
    from keras_bert_suite.checkpoints import save_google_tf1

    save_google_tf1(_make_task(), folder / "model")


def make_keras_hub(folder):
    from keras_bert_suite.checkpoints import save_keras_hub

    task = _make_task()
    save_keras_hub(task.backbone, folder / "model", tokenizer=task.preprocessor.tokenizer)


def read_model(folder):
    _read_checkpoint(folder / "model")


def make_embedder(folder):
    import keras_bert_suite as kbs
    from keras_bert_suite.checkpoints import save_sentence_transformers

    task = _make_task()
    embedder = kbs.TextEmbedder(task.backbone, preprocessor=task.preprocessor)
    save_sentence_transformers(embedder, folder / "model")


def make_preset(folder):
    _make_task().save_to_preset(str(folder / "model"))


def read_task(folder):
    from keras_bert_cli.model_paths import check_model
    from keras_bert_cli.saved_tasks import open_task

    path = str(next(folder.iterdir()))
    check_model(path)
    open_task(path)


def seal_model(folder):
    from keras_bert_suite.files.checksums import write_checksums

    write_checksums(folder / "model")


def make_archive(folder):
    _make_task().save(folder / "task.keras")


def make_word_pieces(folder):
    from small_texts import VOCABULARY

    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n")


def read_tokenizer(folder):
    from keras_bert_suite import open_tokenizer

    files = sorted(path for path in folder.iterdir() if path.name != "merges.txt")
    open_tokenizer(files[0]).tokenize(["the film", "un-good, \u00e9!"])


def make_byte_pairs(folder):
    from small_byte_pairs import MERGES, make_vocabulary

    from keras_bert_suite import BytePairTokenizer

    BytePairTokenizer(make_vocabulary(), MERGES).save_assets(folder)


def make_sentence_pieces(folder):
    from small_sentence_pieces import make_albert

    (folder / "spiece.model").write_bytes(make_albert())


def make_fast_tokenizer(folder):
    from small_byte_pairs import MERGES, make_vocabulary
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors

    merges = [tuple(merge.split()) for merge in MERGES]
    tokenizer = Tokenizer(models.BPE(make_vocabulary(), merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), True, False)
    tokenizer.save(str(folder / "tokenizer.json"))


def make_shards(folder):
    from small_texts import VOCABULARY, make_reviews

    from keras_bert_suite import WordPieceTokenizer
    from keras_bert_suite.corpus import prepare_corpus

    texts = folder.with_name("texts.txt")
    texts.write_text("\n\n".join("\n".join(make_reviews(4, seed)[0]) for seed in range(9)))
    prepare_corpus(texts, WordPieceTokenizer(VOCABULARY), folder, slice_bytes=400)


def read_shards(folder):
    from keras_bert_suite.corpus import open_corpus
    from keras_bert_suite.corpus import read_tokenizer as read_corpus_tokenizer

    corpus = open_corpus(folder)
    for document in range(corpus.num_documents):
        corpus.tokens(document)
    read_corpus_tokenizer(folder).tokenize("the film")


def seal_shards(folder):
    """Describes the files of the shards anew in the manifest, and seals it."""
    from keras_bert_suite.corpus.token_shards import describe_file
    from keras_bert_suite.files.atomic_file import write_sealed_json

    file = folder / "manifest.json"
    with contextlib.suppress(Exception):
        manifest = json.loads(file.read_bytes())
        manifest.pop("sha256", None)
        for number, shard in enumerate(manifest["shards"]):
            for kind, ending in (("tokens", ".array_record"), ("lengths", ".npz")):
                shard["files"][kind] = describe_file(folder / f"shard-{number:05d}{ending}")
        write_sealed_json(file, manifest)


def make_records(folder):
    from small_texts import VOCABULARY

    from keras_bert_suite import TokenMasker, WordPieceTokenizer
    from keras_bert_suite.corpus.token_corpus import TokenCorpus
    from keras_bert_suite.pretraining.google_examples import write_google_examples
    from keras_bert_suite.pretraining.pretraining_batches import PretrainingBatches

    corpus = TokenCorpus.from_documents([[[5 + d, 6, 7] for _ in range(4)] for d in range(6)])
    masker = TokenMasker(WordPieceTokenizer(VOCABULARY), max_predictions=3)
    batches = PretrainingBatches(corpus, masker, sequence_length=16, batch_size=2)
    write_google_examples(folder / "examples.tfrecord", batches)


def read_records(folder):
    from keras_bert_suite.pretraining.google_examples import GoogleExamples

    examples = GoogleExamples(folder / "examples.tfrecord", batch_size=1)
    for index in range(len(examples)):
        examples[index]


def make_rows(folder):
    (folder / "rows.tsv").write_text("text\tlabel\nthe film\tyes\na plot\tno\n")
    (folder / "rows.csv").write_text('text,label\n"the, film",yes\na plot,no\n')
    (folder / "words.conll").write_text("the\tO\nfilm\tB-X\n\na\tO\nplot\tB-Y\n")
    (folder / "spaces.conll").write_text("the O\nfilm B-X\n\na O\nplot B-Y\n")
    answers = [{"text": "film", "answer_start": 4}]
    question = {"id": "1", "question": "What?", "answers": answers}
    paragraph = {"context": "the film", "qas": [question]}
    squad = {"version": "1.1", "data": [{"title": "x", "paragraphs": [paragraph]}]}
    (folder / "squad.json").write_text(json.dumps(squad))
    header = "video-id,fold-ind,startphrase,sent1,sent2,gold-source,ending0,ending1,ending2,ending3"
    (folder / "swag.csv").write_text(f"{header},label\n1,2,the film,the,film,gold,a,b,c,d,2\n")
    (folder / "SST-2").mkdir()
    (folder / "SST-2" / "train.tsv").write_text("sentence\tlabel\nthe film\t1\na plot\t0\n")


def read_rows(folder):
    from keras_bert_suite import read_conll, read_glue, read_squad, read_swag, read_table
    from keras_bert_suite.data.readers.text_files import read_lines

    for name in ("rows.tsv", "rows.csv"):
        read_table(folder / name, "text", "label")
        read_lines(folder / name)
    read_conll(folder / "words.conll")
    read_conll(folder / "spaces.conll")
    read_squad(folder / "squad.json")
    read_swag(folder / "swag.csv")
    read_glue(folder, "sst2")


def make_annotations(folder):
    results = [{"value": {"start": 4, "end": 8, "text": "film", "labels": ["X"]}}]
    task = {"id": 1, "data": {"text": "the film"}, "annotations": [{"result": results}]}
    (folder / "tasks.json").write_text(json.dumps([task]))
    (folder / "cluener.json").write_text('{"text": "a b", "label": {"X": {"b": [[2, 2]]}}}')
    (folder / "spans.jsonl").write_text('{"text": "the film", "label": [[4, 8, "X"]]}\n' * 2)
    (folder / "brat").mkdir()
    (folder / "brat" / "a.txt").write_text("the film\r\n")
    (folder / "brat" / "a.ann").write_text("T1\tX 4 8\tfilm\nR1\tY Arg1:T1 Arg2:T1\n")


def read_annotations(folder):
    from keras_bert_suite import read_annotations

    for name in ("tasks.json", "cluener.json", "spans.jsonl", "brat"):
        read_annotations(folder / name, scheme="BIO", errors="fix")


def make_run(folder):
    from keras_bert_cli.run_settings import write_settings
    from keras_bert_suite.runs.progress import Progress
    from keras_bert_suite.runs.run_checkpoints import write_checkpoint

    write_checkpoint(folder, Progress(0, 1, 7, 7), {"a": np.zeros(3), "b": np.ones(2)}, keep=1)
    settings = {"steps": 6, "report_every": 2, "output": "x", "checkpoint": None, "finished": 0}
    write_settings(folder, settings)


def read_run(folder):
    from keras_bert_cli.run_settings import read_settings
    from keras_bert_suite.runs.run_checkpoints import find_checkpoint, read_arrays

    read_settings(folder)
    found = find_checkpoint(folder)
    if found is not None:
        for array in read_arrays(found[0]).values():
            array.tobytes()


def seal_run(folder):
    from keras_bert_suite.files.checksums import write_checksums

    file = folder / "settings.json"
    with contextlib.suppress(Exception):
        content = json.loads(file.read_bytes())
        content.pop("sha256", None)
        file.write_text(json.dumps(content))
    for path in folder.glob("step-*"):
        write_checksums(path)


def make_corpus(folder):
    (folder / "texts.jsonl").write_text('{"text": "the film was good. a plot"}\n{"text": "a"}\n')
    (folder / "texts.txt").write_text("the film\nwas good\n\na plot\n")


def read_corpus(folder):
    from keras_bert_suite.corpus.documents import find_faults
    from keras_bert_suite.corpus.input_files import InputOptions, find_files, plan_slices

    place, names = find_files(folder)
    for piece in plan_slices(place, names, "auto", 100):
        if faults := find_faults(piece, InputOptions()):
            raise faults.error(place)


READERS = {
    "safetensors": Reader(make_safetensors, read_safetensors),
    "PyTorch": Reader(make_torch, read_torch),
    "HDF5": Reader(make_hdf5, read_hdf5),
    "TensorFlow 1": Reader(make_bundle, read_bundle),
    "Hugging Face": Reader(make_hugging_face, read_model),
    "Google": Reader(make_google, read_model),
    "KerasHub": Reader(make_keras_hub, read_model),
    "sentence-transformers": Reader(make_embedder, read_model),
    "vocab.txt": Reader(make_word_pieces, read_tokenizer),
    "vocab.json": Reader(make_byte_pairs, read_tokenizer),
    "tokenizer.json": Reader(make_fast_tokenizer, read_tokenizer),
    "SentencePiece": Reader(make_sentence_pieces, read_tokenizer, weight=0.05),
    "shards": Reader(make_shards, read_shards, seal_shards, raises=(MemoryError,)),
    "TFRecords": Reader(make_records, read_records),
    "rows": Reader(make_rows, read_rows),
    "annotations": Reader(make_annotations, read_annotations),
    "corpus": Reader(make_corpus, read_corpus),
    "run": Reader(make_run, read_run, seal_run),
    "preset": Reader(make_preset, read_task, seal_model, weight=0.05),
    ".keras": Reader(make_archive, read_task, weight=0.05),
}
