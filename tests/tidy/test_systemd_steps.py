"""The steps for systemd in form.md lead to what the unit expects: account, files, folders."""

from __future__ import annotations

import re
import shlex
import tomllib
from pathlib import Path

from quorate.config.load import load_config
from tests.support.unit_file import UNIT, service_section

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "operations" / "form.md").read_text("utf-8")
UNIT_PLACE = "/etc/systemd/system/quorate.service"


def steps() -> list[list[str]]:
    """The words of each command of the section."""
    section = PAGE.partition("\n## Under systemd\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```\n(.*?)```", section, re.DOTALL)
    return [shlex.split(line) for line in block.replace("\\\n", " ").splitlines()]


def step(*begins: str) -> tuple[int, list[str]]:
    """The only command that begins with these words, and its place."""
    (found,) = (
        (place, words)
        for place, words in enumerate(steps())
        if tuple(words[: len(begins)]) == begins
    )
    return found


def test_the_account_is_made_before_anything_belongs_to_it() -> None:
    user = service_section()["User"]
    place, words = step("useradd")
    assert place == 0
    assert words[-1] == user
    assert "--user-group" in words, "later steps name the group"
    _, folder = step("install", "-d")
    assert folder[-1] == f"/var/lib/{service_section()['StateDirectory']}"
    assert folder[folder.index("-o") + 1] == folder[folder.index("-g") + 1] == user
    assert folder[folder.index("-m") + 1] == service_section()["StateDirectoryMode"]


def test_the_files_are_where_the_unit_expects_them() -> None:
    executable, _, _, config = shlex.split(service_section()["ExecStart"])
    _, written = step("install", "-D")
    assert written[-1] == config
    assert written[written.index("-g") + 1] == service_section()["User"], "it reads the file"
    _, unit = step("install", "-m")
    assert (ROOT / unit[-2], unit[-1]) == (UNIT, UNIT_PLACE)
    place, formats = step("runuser", "-u", service_section()["User"], "--", executable, "format")
    assert formats[formats.index("--config") + 1] == config
    reload, start = step("systemctl", "daemon-reload")[0], step("systemctl", "enable", "--now")[0]
    assert step("install", "-d")[0] < place < reload < start


def test_the_node_of_the_page_writes_where_the_unit_permits_it(tmp_path: Path) -> None:
    """Goal: the page's own node.toml loads, and its folder is below the unit's."""
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert tomllib.loads(text)
    file = tmp_path / "node.toml"
    file.write_text(text, encoding="utf-8")
    state = Path("/var/lib") / service_section()["StateDirectory"]
    assert load_config(file).config.node.data_dir.parent == state


def test_the_installation_page_leads_to_the_steps() -> None:
    install = (ROOT / "docs" / "operations" / "install.md").read_text("utf-8")
    assert "(form.md#under-systemd)" in install
