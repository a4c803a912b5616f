"""`fit` and `predict` of each member of the family beside KerasHub's and transformers', in turn.

    python benchmarks/family.py                                  # all models, three backends
    python benchmarks/family.py --models albert --backends torch --rounds 1

A classifier with random weights, of --layers layers of --width, trains on --rows rows of --length
tokens without padding, in batches of --batch_size, and then predicts them. So what counts is the
model, and neither a tokenizer nor an order of rows: `finetune.py` has those, with a BERT. A BART
has --layers layers on each side. KerasHub has no classifier for XLNet and BART. So one is made of
the backbone: a tanh layer over the state of the last token, and a layer of scores. Each figure is
the second pass, in rows/s. A side for which there is no such model is left out. Each side runs in a
process of its own.
"""

import argparse
import sys
import time

from harness.result_tables import describe_run, format_cells, format_ratios, format_table
from harness.side_flags import BACKENDS, list_pairs, parse_flags
from harness.side_runs import report, run_in_turn

VOCABULARY_SIZE = 8192
#: The token at the end of each row, where transformers' classifier of BART looks for it.
END = 2

#: A model -> (our class, the prefix of KerasHub's classes or None, that of transformers').
MODELS = {
    "bert": ("BertBackbone", "Bert", "Bert"),
    "distilbert": ("DistilBertBackbone", "DistilBert", "DistilBert"),
    "albert": ("AlbertBackbone", "Albert", "Albert"),
    "electra": ("ElectraBackbone", None, "Electra"),
    "roberta": ("RobertaBackbone", "Roberta", "Roberta"),
    "xlm-roberta": ("RobertaBackbone", "XLMRoberta", "XLMRoberta"),
    "roformer": ("RoFormerBackbone", None, "RoFormer"),
    "modernbert": ("ModernBertBackbone", None, "ModernBert"),
    "xlnet": ("XLNetBackbone", "XLNet", "XLNet"),
    "bart": ("BartBackbone", "Bart", "Bart"),
}

COLUMNS = {"fit": "{:.1f}", "predict": "{:.1f}", "memory, GB": "{:.2f}"}


def make_rows(options):
    """(token ids (N, L), labels (N,))."""
    import numpy as np

    rng = np.random.default_rng(0)
    ids = rng.integers(5, VOCABULARY_SIZE, (options.rows, options.length)).astype("int32")
    ids[:, -1] = END
    return ids, (np.arange(options.rows) % 2).astype("int32")


def make_ours(options):
    import keras_bert_suite as kbs

    cls = getattr(kbs, MODELS[options.model][0])
    sizes = {"embedding_dim": 128} if options.model == "albert" else {}
    backbone = cls(
        VOCABULARY_SIZE,
        options.layers,
        options.width // 64,
        options.width,
        4 * options.width,
        **sizes,
    )
    classifier = kbs.TextClassifier(backbone, num_classes=2, preprocessor=None)
    classifier.compile(kbs.AdamW(1e-4), metrics=None)
    return classifier


def make_keras_hub(options):
    import keras
    import keras_hub

    prefix = MODELS[options.model][1]
    sizes = {"embedding_dim": 128} if options.model == "albert" else {}
    backbone = getattr(keras_hub.models, f"{prefix}Backbone")(
        vocabulary_size=VOCABULARY_SIZE,
        num_layers=options.layers,
        num_heads=options.width // 64,
        hidden_dim=options.width,
        intermediate_dim=4 * options.width,
        dropout=0.0 if options.model == "albert" else 0.1,  # As ours.
        **sizes,
    )
    if options.model in ("xlnet", "bart"):
        classifier = add_head(backbone)
    else:
        cls = getattr(keras_hub.models, f"{prefix}TextClassifier")
        classifier = cls(backbone, num_classes=2, preprocessor=None)
    classifier.compile(
        optimizer=keras.optimizers.AdamW(1e-4, global_clipnorm=1.0),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    return classifier


def add_head(backbone):
    """A classifier on a backbone of KerasHub that has none."""
    import keras

    states = backbone.output
    if isinstance(states, dict):
        states = states["decoder_sequence_output"]
    pooled = keras.layers.Dense(backbone.hidden_dim, activation="tanh")(states[:, -1])
    scores = keras.layers.Dense(2)(keras.layers.Dropout(0.1)(pooled))
    return keras.Model(backbone.input, scores)


def measure_keras(classifier, options):
    """(seconds of the second epoch, seconds of the second prediction)."""
    import numpy as np

    ids, labels = make_rows(options)
    arrays = {
        "token_ids": ids,
        "segment_ids": np.zeros_like(ids),
        "padding_mask": np.ones_like(ids),
    }
    # KerasHub's BART has inputs for each side. Its decoder reads the row behind the last token.
    arrays |= {f"encoder_{name}": arrays[name] for name in ("token_ids", "padding_mask")}
    arrays["decoder_token_ids"] = np.roll(ids, 1, axis=1)
    arrays["decoder_padding_mask"] = arrays["padding_mask"]
    model = getattr(classifier, "backbone", classifier)
    x = {name: arrays[name] for name in model.input}
    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        classifier.fit(x, labels, batch_size=options.batch_size, verbose=0, shuffle=False)
        middle = time.perf_counter()
        classifier.predict(x, batch_size=options.batch_size, verbose=0)
        seconds.append((middle - begin, time.perf_counter() - middle))
    return seconds[-1]


def measure_transformers(options):
    """(seconds of the second epoch, seconds of the second prediction)."""
    import torch
    import transformers

    prefix = MODELS[options.model][2]
    sizes = {
        "num_hidden_layers": options.layers,
        "num_attention_heads": options.width // 64,
        "hidden_size": options.width,
        "intermediate_size": 4 * options.width,
        "embedding_size": 128 if options.model == "albert" else options.width,
        "max_position_embeddings": 514,
        "pad_token_id": 1 if "roberta" in options.model else 0,
    }
    if options.model == "distilbert":
        sizes = {
            "n_layers": options.layers,
            "n_heads": options.width // 64,
            "dim": options.width,
            "hidden_dim": 4 * options.width,
        }
    if options.model == "xlnet":
        sizes = {
            "n_layer": options.layers,
            "n_head": options.width // 64,
            "d_model": options.width,
            "d_inner": 4 * options.width,
            "use_mems_eval": False,  # States that nothing reads.
        }
    if options.model == "bart":
        sizes = {f"{side}_layers": options.layers for side in ("encoder", "decoder")}
        sizes |= {f"{side}_ffn_dim": 4 * options.width for side in ("encoder", "decoder")}
        heads = ("encoder_attention_heads", "decoder_attention_heads")
        sizes |= dict.fromkeys(heads, options.width // 64)
        sizes |= {"d_model": options.width, "eos_token_id": END, "use_cache": False}
    config = getattr(transformers, f"{prefix}Config")(vocab_size=VOCABULARY_SIZE, **sizes)
    model = getattr(transformers, f"{prefix}ForSequenceClassification")(config)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    ids, labels = (torch.from_numpy(array).long() for array in make_rows(options))
    batches = list(
        zip(ids.split(options.batch_size), labels.split(options.batch_size), strict=True)
    )

    def read(batch):
        inputs = {"input_ids": batch, "attention_mask": torch.ones_like(batch)}
        # Without them, transformers' XLNet leaves out the scores of segments.
        segments = {"token_type_ids": torch.zeros_like(batch)} if options.model == "xlnet" else {}
        return inputs | segments

    seconds = []
    for _ in range(2):
        begin = time.perf_counter()
        model.train()
        for batch, wanted in batches:
            model(**read(batch), labels=wanted).loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
        middle = time.perf_counter()
        model.eval()
        with torch.inference_mode():
            for batch, _ in batches:
                model(**read(batch))
        seconds.append((middle - begin, time.perf_counter() - middle))
    return seconds[-1]


SIDES = {
    "ours": lambda options: measure_keras(make_ours(options), options),
    "keras_hub": lambda options: measure_keras(make_keras_hub(options), options),
    "transformers": measure_transformers,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--model", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=int, default=64)
    parser.add_argument("--length", type=int, default=128)
    parser.add_argument("--batch_size", type=int, default=16)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    options = parse_flags(parser)
    if options.child:
        fit, predict = SIDES[options.child](options)
        report({"fit": options.rows / fit, "predict": options.rows / predict})
        return

    rows, last = [], {}
    for model in options.models:
        sides = [side for side in SIDES if side != "keras_hub" or MODELS[model][1]]
        pairs = list_pairs(sides, options.backends, ["transformers"])
        last = run_in_turn([*sys.argv, "--model", model], pairs, [[]] * options.rounds)
        for (side, backend), figures in last.items():
            # transformers has PyTorch alone. A run may have no side of ours with it.
            ours = last.get(("ours", backend))
            ratios = ["", ""]
            if ours is not None:
                ratios = [format_ratios(ours[name], figures[name]) for name in ("fit", "predict")]
            rows.append([model, side, backend, *format_cells(figures, COLUMNS), *ratios])
    print(f"{describe_run(last, options.rounds, ['keras-hub', 'transformers'])}\n")
    headings = ["model", "side", "backend", *COLUMNS, "ours / side, fit", "predict"]
    print(format_table(headings, rows))


if __name__ == "__main__":
    main()
