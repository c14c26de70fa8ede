"""`fairway edit`, with an editor that is a script."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cli_outcome import Fairway
from manifests_for_tests import GADGETS, gadget


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A shell script that is the user's editor; it finds the file in $1."""
    file = tmp_path / "editor"
    file.write_text("#!/bin/sh\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    for name in ("KUBE_EDITOR", "VISUAL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("EDITOR", str(file))
    return file


@pytest.fixture(autouse=True)
def made(fairway: Fairway) -> None:
    fairway("apply", "-f", "-", stdin=GADGETS + "---" + gadget("a"))


def size(fairway: Fairway) -> str:
    return fairway("get", "gd", "a", "-o", "jsonpath={.spec.size}").out.strip()


def test_what_was_changed_is_sent(fairway: Fairway, editor: Path) -> None:
    editor.write_text("#!/bin/sh\nsed -i 's/size: 1/size: 7/' $1\n")
    assert fairway("edit", "gd", "a").out == "gadget.example.test/a edited\n"
    assert size(fairway) == "7"


def test_leaving_it_as_it_is_changes_nothing(fairway: Fairway, editor: Path) -> None:
    outcome = fairway("edit", "gd/a")
    assert (outcome.code, outcome.err) == (0, "Edit cancelled, no changes made.\n")


def test_a_refusal_opens_the_editor_again_with_the_reason(
    fairway: Fairway, editor: Path, tmp_path: Path
) -> None:
    editor.write_text(
        "#!/bin/sh\n"
        f"cp $1 {tmp_path}/seen\n"
        "if grep -q Refused $1; then sed -i 's/size: 0/size: 8/' $1\n"
        "else sed -i 's/size: 1/size: 0/' $1; fi\n"
    )
    assert fairway("edit", "gd", "a").code == 0
    assert size(fairway) == "8"
    seen = (tmp_path / "seen").read_text()
    assert "# Refused (Invalid):" in seen
    assert "size: 0" in seen


def test_giving_up_after_a_refusal_says_that_nothing_changed(
    fairway: Fairway, editor: Path
) -> None:
    editor.write_text("#!/bin/sh\nsed -i 's/name: a/name: b/' $1\n")
    outcome = fairway("edit", "gd", "a")
    assert outcome.code == 1
    assert "nothing was changed: metadata.name of an object cannot change" in outcome.err


def test_an_editor_that_fails_is_named(
    fairway: Fairway, editor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    editor.write_text("#!/bin/sh\nexit 4\n")
    assert "exit code 4" in fairway("edit", "gd", "a").err
    monkeypatch.setenv("EDITOR", "no-such-editor --wait")
    assert "cannot start the editor no-such-editor" in fairway("edit", "gd", "a").err
