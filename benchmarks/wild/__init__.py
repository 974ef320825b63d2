"""What the model reads beyond clean single formulas: `python -m benchmarks.wild`."""
