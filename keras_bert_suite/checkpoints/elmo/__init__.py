"""The files of allenai/bilm-tf."""
