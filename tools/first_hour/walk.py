"""A page as a person follows it at a terminal: its files are written, its commands run, and what they say is compared.

A block of Python whose first line is `# name.py` is that file, one after "Save this as `name.py`" too. A block of `sh`
is typed; `json` or `text` below it is what it said, with `…` for anything. A command with `&` at its end goes on
beside the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

BLOCK = re.compile(r"^```(sh|python|json|text)\n(.+?)^```", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# (\w+\.py)\n")
SAVED = re.compile(r"Save this as `(\w+\.py)`:\n\n\Z")
BESIDE = re.compile(r"^(.+) &$", re.MULTILINE)
READY_S = 120


@dataclass
class Typed:
    """Commands that are typed together, and what they are shown to say."""

    text: str
    shown: str = ""
    said: str = ""


@dataclass
class Walk:
    """A page: its steps in their order, as files and commands."""

    steps: list[tuple[str, str] | Typed] = field(default_factory=list)

    @property
    def typed(self) -> list[Typed]:
        return [step for step in self.steps if isinstance(step, Typed)]


def walk(page: Path) -> Walk:
    """What a person does who follows the page."""
    text = page.read_text("utf-8")
    made = Walk()
    for block in BLOCK.finditer(text):
        kind, content = block.groups()
        if kind == "python":
            name = SAVED.search(text, 0, block.start()) or NAMED.match(content)
            if name:
                made.steps.append((name[1], content))
        elif kind == "sh":
            made.steps.append(Typed(content))
        elif made.typed:
            made.typed[-1].shown += content
    return made


def script(page: Walk, folder: Path, changes: dict[str, str]) -> str:
    """All steps as one program of bash. `changes` are the few words that differ here, such as a port that is free."""
    lines = [
        "set -eu",
        "trap 'kill $(jobs -p) 2> /dev/null || true' EXIT",
        f"cd {folder}",
        "beside() {",
        _WAITS,
        "}",
    ]
    for step in page.steps:
        if isinstance(step, Typed):
            typed = step.text
            for word, instead in changes.items():
                typed = typed.replace(word, instead)
            number = page.typed.index(step)
            lines.append(f"printf '\\n%s\\n' '--- {number} ---'\n{BESIDE.sub(_beside, typed)}")
        else:
            lines.append(f"cat > {step[0]} <<'END OF THE FILE'\n{step[1]}END OF THE FILE")
    return "\n".join(lines) + "\n"


# A person types the next command once the program has said that it is ready.
_WAITS = f"""\
    local log=beside-$RANDOM.log
    "$@" > $log 2>&1 &
    for _ in $(seq {READY_S * 10}); do
        grep -qE 'waits for jobs|running on|serving on|started' $log && return
        kill -0 $! 2>/dev/null || break
        sleep 0.1
    done
    echo "it did not start: $*" >&2; cat $log >&2; return 1"""


def _beside(found: re.Match[str]) -> str:
    return found[0] if ">" in found[1] else f"beside {found[1]}"


def heard(page: Walk, output: str) -> None:
    """Give each step what it said."""
    parts = re.split(r"\n--- \d+ ---\n", output)[1:]  # also behind what ends without a line's end
    for step, said in zip(page.typed, parts, strict=False):
        step.said = said


def differs(step: Typed) -> bool:
    """Whether a step said another thing than its page shows."""
    if not step.shown:
        return False
    pattern = r".*?".join(re.escape(part.strip(" ")) for part in step.shown.split("…"))
    return (
        re.fullmatch(pattern + r"\s*", step.said, re.DOTALL) is None
        and step.shown.strip() != step.said.strip()
    )
