"""Some layers of a model, against transformers' model without the others."""

import numpy as np
import pytest
import torch
import transformers
from family import MEMBERS, run_peer
from peer_weights import to_numpy
from small_tasks import make_task
from tables import short_for

import keras_bert_suite as kbs
from keras_bert_suite.checkpoints import save_hugging_face

pytestmark = pytest.mark.filterwarnings("ignore:.*has no weights for")

#: Of a recorded model there is no peer to cut. A BART has two stacks, an ALBERT has one layer, and
#: the first layer of a ModernBERT must stay.
NAMES = [n for n in MEMBERS if n not in ("nezha", "bart", "albert", "modernbert")]


def drop_first(peer):
    """Takes the first of the layers out of a model of transformers."""
    (blocks,) = (m for m in peer.modules() if isinstance(m, torch.nn.ModuleList) and len(m) == 2)
    del blocks[0]


@pytest.mark.parametrize("name", short_for(NAMES, "bert", "xlnet", part="combinations"))
def test_the_second_layer_alone(name, tmp_path):
    member = MEMBERS[name]
    peer = member.save_peer(tmp_path)
    inputs = member.make_inputs()
    backbone = member.backbone.from_preset(tmp_path)
    small = backbone.keep_layers([1])
    drop_first(peer)
    with torch.no_grad():
        wanted = run_peer(peer, inputs).last_hidden_state.numpy()
    got = to_numpy(small(inputs)["sequence_output"])
    seen = inputs["padding_mask"] == 1
    np.testing.assert_allclose(got[seen], wanted[seen], atol=1e-5)
    assert (small.num_layers, backbone.num_layers) == (1, 2)


def test_a_task_is_saved_and_opened_elsewhere(tmp_path):
    """With its head. The whole task stays as it is."""
    peer = MEMBERS["bert"].save_peer(
        tmp_path / "peer", "ForSequenceClassification", num_hidden_layers=3
    )
    inputs = MEMBERS["bert"].make_inputs()
    whole = kbs.TextClassifier.from_preset(tmp_path / "peer")
    before = to_numpy(whole(inputs))
    task = whole.keep_layers([0, 2])
    wanted = to_numpy(task(inputs))
    np.testing.assert_array_equal(to_numpy(whole(inputs)), before)
    del peer.bert.encoder.layer[1]
    with torch.no_grad():
        np.testing.assert_allclose(run_peer(peer, inputs).logits.numpy(), wanted, atol=1e-5)
    save_hugging_face(task, tmp_path / "written")
    cls = transformers.BertForSequenceClassification
    elsewhere = cls.from_pretrained(tmp_path / "written").eval()
    assert elsewhere.config.num_hidden_layers == 2
    with torch.no_grad():
        np.testing.assert_allclose(run_peer(elsewhere, inputs).logits.numpy(), wanted, atol=1e-5)
    task.save_to_preset(tmp_path / "preset")
    opened = kbs.TextClassifier.from_preset(tmp_path / "preset")
    np.testing.assert_allclose(to_numpy(opened(inputs)), wanted, atol=1e-6)
    assert opened.label_names == whole.label_names
    assert task.preprocessor is whole.preprocessor


def test_what_is_refused():
    bert = kbs.BertBackbone(24, 3, 2, 8, 16)
    for layers in ([], [0, 3], [2, 0], [1, 1]):
        with pytest.raises(ValueError, match=r"layers 0 to 2 of this BertBackbone, .* got \["):
            bert.keep_layers(layers)
    for layers in (3, None, "02"):
        with pytest.raises(ValueError, match=r"layers must be a list of integers .*, got .?[3N0]"):
            bert.keep_layers(layers)
    with pytest.raises(ValueError, match="a layer must be an integer of at least 0, got -1"):
        bert.keep_layers([-1])
    albert = kbs.AlbertBackbone(24, 4, 2, 8, 16, num_groups=2)
    with pytest.raises(ValueError, match="share the weights of 2 groups"):
        albert.keep_layers([0, 2])
    modern = kbs.ModernBertBackbone(24, 2, 2, 8, 16)
    assert modern.keep_layers([0]).num_layers == 1
    with pytest.raises(ValueError, match="other weights than layer 1, .* Keep layer 0, too"):
        modern.keep_layers([1])
    assert kbs.AlbertBackbone(24, 4, 2, 8, 16).keep_layers([0, 2]).num_layers == 2
    bert.add_adapter(kbs.PrefixTuning(2, 3), "few")
    for cut in (lambda: bert.keep_layers([0]), lambda: bert.resize(num_layers=1)):
        with pytest.raises(ValueError, match="adapters few of this BertBackbone are for its 3 lay"):
            cut()
    assert list(bert.resize(max_sequence_length=8).adapters) == ["few"]
    with pytest.raises(ValueError, match="layers of a BartBackbone are not one after the other"):
        kbs.BartBackbone(24, 2, 2, 8, 16).keep_layers([1])
    task, _ = make_task("texts", "KerasHub's BERT")
    with pytest.raises(ValueError, match="layers are for encoders of this package, got a Bert"):
        task.keep_layers([0])
