"""Words that attacks leave as they are, because they carry grammar or turn the meaning round."""

from collections.abc import Collection

from keras_bert_suite.argument_checks import check_list

#: English words of closed classes: articles, pronouns, prepositions, conjunctions, auxiliaries and
#: negations, in lower case.
ENGLISH_STOP_WORDS = frozenset(
    """
    a about above across after again against all almost also although always am among an and another
    any anybody anyone anything are aren't around as at be because been before behind being below
    beneath beside besides between beyond both but by can can't cannot could couldn't despite did
    didn't do does doesn't doing don't down during each either else enough ever every everybody
    everyone everything except few for from had hadn't has hasn't have haven't having he he's her
    here hers herself him himself his how however i i'd i'll i'm i've if in inside instead into is
    isn't it it's its itself just least less many may me might mine more most much must my myself
    neither never no nobody none nor not nothing now of off on once one only onto or other others
    our ours ourselves out outside over own per rather same several shall shan't she she's should
    shouldn't since so some somebody someone something such than that that's the their theirs them
    themselves then there there's these they they're this those though through throughout thus till
    to too toward towards under unless until up upon us very was wasn't we we're were weren't what
    whatever when whenever where wherever whether which while who whoever whom whose why will with
    within without won't would wouldn't yet you you're your yours yourself yourselves
    """.split()
)


def read_stop_words(words: Collection[str] | None) -> frozenset[str]:
    """The stop words of an attack; None stands for the English ones."""
    if words is None:
        return ENGLISH_STOP_WORDS
    check_list("stop_words", words, "words in lower case")
    return frozenset(words)
