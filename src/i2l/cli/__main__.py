"""`python -m i2l.cli` is the `i2l` command; torchrun starts its processes so."""

from i2l.cli import main

if __name__ == "__main__":
    main()
