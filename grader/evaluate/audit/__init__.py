"""Steps and inputs of a run, computed again from the data set's own samples."""
