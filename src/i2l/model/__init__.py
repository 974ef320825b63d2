"""The network: pixels to a feature grid, and a recurrent cell with attention that writes tokens."""
