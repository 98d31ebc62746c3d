"""Prints docs/life-of-a-job.md from the one table of moves: python3 tools/life_of_a_job.py > docs/life-of-a-job.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from fencerow.core.model.state import FINAL, State
from fencerow_proof.moves import RULES, WORKER_RULES, JobMove, Rule

HEAD = """# The life of a job

Every move is one guarded statement with exactly one winner. It changes the job only if the job is in a state *from*
which the move is legal and if the guard holds. Otherwise it changes nothing.

`tools/life_of_a_job.py` prints this page from the table in `src/fencerow_proof/moves.py`;
`dev.py check` compares them.
"""

LATER = """
A job that is `waiting` at a gate waits for its turn of an exclusive key or of a limit, and `admit` gives it the turn.
One that is `waiting` at no gate is suspended: it waits for something else, such as a time or a signal, and holds no
slot, no lease and no turn meanwhile. `wake` ends that.
"""


def page() -> str:
    """The whole page."""
    return "\n".join(
        [HEAD, *diagram(), "", "## Moves", "", *moves(), LATER, "## Workers", "", *workers(), ""]
    )


def diagram() -> Iterator[str]:
    """The states and the moves between them, for Mermaid. What a move leads to instead is dotted in words."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {State.QUEUED}: submit"
    for move, rule in RULES.items():
        if move is JobMove.RENEW:
            continue  # nothing of the job changes
        for source in State:
            if source in rule.sources:
                yield f"    {source} --> {rule.leads(source) or '[*]'}: {move}"
                yield from (f"    {source} --> {other}: {move} (instead)" for other in rule.otherwise)
    yield "```"


def moves() -> Iterator[str]:
    """One row for each move."""
    yield "| move | from | to | otherwise | guard |"
    yield "|---|---|---|---|---|"
    for move, rule in RULES.items():
        target = "as it was" if rule.stays else rule.target or "gone"
        yield f"| `{move}` | {sources(rule)} | {target} | {', '.join(rule.otherwise) or '–'} | {rule.guard} |"
    yield ""
    final = ", ".join(state for state in State if state in FINAL)
    yield f"Final states: {final}. Only a person can move a job out of them."


def workers() -> Iterator[str]:
    """One row for each move of a worker."""
    yield "The lease of a worker is the lease of every job that it holds."
    yield ""
    yield "| move | from | to | guard |"
    yield "|---|---|---|---|"
    for move, rule in WORKER_RULES.items():
        yield f"| `{move}` | {rule.source or 'nothing'} | {rule.target} | {rule.guard} |"


def sources(rule: Rule) -> str:
    return ", ".join(state for state in State if state in rule.sources)


if __name__ == "__main__":
    sys.stdout.write(page())
