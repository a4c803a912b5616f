"""Fine-tunes a checkpoint on the tasks of GLUE with several seeds, and scores it.

    python examples/finetune_glue.py glue_data path/to/checkpoint glue_results --seeds 3

Reads the official files, glue_data/CoLA/train.tsv and so on, of the tasks whose files are there.
The recipe is that of Geiping and Goldstein (2022, https://arxiv.org/abs/2212.14034). Prints the
mean and the standard deviation of each score on the dev files after the last epoch. Writes a JSON
file for each task and seed, with the scores after each epoch, and for each test file that is there
a file for the GLUE server. If the script was killed, run it again: what has a JSON file has
finished, and is not repeated.
"""

import argparse
import json
import os
import statistics
from pathlib import Path

import keras
from glue_scores import format_predictions, score_glue

import keras_bert_suite as kbs
from keras_bert_suite.data.readers.glue import GLUE_TASKS, find_tasks


def train(task, options, seed):
    """(list of the scores after each epoch, dict of file for the server -> its text)."""
    keras.utils.clear_session()  # The models of the tasks before are in cycles.
    keras.utils.set_random_seed(seed)
    rows = kbs.read_glue(options.data, task.name)
    dev = {split: kbs.read_glue(options.data, task.name, file) for split, file in task.dev.items()}
    classifier = kbs.TextClassifier.from_preset(
        options.checkpoint,
        label_names=rows.label_names,
        problem_type=task.problem_type,
        sequence_length=128,
    )
    schedule = kbs.LinearWarmupDecay(4e-5, warmup_ratio=0.1)
    classifier.compile(kbs.AdamW(schedule, weight_decay=0.01, bias_correction=True))
    epochs = []

    def score(epoch, logs):
        epochs.append({})
        for split, part in dev.items():
            predictions = classifier.predict_labels(part.x, verbose=0)
            for name, value in score_glue(task, part.y, predictions).items():
                epochs[-1][name if len(dev) == 1 else f"{name} {split}"] = value

    after_each = keras.callbacks.LambdaCallback(on_epoch_end=score)
    arguments = {"batch_size": 16, "epochs": options.epochs, "callbacks": [after_each]}
    classifier.fit(rows.x, rows.y, verbose=2, **arguments)
    predictions = {}
    for name, file in task.test.items():
        if (Path(options.data) / task.folder / file).is_file():
            texts = kbs.read_glue(options.data, task.name, file, labelled=False).x
            answers = classifier.predict_labels(texts, verbose=0)
            predictions[name] = format_predictions(task, answers)
    return epochs, predictions


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", help="folder of the folders CoLA, SST-2, MRPC and so on")
    parser.add_argument("checkpoint", help="folder of a checkpoint, or hf://...")
    parser.add_argument("output", type=Path, help="folder of the results")
    parser.add_argument("--tasks", nargs="+", default=list(GLUE_TASKS), choices=GLUE_TASKS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args()
    tasks, missing = find_tasks(options.data, options.tasks)
    if missing:
        print(f"missing in {options.data}: {', '.join(missing)}")
    for task in tasks:
        last = []
        for seed in range(options.seeds):
            result = options.output / f"{task.name}_{seed}.json"
            # The checkpoint and the epochs, so that another run does not take the result for its.
            settings = {"checkpoint": options.checkpoint, "epochs": options.epochs}
            if not result.is_file():
                print(f"{task.name}, seed {seed}", flush=True)
                scores, predictions = train(task, options, seed)
                for name, text in predictions.items():
                    folder = options.output / f"submission_{seed}"
                    folder.mkdir(parents=True, exist_ok=True)
                    (folder / name).write_text(text, encoding="utf-8")
                options.output.mkdir(parents=True, exist_ok=True)
                # Written aside and last: a task and seed with this file has finished.
                aside = result.with_suffix(".tmp")
                aside.write_text(json.dumps({"settings": settings, "epochs": scores}, indent=1))
                os.replace(aside, result)
            found = json.loads(result.read_text())
            if found["settings"] != settings:
                raise SystemExit(f"{result} has other settings, {found['settings']}. Delete it.")
            last.append(found["epochs"][-1])
        for name in last[0]:
            column = [100 * scores[name] for scores in last]
            deviation = statistics.stdev(column) if len(column) > 1 else 0.0
            print(f"{task.name}: {name} {statistics.mean(column):.2f} (deviation {deviation:.2f})")


if __name__ == "__main__":
    main()
