"""Tokens a second that a `Seq2Seq` writes, with its cache and without, or beside transformers.

    python benchmarks/generation.py                        # MiniLM's shape, three backends
    python benchmarks/generation.py --backends torch --num_beams 4 --rounds 5
    python benchmarks/generation.py --model bart           # a BART beside transformers' generate
    python benchmarks/generation.py --model causal         # a CausalLM beside their GPT-2

Random weights of the shape of MiniLM (6 layers, 384 wide). Each batch has 16 sources of 100 tokens,
and every target has 32 tokens. Without a cache, the whole model reads source and target again for
each token, as bert4keras does. A BART has 6 such layers on each side. A `CausalLM` continues the
sources. Each side runs in a process of its own, in turn. The first batch, in which graphs are
compiled, is not counted.
"""

import argparse
import functools
import sys
import time

from harness.result_tables import describe_run, format_columns, format_comparison
from harness.side_flags import BACKENDS, list_pairs, parse_flags
from harness.side_runs import report, run_in_turn

BATCH_SIZE, SOURCE_LENGTH, TARGET_LENGTH = 16, 100, 32
#: model -> its sides.
SIDES = {
    "bert": ["ours", "ours without a cache"],
    "bart": ["ours", "transformers"],
    "causal": ["ours", "transformers"],
}
SIZES = {"num_layers": 6, "num_heads": 12, "hidden_dim": 384, "intermediate_dim": 1536}
#: The second figure counts the seconds of the processor, which other work beside it does not take.
COLUMNS = {"tokens/s": "{:.0f}", "tokens/s of the processor": "{:.0f}"}


def make_writer(model, num_beams):
    import keras_hub
    import numpy as np

    import keras_bert_suite as kbs

    words = [f"word{number}" for number in range(30_000)]
    tokenizer = kbs.WordPieceTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words])
    size = tokenizer.vocabulary_size()
    packer = kbs.SegmentPacker(tokenizer, SOURCE_LENGTH + TARGET_LENGTH)
    beams = kbs.BeamSearch(num_beams)
    if model == "bert":
        beams = keras_hub.samplers.BeamSampler(num_beams=num_beams)
    arguments = {"preprocessor": packer, "sampler": beams if num_beams > 1 else "greedy"}
    if model == "causal":
        backbone = kbs.BertBackbone(size, **SIZES, attention_pattern="left_to_right")
        writer = kbs.CausalLM(backbone, max_length=TARGET_LENGTH, **arguments)
    else:
        backbone = (
            kbs.BertBackbone(size, **SIZES, attention_pattern="seq2seq")
            if model == "bert"
            else kbs.BartBackbone(size, **SIZES)
        )
        writer = kbs.Seq2Seq(backbone, max_target_length=TARGET_LENGTH, **arguments)
    # No target ends before its last token.
    writer.masked_lm.bias.assign(-1e4 * (np.arange(tokenizer.vocabulary_size()) == 3))
    return writer, words


def make_peer(model, vocabulary_size):
    """A BART or a GPT-2 of transformers with the sizes of ours, and the ids of its tokens."""
    import transformers

    if model == "causal":
        config = transformers.GPT2Config(
            vocab_size=vocabulary_size,
            n_positions=512,
            n_embd=SIZES["hidden_dim"],
            n_layer=SIZES["num_layers"],
            n_head=SIZES["num_heads"],
            n_inner=SIZES["intermediate_dim"],
            **{"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3},
        )
        return transformers.GPT2LMHeadModel(config).eval()
    config = transformers.BartConfig(
        vocab_size=vocabulary_size,
        d_model=SIZES["hidden_dim"],
        encoder_layers=SIZES["num_layers"],
        decoder_layers=SIZES["num_layers"],
        encoder_attention_heads=SIZES["num_heads"],
        decoder_attention_heads=SIZES["num_heads"],
        encoder_ffn_dim=SIZES["intermediate_dim"],
        decoder_ffn_dim=SIZES["intermediate_dim"],
        **{"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "decoder_start_token_id": 3},
        **{"forced_bos_token_id": 2, "forced_eos_token_id": None},
    )
    return transformers.BartForConditionalGeneration(config).eval()


def write_by_peer(peer, writer, sources, num_beams):
    """The texts of transformers' `generate`, packed and joined by our tokenizer."""
    import numpy as np
    import torch

    import keras_bert_suite as kbs

    packed = writer.data.pack_sources(sources, TARGET_LENGTH)
    ids, mask = (torch.from_numpy(packed[name]).long() for name in ("token_ids", "padding_mask"))
    length = {"max_new_tokens": TARGET_LENGTH, "min_new_tokens": TARGET_LENGTH}
    with torch.no_grad():
        rows = peer.generate(
            input_ids=ids, attention_mask=mask, num_beams=num_beams, do_sample=False, **length
        )
    rows = np.array(rows)[:, -TARGET_LENGTH - 1 :]  # With the token before the target.
    first = 0 if isinstance(writer, kbs.CausalLM) else 1
    return writer.answers.detokenize(rows[:, first:], writer.preprocessor.tokenizer)


def write_without_cache(writer, sources):
    """Greedy targets, a pass of the whole model for each token."""
    import numpy as np

    place_holders = [" ".join(["word1"] * TARGET_LENGTH)] * len(sources)
    inputs, _, _ = writer.data.pack(writer.data.read(sources, place_holders), labelled=True)
    inputs = {name: np.array(array) for name, array in inputs.items()}
    first = inputs["mask_positions"][:, 0]
    for place in range(TARGET_LENGTH):
        step = {**inputs, "mask_positions": (first + place)[:, None].astype("int32")}
        logits = writer.predict_on_batch(step)
        following = np.minimum(first + place + 1, inputs["token_ids"].shape[1] - 1)
        newest = np.asarray(logits)[:, 0].argmax(axis=-1)
        inputs["token_ids"][np.arange(len(sources)), following] = newest


def measure(side, options):
    import numpy as np

    writer, words = make_writer(options.model, options.num_beams)
    rng = np.random.default_rng(0)
    sources = [" ".join(rng.choice(words, SOURCE_LENGTH)) for _ in range(BATCH_SIZE)]
    if side == "transformers":
        peer = make_peer(options.model, writer.backbone.vocabulary_size)
        write = functools.partial(write_by_peer, peer, writer, num_beams=options.num_beams)
    elif side == "ours":
        write = writer.predict
    else:
        write = functools.partial(write_without_cache, writer)
    write(sources)
    clocks = (time.perf_counter, time.process_time)
    begin = [clock() for clock in clocks]
    for _ in range(options.batches):
        write(sources)
    seconds = [clock() - first for clock, first in zip(clocks, begin, strict=True)]
    num_tokens = options.batches * BATCH_SIZE * TARGET_LENGTH
    return {name: num_tokens / taken for name, taken in zip(COLUMNS, seconds, strict=True)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backends", nargs="+", default=BACKENDS)
    parser.add_argument("--model", default="bert", choices=SIDES)
    parser.add_argument("--sides", nargs="+", choices=sorted({*SIDES["bert"], *SIDES["bart"]}))
    parser.add_argument("--num_beams", type=int, default=1)
    parser.add_argument("--batches", type=int, default=2)
    options = parse_flags(parser)
    if options.child:
        report(measure(options.child, options))
        return
    peers = ["transformers"]
    pairs = list_pairs(options.sides or SIDES[options.model], options.backends, peers)
    measured = run_in_turn(sys.argv, pairs, [[]] * options.rounds)
    print(f"{describe_run(measured, options.rounds)}\n")
    print(f"{format_columns(measured, COLUMNS)}\n\n{format_comparison(measured, COLUMNS, peers)}")


if __name__ == "__main__":
    main()
