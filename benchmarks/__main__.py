"""All benchmarks that need nothing but this repository, in one table: `make bench`."""

from importlib import import_module

from rich.console import Console
from rich.table import Table

MODULES = ("render", "evaluate", "read")  # each has measure() -> rows of what, measured, wanted


def main() -> None:
    """Run each and print."""
    table = Table("benchmark", "what", "measured", "wanted")
    for name in MODULES:
        for row in import_module(f"benchmarks.{name}").measure():
            table.add_row(name, *row)
    Console().print(table)


if __name__ == "__main__":
    main()
