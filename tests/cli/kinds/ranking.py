"""The relevance of texts for a query."""

import numpy as np
import pytest
from cli.kind_case import KindCase, Learning
from cli.small_kinds import write_clicks

TRAINED = "--task=ranking --text_column=text --text_pair_column=second --label_column=number"
COLUMNS = "--text_column=asked --text_pair_column=title --label_column=clicked"


def check_rankings(scores, printed, table, answers, dev):
    assert scores["rows"] == 16 and scores["mrr"] > 0.8 and scores["recall@5"] == 1
    assert "ndcg@10" in printed and table[0] == "relevance"
    relevance = np.array(table[1:], float).reshape(3, 16)
    clicked = np.array([line[-1] == "1" for line in dev.read_text().splitlines()[1:]])
    ranks = 1 + (relevance > relevance.T.ravel()[clicked.reshape(3, 16).T.ravel()]).sum(0)
    assert np.mean(1 / ranks) == pytest.approx(scores["mrr"])
    assert set(answers[0]) == {"asked", "title", "relevance"}
    assert answers[0]["relevance"] == relevance[0, 0]


CASE = KindCase(
    model=("TextRanker", {"input_names": ("text", "second")}),
    trained=(TRAINED,),
    labelled="--text_column=text --text_pair_column=second --label_column=number",
    asked="--input=train.tsv",
    flags={
        f"--left_out_labels=3 {TRAINED}": "read_rankings.left_out_labels",
        f"--ranking_loss=pairwise {TRAINED}": "fit.self.loss.kind",
    },
    export={"head": "TextRanker"},
    outputs={"relevance": np.float32([0.5, -1])},
    answers=[{"relevance": 0.5}, {"relevance": -1.0}],
    table=["relevance", "0.500000", "-1.000000"],
    learning=Learning(
        write_clicks,
        ".tsv",
        (48, 16),
        f"--epochs=6 --batch_size=8 --learning_rate=5e-3 --sequence_length=32 {COLUMNS}",
        check_rankings,
        "--label_column=clicked",
    ),
)
