"""What each flag of each command must change in the calls of the library.

A row begins with the flag, at a value that is not its default, and has the other flags that the
flag needs. Its value names the arguments that must be as the flag says: "fit.epochs" is the
argument `epochs` of a call of `fit`, and "fit.self.optimizer.decay" an attribute of its task. Where
the argument is not the value of the flag, the row has a dict of names and values.
"""

import csv

from cli.kind_cases import CASES
from cli.kinds.seq2seq import RULES

#: The schedule of the optimizer of the task that `fit` gets.
RATE = "fit.self.optimizer._learning_rate."
MASKER = "PretrainingBatches.masker."

INPUT = {
    "--input=texts.txt,more.txt": "find_files.inputs",
    "--format=files": "InputOptions.format plan_slices.format",
    "--text_key=body": "InputOptions.text_key",
    "--encoding=cp1252": "InputOptions.encoding plan_slices.encoding",
    "--errors=replace": "InputOptions.errors",
    "--on_error=skip": "InputOptions.on_error",
}
UNIGRAM = "--kind=unigram --output=spiece.model"
VOCAB = {
    **INPUT,
    "--output=other.out": "put_in_place.path",
    "--overwrite --output=there.txt": {"put_in_place.replace": True},
    "--size=200": "learn_pieces.size",
    "--nolowercase": "count_words.lowercase",
    "--strip_accents": "count_words.strip_accents",
    "--nostrip_accents": "count_words.strip_accents",
    "--min_frequency=1": "learn_pieces.min_frequency",
    "--num_unused=7": "learn_pieces.num_unused",
    "--limit_alphabet=20": "learn_pieces.limit_alphabet",
    "--kind=byte_pair": {"train_byte_pairs.size": 30522, "train_byte_pairs.min_frequency": 2},
    "--size=300 --kind=byte_pair": "train_byte_pairs.size",
    "--min_frequency=1 --kind=byte_pair": "train_byte_pairs.min_frequency",
    UNIGRAM: {"train_sentence_pieces.size": 30522},
    "--kind=xlnet --output=spiece.model": {"train_sentence_pieces.model_type": "xlnet"},
    f"--size=30 {UNIGRAM}": "train_sentence_pieces.size",
    f"--character_coverage=0.99 {UNIGRAM}": "train_sentence_pieces.character_coverage",
    f"--nolowercase {UNIGRAM}": "train_sentence_pieces.lowercase",
    f"--nostrip_accents {UNIGRAM}": "train_sentence_pieces.strip_accents",
}
PREPARE = {
    "--input=texts.txt,more.txt": "prepare_corpus.inputs",
    "--format=jsonl": "prepare_corpus.format",
    "--text_key=body": "prepare_corpus.text_key",
    "--encoding=cp1252": "prepare_corpus.encoding",
    "--errors=replace": "prepare_corpus.errors",
    "--on_error=skip": "prepare_corpus.on_error",
    "--vocab=other.txt": "open_tokenizer.path",
    "--output=other": "prepare_corpus.output",
    "--workers=77": "prepare_corpus.workers",
    "--engine=ray": {"prepare_corpus.engine": "ray", "prepare_corpus.workers": None},
    "--ray_address=auto --engine=ray": "prepare_corpus.ray_address",
    "--nolowercase": "prepare_corpus.tokenizer.lowercase",
    "--nostrip_accents": "prepare_corpus.tokenizer.strip_accents",
    "--slice_mb=0.5": {"prepare_corpus.slice_bytes": 524_288},
}

#: The flags that `pretrain` and `adapt` share.
SHARED = {
    "--batch_size=12": "PretrainingBatches.batch_size",
    "--sequence_length=64": "PretrainingBatches.sequence_length "
    "fit.self.preprocessor.sequence_length",
    "--masking_rate=0.3": MASKER + "rate",
    "--max_predictions=9": MASKER + "max_predictions",
    "--mask_token_rate=0.7": MASKER + "mask_token_rate",
    "--random_token_rate=0.2": MASKER + "random_token_rate",
    "--unit=span": MASKER + "unit",
    "--ngram_shares=0.7,0.3 --unit=ngram": "TokenMasker.ngram_shares",
    "--word_segmenter=jieba --unit=word": "TokenMasker.word_segmenter",
    "--lexicon=phrases.txt --unit=word": {"TokenMasker.phrases": ["good film"]},
    "--rarity=0.25": "rarity_weights.power",
    "--similar_words=similar.txt --unit=word": {"TokenMasker.similar_words": {"good": "great"}},
    "--nodynamic": MASKER + "dynamic",
    "--learning_rate=0.25": RATE + "peak_learning_rate",
    "--dtype=mixed_bfloat16": "fit.self.backbone.dtype_policy.name",
    "--held_out=0.4": "hold_out.share",
    "--checkpoint_every=7": "fit.callbacks.1.every",
    "--seed=7": "set_random_seed.seed PretrainingBatches.masker.seed PretrainingBatches.seed "
    "hold_out.seed",
}
PERMUTATION = "--objective=permutation --corpus=pieces"
PRETRAIN = {
    **SHARED,
    "--corpus=books": "read_tokenizer.path open_corpus.path",
    "--corpus=shards=0.75,books=0.25": {"share_rows.shares": [0.75, 0.25]},
    "--output=other": {
        "fit.callbacks.0.log_file": "other/log.csv",
        "fit.callbacks.1.directory": "other/checkpoints",
    },
    "--steps=600": {"fit.epochs": 50, "fit.steps_per_epoch": 12, RATE + "total_steps": 600},
    "--objective=word_order": {MASKER + "__class__.__name__": "TokenShuffler"},
    "--noises=token_deletion=0.2 --objective=denoising": {MASKER + "noises.0.rate": 0.2},
    "--span_length=2 --objective=denoising": {MASKER + "noises.1.mean_length": 2},
    "--random_token_rate=0.3 --objective=denoising": {MASKER + "noises.1.random_token_rate": 0.3},
    "--masking_rate=0.2 --objective=mass": MASKER + "rate",
    "--max_characters=9 --objective=bidirectional_language_model": MASKER + "max_characters "
    "fit.self.preprocessor.tokenizer.max_characters fit.self.backbone.embeddings.max_characters",
    f"--span_unit=word {PERMUTATION}": MASKER + "span_unit",
    f"--reuse_length=4 {PERMUTATION}": MASKER + "reuse_length",
    f"--both_directions {PERMUTATION}": {"fit.self.backbone.reversed_rows": True},
    f"--memory_length=5 {PERMUTATION}": {
        "fit.self.backbone.memory_length": 5,
        "fit.self.backbone.reuse_length": 8,
        "fit.self.technique.lanes": 2,
    },
    "--model=nezha": {"fit.self.backbone.__class__.__name__": "NezhaBackbone"},
    "--token_parts=parts.txt": {"fit.self.backbone.part_embeddings.num_parts": 2},
    "--size=mini": {"fit.self.backbone.hidden_dim": 256, "fit.self.backbone.num_layers": 4},
    "--dropout=0.3": "fit.self.backbone.dropout fit.self.backbone.attention_dropout",
    "--initializer_range=0.05": "fit.self.backbone.initializer_range",
    "--accumulate=4": "fit.self.optimizer.gradient_accumulation_steps",
    "--accumulate=2": {RATE + "total_steps": 100},
    "--sequence_length=600": "fit.self.backbone.max_sequence_length",
    "--mode=full_sentences": "PretrainingBatches.mode",
    "--generator_width=0.5 --objective=replaced_tokens": "fit.self.generator_width",
    "--short_seq_prob=0.4": "PretrainingBatches.short_seq_prob",
    "--shuffle_blocks=3": "PretrainingBatches.shuffle_blocks",
    "--optimizer=lamb": {"fit.self.optimizer.__class__.__name__": "Lamb"},
    "--warmup_steps=20": RATE + "warmup_steps",
    "--warmup_steps=20 --accumulate=4": {RATE + "warmup_steps": 5},
    "--weight_decay=0.5": "fit.self.optimizer.decay",
    "--sequence_packing": "fit.sequence_packing",
    "--held_out=0": {"fit.validation_data": None},
    "--evaluation_batches=1 --held_out=0.5 --batch_size=2": {"fit.validation_data.len": 1},
    "--report_every=20": "fit.steps_per_epoch",
    "--keep=7": "fit.callbacks.1.keep",
    "--devices=3": {"main.args.2": "--nproc-per-node=3"},
    "--tensorboard": {"TensorBoard.log_dir": "run/tensorboard"},
}
#: A run from a checkpoint has the model and the size of the checkpoint.
PRETRAIN_FROM_CHECKPOINT = {
    "--checkpoint=other_bert": "from_preset.preset",
    "--sequence_length=64": "from_preset.sequence_length",
    "--dtype=mixed_bfloat16": "from_preset.dtype",
    "--mode=full_sentences": {"from_preset.next_sentence": False},
    "--generator_width=0.5 --objective=replaced_tokens": "from_preset.generator_width",
}


def read_columns(file):
    """The flags of a table that the flag `file` names."""
    return {
        f"--text_column=sentence {file}": {"read_columns.columns": ["sentence"]},
        f"--noheader --text_column=2 {file}": "read_columns.header",
        f"--delimiter=tab {file}": {"read_columns.delimiter": "\t"},
        f"--quoting=minimal {file}": {"read_columns.quoting": csv.QUOTE_MINIMAL},
        f"--encoding=cp1252 {file}": "read_columns.encoding",
        "--encoding=cp1252": "read_lines.encoding",
    }


COMPARED = "--finetune='--train=train.tsv --test=test.tsv'"
ADAPT = {
    **SHARED,
    **read_columns("--texts=train.tsv"),
    "--checkpoint=other_bert": "from_preset.preset",
    "--texts=texts.txt,more.txt": {"read_lines.path": "more.txt", "prepare_corpus.workers": None},
    "--output=other": {"fit.callbacks.0.log_file": "other/run/log.csv"},
    "--epochs=70": {
        RATE + "total_steps": 680,
        RATE + "warmup_steps": 68,
    },
    "--text=[MASK] --checkpoint=masked_lm": {"print_guesses.texts": ["[MASK]"]},
    COMPARED: {"read_table.path": "train.tsv"},
    f"--seeds=2 {COMPARED}": "compare.values.seeds",
}


def read_labelled(task, file):
    """The flags of labelled files, for the flags that name the task and the file."""
    ner, spans = (f"{task}=ner {file}={name}" for name in ("words.txt", "spans.json"))
    pairs = f"{task}=embed --text_column=text --text_pair_column=second"
    return {
        f"{file}=other.tsv": "read_table.path",
        "--text_column=sentence": {"read_table.text_columns": ["sentence"]},
        "--label_column=opposite": "read_table.label_column",
        f"--noheader --text_column=2 --label_column=4 {file}=no_header.tsv": "read_table.header",
        f"--delimiter=; {file}=semicolons.txt": "read_table.delimiter",
        "--quoting=minimal": {"read_table.quoting": csv.QUOTE_MINIMAL},
        f"--quoting=none {task}=choice {file}=swag.csv": {"read_swag.quoting": csv.QUOTE_NONE},
        "--left_out_labels=yes,maybe": "read_table.left_out_labels",
        "--row_errors=skip": "read_table.errors",
        f"--label_columns=no,yes {task}=multilabel {file}=bits.tsv": "read_table.label_columns",
        f"--label_separator=; {task}=multilabel {file}=sets.tsv": "read_table.label_separator",
        "--encoding=cp1252": "read_table.encoding",
        f"--encoding=cp1252 {task}=relation {file}=semeval.txt": "read_semeval.encoding",
        f"--encoding=cp1252 {ner}": "read_conll.encoding",
        f"--word_column=2 {ner}": "read_conll.word_column",
        f"--tag_column=2 {ner}": "read_conll.tag_column",
        f"--max_tags=7 {ner}": "read_conll.max_tags",
        f"--outside=B-X {ner}": "read_conll.outside",
        f"--row_errors=skip {ner}": "read_conll.errors",
        f"--tag_scheme=BIOES {ner}": "read_conll.scheme",
        f"--span_errors=fix {spans}": {
            "read_annotations.errors": "fix",
            "read_annotations.scheme": "BIO",
        },
        f"--negative_column=sentence {pairs}": {
            "read_table.text_columns": ["text", "second", "sentence"]
        },
        f"--target_column=sentence {task}=seq2seq": {"read_table.label_column": "sentence"},
        f"--attribute_columns=opposite {task}=attributes": {
            "read_columns.columns": ["text", "opposite"]
        },
        f"--answer_errors=skip {task}=qa {file}=squad.json": "read_squad.errors",
    }


MULTI = "--task=multilabel --train=sets.tsv"
REGRESS = "--task=regress --label_column=number"
NER = "--task=ner --train=words.txt"
QA = "--task=qa --train=squad.json"
FOLDS = "--errors=errors.csv"
FINETUNE = {
    **read_labelled("--task", "--train"),
    **{row: seen for case in CASES.values() for row, seen in case.flags.items()},
    "--checkpoint=other_bert": "from_preset.preset",
    REGRESS: {"fit.self.problem_type": "regression"},
    "--feature_columns=half,number=category": {
        "from_preset.features.half": "number",
        "from_preset.features.number": "category",
    },
    "--dev=dev.tsv": {"fit.validation_data": [["dev0", "dev1"], ["no", "yes"]]},
    "--test=test.tsv": {"score_with.x": ["test0", "test1"]},
    "--text_pair_column=second": {"fit.self.input_names": ["text", "second"]},
    "--window_pooling=max": {"from_preset.window_pooling": "max"},
    "--window_pooling=attention": {
        "from_preset.window_pooling.class_name": "keras_bert_suite>AttentionPooling"
    },
    "--max_windows=7 --window_pooling=mean": "fit.self.max_windows",
    "--training_windows=7 --window_pooling=mean": "fit.self.training_windows",
    "--output=b.keras": "put_in_place.path",
    "--output=preset": "put_in_place.path",
    "--export=saved/7": {"put_in_place.path": "a.keras", "export_saved_model.model_name": "saved"},
    "--overwrite --output=there.keras": {"put_in_place.replace": True},
    "--epochs=7": "fit.epochs",
    "--batch_size=7 --dev=dev.tsv": "fit.batch_size fit.validation_batch_size",
    "--batch_size=7 --augment=words": "AugmentedRows.batch_size",
    f"--batch_size=7 {FOLDS}": "inspect_by_folds.batch_size",
    f"--batch_size=7 {NER} --dev=words.txt": "EntityF1.batch_size",
    f"--batch_size=7 {QA} --dev=squad.json": "AnswerF1.batch_size tune_threshold.batch_size",
    f"--batch_size=7 {MULTI} --dev=sets.tsv": "tune_thresholds.batch_size",
    "--sequence_length=64": "fit.self.preprocessor.sequence_length",
    "--sequence_length=auto": {"fit.self.preprocessor.sequence_length": 8},
    "--augment=words": {"AugmentedRows.augment.__name__": "edit_words"},
    "--augment=noise": {"AugmentedRows.augment.rate": 0.1},
    "--augment=masked_lm --checkpoint=masked_lm": {
        "AugmentedRows.augment.func.__name__": "replace_words"
    },
    f"{FOLDS} --epochs=7": {"inspect_by_folds.folds": 5, "inspect_by_folds.epochs": 7},
    f"--folds=2 {FOLDS}": "inspect_by_folds.folds",
    "--truncation=tail": "fit.self.preprocessor.truncation",
    "--learning_rate=0.25": RATE + "peak_learning_rate",
    "--head_learning_rate=0.25 --learning_rate=0.5": {
        "fit.self.optimizer.rate_multipliers.0.1": 0.5
    },
    "--layer_decay=0.75": "fit.self.optimizer.layer_decay",
    "--num_layers=7": "from_preset.num_layers",
    "--rename=encoder.=,model.=bert.": {"from_preset.rename": {"encoder.": "", "model.": "bert."}},
    "--tuned_label=no --dev=dev.tsv": {"tune_thresholds.label": "no"},
    "--warmup_ratio=0.75": RATE + "warmup_ratio",
    "--weight_decay=0.5": "fit.self.optimizer.decay",
    "--bias_correction": "fit.self.optimizer.bias_correction",
    "--technique=r_drop": {"fit.self.technique.__class__.__name__": "RDrop"},
    "--technique_values=steps=2,rate=0.5 --technique=pgd": {
        "fit.self.technique.steps": 2,
        "fit.self.technique.rate": 0.5,
    },
    "--layers=0": {"keep_layers.layers": [0]},
    "--teacher=classify": {"list_teachers.given": ["classify"]},
    "--teacher_values=temperature=3,alpha=0.25 --teacher=classify --technique=fgm": {
        "fit.self.technique.techniques.0.temperature": 3.0,
        "fit.self.technique.techniques.0.alpha": 0.25,
        "fit.self.technique.techniques.1.__class__.__name__": "FGM",
    },
    "--adapt=pfeiffer": {"adapt.adaptation.__class__.__name__": "PfeifferAdapters"},
    "--adapt_values=rank=4,use_rslora=true,targets=.*/query --adapt=lora": {
        "adapt.adaptation.rank": 4,
        "adapt.adaptation.use_rslora": True,
        "adapt.adaptation.targets": [".*/query"],
    },
    "--adapter=small --adapt=bit_fit": {"write_output.path": "small"},
    "--class_weight=balanced": {"fit.class_weight": "balanced"},
    "--class_weight=balanced --augment=words": {"fit.class_weight": {"no": 0.75, "yes": 1.5}},
    # Both texts have "yes".
    f"--class_weight=balanced {MULTI} --label_separator=; --augment=words": {
        "fit.class_weight": {"no": 1.0, "yes": 0.5}
    },
    "--sequence_packing": "fit.sequence_packing",
    "--checkpoint_dir=here --checkpoint_every=9": {
        "fit.callbacks.-1.directory": "here/checkpoints"
    },
    "--checkpoint_every=7": "fit.callbacks.-1.every",
    "--seed=7 --augment=words": "set_random_seed.seed AugmentedRows.seed",
    f"--seed=7 {FOLDS}": "inspect_by_folds.seed",
    "--dtype=bfloat16": "fit.self.backbone.dtype_policy.name",
    "--devices=3": {"main.args.2": "--nproc-per-node=3"},
}

#: Labelled rows for a model of each kind.
LABELLED = {name: f"--model={name} {case.labelled}" for name, case in CASES.items()}
IN_QA, IN_NER, IN_PAIRS = LABELLED["qa"], LABELLED["ner"], LABELLED["embed"]


def write_batches(models, size):
    """--batch_size, for a model of each kind."""
    return {f"--batch_size={size} {flags}": CASES[name].batches for name, flags in models.items()}


EVALUATE = {
    **read_labelled("--model", "--input"),
    **write_batches(LABELLED, 7),
    f"--batch_size=7 {IN_PAIRS} --label_column=number": "batch_rows.batch_size",
    f"--batch_size=7 {FOLDS}": "score_with.batch_size",
    LABELLED["regress"]: {"from_preset.preset": "regress"},
    "--text_pair_column=second --text_column=text --model=pairs": {
        "read_table.text_columns": ["text", "second"]
    },
    f"--other_label=no {LABELLED['relation']}": {"score.other": "no"},
    "--feature_columns=number --model=columns": {"score_with.x.half": [1.0, 2.0, 3.0]},
    f"--characters=korquad {IN_QA}": "score.characters",
    f"--entity_mode=strict {IN_NER}": "score.mode",
    "--json=scores.json": "put_in_place.path",
    "--png=scores.png": "put_in_place.path",
    "--errors=errors.csv": "put_in_place.path",
    "--noise=swap,delete": {"robustness.kinds": ["swap", "delete"], "robustness.rates": [0.1]},
    "--noise_rate=0.2,0.3 --noise=swap": {"robustness.rates": [0.2, 0.3]},
    f"--errors=errors.csv {IN_NER}": "put_in_place.path",
    "--overwrite --json=there.txt": {"put_in_place.replace": True},
    "--base=bert --model=lora": "from_adapter.base",
}

SHRINK = {
    **read_labelled("--model", "--input"),
    LABELLED["regress"]: {"from_preset.preset": "regress"},
    "--text_pair_column=second --text_column=text --model=pairs": {
        "read_table.text_columns": ["text", "second"]
    },
    f"--other_label=no {LABELLED['relation']}": {"score.other": "no"},
    "--feature_columns=number --model=columns": {"score_with.x.half": [1.0, 2.0, 3.0]},
    f"--characters=korquad {IN_QA}": "score.characters",
    f"--entity_mode=strict {IN_NER}": "score.mode",
    "--output=small": "put_in_place.path",
    "--overwrite --output=there.keras": {"put_in_place.replace": True},
    "--layers=0": {"keep_layers.layers": [0]},
    "--prune_heads=0.25": "prune_heads.share",
    "--prune_feed_forward=0.25": "prune_feed_forward.share",
    "--by_layer --prune_feed_forward=0.25": "prune_feed_forward.by_layer",
    "--vocabulary_from=texts.txt": {"trim_vocabulary.texts": ["a good film", "a dull plot"] * 60},
    "--embedding_rank=2": "factorize_embeddings.rank",
    "--rows=2 --prune_heads=0.25": {"prune_heads.x": ["text0", "text1"]},
    "--batch_size=7 --prune_heads=0.25": "prune_heads.batch_size",
}

#: Texts for a model of each kind.
ASKED = {name: f"--model={name} {case.asked}" for name, case in CASES.items()}
#: The flags of a job over many files, which `predict` and `embed` share.
ENGINE = {
    "--engine=ray --output=answers": "predict_files.engine",
    "--columns=text,label --engine=local --output=answers": "predict_files.predictor.columns",
    "--workers=7 --engine=ray --output=answers": "predict_files.workers",
    "--ray_address=auto --engine=ray --output=answers": "predict_files.ray_address",
    "--skip_invalid --engine=local --output=answers": "predict_files.skip_invalid",
}
PREDICT = {
    **ENGINE,
    "--format=jsonl --engine=local --output=answers": "predict_files.format",
    "--batch_size=7 --engine=local --output=answers": "predict_files.predictor.batch_size",
    **write_batches(ASKED, 7),
    **read_columns("--input=train.tsv"),
    "--model=regress": {"from_preset.preset": "regress"},
    "--feature_columns=number --model=columns --input=train.tsv --format=jsonl": {
        "format_json.columns.half": [1.0, 2.0, 3.0]
    },
    "--input=more.txt": "read_lines.path",
    **{
        f"{flag} --model=causal_lm": f"predict.{flag[2:].partition('=')[0]}"
        for flag in ("--max_length=7", "--top_k=7", "--top_p=0.25", "--temperature=0.5", "--seed=7")
    },
    **{
        f"{flag} --max_target_length=3 --model=seq2seq": f"predict.{flag[2:].partition('=')[0]}"
        for flag in RULES
    },
    "--max_target_length=7 --model=seq2seq": "predict.max_target_length",
    **{
        f"--num_beams=3 --model={name}": "predict.self.sampler.num_beams"
        for name in ("seq2seq", "causal_lm")
    },
    "--length_penalty=0.5 --num_beams=2 --model=seq2seq": "predict.self.sampler.length_penalty",
    "--stop=film --stop=plot --model=causal_lm": {"predict.stop": ["film", "plot"]},
    "--question=who? --model=qa": {"printed": '{"question": "who?"'},
    "--text_pair_column=sentence --text_column=text --model=pairs --input=train.tsv": {
        "read_columns.columns": ["text", "sentence"]
    },
    "--encoding=cp1252 --model=qa --question=who?": "read_lines.encoding",
    "--output=answers.out": "put_in_place.path",
    "--overwrite --output=there.txt": {"put_in_place.replace": True},
    "--format=jsonl": {"format_json.columns.text.1": "a dull plot"},
    "--zero_shot_labels=good,bad --model=nli": {"predict.self.label_names": ["good", "bad"]},
    "--base=bert --model=lora": "from_adapter.base",
    "--adapter=films --model=served": "open_model.adapter",
    "--zero_shot_template=a|{} --zero_shot_labels=a,b --model=nli": {
        "predict.self.template": "a|{}"
    },
}


EMBED_TEXTS = {
    **ENGINE,
    **read_columns("--input=train.tsv"),
    "--model=other_embed": "from_preset.preset",
    "--input=more.txt": "read_lines.path",
    "--output=other.npy": "put_in_place.path",
    "--overwrite --output=vectors.npy": {"put_in_place.replace": True},
    "--base=bert --model=lora_embed": "from_adapter.base",
    "--batch_size=7": "batch_rows.batch_size",
}
SEARCH = {
    **read_columns("--corpus=train.tsv"),
    "--model=other_embed": "from_preset.preset",
    "--corpus=more.txt": "read_lines.path",
    "--base=bert --model=lora_embed": "from_adapter.base",
    "--vectors=vectors.npy": {"search.corpus.1": [3.0, 4.0]},
    "--query=film --query=plot --queries=": {"search.queries": ["film", "plot"]},
    "--queries=more.txt": {"search.queries": ["more"]},
    "--top_k=7": "search.top_k",
    "--batch_size=7": "search.batch_size",
    "--format=jsonl": {"printed": '{"query":'},
}
INT8 = "--format=openvino --precision=int8"
EXPORT = {
    "--base=bert --model=lora": "from_adapter.base",
    "--model=regress": "from_preset.preset",
    "--format=onnx --output=onnx": {"export_onnx.precision": "float32"},
    "--format=openvino --output=openvino": {"export_openvino.precision": "float32"},
    "--format=litert --output=litert": {"export_litert.task.__class__.__name__": "TextClassifier"},
    "--overwrite --output=there --format=onnx": "write_output.overwrite",
    "--output=other/7": {"export_saved_model.model_name": "other"},
    "--inputs=sentence": {"export_saved_model.inputs": ["sentence"]},
    "--max_batch_size=7": "export_saved_model.max_batch_size",
    "--precision=bfloat16": "export_saved_model.precision",
    "--precision=float16 --format=onnx": "export_onnx.precision",
    f"--calibration=more.txt {INT8}": {"export_openvino.calibration_texts": ["more"]},
    f"--calibration=more.jsonl {INT8}": {"export_openvino.calibration_texts": ["line0", "line1"]},
}
CONVERT = {
    "--input=regress": "from_preset.preset",
    "--output=other": "put_in_place.path",
    "--to=huggingface": {"save_hugging_face.model.__class__.__name__": "TextClassifier"},
    "--to=google_tf1": {"save_google_tf1.model.__class__.__name__": "TextClassifier"},
    "--to=keras_hub": {"save_keras_hub.sequence_length": 512},
    "--encoder_only --to=huggingface": {"open_backbone.preset": "classify"},
    "--part=masked_lm --input=pretrained": {"from_preset.next_sentence": False},
    "--overwrite --output=there": {"put_in_place.replace": True},
}

#: A corpus of a few sentences has batches of this size.
SMALL = "--batch_size=2 --sequence_length=16 --held_out=0.25"

#: A command, its flags without the flags of a row, and the rows.
TABLES = [
    ("vocab", "--input=texts.txt --output=vocab.out", VOCAB),
    ("prepare", "--input=texts.txt --vocab=vocab.txt --output=shards.out", PREPARE),
    ("pretrain", f"--corpus=shards --output=run --steps=200 --size=tiny {SMALL}", PRETRAIN),
    (
        "pretrain",
        "--corpus=shards --output=run --steps=200 --checkpoint=bert",
        PRETRAIN_FROM_CHECKPOINT,
    ),
    ("adapt", f"--checkpoint=bert --texts=texts.txt --output=adapted {SMALL}", ADAPT),
    (
        "fill-mask",
        "--model=masked_lm --text=[MASK]",
        {
            "--model=other_masked_lm": "from_preset.preset",
            "--text=a": "predict.x",
            "--top_k=7": "predict.top_k",
            "--targets=good,bad": {"predict.targets": ["good", "bad"], "predict.top_k": None},
        },
    ),
    (
        "finetune",
        "--checkpoint=bert --train=train.tsv --output=a.keras --epochs=1 --checkpoint_every=0",
        FINETUNE,
    ),
    ("evaluate", "--model=classify --input=train.tsv", EVALUATE),
    ("predict", "--model=classify --input=texts.txt", PREDICT),
    ("embed", "--model=embed --input=texts.txt --output=vectors.out.npy", EMBED_TEXTS),
    ("search", "--model=embed --corpus=texts.txt --queries=texts.txt", SEARCH),
    ("export", "--model=classify --output=saved/1", EXPORT),
    ("convert", "--input=classify --output=converted --to=preset", CONVERT),
    ("shrink", "--model=classify --input=train.tsv --output=a.keras --layers=0", SHRINK),
    ("show", "--model=classify", {"--model=regress": "read_card.folder"}),
]
