"""A text written from a text."""

import keras
import numpy as np
from cli.kind_case import KindCase, Learning
from cli.small_kinds import write_titles
from small_texts import make_reviews

TRAINED = "--task=seq2seq"
SPEAKS = "fit.self.preprocessor.tokenizer.{}"
#: The rules that the command line asks for.
RULES = ("--min_target_length=2", "--no_repeat_ngram_size=3", "--first_token=good")
RULES = (*RULES, "--last_token=film")


def check_titles(scores, printed, table, answers, dev):
    writer = keras.saving.load_model(dev.parent / "model.keras", compile=False)
    assert (writer.input_names, writer.max_target_length) == (("review",), 3)
    assert writer.sampler.num_beams == 2
    assert printed.startswith("rows 6, rouge_1 ")
    assert scores["rows"] == 6 and 0 <= scores["rouge_l"] <= 100
    texts = make_reviews(6, seed=2)[0]
    assert [answer["review"] for answer in answers] == texts
    assert [answer["target"] for answer in answers] == writer.predict(texts)
    assert table == ["target", *(" ".join(answer["target"].split()) for answer in answers)]


CASE = KindCase(
    model=("Seq2Seq", {"max_target_length": 2}),
    trained=(TRAINED,),
    batches="choose_size.batch_size",
    flags={
        **{
            f"{flag} {TRAINED}": f"fit.self.{flag[2:].partition('=')[0]}"
            for flag in (*RULES, "--max_target_length=7")
        },
        f"--source_language=de_DE {TRAINED} --checkpoint=mbart": SPEAKS.format("source_language"),
        f"--target_language=en_XX {TRAINED} --checkpoint=mbart": SPEAKS.format("target_language"),
        f"--num_beams=3 {TRAINED}": "fit.self.sampler.num_beams",
        f"--length_penalty=0.5 --num_beams=2 {TRAINED}": "fit.self.sampler.length_penalty",
    },
    export={"head": "Seq2Seq"},
    outputs={
        "texts": np.array(["fine é".encode(), b""]),
        "target_ids": np.int32([[5, 6], [0, 0]]),
        "num_tokens": np.int32([2, 0]),
    },
    answers=[{"target": "fine é"}, {"target": ""}],
    table=["target", "fine é", ""],
    learning=Learning(
        write_titles,
        ".tsv",
        (32, 6),
        "--epochs=2 --text_column=review --target_column=title --max_target_length=3 "
        "--num_beams=2 --sequence_length=32",
        check_titles,
        "--target_column=title",
    ),
)
