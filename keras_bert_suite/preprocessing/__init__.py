"""Token ids to arrays: packed, cut into windows."""

from keras_bert_suite.preprocessing.segment_packer import SegmentPacker
