"""Token ids to arrays: packed, cut into windows."""

from keras_bert_suite.preprocessing.family_packers import (
    ModernBertSegmentPacker,
    RobertaSegmentPacker,
)
from keras_bert_suite.preprocessing.frame_packer import FramePacker
from keras_bert_suite.preprocessing.segment_packer import SegmentPacker
