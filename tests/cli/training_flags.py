"""The flags of `pretrain` and `finetune`: rows as in `flag_table.py`."""

import csv

import keras_bert_suite as kbs

OVERWRITE = ("--overwrite", {"put_in_place.replace": True})

#: Learning rates are read in the optimizer that `compile` gets.
SCHEDULE = "compile.optimizer._learning_rate."

PRETRAIN = [
    ("--corpus=books", {"open_corpus.path": "books", "read_tokenizer.path": "books"}),
    (
        "--corpus=shards=0.75,books=0.25",
        {
            "open_corpus.path": ["shards", "books"],
            "share_rows.shares": [0.75, 0.25],
            "PretrainingBatches.batch_size": [24, 8],
        },
    ),
    (
        "--output=other",
        {
            "fit.callbacks.0.log_file": "other/log.csv",
            "fit.callbacks.1.directory": "other/checkpoints",
            "put_in_place.path": "other/model",
        },
    ),
    (
        "--steps=600",
        {"fit.epochs": 50, "fit.steps_per_epoch": 12, SCHEDULE + "total_steps": 600},
    ),
    ("--objective=masked_lm", {"Pretrainer.span_boundary": False}, "--objective=span_boundary"),
    (
        "--objective=span_boundary",
        {
            "Pretrainer.span_boundary": True,
            "PretrainingBatches.masker.unit": "span",
            "PretrainingBatches.mode": "doc_sentences",
            "PretrainingBatches.short_seq_prob": 0.0,
        },
    ),
    (
        "--objective=word_order",
        {
            "PretrainingBatches.masker.__class__.__name__": "TokenShuffler",
            "Pretrainer.sentence_relations": 3,
        },
    ),
    (
        "--objective=replaced_tokens",
        {
            "ElectraPretrainer.backbone.__class__.__name__": "ElectraBackbone",
            "PretrainingBatches.masker.mask_token_rate": 0.85,
            "PretrainingBatches.masker.random_token_rate": 0.0,
            SCHEDULE + "peak_learning_rate": kbs.ElectraPretrainer.default_rate,
        },
    ),
    (
        "--objective=unilm",
        {
            "PretrainingBatches.masker.__class__.__name__": "LanguageModelMixture",
            "Pretrainer.backbone.attention_pattern": "unilm",
        },
    ),
    (
        "--objective=left_to_right",
        {
            "PretrainingBatches.masker.__class__.__name__": "NextTokenTargets",
            "Pretrainer.backbone.attention_pattern": "left_to_right",
        },
    ),
    ("--model=nezha", {"Pretrainer.backbone.__class__.__name__": "NezhaBackbone"}),
    ("--size=mini", {"Pretrainer.backbone.hidden_dim": 256, "Pretrainer.backbone.num_layers": 4}),
    (
        "--dropout=0.3",
        {"Pretrainer.backbone.dropout": 0.3, "Pretrainer.backbone.attention_dropout": 0.3},
    ),
    ("--initializer_range=0.05", {"Pretrainer.backbone.initializer_range": 0.05}),
    ("--batch_size=12", {"PretrainingBatches.batch_size": 12}),
    (
        "--accumulate=4",
        {"compile.optimizer.gradient_accumulation_steps": 4, SCHEDULE + "total_steps": 50},
    ),
    (
        "--sequence_length=64",
        {
            "PretrainingBatches.sequence_length": 64,
            "Pretrainer.preprocessor.sequence_length": 64,
            "fit.callbacks.0.tokens_per_step": 32 * 64,
        },
    ),
    (
        "--sequence_length=600",
        {"Pretrainer.backbone.max_sequence_length": 600},
    ),
    ("--masking_rate=0.3", {"PretrainingBatches.masker.rate": 0.3}),
    ("--max_predictions=9", {"PretrainingBatches.masker.max_predictions": 9}),
    ("--mask_token_rate=0.7", {"PretrainingBatches.masker.mask_token_rate": 0.7}),
    ("--random_token_rate=0.2", {"PretrainingBatches.masker.random_token_rate": 0.2}),
    ("--unit=word", {"PretrainingBatches.masker.unit": "word"}),
    ("--ngram_shares=0.7,0.3", {"TokenMasker.ngram_shares": [0.7, 0.3]}, "--unit=ngram"),
    ("--word_segmenter=jieba", {"TokenMasker.word_segmenter": "jieba"}, "--unit=word"),
    ("--lexicon=phrases.txt", {"TokenMasker.phrases": ["good film"]}, "--unit=word"),
    ("--rarity=0.25", {"rarity_weights.power": 0.25}),
    (
        "--similar_words=similar.txt",
        {"TokenMasker.similar_words": {"good": "great"}},
        "--unit=word",
    ),
    ("--nodynamic", {"PretrainingBatches.masker.dynamic": False}),
    (
        "--mode=sop",
        {"PretrainingBatches.mode": "sop", "Pretrainer.sentence_relations": 2},
        "--objective=word_order",
    ),
    (
        "--mode=full_sentences",
        {"PretrainingBatches.mode": "full_sentences", "Pretrainer.next_sentence": False},
    ),
    (
        "--generator_width=0.5",
        {"ElectraPretrainer.generator_width": 0.5},
        "--objective=replaced_tokens",
    ),
    ("--short_seq_prob=0.4", {"PretrainingBatches.short_seq_prob": 0.4}),
    ("--shuffle_blocks=3", {"PretrainingBatches.shuffle_blocks": 3}),
    ("--optimizer=lamb", {"compile.optimizer.__class__.__name__": "Lamb"}),
    ("--optimizer=adamw", {"compile.optimizer.__class__.__name__": "AdamW"}, "--optimizer=lamb"),
    (
        "--learning_rate=0.25",
        {
            SCHEDULE + "peak_learning_rate": 0.25,
            SCHEDULE + "warmup_ratio": kbs.Pretrainer.warmup_ratio,
        },
    ),
    ("--warmup_steps=20", {SCHEDULE + "warmup_steps": 20}),
    ("--warmup_steps=20", {SCHEDULE + "warmup_steps": 5}, "--accumulate=4"),
    ("--weight_decay=0.5", {"compile.optimizer.decay": 0.5}),
    ("--dtype=mixed_bfloat16", {"Pretrainer.backbone.dtype_policy.name": "mixed_bfloat16"}),
    ("--sequence_packing", {"fit.sequence_packing": True}),
    ("--held_out=0.3", {"hold_out.share": 0.3}),
    ("--held_out=0", {"fit.validation_data": None}),
    ("--evaluation_batches=7", {"held_out.stop": 7}),
    ("--report_every=20", {"fit.steps_per_epoch": 20, "fit.epochs": 10}),
    ("--checkpoint_every=7", {"fit.callbacks.1.every": 7}),
    ("--keep=7", {"fit.callbacks.1.keep": 7}),
    (
        "--seed=7",
        {
            "set_random_seed.seed": 7,
            "PretrainingBatches.masker.seed": 7,
            "PretrainingBatches.seed": 7,
            "hold_out.seed": 7,
        },
    ),
    ("--devices=3", {"main.args.2": "--nproc-per-node=3"}),
    ("--tensorboard", {"TensorBoard.log_dir": "run/tensorboard"}),
]

#: A run from a checkpoint has the model and the size of the checkpoint.
PRETRAIN_FROM_CHECKPOINT = [
    ("--checkpoint=other_bert", {"from_preset.preset": "other_bert"}),
    ("--sequence_length=64", {"from_preset.sequence_length": 64}),
    ("--dtype=mixed_bfloat16", {"from_preset.dtype": "mixed_bfloat16"}),
    ("--mode=full_sentences", {"from_preset.next_sentence": False}),
    ("--generator_width=0.5", {"from_preset.generator_width": 0.5}, "--objective=replaced_tokens"),
]

#: The flags that `adapt` has in common with `pretrain`.
SHARED = ("batch_size", "learning_rate", "checkpoint_every", "seed", "masking_rate", "rarity")
SHARED += ("max_predictions", "mask_token_rate", "random_token_rate", "ngram_shares", "nodynamic")
SHARED += ("word_segmenter", "lexicon", "similar_words")
COMPARED = "--finetune='--train=train.tsv --test=test.tsv'"

ADAPT = [
    *(row for row in PRETRAIN if row[0][2:].partition("=")[0] in SHARED),
    ("--checkpoint=other_bert", {"from_preset.preset": "other_bert"}),
    ("--texts=texts.txt,more.txt", {"read_lines.path": ["texts.txt", "more.txt"]}),
    ("--text_column=sentence", {"read_columns.columns": ["sentence"]}, "--texts=train.tsv"),
    (
        "--noheader --text_column=2",
        {"read_columns.header": False, "read_columns.columns": ["2"]},
        "--texts=train.tsv",
    ),
    ("--delimiter=; --texts=semicolons.txt", {"read_columns.delimiter": ";"}),
    ("--quoting=minimal", {"read_columns.quoting": csv.QUOTE_MINIMAL}, "--texts=train.tsv"),
    ("--encoding=cp1252", {"read_lines.encoding": "cp1252"}),
    ("--output=other", {"put_in_place.path": "other/run/model"}),
    ("--epochs=7", {SCHEDULE + "total_steps": 170, SCHEDULE + "warmup_steps": 17}),
    ("--sequence_length=64", {"from_preset.sequence_length": 64}),
    ("--unit=span", {"PretrainingBatches.masker.unit": "span"}),
    ("--held_out=0.3", {"hold_out.share": 0.3}),
    ("--dtype=mixed_bfloat16", {"from_preset.dtype": "mixed_bfloat16"}),
    ("--text=good", "--text 'good' has no [MASK] to guess"),
    (COMPARED, {"score_with.cls": "TextClassifier"}),
    ("--seeds=2", {"set_random_seed.seed": [0, 1]}, COMPARED),
]

WORDS = "--task=ner --train=words.txt"
EMBED = "--task=embed --text_pair_column=second"
RANKING = "--task=ranking --text_column=text --text_pair_column=second --label_column=number"
RELATION = "--task=relation"
SEQ2SEQ = "--task=seq2seq"
CHOICE = "--task=choice --train=swag.csv"
QA = "--task=qa --train=squad.json"
TESTED = " --dev=dev.tsv --test=test.tsv"

FINETUNE = [
    ("--checkpoint=other_bert", {"from_preset.preset": "other_bert"}),
    ("--task=multilabel", {"from_preset.problem_type": "multi_label_classification"}),
    ("--task=regress --label_column=number", {"from_preset.problem_type": "regression"}),
    (WORDS, {"from_preset.cls": "TokenClassifier"}),
    (QA, {"from_preset.cls": "QuestionAnswerer"}),
    (CHOICE, {"from_preset.cls": "MultipleChoice"}),
    (RANKING, {"from_preset.cls": "TextRanker"}),
    (
        "--ranking_loss=pairwise",
        {"compile.loss.kind": "pairwise", "read_rankings.query_column": "text"},
        RANKING,
    ),
    (EMBED, {"from_preset.cls": "TextEmbedder"}),
    (SEQ2SEQ, {"from_preset.cls": "Seq2Seq"}),
    ("--task=classify", {"from_preset.cls": "TextClassifier"}, SEQ2SEQ),
    ("--train=other.tsv", {"read_table.path": "other.tsv", "fit.x": ["other0", "other1"]}),
    ("--dev=dev.tsv", {"fit.validation_data": [["dev0", "dev1"], ["no", "yes"]]}),
    ("--test=test.tsv", {"score_with.x": ["test0", "test1"]}),
    ("--text_column=sentence", {"fit.x": ["sentence0", "sentence1", "sentence2"]}),
    (
        "--text_pair_column=second",
        {
            "fit.x": [["text0", "text1", "text2"], ["second0", "second1", "second2"]],
            "from_preset.input_names": ["text", "second"],
        },
    ),
    ("--label_column=kind", {"fit.y": ["a", "a", "b"], "from_preset.label_names": ["a", "b"]}),
    ("--label_column=number", {"fit.y": [1.0, 2.0, 3.0]}, "--task=regress --label_column=half"),
    (
        "--label_column=number",
        {"fit.y": [1.0, 2.0, 3.0], "compile.loss.__class__.__name__": "CoSENT"},
        EMBED,
    ),
    ("--noheader --text_column=2 --label_column=4", {"read_table.header": False}),
    ("--delimiter=; --train=semicolons.txt", {"read_table.delimiter": ";"}),
    ("--delimiter=tab --train=tabs.txt", {"read_table.delimiter": "\t"}),
    ("--delimiter=,", {"read_swag.delimiter": ","}, CHOICE),
    ("--quoting=none", {"read_table.quoting": csv.QUOTE_NONE}),
    ("--quoting=minimal", {"read_swag.quoting": csv.QUOTE_MINIMAL}, CHOICE),
    ("--left_out_labels=yes", {"fit.y": ["no", "no"]}),
    ("--left_out_labels=3", {"fit.y": [1.0, 2.0]}, EMBED + " --label_column=number"),
    (
        "--label_columns=no,yes",
        {"fit.y": [["yes"], ["no", "yes"]], "from_preset.label_names": ["no", "yes"]},
        "--task=multilabel --train=bits.tsv",
    ),
    (
        "--label_columns=no,yes",
        {"fit.y": [[0.0, 1.0], [1.0, 1.0]]},
        "--task=regress --train=bits.tsv",
    ),
    ("--encoding=cp1252", {"read_table.encoding": "cp1252"}),
    ("--encoding=cp1252", {"read_swag.encoding": "cp1252"}, CHOICE),
    ("--encoding=cp1252", {"read_conll.encoding": "cp1252"}, WORDS),
    (
        "--label_separator=;",
        {"fit.y": [["a", "b"], ["b"], ["a"]]},
        "--task=multilabel --label_column=labels",
    ),
    ("--word_column=2", {"read_conll.word_column": "2"}, WORDS),
    ("--tag_column=2", {"read_conll.tag_column": "2"}, WORDS),
    ("--max_tags=7", {"read_conll.max_tags": 7}, WORDS),
    ("--outside=B-X", {"fit.y": [["O", "O"]]}, WORDS),
    (
        "--span_errors=fix",
        {"read_annotations.errors": "fix"},
        "--task=ner --train=spans.json",
    ),
    ("--tag_scheme=BIOES", {"fit.y": [["S-X"]]}, "--task=ner --train=spans.json"),
    ("--tag_scheme=BIOES", {"fit.y": [["O", "S-X"]]}, WORDS),
    ("--negative_column=sentence", {"fit.x.2": ["sentence0", "sentence1", "sentence2"]}, EMBED),
    ("--target_column=sentence", {"fit.y": ["sentence0", "sentence1", "sentence2"]}, SEQ2SEQ),
    (
        "--window_pooling=mean",
        {"from_preset.cls": "DocumentClassifier", "from_preset.window_pooling": "mean"},
    ),
    ("--window_pooling=max", {"from_preset.window_pooling": "max"}),
    (
        "--window_pooling=attention",
        {"from_preset.window_pooling.class_name": "keras_bert_suite>AttentionPooling"},
    ),
    (
        "--window_pooling=transformer",
        {"from_preset.window_pooling.class_name": "keras_bert_suite>WindowTransformer"},
    ),
    ("--max_windows=7", {"from_preset.max_windows": 7}, "--window_pooling=mean"),
    ("--training_windows=7", {"from_preset.training_windows": 7}, "--window_pooling=mean"),
    (
        "--head=crf",
        {
            "from_preset.cls": "CrfTokenClassifier",
            "compile.optimizer.rate_multipliers": [["(^|/)crf/", 100.0]],
        },
        WORDS,
    ),
    (
        "--head=global_pointer",
        {"from_preset.cls": "EntitySpanClassifier", "from_preset.label_names": ["X"]},
        WORDS,
    ),
    (
        "--task=attributes --attribute_columns=label,opposite",
        {"from_preset.attributes": {"label": ["no", "yes"], "opposite": ["no", "yes"]}},
    ),
    (
        "--attribute_columns=opposite,label",
        {"from_preset.attributes": {"opposite": ["no", "yes"], "label": ["no", "yes"]}},
        "--task=attributes --attribute_columns=label",
    ),
    (
        "--attribute_weights=label=2",
        {"from_preset.attribute_weights": {"label": 2.0}},
        "--task=attributes --attribute_columns=label",
    ),
    ("--task=relation", {"from_preset.cls": "RelationClassifier"}),
    ("--entity_states=averages", {"from_preset.entity_states": "averages"}, RELATION),
    ("--other_label=no", {"score_answers.other": "no"}, RELATION + TESTED),
    ("--answer_errors=fix", {"read_squad.errors": "fix"}, QA),
    (
        "--characters=cmrc2018",
        {
            "score.characters": "cmrc2018",
            "AnswerF1.characters": "cmrc2018",
            "tune_threshold.characters": "cmrc2018",
        },
        QA + " --dev=squad.json --test=squad.json",
    ),
    ("--head=softmax", {"from_preset.cls": "TokenClassifier"}, WORDS + " --head=crf"),
    ("--max_target_length=7", {"from_preset.max_target_length": 7}, SEQ2SEQ),
    ("--num_beams=3", {"compile.sampler.num_beams": 3}, SEQ2SEQ),
    ("--output=b.keras", {"put_in_place.path": "b.keras"}),
    ("--output=preset", {"put_in_place.path": "preset", "save_to_preset.cls": "TextClassifier"}),
    (
        "--export=saved/7",
        {
            "export_saved_model.model_name": "saved",
            "put_in_place.path": ["a.keras", "saved/7"],
        },
    ),
    OVERWRITE,
    (*OVERWRITE, "--export=saved/7"),
    ("--epochs=7", {"fit.epochs": 7}),
    ("--batch_size=7", {"fit.batch_size": 7, "score_with.batch_size": 7}, "--test=test.tsv"),
    ("--batch_size=7", {"fit.validation_batch_size": 7}, "--dev=dev.tsv"),
    ("--batch_size=7", {"score.batch_size": 7}, RANKING + " --test=train.tsv"),
    (
        "--batch_size=7",
        {"tune_thresholds.batch_size": 7, "score_with.batch_size": 7},
        "--task=multilabel" + TESTED,
    ),
    (
        "--batch_size=7",
        {"score_with.batch_size": 7},
        "--task=regress --label_column=number --test=test.tsv",
    ),
    (
        "--batch_size=7",
        {"score_with.batch_size": 7, "EntityF1.batch_size": 7},
        WORDS + " --dev=words.txt --test=words.txt",
    ),
    (
        "--batch_size=7",
        {"score.batch_size": 7, "AnswerF1.batch_size": 7, "tune_threshold.batch_size": 7},
        QA + " --dev=squad.json --test=squad.json",
    ),
    ("--batch_size=7", {"predict.batch_size": 7}, CHOICE + " --test=swag.csv"),
    ("--batch_size=7", {"score_retrieval.batch_size": 7}, EMBED + " --test=test.tsv"),
    ("--batch_size=7", {"predict.batch_size": 7}, SEQ2SEQ + " --test=test.tsv"),
    ("--sequence_length=64", {"fit.task.preprocessor.sequence_length": 64}),
    ("--sequence_length=auto", {"fit.task.preprocessor.sequence_length": 8}),
    ("--augment=words", {"AugmentedRows.augment.__name__": "edit_words", "fit.batch_size": None}),
    (
        "--augment=masked_lm",
        {
            "AugmentedRows.augment.func.__name__": "replace_words",
            "AugmentedRows.augment.keywords.masked_lm.cls.__name__": "MaskedLM",
        },
        "--checkpoint=masked_lm",
    ),
    ("--seed=7", {"AugmentedRows.seed": 7}, "--augment=words"),
    ("--batch_size=7", {"AugmentedRows.batch_size": 7}, "--augment=words"),
    ("--errors=errors.csv", {"inspect_by_folds.folds": 5, "inspect_by_folds.epochs": 3}),
    ("--folds=2", {"inspect_by_folds.folds": 2}, "--errors=errors.csv"),
    ("--batch_size=7", {"inspect_by_folds.batch_size": 7}, "--errors=errors.csv"),
    ("--seed=7", {"inspect_by_folds.seed": 7}, "--errors=errors.csv"),
    ("--epochs=7", {"inspect_by_folds.epochs": 7}, "--errors=errors.csv"),
    ("--truncation=tail", {"fit.task.preprocessor.truncation": "tail"}),
    (
        "--truncation=tail",
        {"fit.task.preprocessor.truncation": "tail"},
        "--task=regress --label_column=number",
    ),
    ("--learning_rate=0.25", {SCHEDULE + "peak_learning_rate": 0.25}),
    ("--head_learning_rate=0.25", {"compile.head_learning_rate": 0.25}),
    ("--head_learning_rate=0", {"compile.head_learning_rate": 0.0}),
    ("--num_layers=7", {"from_preset.num_layers": 7}),
    (
        "--head_layers=last:2,bilstm:7",
        {
            "from_preset.head_layers.0.config.num_layers": 2,
            "from_preset.head_layers.1.config.layer.config.units": 7,
        },
        WORDS,
    ),
    ("--head_layers=convolution:7", {"from_preset.head_layers.0.config.filters": 7}, QA),
    ("--warmup_ratio=0.75", {SCHEDULE + "warmup_ratio": 0.75}),
    ("--weight_decay=0.5", {"compile.optimizer.decay": 0.5}),
    ("--bias_correction", {"compile.optimizer.bias_correction": True}),
    ("--class_weight=balanced", {"fit.class_weight": {"no": 0.75, "yes": 1.5}}),
    ("--class_weight=balanced", {"fit.class_weight": {"O": 1.0, "B-X": 1.0}}, WORDS),
    (
        "--class_weight=balanced",
        {"fit.class_weight": {"no": 1.0, "yes": 0.5}},  # Both texts have "yes".
        "--task=multilabel --train=sets.tsv --label_separator=;",
    ),
    ("--sequence_packing", {"fit.sequence_packing": True}),
    ("--checkpoint_dir=there", {"fit.callbacks.-1.directory": "there/checkpoints"}),
    ("--checkpoint_every=7", {"fit.callbacks.-1.every": 7}),
    ("--checkpoint_every=0", {"fit.callbacks": []}),
    ("--seed=7", {"set_random_seed.seed": 7}),
    ("--dtype=bfloat16", {"from_preset.dtype": "bfloat16"}),
    ("--devices=3", {"main.args.2": "--nproc-per-node=3"}),
]
