"""Groups of commands that list what they are about where no verb is given."""

from __future__ import annotations

import click


def group_of(listing: click.Command, name: str, about: str) -> click.Group:
    """The group `name` with its first command, which runs where no verb is given.

    What all commands take, as --json, may stand before the verb too. What is the listing's own stands behind its verb
    alone: without a verb its defaults count.
    """

    @click.pass_context
    def without_a_verb(context: click.Context) -> object:
        return context.invoke(listing) if context.invoked_subcommand is None else None

    # An option that is not handed on is kept by _keep in options.py, for all commands alike.
    of_all = [each for each in listing.params if not each.expose_value]
    group = click.Group(name, help=about, params=of_all, callback=without_a_verb, invoke_without_command=True)
    group.add_command(listing)
    return group
