"""An attempt and a course as HTML files that need nothing else."""
