"""Finds texts that are not where a file says."""

#: Their treatment: the values of `errors` of readers.
ERRORS = ("raise", "fix", "skip")


def find_nearest(text, start, context):
    """int, the place in the context where a text begins that is nearest to `start`; -1 if none."""
    if not text:
        return -1
    before = context.rfind(text, 0, max(start, 0) + len(text))
    after = context.find(text, max(start, 0))
    places = [place for place in (before, after) if place >= 0]
    return min(places, key=lambda place: abs(place - start), default=-1)
