"""The networks of the paper: the folders `nopool` and `strips` beside this file. `i2l` imports nothing of it."""
