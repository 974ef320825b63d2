"""Formulas in, a dataset on disk out; and the reader that gives its samples to everything after it."""
