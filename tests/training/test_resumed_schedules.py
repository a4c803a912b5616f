"""`fit` with `initial_epoch` goes on with a schedule: the rates are of an uninterrupted run."""

import keras
import pytest
from small_tasks import make_task
from small_texts import make_reviews
from tables import left_out

from keras_bert_suite import AdamW, Lamb, LinearWarmupDecay

PEAK, EPOCHS, DONE, BATCHES = 1e-3, 4, 2, 6
ROWS = make_reviews(2 * BATCHES)


class Rates(keras.callbacks.Callback):
    """Notes the learning rate of each batch, as the schedule says before the batch."""

    def __init__(self):
        super().__init__()
        self.rates = []

    def on_train_batch_begin(self, batch, logs=None):
        if keras.config.backend() == "jax":
            self.model.jax_state_sync()
        optimizer = getattr(self.model.optimizer, "inner_optimizer", self.model.optimizer)
        # Keras' own optimizers pass the number of batches to a schedule.
        self.rates.append(float(optimizer.learning_rate))


def compile_task(optimizer=AdamW, head_rate=None, **arguments):
    keras.utils.set_random_seed(0)
    task, _ = make_task("texts", "SegmentPacker")
    optimizer = optimizer(LinearWarmupDecay(PEAK), **arguments)
    task.compile(optimizer, head_learning_rate=head_rate)
    return task


def train(task, batch_size=2, verbose=0, **arguments):
    """The rate of each batch."""
    noted = Rates()
    callbacks = [noted, *arguments.pop("callbacks", ())]
    task.fit(*ROWS, batch_size=batch_size, callbacks=callbacks, verbose=verbose, **arguments)
    return noted.rates


def save_each_epoch(task, folder):
    """Trains all epochs; returns the rates, and the task as it was saved after `DONE` of them."""
    saves = keras.callbacks.ModelCheckpoint(f"{folder}/{{epoch}}.keras")
    rates = train(task, epochs=EPOCHS, callbacks=[saves])
    return rates, keras.saving.load_model(f"{folder}/{DONE}.keras")


@pytest.mark.parametrize(
    "arguments",
    [
        {"gradient_accumulation_steps": 4},  # An update has batches of two epochs.
        {"optimizer": keras.optimizers.AdamW},
        *(
            pytest.param(arguments, marks=left_out("faults"))
            for arguments in (
                {},
                {"gradient_accumulation_steps": 2},
                {"head_rate": 1e-2},
                {"rate_multipliers": {"embeddings": 0.5}},
                {"optimizer": Lamb},
            )
        ),
    ],
)
def test_a_saved_task_goes_on(arguments, tmp_path, capsys):
    wanted, task = save_each_epoch(compile_task(**arguments), tmp_path)
    found = train(task, epochs=EPOCHS, initial_epoch=DONE, verbose=2)
    assert found == wanted[DONE * BATCHES :]
    batches_per_step = arguments.get("gradient_accumulation_steps", 1)
    steps = (epochs * BATCHES // batches_per_step for epochs in (DONE, EPOCHS))
    said = "The learning rate schedule goes on after step {} of {}, as".format(*steps)
    assert capsys.readouterr().out.count(said) == 1


def test_a_loop_of_epochs_warms_up_once():
    """The length grows with `epochs`, and the rate never returns to the peak."""
    task = compile_task()
    for epoch in range(EPOCHS):
        rates = train(task, epochs=epoch + 1, initial_epoch=epoch)
        # Google's decay over all epochs so far.
        steps = BATCHES * (epoch + 1)
        decay = [PEAK * (1 - (BATCHES * epoch + i) / steps) for i in range(BATCHES)]
        assert rates == pytest.approx(decay, rel=1e-5)


def test_with_another_batch_size_the_share_of_the_epochs_counts(tmp_path):
    _, task = save_each_epoch(compile_task(), tmp_path)
    rates = train(task, batch_size=4, epochs=EPOCHS, initial_epoch=DONE)
    assert rates == pytest.approx([PEAK / 2 * (1 - i / 6) for i in range(6)], rel=1e-5)


def test_a_new_optimizer_begins_a_new_schedule(capsys):
    """As after thawing an encoder. Other schedules keep their own steps."""
    task = compile_task()
    train(task, epochs=DONE)
    task.compile(AdamW(LinearWarmupDecay(PEAK, warmup_steps=0)))
    rates = train(task, epochs=EPOCHS, initial_epoch=DONE, verbose=2)
    assert rates == pytest.approx([PEAK * (1 - i / 12) for i in range(12)], rel=1e-5)
    task.compile(AdamW(LinearWarmupDecay(PEAK, total_steps=24, warmup_steps=0)))
    rates = [
        rate
        for epoch in range(EPOCHS)
        for rate in train(task, epochs=epoch + 1, initial_epoch=epoch, verbose=2)
    ]
    assert rates == pytest.approx([PEAK * (1 - i / 24) for i in range(24)], rel=1e-5)
    assert "goes on" not in capsys.readouterr().out


def test_a_head_on_features_goes_on():
    task = compile_task()
    optimizer, noted = AdamW(LinearWarmupDecay(PEAK)), Rates()
    arguments = {"batch_size": 2, "optimizer": optimizer, "callbacks": [noted], "verbose": 0}
    task.fit_on_features(*ROWS, epochs=DONE, **arguments)
    task.fit_on_features(*ROWS, epochs=EPOCHS, initial_epoch=DONE, **arguments)
    assert noted.rates[DONE * BATCHES] == pytest.approx(PEAK / 2)
