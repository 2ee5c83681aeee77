"""`make install`, as root calls it with sudo after a build: what lies where, and whether the texts name these places."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from test_process import BINARY

ROOT = Path(__file__).resolve().parent.parent.parent
TOOLS = (ROOT / "packaging" / "tools").read_text().split()

pytestmark = pytest.mark.skipif(not BINARY, reason="there is no binary to install")


def install(destination, manuals, *variables, programs="/usr/sbin"):
    # No cargo, as root mostly has none.
    environment = {"PATH": f"{programs}:/usr/sbin:/usr/bin:/sbin:/bin", "SUDO_USER": "somebody"}
    words = ["make", "-C", ROOT, "install", f"DESTDIR={destination}", f"SHIPPED={Path(BINARY).resolve()}", f"MANUALS={manuals}", *variables]
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture(scope="module")
def manuals(tmp_path_factory):
    folder = tmp_path_factory.mktemp("manuals")
    subprocess.run([ROOT / "packaging" / "man" / "generate", BINARY, folder], check=True, timeout=120)
    return folder


def test_whoever_has_built_nothing_is_told_what_to_do(tmp_path):
    done = install(tmp_path / "root", tmp_path / "nothing")
    assert done.returncode != 0 and "run make build first, without sudo" in done.stderr
    assert not (tmp_path / "root").exists()


def test_every_place_that_an_installed_text_names_is_there(tmp_path, manuals):
    done = install(tmp_path, manuals, "PREFIX=/opt/broker", "SYSCONFDIR=/opt/etc")
    assert done.returncode == 0, done.stderr
    prefix = tmp_path / "opt/broker"
    for tool in TOOLS:
        assert os.readlink(prefix / "bin" / tool) == "leveret"
    unit = (prefix / "lib/systemd/system/leveret.service").read_text()
    assert "\nExecStart=/opt/broker/bin/leveret server --config /opt/etc/leveret\n" in unit
    texts = [unit, *(path.read_text() for path in (tmp_path / "opt/etc").rglob("*") if path.is_file())]
    texts += [(prefix / "share/man" / page).read_text() for page in ("man8/leveret.8", "man1/leveret-ctl.1")]
    named = {place for text in texts for place in re.findall(r"(?<![\w.])/(?:usr|opt)/[\w/.-]*\w", text)}
    assert {"/opt/broker/share/doc/leveret/running.md", "/opt/etc/default/leveret"} <= named
    for place in named - {"/opt/etc/leveret/server.pem", "/opt/etc/leveret/server.key", "/opt/etc/leveret/conf.d"}:
        assert (tmp_path / place[1:]).exists(), place


def test_settings_that_are_there_are_kept(tmp_path, manuals):
    settings = tmp_path / "etc/leveret/leveret.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text("heartbeat = 41\n")
    for _ in range(2):
        assert install(tmp_path, manuals).returncode == 0
    assert settings.read_text() == "heartbeat = 41\n"
    assert (tmp_path / "etc/default/leveret").stat().st_mode & 0o777 == 0o640


def test_settings_can_be_read_by_root_and_the_service_only(tmp_path, manuals):
    assert install(tmp_path / "packed", manuals).returncode == 0
    for place in ("etc/leveret/leveret.conf", "etc/default/leveret"):
        assert (tmp_path / "packed" / place).stat().st_mode & 0o777 == 0o640, place
    # On the machine itself the service's group gets them. Programs that note how they are called stand for the real ones.
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("systemd-sysusers", "chgrp"):
        (programs / name).write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/calls\n')
        (programs / name).chmod(0o755)
    (programs / "id").write_text("#!/bin/sh\necho 0\n")
    (programs / "id").chmod(0o755)
    prefix, etc = tmp_path / "usr", tmp_path / "etc"
    for _ in range(2):
        assert install("", manuals, f"PREFIX={prefix}", f"SYSCONFDIR={etc}", programs=programs).returncode == 0
    create = f"systemd-sysusers {prefix}/lib/sysusers.d/leveret.conf"
    given = f"chgrp leveret {etc}/leveret/leveret.conf"
    assert (tmp_path / "calls").read_text().splitlines() == [create, given, create]
    assert (etc / "leveret/leveret.conf").stat().st_mode & 0o777 == 0o640
