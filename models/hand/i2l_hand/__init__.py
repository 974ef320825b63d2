"""The model for handwriting: the folder `hand` beside this file. `i2l` finds it and imports nothing of it."""
