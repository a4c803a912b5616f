"""Label frames of sound: pretrain on hidden frames, then learn from few labelled recordings.

    python examples/label_tones.py

A recording is a row of frames, as a filter bank makes them of sound: a tone of one of 12 pitches is
loud in some of 16 filters, and lasts for 3 to 8 frames. There is much noise, so a single frame does
not tell its tone, and the frames around it do. A label is the pitch of a frame.
"""

# Recordings, of which few are labelled
import keras
import numpy as np

import keras_bert_suite as kbs

NUM_TONES, NUM_FILTERS, LENGTH, NOISE = 12, 16, 32, 1.0
UNLABELLED, LABELLED, EPOCHS, FINE_EPOCHS = 640, 12, 20, 20


def record(number, seed):
    """(rows of frames, rows of pitches)."""
    rng = np.random.default_rng(seed)
    rows, labels = [], []
    for length in rng.integers(LENGTH // 2, LENGTH + 1, number):
        lasting = rng.integers(3, 9, length)
        tones = np.repeat(rng.integers(0, NUM_TONES, length), lasting)[:length]
        distance = np.arange(NUM_FILTERS) - (tones[:, None] + 2)
        rows.append(np.exp(-(distance**2) / 2) * 2 + rng.normal(0, NOISE, distance.shape))
        labels.append(tones)
    return rows, labels


unlabelled, _ = record(UNLABELLED, seed=0)
rows, labels = record(LABELLED, seed=1)
test_rows, test_labels = record(200, seed=2)

# Pretrain: spans of frames become 0, and the encoder predicts what they were
keras.utils.set_random_seed(0)
packer = kbs.FramePacker(NUM_FILTERS, sequence_length=LENGTH, padding_lengths=(LENGTH,))
sizes = {"num_layers": 1, "num_heads": 4, "hidden_dim": 32, "intermediate_dim": 64}
backbone = kbs.RoFormerBackbone(None, **sizes, frame_dim=NUM_FILTERS, max_sequence_length=LENGTH)
pretrainer = kbs.FramePretrainer(backbone, preprocessor=packer)
pretrainer.compile(kbs.AdamW(kbs.LinearWarmupDecay(5e-3)))
batches = kbs.FrameBatches(unlabelled, kbs.FrameMasker(span_length=2), packer, batch_size=32)
pretrainer.fit(batches, epochs=EPOCHS, verbose=2)
pretrainer.save_to_preset("tones")


# Learn from the labelled recordings, with the pretrained encoder and with a new one
def learn(backbone):
    """The share of the frames of new recordings that get their pitch."""
    tagger = kbs.TokenClassifier(backbone, NUM_TONES, preprocessor=packer)
    tagger.compile(kbs.AdamW(kbs.LinearWarmupDecay(3e-3)))
    tagger.fit(rows, labels, batch_size=4, epochs=FINE_EPOCHS, verbose=0)
    found = [[int(name) for name in row] for row in tagger.predict_tags(test_rows, verbose=0)]
    return np.mean(np.concatenate(found) == np.concatenate(test_labels))


new = learn(type(backbone).from_config(backbone.get_config()))
pretrained = learn(kbs.RoFormerBackbone.from_preset("tones"))
print(f"frames with the right pitch: {pretrained:.3f} pretrained, {new:.3f} from new weights")
