"""The recipe of the container image, read by the linter that everybody uses for such files."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
RECIPE = ROOT / "packaging" / "Containerfile"


def hadolint(path):
    done = subprocess.run([Path(sys.executable).parent / "hadolint", "--failure-threshold", "style", path], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def test_the_container_recipe_passes_its_linter():
    assert hadolint(RECIPE) == (0, "")


def test_the_linter_finds_what_is_wrong(tmp_path):
    wrong = tmp_path / "Containerfile"
    wrong.write_text(RECIPE.read_text().replace(" --no-install-recommends", ""))
    code, found = hadolint(wrong)
    assert code != 0 and "DL3015" in found
