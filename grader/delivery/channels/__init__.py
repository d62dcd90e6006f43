"""One module each: a way out, with `deliver` and `missing`. Found by being here."""
