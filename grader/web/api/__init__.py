"""The API for programs: every module here has a `router` and is found by its folder, and nothing else lies here."""
