"""Asks TensorFlow Serving about texts over REST, with the standard library alone.

python examples/serving/ask_rest.py "A gripping, funny film." "The battery died."
"""

import argparse
import json
import sys
import urllib.error
import urllib.request


def ask(server, texts, model="sentiment", timeout=10):
    """Returns the label of each text and its probability, as a list of pairs."""
    request = urllib.request.Request(
        f"http://{server}/v1/models/{model}:predict",
        # Named columns in, named columns out. `{"instances": [...]}` would ask row by row.
        data=json.dumps({"inputs": {"text": texts}}).encode(),
        headers={"Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=timeout) as response:
        outputs = json.load(response)["outputs"]
    return list(zip(outputs["labels"], map(max, outputs["probabilities"]), strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--server", default="localhost:8501")
    parser.add_argument("--model", default="sentiment")
    flags = parser.parse_args()
    try:
        answers = ask(flags.server, flags.texts, flags.model)
    except urllib.error.HTTPError as error:
        sys.exit(f"{flags.server} refuses the request: {error.read().decode(errors='replace')}")
    except OSError as error:  # Nobody listens, or nobody answers in time.
        sys.exit(f"No server answers at {flags.server} ({error}). README.md says how to start one.")
    for text, (label, probability) in zip(flags.texts, answers, strict=True):
        print(f"{label} {probability:.3f}  {text}")


if __name__ == "__main__":
    main()
