"""What each flag of each command must change in the calls of the library.

A row is a flag with a value that is not its default, the arguments that the library must get, and
other flags that it needs. The key "fit.epochs" is the argument `epochs` of a call of `fit`;
"compile.optimizer.decay" is the attribute `decay` of the argument `optimizer`.
"""

import csv

from cli.training_flags import ADAPT, FINETUNE, OVERWRITE, PRETRAIN, PRETRAIN_FROM_CHECKPOINT

INPUT = [
    ("--input=more.txt", {"find_files.inputs": ["more.txt"]}),
    ("--input=texts.txt,more.txt", {"find_files.inputs": ["texts.txt", "more.txt"]}),
    ("--format=files", {"InputOptions.format": "files", "plan_slices.format": "files"}),
    ("--text_key=body", {"InputOptions.text_key": "body"}),
    ("--encoding=cp1252", {"InputOptions.encoding": "cp1252", "plan_slices.encoding": "cp1252"}),
    ("--errors=replace", {"InputOptions.errors": "replace"}),
    ("--on_error=skip", {"InputOptions.on_error": "skip"}),
]

UNIGRAM = "--kind=unigram --output=spiece.model"

VOCAB = [
    *INPUT,
    ("--output=other.out", {"put_in_place.path": "other.out"}),
    OVERWRITE,
    ("--size=200", {"learn_pieces.size": 200}),
    ("--nolowercase", {"count_words.lowercase": False}),
    ("--strip_accents", {"count_words.strip_accents": True}),
    ("--nostrip_accents", {"count_words.strip_accents": False}),
    ("--min_frequency=1", {"learn_pieces.min_frequency": 1}),
    ("--num_unused=7", {"learn_pieces.num_unused": 7}),
    ("--kind=byte_pair", {"train_byte_pairs.size": 30522, "train_byte_pairs.min_frequency": 2}),
    (
        "--kind=unigram --output=spiece.model",
        {"train_sentence_pieces.size": 30522, "train_sentence_pieces.lowercase": True},
    ),
    (
        "--character_coverage=0.99",
        {"train_sentence_pieces.character_coverage": 0.99},
        UNIGRAM,
    ),
    ("--limit_alphabet=20", {"learn_pieces.limit_alphabet": 20}),
    ("--size=300", {"train_byte_pairs.size": 300}, "--kind=byte_pair"),
    ("--min_frequency=1", {"train_byte_pairs.min_frequency": 1}, "--kind=byte_pair"),
    ("--size=30", {"train_sentence_pieces.size": 30}, UNIGRAM),
    ("--nolowercase", {"train_sentence_pieces.lowercase": False}, UNIGRAM),
    ("--nostrip_accents", {"train_sentence_pieces.strip_accents": False}, UNIGRAM),
]

PREPARE = [
    ("--input=texts.txt,more.txt", {"prepare_corpus.inputs": ["texts.txt", "more.txt"]}),
    ("--format=jsonl", {"prepare_corpus.format": "jsonl"}),
    ("--text_key=body", {"prepare_corpus.text_key": "body"}),
    ("--encoding=cp1252", {"prepare_corpus.encoding": "cp1252"}),
    ("--errors=replace", {"prepare_corpus.errors": "replace"}),
    ("--on_error=skip", {"prepare_corpus.on_error": "skip"}),
    ("--vocab=other.txt", {"open_tokenizer.path": "other.txt"}),
    ("--output=other", {"prepare_corpus.output": "other"}),
    ("--workers=77", {"prepare_corpus.workers": 77}),
    ("--nolowercase", {"prepare_corpus.tokenizer.lowercase": False}),
    ("--nostrip_accents", {"prepare_corpus.tokenizer.strip_accents": False}),
    ("--slice_mb=0.5", {"prepare_corpus.slice_bytes": 524_288}),
]

FILL_MASK = [
    ("--model=other_masked_lm", {"from_preset.preset": "other_masked_lm"}),
    ("--text=a", {"predict.x": ["[MASK]", "a"]}),
    ("--top_k=7", {"predict.top_k": 7}),
]

NER = "--model=ner --input=words.txt"
QA = "--model=qa --input=squad.json"
RELATION = "--model=relation --input=semeval.txt"
RANKING = "--text_column=text --text_pair_column=second --label_column=number"
PAIRS = "--model=embed --text_column=text --text_pair_column=second"

EVALUATE = [
    ("--model=regress --label_column=number", {"from_preset.preset": "regress"}),
    ("--input=other.tsv", {"read_table.path": "other.tsv", "score_with.x": ["other0", "other1"]}),
    (NER, {"score_with.cls": "TokenClassifier"}),
    ("--model=qa --input=squad.json", {"score.cls": "QuestionAnswerer"}),
    ("--model=choice --input=swag.csv", {"predict.cls": "MultipleChoice"}),
    (f"--model=ranking {RANKING}", {"score.cls": "TextRanker"}),
    (PAIRS, {"score_retrieval.cls": "TextEmbedder"}),
    ("--model=seq2seq", {"predict.cls": "Seq2Seq"}),
    ("--text_column=sentence", {"score_with.x": ["sentence0", "sentence1", "sentence2"]}),
    (
        "--text_pair_column=second --model=pairs --text_column=text",
        {"score_with.x": [["text0", "text1", "text2"], ["second0", "second1", "second2"]]},
    ),
    ("--label_column=opposite", {"read_table.label_column": "opposite"}),
    (
        "--noheader --text_column=2 --label_column=4 --input=no_header.tsv",
        {"read_table.header": False},
    ),
    ("--delimiter=; --input=semicolons.txt", {"read_table.delimiter": ";"}),
    ("--quoting=minimal", {"read_table.quoting": csv.QUOTE_MINIMAL}),
    ("--left_out_labels=yes,maybe", {"read_table.left_out_labels": ["yes", "maybe"]}),
    (
        "--label_columns=no,yes",
        {"read_table.label_columns": ["no", "yes"], "score_with.y": [["yes"], ["no", "yes"]]},
        "--model=multilabel --input=bits.tsv",
    ),
    ("--encoding=cp1252", {"read_table.encoding": "cp1252"}),
    ("--encoding=cp1252", {"read_conll.encoding": "cp1252"}, NER),
    (
        "--label_separator=;",
        {"score_with.y": [["no", "yes"], ["yes"]]},
        "--model=multilabel --input=sets.tsv",
    ),
    ("--word_column=2", {"score_with.x": [["B-Y", "O"]]}, NER),
    ("--tag_column=2 --input=nested.txt", {"score_with.y": [["B-X", "O"]]}, NER),
    ("--max_tags=7", {"read_conll.max_tags": 7}, NER),
    ("--outside=B-X", {"score_with.y": [["O", "O"]]}, NER),
    (
        "--span_errors=fix",
        {"read_annotations.errors": "fix"},
        "--model=ner --input=spans.json",
    ),
    ("--tag_scheme=BIO", {"score_with.y": [["B-X", "O"]]}, "--model=ner --input=inside.txt"),
    (
        "--negative_column=sentence",
        {
            "score_retrieval.corpus": {
                f"{name}{row}": f"{name}{row}"
                for name in ("second", "sentence")
                for row in range(3)
            },
        },
        PAIRS,
    ),
    ("--target_column=sentence", {"read_table.label_column": "sentence"}, "--model=seq2seq"),
    (
        "--attribute_columns=opposite",
        {"read_columns.columns": ["text", "opposite"]},
        "--model=attributes",
    ),
    ("--other_label=no", {"score_answers.other": "no"}, "--model=relation"),
    ("--encoding=cp1252", {"read_semeval.encoding": "cp1252"}, RELATION),
    ("--json=scores.json", {"put_in_place.path": "scores.json", "put_in_place.begins": b"{\n "}),
    ("--png=scores.png", {"put_in_place.path": "scores.png", "put_in_place.begins": b"\x89PN"}),
    (
        "--errors=errors.csv",
        {"put_in_place.path": "errors.csv", "inspect_answers.cls": "TextClassifier"},
    ),
    ("--batch_size=7", {"score_with.batch_size": 7}, "--errors=errors.csv"),
    ("--errors=errors.csv", {"inspect_answers.cls": "TokenClassifier"}, NER),
    (*OVERWRITE, "--json=scores.json"),
    (*OVERWRITE, "--png=scores.png"),
    ("--batch_size=7", {"score_with.batch_size": 7}),
    ("--batch_size=7", {"score_with.batch_size": 7}, "--model=multilabel"),
    ("--batch_size=7", {"score_with.batch_size": 7}, "--model=regress --label_column=number"),
    ("--batch_size=7", {"score_with.batch_size": 7}, NER),
    ("--batch_size=7", {"score.batch_size": 7}, "--model=qa --input=squad.json"),
    ("--answer_errors=skip", {"read_squad.errors": "skip"}, QA),
    ("--characters=korquad", {"score.characters": "korquad"}, QA),
    ("--batch_size=7", {"predict.batch_size": 7}, "--model=choice --input=swag.csv"),
    ("--batch_size=7", {"score.batch_size": 7}, f"--model=ranking {RANKING}"),
    ("--batch_size=7", {"score_retrieval.batch_size": 7}, PAIRS),
    (
        "--batch_size=7",
        {"predict.batch_size": 7},
        PAIRS + " --label_column=number",
    ),
    ("--batch_size=7", {"predict.batch_size": 7}, "--model=seq2seq"),
]

#: Flags of a table of texts.
TABLE = {
    "--text_column=sentence": {"read_columns.columns": ["sentence"]},
    "--noheader --text_column=2": {"read_columns.header": False},
    "--delimiter=tab": {"read_columns.delimiter": "\t"},
    "--quoting=minimal": {"read_columns.quoting": csv.QUOTE_MINIMAL},
    "--encoding=cp1252": {"read_columns.encoding": "cp1252"},
}

#: Texts for a model of each kind.
ASKED = {
    "classify": "",
    "multilabel": "",
    "regress": "",
    "ner": "--format=jsonl",
    "attributes": "",
    "relation": "",
    "qa": "--input=squad.json",
    "choice": "--input=swag.csv",
    "ranking": "--input=train.tsv",
    "embed": "--format=jsonl",
    "seq2seq": "",
}


def read_table_by(file):
    """Rows of the flags of a table. The flag `file` names the table."""
    return [(flags, seen, file) for flags, seen in TABLE.items()]


PREDICT = [
    ("--model=regress", {"from_preset.preset": "regress"}),
    ("--model=ner --format=jsonl", {"predict.cls": "TokenClassifier"}),
    ("--model=qa --input=squad.json", {"predict.cls": "QuestionAnswerer"}),
    ("--model=choice --input=swag.csv", {"predict.cls": "MultipleChoice"}),
    ("--model=embed --format=jsonl", {"predict.cls": "TextEmbedder"}),
    ("--model=seq2seq", {"predict.cls": "Seq2Seq"}),
    ("--input=more.txt", {"predict.x": ["more"]}),
    ("--input=more.jsonl", {"predict.x": ["line0", "line1"]}),
    ("--question=who? --model=qa", {"predict.x": [["who?"], ["a good film\na dull plot"]]}),
    (
        "--text_column=sentence",
        {"predict.x": ["sentence0", "sentence1", "sentence2"]},
        "--input=train.tsv",
    ),
    (
        "--text_pair_column=sentence --text_column=text --model=pairs",
        {"read_columns.columns": ["text", "sentence"]},
        "--input=train.tsv",
    ),
    *read_table_by("--input=train.tsv"),
    ("--encoding=cp1252", {"read_lines.encoding": "cp1252"}),
    ("--encoding=cp1252", {"read_lines.encoding": "cp1252"}, "--model=qa --question=who?"),
    ("--output=answers.out", {"put_in_place.path": "answers.out"}),
    (*OVERWRITE, "--output=answers.out"),
    ("--format=jsonl", {"printed.begins": '{"text": '}),
    ("--format=tsv", {"printed.begins": "label\tpro"}, "--format=jsonl"),
    *(
        ("--batch_size=7", {"predict.batch_size": 7}, f"--model={name} {flags}")
        for name, flags in ASKED.items()
    ),
    *(
        ("--batch_size=7", {"answer.batch_size": 7}, f"--model=served_{name} {flags}")
        for name, flags in ASKED.items()
    ),
]

EMBED_TEXTS = [
    ("--model=other_embed", {"from_preset.preset": "other_embed"}),
    ("--input=more.txt", {"predict.x": ["more"]}),
    *read_table_by("--input=train.tsv"),
    ("--encoding=cp1252", {"read_lines.encoding": "cp1252"}),
    ("--output=other.npy", {"put_in_place.path": "other.npy"}),
    OVERWRITE,
    ("--batch_size=7", {"predict.batch_size": 7}),
]

SEARCH = [
    ("--model=other_embed", {"from_preset.preset": "other_embed"}),
    ("--corpus=more.txt", {"search.corpus": ["more"]}),
    *read_table_by("--corpus=train.tsv"),
    ("--encoding=cp1252", {"read_lines.encoding": "cp1252"}),
    ("--vectors=vectors.npy", {"search.corpus": [[1.0, 2.0], [3.0, 4.0]]}),
    ("--query=film --query=plot --queries=", {"search.queries": ["film", "plot"]}),
    ("--queries=more.txt", {"search.queries": ["more"]}),
    ("--top_k=7", {"search.top_k": 7}),
    ("--format=jsonl", {"printed.begins": '{"query":'}),
    ("--batch_size=7", {"search.batch_size": 7}),
]

EXPORT = [
    ("--model=regress", {"from_preset.preset": "regress"}),
    ("--model=regress", {"from_preset.preset": "regress"}, "--format=onnx"),
    ("--format=onnx --output=onnx", {"export_onnx.precision": "float32"}),
    ("--format=openvino --output=openvino", {"export_openvino.precision": "float32"}),
    ("--format=litert --output=litert", {"export_litert.task.name": "task"}),
    ("--format=saved_model", {"export_saved_model.task.name": "task"}, "--format=onnx"),
    (
        "--output=other/7",
        {"put_in_place.path": "other/7", "export_saved_model.model_name": "other"},
    ),
    ("--output=onnx", {"put_in_place.path": "onnx"}, "--format=onnx"),
    ("--inputs=sentence", {"export_saved_model.inputs": ["sentence"]}),
    ("--max_batch_size=7", {"export_saved_model.max_batch_size": 7}),
    ("--precision=bfloat16", {"export_saved_model.precision": "bfloat16"}),
    ("--precision=float16", {"export_saved_model.precision": "float16"}),
    ("--precision=float16", {"export_onnx.precision": "float16"}, "--format=onnx"),
    ("--precision=int8", {"export_onnx.precision": "int8"}, "--format=onnx"),
    (
        "--calibration=more.txt",
        {"export_openvino.calibration_texts": ["more"]},
        "--format=openvino --precision=int8 --calibration=train.tsv",
    ),
    (
        "--calibration=train.tsv",
        {"export_openvino.calibration_texts": ["text0", "text1", "text2"]},
        "--format=openvino --precision=int8 --calibration=more.txt",
    ),
    (
        "--calibration=more.jsonl",
        {"export_openvino.calibration_texts": ["line0", "line1"]},
        "--format=openvino --precision=int8 --calibration=train.tsv",
    ),
    OVERWRITE,
    (*OVERWRITE, "--format=onnx --output=onnx"),
]

CONVERT = [
    ("--input=regress", {"from_preset.preset": "regress"}),
    ("--input=regress", {"open_backbone.preset": "regress"}, "--encoder_only --to=huggingface"),
    ("--output=other", {"put_in_place.path": "other"}),
    ("--to=huggingface", {"save_hugging_face.sequence_length": 16}),
    ("--to=google_tf1", {"save_google_tf1.model.name": "task"}),
    ("--to=keras_hub", {"save_keras_hub.sequence_length": 16}),
    ("--to=preset", {"save_to_preset.cls": "TextClassifier"}, "--to=huggingface"),
    ("--encoder_only", {"save_hugging_face.model": "encoder"}, "--to=huggingface"),
    (
        "--part=masked_lm",
        {"from_preset.next_sentence": False, "from_preset.span_boundary": False},
        "--input=pretrained --to=huggingface",
    ),
    ("--part=masked_lm --input=electra", {"make_masked_lm.cls": "ElectraPretrainer"}),
    (
        "--part=discriminator --to=huggingface",
        {"save_hugging_face.model.name": "discriminator"},
        "--input=electra",
    ),
    OVERWRITE,
]

#: A command, its flags without the flag of a row, and the rows.
TABLES = [
    ("vocab", "--input=texts.txt --output=vocab.out", VOCAB),
    ("prepare", "--input=texts.txt --vocab=vocab.txt --output=shards.out", PREPARE),
    ("pretrain", "--corpus=shards --output=run --steps=200 --size=tiny", PRETRAIN),
    (
        "pretrain",
        "--corpus=shards --output=run --steps=200 --checkpoint=bert",
        PRETRAIN_FROM_CHECKPOINT,
    ),
    ("adapt", "--checkpoint=bert --texts=texts.txt --output=adapted", ADAPT),
    ("fill-mask", "--model=masked_lm --text=[MASK]", FILL_MASK),
    ("finetune", "--checkpoint=bert --train=train.tsv --output=a.keras", FINETUNE),
    ("evaluate", "--model=classify --input=train.tsv", EVALUATE),
    ("predict", "--model=classify --input=texts.txt", PREDICT),
    ("embed", "--model=embed --input=texts.txt --output=vectors.out.npy", EMBED_TEXTS),
    ("search", "--model=embed --corpus=texts.txt --queries=texts.txt", SEARCH),
    ("export", "--model=classify --output=saved/1", EXPORT),
    ("convert", "--input=classify --output=converted --to=preset", CONVERT),
    ("show", "--model=classify", [("--model=regress", {"from_preset.preset": "regress"})]),
]
