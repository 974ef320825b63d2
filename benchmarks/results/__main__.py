"""The published results.

    python -m benchmarks.results                   the tables and curves of docs/ anew from results/
    python -m benchmarks.results add NAME --title TITLE --run RUN --readings FOLDER --data DATASET \\
        --test EVALUATION --val EVALUATION         take over a run of `i2l train` and two of `i2l evaluate`
                                                   (NAME hepth/...: a run on a set of im2latex-90k's size)
    python -m benchmarks.results measured NAME --localization EVALUATION --real EVALUATION --sweep EVALUATION
    python -m benchmarks.results reread NAME --model CHECKPOINT --data DATASET
    python -m benchmarks.results box --test EVALUATION --real EVALUATION --sweep EVALUATION \\
        --localization EVALUATION --float32 EVALUATION --race FILE --wild FILE     the model in the box
    python -m benchmarks.results left-out --data DATASET --lines FILE     the test formulas that were not read
    python -m benchmarks.results pictures          the examples of docs/errors.md, drawn by TeX
    python -m benchmarks.results gallery --lines FILE     the readings of docs/gallery.md, drawn by TeX
"""

import argparse
from pathlib import Path

from benchmarks.results.box import take_over
from benchmarks.results.left_out import count_left_out
from benchmarks.results.page import write_pages
from benchmarks.results.store import FOLDER, Run

BOX_PARTS = ("test", "real", "sweep", "localization")


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command")
    add = commands.add_parser("add")
    add.add_argument("name")
    add.add_argument("--title", required=True)
    add.add_argument("--run", type=Path, required=True, help="has metrics.jsonl and config.yaml")
    add.add_argument("--config", type=Path, help="if config.yaml is elsewhere")
    add.add_argument("--readings", type=Path, required=True, help="has test.beam10.txt.gz, val.beam10.txt.gz")
    add.add_argument("--data", type=Path, required=True, help="the dataset")
    add.add_argument("--test", type=Path, required=True, help="what `i2l evaluate` wrote about test")
    add.add_argument("--val", type=Path, required=True, help="... and about val")
    add.add_argument("--hardware", default="one H200")
    add.add_argument("--note", default="")
    measured = commands.add_parser("measured")
    measured.add_argument("name")
    measured.add_argument("--localization", type=Path)
    measured.add_argument("--real", type=Path)
    measured.add_argument("--sweep", type=Path)
    again = commands.add_parser("reread")
    again.add_argument("name")
    again.add_argument("--model", type=Path, required=True)
    again.add_argument("--data", type=Path, required=True)
    again.add_argument("--first", type=int, default=0, help="also read so many again that need it not")
    box = commands.add_parser("box")
    for name in (*BOX_PARTS, "float32", "race", "wild"):
        box.add_argument(f"--{name}", type=Path)
    left_out = commands.add_parser("left-out")
    left_out.add_argument("--data", type=Path, required=True, help="the dataset")
    left_out.add_argument("--lines", type=Path, required=True, help="the formulas of its test split")
    commands.add_parser("pictures")
    gallery = commands.add_parser("gallery")
    gallery.add_argument("--lines", type=Path, required=True, help="the formulas of the test split")
    options = parser.parse_args()
    if options.command == "add":
        _add(options)
    elif options.command == "measured":
        _take_over(options)
    elif options.command == "reread":
        from benchmarks.results.reread import reread

        reread(Run(FOLDER / options.name), model=options.model, data=options.data, first=options.first)
    elif options.command == "box":
        evaluations = {name: getattr(options, name) for name in BOX_PARTS}
        take_over(evaluations, race=options.race, float32=options.float32, wild=options.wild)
    elif options.command == "left-out":
        count_left_out(options.data, options.lines)
    elif options.command == "pictures":
        from benchmarks.results.pictures import draw_examples

        draw_examples()
    elif options.command == "gallery":
        from benchmarks.results.pictures import draw_gallery

        draw_gallery(options.lines)
    for path in write_pages():
        print(path)


def _add(options: argparse.Namespace) -> None:
    from benchmarks.results.add import add_run

    add_run(
        FOLDER / options.name,
        title=options.title,
        run=options.run,
        config=options.config or options.run / "config.yaml",
        readings=options.readings,
        data=options.data,
        evaluations={"test": options.test, "val": options.val},
        hardware=options.hardware,
        note=options.note,
    )


def _take_over(options: argparse.Namespace) -> None:
    from benchmarks.results.add import publish_evaluation, publish_localization

    folder = FOLDER / options.name
    if options.localization:
        publish_localization(options.localization, folder / "localization.json")
    for part in ("real", "sweep"):
        if getattr(options, part):
            publish_evaluation(getattr(options, part), folder / f"{part}.json")


if __name__ == "__main__":
    main()
