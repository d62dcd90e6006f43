"""Literal mending: does somebody who does exactly what the report says, and nothing more, get a right script?"""
