"""ELMo's pretraining beside LSTMs of PyTorch, and a training that is stopped and resumed."""

import keras
import numpy as np
import pytest
import torch
from peer_weights import randomize, to_numpy
from small_pretraining import At, all_arrays, assert_same, interrupt
from small_texts import ONE_LAYER, VOCABULARY, make_reviews

from keras_bert_suite import (
    AdamW,
    BertBackbone,
    BidirectionalTargets,
    CharacterTokenizer,
    ElmoBackbone,
    ElmoPretrainer,
    LinearWarmupDecay,
    Pretrainer,
    SegmentPacker,
    TextClassifier,
    TokenMasker,
    TrainingCheckpoint,
    WordPieceTokenizer,
    objectives,
)
from keras_bert_suite.corpus.token_corpus import TokenCorpus
from keras_bert_suite.pretraining import PretrainingBatches
from keras_bert_suite.pretraining.pretraining_batches import name_arrays

TOKENIZER = WordPieceTokenizer(VOCABULARY)
SIZES = {"num_layers": 2, "units": 6, "projection_dim": 4}
RATE = 0.5
BATCH = {
    "token_ids": np.array([[2, 7, 8, 3], [2, 9, 3, 0]], "int32"),
    "padding_mask": np.array([[1, 1, 1, 1], [1, 1, 1, 0]], "int32"),
}


def make_batches(masker=None, **arguments):
    ids = TOKENIZER.tokenize(make_reviews(48)[0])
    corpus = TokenCorpus.from_documents([ids[i : i + 6] for i in range(0, 48, 6)])
    masker = masker or BidirectionalTargets(TOKENIZER)
    arguments = {"mode": "full_sentences", **arguments}
    return PretrainingBatches(corpus, masker, 12, batch_size=8, **arguments)


def make_pretrainer():
    keras.utils.set_random_seed(1)
    backbone = ElmoBackbone(len(VOCABULARY), **SIZES)
    pretrainer = ElmoPretrainer(backbone, preprocessor=SegmentPacker(TOKENIZER, 12))
    pretrainer.compile(AdamW(LinearWarmupDecay(3e-2)))
    return pretrainer


def test_literal_predictions():
    listed = BidirectionalTargets(TOKENIZER)(BATCH, [0, 1], epoch=5)
    assert listed["next_ids"].tolist() == [[7, 8, 3], [9, 3, 0]]
    assert listed["previous_ids"].tolist() == [[2, 7, 8], [2, 9, 0]]
    assert listed["neighbor_weights"].tolist() == [[1, 1, 1], [1, 1, 0]]
    names = ("next_ids", "previous_ids", "neighbor_weights")
    assert [listed[name].dtype.name for name in names] == ["int32", "int32", "float32"]


def test_characters_of_tokens():
    """Whole words have the rows of a `CharacterTokenizer`."""
    characters = CharacterTokenizer(max_characters=9)
    packed = SegmentPacker(TOKENIZER, 12).pack(["the good film", "bad"])
    listed = BidirectionalTargets(TOKENIZER, max_characters=9)(packed)
    wanted = SegmentPacker(characters, 12).pack(["the good film", "bad"])
    np.testing.assert_array_equal(listed["character_ids"], wanted["character_ids"])
    sizes = {"filters": [(1, 3), (2, 4)], "embedding_dim": 2, "max_characters": 9}
    backbone = ElmoBackbone(None, **SIZES, characters=sizes)
    pretrainer = ElmoPretrainer(backbone, vocabulary_size=len(VOCABULARY))
    pretrainer.compile(AdamW(3e-2))
    batches = make_batches(BidirectionalTargets(TOKENIZER, max_characters=9))
    loss = pretrainer.fit(batches, epochs=2, verbose=0).history["loss"]
    assert loss[1] < loss[0]


def test_another_vocabulary_is_refused():
    """Also of as many tokens, by what a preset keeps of the first."""
    targets = BidirectionalTargets(TOKENIZER, max_characters=9)
    backbone = ElmoBackbone(None, **SIZES, characters={"filters": [(1, 3)], "max_characters": 9})
    sha256 = targets.vocabulary_sha256
    pretrainer = ElmoPretrainer(backbone, len(VOCABULARY), vocabulary_sha256=sha256)
    targets.check_task(pretrainer)
    other = WordPieceTokenizer([*VOCABULARY[:-1], "other"])
    for tokenizer, predicted in ((other, "others"), (WordPieceTokenizer(VOCABULARY[:-1]), "28")):
        batches = make_batches(BidirectionalTargets(tokenizer, max_characters=9))
        with pytest.raises(ValueError, match=f"ElmoPretrainer predicts {predicted}. Prepare"):
            pretrainer.fit(batches, verbose=0)


class TorchLanguageModel(torch.nn.Module):
    """The forward pass of `training.py`, on PyTorch's own LSTM with a projection.

    Its gates are i, f, g, o, with two biases. The forget bias is in the first of them.
    """

    def __init__(self, weights):
        super().__init__()
        self.table = torch.nn.Parameter(weights["token_embedding/embeddings"])
        self.softmax = torch.nn.Parameter(weights["language_model/kernel"])
        self.bias = torch.nn.Parameter(weights["language_model/bias"])
        self.lstms = torch.nn.ModuleDict()
        for direction in ("forward", "backward"):
            for layer in range(2):
                kernel, bias, projection = (
                    weights[f"{direction}_lstm_{layer}/cell/{name}"]
                    for name in ("kernel", "bias", "projection")
                )
                lstm = torch.nn.LSTM(4, 6, proj_size=4, batch_first=True)
                i, j, f, o = kernel.split(6, dim=1)
                kernel = torch.cat([i, f, j, o], dim=1)
                i, j, f, o = bias.split(6)
                with torch.no_grad():
                    lstm.weight_ih_l0.copy_(kernel[:4].T)
                    lstm.weight_hh_l0.copy_(kernel[4:].T)
                    lstm.weight_hr_l0.copy_(projection.T)
                    lstm.bias_ih_l0.copy_(torch.cat([i, f + 1.0, j, o]))
                    lstm.bias_hh_l0.zero_()
                lstm.bias_hh_l0.requires_grad = False
                self.lstms[f"{direction}_{layer}"] = lstm

    def forward(self, token_ids):
        """The mean loss of both directions over a row, a list of int."""
        tokens = torch.tensor(token_ids)
        losses = []
        for direction in ("forward", "backward"):
            read = tokens if direction == "forward" else tokens.flip(0)
            x, _ = self.lstms[f"{direction}_0"](self.table[read][None])
            x = x + self.lstms[f"{direction}_1"](x)[0]
            logits = x[0, :-1] @ self.softmax + self.bias
            losses.append(torch.nn.functional.cross_entropy(logits, read[1:], reduction="sum"))
        return losses


@pytest.mark.every_backend
def test_a_step_equals_lstms_of_pytorch():
    backbone = ElmoBackbone(
        12, **SIZES, dropout=0.0, cell_clip=None, projection_clip=None, initializer_range=0.5
    )
    pretrainer = randomize(ElmoPretrainer(backbone))
    pretrainer.compile(keras.optimizers.SGD(RATE))
    before = {v.path: torch.tensor(to_numpy(v)) for v in pretrainer.weights}
    peer = TorchLanguageModel({path: tensor.clone() for path, tensor in before.items()})
    x, y, weights = name_arrays(BidirectionalTargets(TOKENIZER)(BATCH), BidirectionalTargets.labels)
    logs = pretrainer.train_on_batch(x, y, sample_weight=weights, return_dict=True)

    rows = [[2, 7, 8, 3], [2, 9, 3]]
    forward, backward = (sum(losses) / 5 for losses in zip(*map(peer, rows), strict=True))
    loss = 0.5 * (forward + backward)
    loss.backward()
    for name, wanted in (("forward", forward), ("backward", backward)):
        np.testing.assert_allclose(logs[f"{name}_loss"], wanted.item(), rtol=1e-4)
    np.testing.assert_allclose(logs["loss"], loss.item(), rtol=1e-4)
    np.testing.assert_allclose(logs["perplexity"], np.exp(loss.item()), rtol=1e-4)
    torch.optim.SGD([p for p in peer.parameters() if p.requires_grad], lr=RATE).step()
    got = {v.path: to_numpy(v) for v in pretrainer.weights}
    for path, wanted in (
        ("token_embedding/embeddings", peer.table),
        ("language_model/kernel", peer.softmax),
        ("language_model/bias", peer.bias),
    ):
        np.testing.assert_allclose(got[path], wanted.detach(), rtol=0, atol=1e-5)
    for name, lstm in peer.lstms.items():
        direction, layer = name.split("_")
        path = f"{direction}_lstm_{layer}/cell"
        i, f, g, o = torch.cat([lstm.weight_ih_l0.T, lstm.weight_hh_l0.T]).split(6, dim=1)
        wanted = torch.cat([i, g, f, o], dim=1).detach()
        np.testing.assert_allclose(got[f"{path}/kernel"], wanted, rtol=0, atol=1e-5)
        i, f, g, o = lstm.bias_ih_l0.split(6)
        wanted = torch.cat([i, g, f - 1.0, o]).detach()
        np.testing.assert_allclose(got[f"{path}/bias"], wanted, rtol=0, atol=1e-5)
        wanted = lstm.weight_hr_l0.T.detach()
        np.testing.assert_allclose(got[f"{path}/projection"], wanted, rtol=0, atol=1e-5)


def test_the_loss_falls_and_a_preset_is_fine_tuned(tmp_path):
    trained = make_pretrainer()
    logs = trained.fit(make_batches(), epochs=3, verbose=0).history
    assert logs["loss"][2] < logs["loss"][1] < logs["loss"][0]
    assert logs["forward_accuracy"][2] > logs["forward_accuracy"][0]
    trained.save_to_preset(tmp_path / "preset")
    again = ElmoPretrainer.from_preset(tmp_path / "preset")
    for got, wanted in zip(again.get_weights(), trained.get_weights(), strict=True):
        np.testing.assert_array_equal(got, wanted)
    classifier = TextClassifier.from_preset(tmp_path / "preset", label_names=["no", "yes"])
    assert classifier.predict(["the film was good"], verbose=0).shape == (1, 2)
    np.testing.assert_array_equal(
        to_numpy(classifier.backbone.token_embedding.embeddings),
        to_numpy(trained.backbone.token_embedding.embeddings),
    )


@pytest.mark.long("faults")
def test_a_stopped_training_ends_as_one_that_was_not(tmp_path):
    batches = make_batches()
    whole = make_pretrainer()
    whole.fit(batches, epochs=3, verbose=0)
    stopped = make_pretrainer()
    checkpoint = TrainingCheckpoint(tmp_path / "run", every=2)
    with pytest.raises(KeyboardInterrupt):
        callbacks = [At(len(batches) + 3, interrupt), checkpoint]
        stopped.fit(batches, epochs=3, callbacks=callbacks, verbose=0)
    resumed = make_pretrainer()
    checkpoint = TrainingCheckpoint(tmp_path / "run", every=2)
    resumed.fit(batches, epochs=3, callbacks=[checkpoint], verbose=0)
    assert_same(resumed, all_arrays(whole))


def test_the_objective_by_its_name():
    objective = objectives.get("bidirectional_language_model")
    batches = make_batches(objective.make_masker(TOKENIZER), **objective.instances)
    pretrainer = objective.make_task(ElmoBackbone(len(VOCABULARY), **SIZES))
    assert type(pretrainer) is ElmoPretrainer
    assert pretrainer.evaluate(batches[:1], verbose=0, return_dict=True)["perplexity"] > 1


def test_what_does_not_fit():
    with pytest.raises(ValueError, match="trains an ElmoBackbone, got a BertBackbone"):
        ElmoPretrainer(BertBackbone(**ONE_LAYER))
    characters = {"filters": [(1, 3)], "max_characters": 5}
    backbone = ElmoBackbone(None, **SIZES, characters=characters)
    with pytest.raises(ValueError, match="predicts the tokens of a vocabulary. Pass vocabulary"):
        ElmoPretrainer(backbone)
    outputs = ElmoPretrainer(backbone, vocabulary_size=7).output
    assert {name: x.shape[-1] for name, x in outputs.items()} == {"forward": 7, "backward": 7}
    with pytest.raises(ValueError, match="learns forward, backward, and the batches have labels"):
        make_pretrainer().fit(make_batches(TokenMasker(TOKENIZER)), verbose=0)
    masked = Pretrainer(ElmoBackbone(len(VOCABULARY), **SIZES), next_sentence=False)
    with pytest.raises(ValueError, match="mask_positions"):
        masked.fit(make_batches(), verbose=0)
