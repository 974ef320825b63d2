"""The networks of the paper: the folders `nopool` and `strips` beside this file, where `i2l` finds them."""
