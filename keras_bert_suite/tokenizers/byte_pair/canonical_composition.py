"""Unicode's canonical composition (NFC) of text, in the version of the Rust library.

Only two kinds of stretches of a text change: characters that join what is before them, with the
character before them, and single characters that have a replacement. The tables are frozen as the
Rust library `tokenizers` 0.23 has them, and so transformers. What is in no table stays as it is,
also if a later version of Unicode composes it. Within a stretch all characters are old, and the
stability policy of Unicode says that the composition of old characters never changes. So Python or
ICU may compose a stretch, whatever their version of Unicode. Each table is a string of code point
ranges in hexadecimal, see `unicode_rules.parse_ranges`.
"""

import functools
import re
import unicodedata

from keras_bert_suite.tokenizers.unicode_rules import python_class

#: Characters that a joining character may change: they decompose, or begin a composition.
LEADING = """
3c-3e 41-50 52-5a 61-70 72-7a a8 c0-cf d1-d6 d8-dd e0-ef f1-f6 f8-fd ff-10f 112-125 128-130
134-137 139-13e 143-148 14c-151 154-165 168-17f 1a0-1a1 1af-1b0 1b7 1cd-1dc 1de-1e3 1e6-1f0
1f4-1f5 1f8-21b 21e-21f 226-233 292 374 37e 385-38a 38c 38e-391 395 397 399 39f 3a1 3a5 3a9-3b1
3b5 3b7 3b9 3bf 3c1 3c5 3c9-3ce 3d2-3d4 400-401 403 406-407 40c-40e 410 413 415-41a 41e 423 427
42b 42d 430 433 435-43a 43e 443 447 44b 44d 450-451 453 456-457 45c-45e 474-477 4c1-4c2 4d0-4d3
4d6-4df 4e2-4f5 4f8-4f9 622-627 648 64a 6c0-6c2 6d2-6d3 6d5 928-929 930-931 933-934 958-95f 9c7
9cb-9cc 9dc-9dd 9df a33 a36 a59-a5b a5e b47-b48 b4b-b4c b5c-b5d b92 b94 bc6-bc7 bca-bcc c46 c48
cbf-cc0 cc6-cc8 cca-ccb d46-d47 d4a-d4c dd9-dda ddc-dde f43 f4d f52 f57 f5c f69 f76 f78 f93 f9d
fa2 fa7 fac fb9 1025-1026 1100-1112 1b05-1b0e 1b11-1b12 1b3a-1b43 1e00-1e99 1e9b 1ea0-1ef9
1f00-1f15 1f18-1f1d 1f20-1f45 1f48-1f4d 1f50-1f57 1f59 1f5b 1f5d 1f5f-1f7d 1f80-1fb4 1fb6-1fbc
1fbe-1fbf 1fc1-1fc4 1fc6-1fd3 1fd6-1fdb 1fdd-1fef 1ff2-1ff4 1ff6-1ffe 2000-2001 2126 212a-212b
2190 2192 2194 219a-219b 21ae 21cd-21d0 21d2 21d4 2203-2204 2208-2209 220b-220c 2223-2226 223c
2241 2243-2245 2247-2249 224d 2260-2262 2264-2265 226d-227d 2280-2289 2291-2292 22a2 22a8-22a9
22ab-22af 22b2-22b5 22e0-22e3 22ea-22ed 2329-232a 2adc 3046 304b-3062 3064-3069 306f-307d 3094
309d-309e 30a6 30ab-30c2 30c4-30c9 30cf-30dd 30ef-30f2 30f4 30f7-30fa 30fd-30fe ac00-d7a3
f900-fa0d fa10 fa12 fa15-fa1e fa20 fa22 fa25-fa26 fa2a-fa6d fa70-fad9 fb1d fb1f fb2a-fb36
fb38-fb3c fb3e fb40-fb41 fb43-fb44 fb46-fb4e 11099-1109c 110a5 110ab 1112e-1112f 11131-11132 11347
1134b-1134c 114b9 114bb-114bc 114be 115b8-115bb 1d15e-1d164 1d1bb-1d1c0 2f800-2fa1d
"""

#: Characters that may be put before others, or composed with the character before them.
JOINING = """
300-34e 350-36f 483-487 591-5bd 5bf 5c1-5c2 5c4-5c5 5c7 610-61a 64b-65f 670 6d6-6dc 6df-6e4
6e7-6e8 6ea-6ed 711 730-74a 7eb-7f3 816-819 81b-823 825-827 829-82d 859-85b 8d4-8e1 8e3-8ff 93c
94d 951-954 9bc 9be 9cd 9d7 a3c a4d abc acd b3c b3e b4d b56-b57 bbe bcd bd7 c4d c55-c56 cbc cc2
ccd cd5-cd6 d3e d4d d57 dca dcf ddf e38-e3a e48-e4b eb8-eb9 ec8-ecb f18-f19 f35 f37 f39 f71-f75
f7a-f7d f80-f84 f86-f87 fc6 102e 1037 1039-103a 108d 1161-1175 11a8-11c2 135d-135f 1714 1734 17d2
17dd 18a9 1939-193b 1a17-1a18 1a60 1a75-1a7c 1a7f 1ab0-1abd 1b34-1b35 1b44 1b6b-1b73 1baa-1bab
1be6 1bf2-1bf3 1c37 1cd0-1cd2 1cd4-1ce0 1ce2-1ce8 1ced 1cf4 1cf8-1cf9 1dc0-1df5 1dfb-1dff
20d0-20dc 20e1 20e5-20f0 2cef-2cf1 2d7f 2de0-2dff 302a-302f 3099-309a a66f a674-a67d a69e-a69f
a6f0-a6f1 a806 a8c4 a8e0-a8f1 a92b-a92d a953 a9b3 a9c0 aab0 aab2-aab4 aab7-aab8 aabe-aabf aac1
aaf6 abed fb1e fe20-fe2f 101fd 102e0 10376-1037a 10a0d 10a0f 10a38-10a3a 10a3f 10ae5-10ae6 11046
1107f 110b9-110ba 11100-11102 11127 11133-11134 11173 111c0 111ca 11235-11236 112e9-112ea 1133c
1133e 1134d 11357 11366-1136c 11370-11374 11442 11446 114b0 114ba 114bd 114c2-114c3 115af
115bf-115c0 1163f 116b6-116b7 1172b 11c3f 16af0-16af4 16b30-16b36 1bc9e 1d165-1d169 1d16d-1d172
1d17b-1d182 1d185-1d18b 1d1aa-1d1ad 1d242-1d244 1e000-1e006 1e008-1e018 1e01b-1e021 1e023-1e024
1e026-1e02a 1e8d0-1e8d6 1e944-1e94a
"""

#: Characters that are replaced also where they stand alone.
REPLACED = """
374 37e 387 958-95f 9dc-9dd 9df a33 a36 a59-a5b a5e b5c-b5d f43 f4d f52 f57 f5c f69 f76 f78 f93
f9d fa2 fa7 fac fb9 1f71 1f73 1f75 1f77 1f79 1f7b 1f7d 1fbb 1fbe 1fc9 1fcb 1fd3 1fdb 1fe3 1feb
1fee-1fef 1ff9 1ffb 1ffd 2000-2001 2126 212a-212b 2329-232a 2adc f900-fa0d fa10 fa12 fa15-fa1e
fa20 fa22 fa25-fa26 fa2a-fa6d fa70-fad9 fb1d fb1f fb2a-fb36 fb38-fb3c fb3e fb40-fb41 fb43-fb44
fb46-fb4e 1d15e-1d164 1d1bb-1d1c0 2f800-2fa1d
"""


@functools.cache
def changing_pattern():
    """The compiled expression of the stretches of a text that composition may change."""
    leading, joining, replaced = map(python_class, (LEADING, JOINING, REPLACED))
    return re.compile(f"[{leading}]?[{joining}]+|[{replaced}]")


def compose(text):
    """str -> str, its canonical composition."""
    if text.isascii():
        return text
    return changing_pattern().sub(lambda match: unicodedata.normalize("NFC", match[0]), text)


def compose_with_spans(text):
    """str -> (its composition; for each character of it the first and the last + 1 of `text`).

    All characters of a stretch that has changed come from the whole stretch.
    """
    composed, spans, place = [], [], 0
    for match in changing_pattern().finditer(text):
        new = unicodedata.normalize("NFC", match[0])
        if new != match[0]:
            start, end = match.span()
            composed += [text[place:start], new]
            spans += [(i, i + 1) for i in range(place, start)]
            spans += [(start, end)] * len(new)
            place = end
    composed.append(text[place:])
    spans += [(i, i + 1) for i in range(place, len(text))]
    return "".join(composed), spans
