"""How well a task stands noise in its texts, and attacks that look for the worst noise."""

from keras_bert_suite.attacks.deep_word_bug import DeepWordBug
from keras_bert_suite.attacks.masked_lm_attack import MaskedLMAttack
from keras_bert_suite.attacks.misspelling_attack import MisspellingAttack
from keras_bert_suite.attacks.robustness import robustness
from keras_bert_suite.attacks.robustness_report import RobustnessReport, plot_robustness
