"""`fencerow demo`: the show lives in a package of its own, with libraries of its own."""

from __future__ import annotations

import importlib

import click

from fencerow.core.errors import MissingExtra

EXTRA = ("pypdfium2", "rich")


@click.command()
@click.argument("documents", nargs=-1, metavar="[FILE.pdf]...", type=click.Path())
@click.option(
    "--exit", "exit_at_end", is_flag=True, help="Exit at the end; the default where no terminal shows it."
)
def demo(documents: tuple[str, ...], exit_at_end: bool) -> int:
    """Watch jobs survive a killed worker, with real documents: yours, or those that come with Fencerow."""
    for module in EXTRA:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError:
            raise MissingExtra(
                f"the demo needs {module}, which is not installed",
                "it belongs to the extra `demo`",
                'python -m pip install "fencerow[demo]"',
            ) from None
    show = importlib.import_module("fencerow.demo.show")
    return int(show.main(documents, exit_at_end=exit_at_end))
