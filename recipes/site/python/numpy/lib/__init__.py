"""A folder of NumPy that one function is imported from."""
