"""`python -m keras_bert_cli`, which is `keras-bert`."""

import sys

from keras_bert_cli import main

if __name__ == "__main__":
    sys.exit(main())
