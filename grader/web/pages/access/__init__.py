"""Coming in and going out: signing in and on, joining by a code or a link."""
