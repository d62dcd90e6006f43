"""One module each: a way out, with `deliver`, and `missing` where it takes settings. Found by being here."""
