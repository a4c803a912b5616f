"""Writes entities_train.txt and entities_test.txt: sentences from patterns and lists of names.

python make_entities.py

The patterns and the names of the test sentences are not those of the training sentences. Some names
may be of more than one type, so the words around them decide.
"""

import random
from pathlib import Path

OUTPUT = Path(__file__).parent
SIZES = {"train": 800, "test": 240}

NAMES = {
    "train": {
        "PER": "Ada Lovelace|Grace Hopper|Alan Turing|Marie Curie|Jordan Price|Paris Bennett|"
        "Lincoln Reed|Washington Irving|Amelia Earhart|Mr. Okafor|Dr. Lindqvist|Mrs. Tanaka|"
        "Isaac Newton|Rosa Parks|Ravi Shah|Chen Wei|Fatima al-Sayed|Jack London|Austin Powell|"
        "Nguyen|Garcia|Schmidt|O'Neill|Florence Nightingale|Sofia Rossi|Anna Kowalska|Pelé",
        "LOC": "London|Paris|Jordan|Washington|Austin|Florence|Lincoln|Warsaw|New Delhi|Nairobi|"
        "the Rhine|Lake Victoria|South Korea|Kyoto|Buenos Aires|the Alps|Nebraska|Normandy|"
        "Mount Kenya|Berlin|Cape Town|Oslo|Santa Cruz|the Amazon|Georgia|San Francisco|Peru",
        "ORG": "Amazon|the Red Cross|Harvard University|Reuters|the Bank of England|Nordic Rail|"
        "Paris Opera|Kyoto Motors|UNICEF|the University of Warsaw|Lincoln Electric|Chelsea FC|"
        "Acme Corp.|the World Bank|Santa Cruz Bicycles|General Mills|IBM|Rhine Shipping AG|"
        "the Ministry of Health|Tanaka & Sons|Georgia Power|the Senate|Delhi Textiles Ltd.",
        "DATE": "Monday|12 May 1921|last summer|March 2019|1843|the 1960s|Tuesday morning|2 June|"
        "the winter of 1990|May|October 4|next year|yesterday|two weeks ago|Friday",
    },
    "test": {
        "PER": "Katherine Johnson|Nikola Tesla|Charlotte Brontë|Savannah Clark|Sydney Wells|"
        "Dr. Haddad|Ms. Petrova|Li Na|Hamilton|Chelsea Morgan|Orlando Diaz|Mandela|Kim Ji-woo|"
        "Brooklyn Hayes|Emeka Obi|Virginia Woolf",
        "LOC": "Sydney|Savannah|Orlando|Virginia|Hamilton|Brooklyn|Vienna|the Danube|Montana|"
        "North Macedonia|Rio de Janeiro|Lake Geneva|Osaka|the Sahara|Lagos|Chelsea",
        "ORG": "Boston Dynamics|the European Union|Sydney Water|Oxford University Press|Siemens|"
        "the Vienna Philharmonic|Danube Steel GmbH|Virginia Tech|Hamilton Watch Company|NASA|"
        "the Supreme Court|Osaka Gas|Petrova Brothers Inc.|Lagos Airlines|the Treasury|Apple",
        "DATE": "Thursday|7 July 1856|last winter|September 2021|1918|the 1980s|Sunday evening|"
        "the spring of 1945|November 9|next month|three days ago|June",
    },
}
PATTERNS = {
    "train": """
PER was born in LOC on DATE .
PER moved from LOC to LOC when she was nine .
In DATE , PER became the head of ORG .
ORG opened an office in LOC DATE .
ORG said on DATE that it would close its plant near LOC .
"We are proud of this , " said PER of ORG .
PER , who lives in LOC , has worked for ORG since DATE .
Shares of ORG fell after PER left the board .
The train to LOC was late again .
PER and PER met at a dinner in LOC .
ORG bought ORG in DATE .
Snow is expected in LOC by DATE .
My neighbour PER teaches at ORG .
Nobody at ORG could say where PER was .
The road between LOC and LOC was closed on DATE .
Have you ever been to LOC ?
PER wrote the report , and ORG paid for it .
DATE was the hottest day that LOC had seen .
The mayor of LOC thanked PER for her work .
A ship from LOC sank off the coast in DATE .
I called PER twice , but he did not answer .
ORG has three hundred workers , most of them in LOC .
The museum in LOC shows paintings by PER until DATE .
It rained all day , so we stayed inside and read .
The meeting was short and nobody asked a question .
She bought bread , milk and a newspaper .
PER won the race ahead of PER .
According to ORG , prices in LOC rose by two percent .
Did PER sign the contract with ORG ?
The river rises in LOC and flows through LOC .
On DATE , ORG will publish its results .
PER flew to LOC with a team of ORG .
Engineers of ORG built the bridge in DATE .
His aunt , PER , never left LOC .
The lawyers of ORG and of PER met in LOC .
""",
    "test": """
When PER came back to LOC , everything had changed .
A spokesman for ORG declined to comment on DATE .
PER studied law in LOC before she joined ORG .
The flight from LOC landed two hours late .
Critics praised PER for her first novel , printed in DATE .
ORG and ORG will build a laboratory near LOC .
The letter that PER sent from LOC arrived DATE .
Farmers in LOC are waiting for rain .
ORG hired PER as its chief engineer in DATE .
Is PER still working for ORG ?
We crossed LOC by bus and reached LOC on DATE .
The concert was over before ten , and we walked home .
Thousands of people left LOC in DATE .
"You should ask PER , " my sister said .
The new director , PER , comes from ORG .
ORG lost the case against PER .
""",
}


def write_sentence(pattern, names, rng):
    """The lines of a sentence, a word and its tag each."""
    for part in pattern.replace('"', '" ').split():
        if part not in names:
            yield f"{part} O"
            continue
        words = rng.choice(names[part]).split()
        if part != "DATE" and words[0] == "the":
            yield f"{words.pop(0)} O"
        for i, word in enumerate(words):
            yield f"{word} {'I' if i else 'B'}-{part}"


def main():
    for part, size in SIZES.items():
        rng = random.Random(part)
        names = {kind: text.split("|") for kind, text in NAMES[part].items()}
        patterns = PATTERNS[part].strip().split("\n")
        sentences = [
            "\n".join(write_sentence(rng.choice(patterns), names, rng)) for _ in range(size)
        ]
        text = "\n\n".join(sentences) + "\n"
        (OUTPUT / f"entities_{part}.txt").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
