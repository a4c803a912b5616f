"""Noise in texts: what typing, scanning and tampering do to them, by kinds with names."""

from keras_bert_suite.data.noise.text_noise import TextNoise
