"""Make a smaller model of a fine-tuned one: fewer layers, heads, feed-forward units and tokens.

The parts go in the order of the flags. Heads and units go by how much the loss of labelled texts
needs them, so these flags need --input: some hundreds of the training texts are enough. With
--input the scores on these texts, the size, the time and the change of the outputs are printed,
too.

Unless only tokens are gone, fine-tune the result before you use it. keras-bert finetune takes it as
its checkpoint.

Example:
  keras-bert shrink --model sentiment.keras --layers 0,2,4 --output small

  keras-bert shrink --model sentiment.keras --input train.tsv --text_column sentence \\
      --prune_heads 0.3 --prune_feed_forward 0.5 --vocabulary_from corpus.txt \\
      --embedding_rank 128 --output small
"""

from keras_bert_suite.data.readers.text_files import read_lines

from .command_flags import REQUIRED, UsageError
from .kinds import define_kind_flags, open_kind
from .model_paths import check_input, check_model, is_runtime_folder, is_saved_model
from .outputs import check_output, write_output
from .scores import print_scores
from .table_flags import define_table_flags


def define_flags(flags):
    """Defines the flags of this command."""
    explanation = "A .keras file, or the folder of a preset or of a checkpoint with a head."
    flags.path("model", REQUIRED, explanation)
    flags.path("output", REQUIRED, "Model to write: a .keras file, or the folder of a preset.")
    flags.switch("overwrite", False, "Replace the output.")
    explanation = "Layers that stay, joined by commas; 0 is the first. Default: all."
    flags.list("layers", None, explanation, int)
    explanation = "Share of the attention heads that go, of all layers together."
    flags.number("prune_heads", 0.0, explanation, at_most=1)
    explanation = "Share of the feed-forward units that go."
    flags.number("prune_feed_forward", 0.0, explanation, at_most=1)
    explanation = (
        "Let layers lose different numbers of units. Other libraries then open only a copy of full "
        "size."
    )
    flags.switch("by_layer", False, explanation)
    explanation = (
        "Files with a text in each line, joined by commas. The tokens of these texts stay, and "
        "all tokens of one character."
    )
    flags.list("vocabulary_from", None, explanation)
    explanation = "Rank of the table of tokens, a product of two matrices. Default: a whole table."
    flags.integer("embedding_rank", None, explanation)
    explanation = (
        "Labelled texts (.tsv, .csv, .jsonl, .parquet or --delimiter), tagged sentences, or "
        "questions (.json), for --prune_heads and --prune_feed_forward."
    )
    flags.path("input", None, explanation)
    flags.integer("rows", 512, "Rows of --input that are read, from the first on.")
    define_table_flags(flags, label_column="label")
    define_kind_flags(flags)
    flags.integer("batch_size", 32, "Batch size, in texts.")


def run(values):
    """Opens the model, takes parts away, writes it and prints what it costs."""
    shrinks = (values.prune_heads, values.prune_feed_forward)
    if any(shrinks) and not values.input:
        raise UsageError("--prune_heads and --prune_feed_forward need --input, labelled texts")
    if values.by_layer and not values.prune_feed_forward:
        raise UsageError("--by_layer is for --prune_feed_forward. Give both or neither")
    if not any((values.layers, *shrinks, values.vocabulary_from, values.embedding_rank)):
        raise UsageError(
            "nothing is to go: pass --layers, --prune_heads, --prune_feed_forward, "
            "--vocabulary_from or --embedding_rank"
        )
    is_preset = not values.output.endswith(".keras")
    check_output(values.output, values.overwrite, is_preset)
    check_model(values.model)
    if is_saved_model(values.model) or is_runtime_folder(values.model):
        raise UsageError(
            f"--model {values.model} is an export, which only answers: keras-bert predict. Make "
            "the model smaller that it was exported from"
        )
    values.models = [values.model]
    for path in filter(None, (values.input, *(values.vocabulary_from or ()))):
        check_input(path)
    kind = open_kind(values)
    rows = kind.read(values.input).take(values.rows) if values.input else None
    small = shrink(kind.model, rows, values)
    save = small.save_to_preset if is_preset else small.save
    print(f"wrote {write_output(values.output, save, values.overwrite, is_preset)}")
    if rows is not None:
        from keras_bert_suite import compare_sizes

        tasks = {"before": kind.model, "after": small}
        for name, task in tasks.items():
            print(f"\n{name}")
            print_scores(kind.score(task, rows))
        print(f"\n{compare_sizes(tasks, rows.x, batch_size=values.batch_size, rounds=3)}")


def shrink(task, rows, values):
    """The smaller task. `rows` are `Examples`, or None."""
    import keras_bert_suite as kbs

    if values.layers:
        task = task.keep_layers(values.layers)
    if values.prune_heads:
        task.compile()
        task = task.prune_heads(
            rows.x, rows.y, share=values.prune_heads, batch_size=values.batch_size
        )
    if values.prune_feed_forward:
        task.compile()
        task = task.prune_feed_forward(
            *(rows.x, rows.y),
            share=values.prune_feed_forward,
            by_layer=values.by_layer,
            batch_size=values.batch_size,
        )
    if values.vocabulary_from:
        tokenizer = task.preprocessor.tokenizer
        texts = [t for path in values.vocabulary_from for t in read_lines(path, values.encoding)]
        task = task.keep_tokens(kbs.trim_vocabulary(tokenizer, texts, keep_characters=True))
    if values.embedding_rank:
        task = task.factorize_embeddings(values.embedding_rank)
    return task
