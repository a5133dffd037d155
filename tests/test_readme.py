"""The README's Python prints what the README says it prints."""

import re
from pathlib import Path
from typing import Any

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
Command = Any
NUMBER = re.compile(r"\d+\.\d+")


@pytest.mark.slow
def test_readme_prints_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    assert code is not None
    exec(code[1], {})
    printed, promised = capsys.readouterr().out, code[2]
    assert NUMBER.sub("#", printed) == NUMBER.sub("#", promised)
    # Processors round differently; a hundredth is far below the intervals.
    for one, other in zip(NUMBER.findall(printed), NUMBER.findall(promised), strict=True):
        assert float(one) == pytest.approx(float(other), abs=0.01)
    assert (tmp_path / "runs" / "first" / "run.json").exists()


def test_python_of_the_privacy_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parent.parent / "docs" / "privacy.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 2
    for code in blocks:
        exec(code, {})
    assert "Against everyone who sees what was released: the one release by north" in capsys.readouterr().out


def test_plan_in_the_readme_is_what_the_command_prints(cofactor: Command) -> None:
    shown = re.search(r"\$ cofactor (plan .*?)\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    assert cofactor(*shown[1].split()).out == shown[2]
