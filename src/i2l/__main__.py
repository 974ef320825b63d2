"""`python -m i2l` is the `i2l` command."""

from i2l.cli import main

main()
