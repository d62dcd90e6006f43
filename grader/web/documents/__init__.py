"""The API's JSON: `schemas` says what is sent either way, `conversions` makes it of what the store holds."""
