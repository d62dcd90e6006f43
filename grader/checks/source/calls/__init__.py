"""Who calls whom in a submission, with what and in which order; calls that the text does not spell out."""
