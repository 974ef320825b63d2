"""What was measured, kept in `results/`, and the pages in `docs/` that are made from it."""
