"""Words that must not enter the tree. Each pattern is spelt so that it does not match itself."""

from __future__ import annotations

import re

import pytest

from tests.tidy.tree import shown, texts

_FORBIDDEN = {
    "a package index": r"py[p]i\.|python[h]osted|registry\.np[m]js|index[-_]ur[l]|find[-_]link[s]|trusted-hos[t]",
    "a folder of somebody's machine": r"/wor[k]/|/tm[p]/kz|/roo[t]/|/hom[e]/|/User[s]/|\bpyen[v]\b",
    "a document outside the tree": r"(?<![\w/])share[d]/|\b(?:SPE[C]|DESIG[N]|STYL[E]|bug[s])\.md",
    "an unfinished thought": r"\b(?:TOD[O]|FIXM[E]|XX[X])\b",
}


@pytest.mark.parametrize("kind", _FORBIDDEN)
def test_no_file_names(kind: str) -> None:
    """The project speaks of itself alone and runs from any folder, with whatever package index its user has."""
    pattern = re.compile(_FORBIDDEN[kind])
    found = [
        f"{shown(path)}:{number}: {line.strip()}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]
    assert found == []
