"""Where the promises would not hold nothing is begun."""

from __future__ import annotations

import pytest

from fencerow.db.platforms import REFUSED, refuse_unsupported
from fencerow.errors import UnsupportedPlatform


@pytest.mark.parametrize("platform", REFUSED)
def test_a_platform_without_posix_is_refused_with_a_reason(platform: str) -> None:
    with pytest.raises(UnsupportedPlatform, match=REFUSED[platform]) as refused:
        refuse_unsupported(platform)
    assert all(line.strip("- ") for line in refused.value.lines())


@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_linux_and_macos_are_not(platform: str) -> None:
    refuse_unsupported(platform)
