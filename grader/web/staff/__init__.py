"""What instructors' pages are made of, without HTTP: tables worked out, lists read, forms checked, files written.

Knows no request and writes nothing to the store; the pages do both.
"""
