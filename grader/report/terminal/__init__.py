"""An attempt and its findings in a terminal."""
