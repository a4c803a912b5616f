"""Search in Chinese, which has no spaces between words: two neighbouring characters are a word."""

import re

from sphinx.search.en import SearchEnglish

HAN = r"\u3400-\u9fff"


class SearchEnglishAndChinese(SearchEnglish):
    """Finds English words, and 分词器 as 分词 and 词器. A Chinese character alone is no word."""

    js_splitter_code = rf"""
var splitQuery = (query) => Array.from(
  query.matchAll(
    /(?=([{HAN}]{{2}}))|(?:(?![{HAN}])[\p{{Letter}}\p{{Number}}_\p{{Emoji_Presentation}}])+/gu
  ),
  ([word, pair]) => pair ?? word,
);
"""

    def split(self, input):
        found = re.finditer(rf"(?=([{HAN}]{{2}}))|[^\W{HAN}]+", input)
        return [match[1] or match[0] for match in found]


def setup(app):
    # It has the code of SearchEnglish, "en", and takes its place.
    app.add_search_language(SearchEnglishAndChinese)
    return {"parallel_read_safe": True}
