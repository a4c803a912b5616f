"""What has been tokenized before, by segment of text."""

# These bound the memory of a cache: some fifty megabytes when full.
MAX_CACHED = 1 << 18
MAX_CACHED_LENGTH = 64


class SegmentCache(dict):
    """Segment -> its analysis, made when the segment is first met."""

    def __init__(self, analyse):
        super().__init__()
        self._analyse = analyse

    def __missing__(self, segment):
        analysis = self._analyse(segment)
        if len(segment) <= MAX_CACHED_LENGTH:
            if len(self) >= MAX_CACHED:
                # Frequent segments soon enter the cache again. Segments of an earlier corpus do
                # not.
                self.clear()
            self[segment] = analysis
        return analysis
