"""The names of our weights in the files of other libraries, a table for each kind of model."""
