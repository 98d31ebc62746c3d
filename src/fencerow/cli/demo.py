"""`fencerow demo`: the show lives in a package of its own, with libraries of its own."""

from __future__ import annotations

import importlib

import click

from fencerow.errors import MissingExtra

EXTRA = ("pypdfium2", "rich")


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}, add_help_option=False
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def demo(arguments: tuple[str, ...]) -> int:
    """Watch jobs survive a killed worker, on real input, in two minutes."""
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
    return int(show.main(list(arguments)) or 0)
