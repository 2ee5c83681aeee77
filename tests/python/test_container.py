"""The container image: its recipe, by the linter that everybody uses for such files; its root, laid out over this machine's Debian and run there as an
engine would run it, in namespaces of its own; and the archive that is written where there is no engine."""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

from test_process import BINARY

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGING = ROOT / "packaging"
RECIPE = PACKAGING / "Containerfile"
START_DEADLINE_SECONDS = 90
# An address that is not the loopback's: so a client from outside of the container looks.
OUTSIDE = "10.99.0.1"


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


def configuration():
    told = subprocess.run([PACKAGING / "image" / "archive", "--configuration"], capture_output=True, text=True, check=True)
    return json.loads(told.stdout)


def test_the_image_is_configured_like_rabbitmqs():
    config = configuration()
    assert (config["Entrypoint"], config["Cmd"]) == (["docker-entrypoint.sh"], ["rabbitmq-server"])
    assert config["Volumes"] == {"/var/lib/rabbitmq": {}}
    assert config["Healthcheck"]["Test"] == ["CMD", "rabbitmq-diagnostics", "-q", "ping"]
    assert {"5552/tcp", "5672/tcp", "5671/tcp", "15672/tcp", "15671/tcp", "15692/tcp"} <= set(config["ExposedPorts"])
    assert config["StopSignal"] == "SIGTERM"


NEEDS_NAMESPACES = pytest.mark.skipif(
    not BINARY or os.geteuid() != 0 or subprocess.run(["unshare", "--mount", "--net", "true"], capture_output=True).returncode != 0,
    reason="laying out a root and running it needs root, namespaces and a binary",
)


@pytest.fixture(scope="module")
def laid_out(tmp_path_factory):
    root = tmp_path_factory.mktemp("image") / "root"
    subprocess.run([PACKAGING / "image" / "layout", BINARY, root], check=True)
    return root


@NEEDS_NAMESPACES
def test_every_path_of_rabbitmqs_image_is_there(laid_out):
    for tool in (PACKAGING / "tools").read_text().split():
        for place in ("usr/bin", "opt/rabbitmq/sbin"):
            assert (laid_out / place / tool).resolve() == (laid_out / "usr/bin/leveret").resolve()
    for folder in ("var/lib/rabbitmq", "etc/rabbitmq", "etc/rabbitmq/conf.d", "var/log/rabbitmq"):
        found = (laid_out / folder).stat()
        assert (found.st_uid, found.st_gid, found.st_mode & 0o7777) == (999, 999, 0o1777), folder
    assert "rabbitmq:x:999:999:" in (laid_out / "etc/passwd").read_text()
    assert "guest = false" in (laid_out / "etc/rabbitmq/conf.d/10-defaults.conf").read_text()
    assert (laid_out / "etc/rabbitmq/enabled_plugins").read_text() == "[rabbitmq_management,rabbitmq_prometheus].\n"


class Container:
    """The image's root over this machine's, in mount, network and process namespaces: as much of a container as needs no engine."""

    def __init__(self, laid_out, scratch, variables=None, command=(), user=None, prepare=None):
        self.log_path, self.merged, work = scratch / "log", scratch / "merged", scratch / "work"
        self.upper = scratch / "upper"
        # A file system of its own, for layers may not lie within each other.
        lower = scratch / "lower"
        for folder in (self.merged, work, self.upper, lower):
            folder.mkdir()
        # What a test puts here is as good as mounted; a folder's owner and mode are those of the upper one.
        for folder in ("etc", "etc/rabbitmq", "etc/rabbitmq/conf.d", "var", "var/lib", "var/lib/rabbitmq"):
            (self.upper / folder).mkdir()
            shutil.copystat(laid_out / folder, self.upper / folder)
            found = (laid_out / folder).stat()
            os.chown(self.upper / folder, found.st_uid, found.st_gid)
        # Names of users come from the image and nothing else.
        (self.upper / "etc/nsswitch.conf").write_text("passwd: files\ngroup: files\nhosts: files\n")
        if prepare:
            prepare(self.upper)
        config = configuration()
        self.variables = [*config["Env"], *(f"{name}={value}" for name, value in (variables or {}).items())]
        words = [*config["Entrypoint"], *(command or config["Cmd"])]
        change = ["--userspec", user] if user else []
        script = f"""
            set -e
            mount -t tmpfs tmpfs {lower} && cp -a {laid_out}/. {lower}
            mount -t overlay overlay -o lowerdir={lower}:/,upperdir={self.upper},workdir={work} {self.merged}
            mount -t proc proc {self.merged}/proc
            mount -t tmpfs tmpfs {self.merged}/tmp
            mount --bind /dev {self.merged}/dev
            ip link set lo up
            ip address add {OUTSIDE}/32 dev lo
            exec "$@"
        """
        run = ["env", "-i", *self.variables, "chroot", *change, str(self.merged), *words]
        namespaces = ["unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child"]
        with open(self.log_path, "wb") as log:
            self.process = subprocess.Popen([*namespaces, "sh", "-c", script, "sh", *run], stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def log(self):
        return self.log_path.read_text(errors="replace")

    def wait_for(self, text):
        deadline = time.monotonic() + START_DEADLINE_SECONDS
        while text not in self.log():
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.01)
        return self

    def first_process(self):
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return children[0]

    def exec(self, *words):
        """What `docker exec` does: as root, with the image's variables."""
        enter = ["nsenter", "--target", self.first_process(), "--mount", "--net", "--uts", "--pid"]
        done = subprocess.run([*enter, "env", "-i", *self.variables, "chroot", self.merged, *words], capture_output=True, text=True, timeout=60)
        return done.returncode, done.stdout, done.stderr

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()


@pytest.fixture
def container(laid_out, tmp_path):
    started = []

    def start(**options):
        scratch = tmp_path / str(len(started))
        scratch.mkdir()
        started.append(Container(laid_out, scratch, **options))
        return started[-1]

    yield start
    for one in started:
        one.close()


def login(one, user, password):
    """Lists virtual hosts by the HTTP API from outside of the container."""
    return one.exec("rabbitmqctl", "-q", "--url", f"http://{OUTSIDE}:15672", "--username", user, "--password", password, "list_vhosts")


@NEEDS_NAMESPACES
def test_a_container_starts_as_rabbitmq_and_lets_guest_in_from_outside(container):
    one = container().wait_for("Server startup complete")
    assert "started TCP listener on " in one.log()
    status = Path(f"/proc/{one.first_process()}/status").read_text()
    assert "Uid:\t999\t999\t999\t999" in status and "Gid:\t999\t999\t999\t999" in status
    assert one.exec(*configuration()["Healthcheck"]["Test"][1:])[:2] == (0, "Ping succeeded\n")
    assert login(one, "guest", "guest") == (0, "name\n/\n", ""), one.log()
    assert (one.upper / "var/lib/rabbitmq/mnesia/leveret").stat().st_uid == 999
    for tool in ("rabbitmqctl", "rabbitmq-diagnostics", "/opt/rabbitmq/sbin/rabbitmqctl"):
        assert one.exec(tool, "status")[0] == 0, tool
    code, told, _ = one.exec("rabbitmq-plugins", "list", "-m", "-E")
    assert code == 0 and "rabbitmq_management\n" in told


@NEEDS_NAMESPACES
def test_variables_and_mounted_files_count_as_in_rabbitmqs_image(container):
    def mount(root):
        (root / "etc/rabbitmq/rabbitmq.conf").write_text("heartbeat = 41\n")
        (root / "etc/rabbitmq/conf.d/20-mine.conf").write_text("channel_max = 97\n")
        (root / "etc/rabbitmq/advanced.config").write_text("[{rabbit, [{frame_max, 8192}]}].\n")

    variables = {"RABBITMQ_DEFAULT_USER": "jane", "RABBITMQ_DEFAULT_PASS": "doe", "RABBITMQ_DEFAULT_VHOST": "shop"}
    one = container(variables=variables, prepare=mount).wait_for("Server startup complete")
    assert login(one, "jane", "doe")[:2] == (0, "name\nshop\n")
    assert login(one, "guest", "guest")[0] != 0
    told = one.exec("rabbitmq-diagnostics", "-q", "environment")[1]
    for setting in ("heartbeat", "41", "channel_max", "97", "frame_max", "8192"):
        assert setting in told, setting


@NEEDS_NAMESPACES
def test_another_user_may_run_the_image(container):
    one = container(user="12345:0").wait_for("Server startup complete")
    assert "Uid:\t12345\t" in Path(f"/proc/{one.first_process()}/status").read_text()
    assert one.exec("rabbitmq-diagnostics", "-q", "ping")[0] == 0


@NEEDS_NAMESPACES
def test_variables_that_rabbitmqs_image_refuses_are_refused(container):
    one = container(variables={"RABBITMQ_SSL_CERTFILE": "/x.pem"})
    assert one.process.wait(START_DEADLINE_SECONDS) == 1
    assert "error: RABBITMQ_SSL_CERTFILE is set but deprecated" in one.log()


@NEEDS_NAMESPACES
def test_a_volume_of_rabbitmq_is_named_and_left_alone(container):
    def mount(root):
        (root / "var/lib/rabbitmq/mnesia/rabbit@old").mkdir(parents=True)

    one = container(prepare=mount).wait_for("Server startup complete")
    assert "note: /var/lib/rabbitmq/mnesia/rabbit@old holds the data of a RabbitMQ node" in one.log()


@NEEDS_NAMESPACES
def test_other_commands_and_options_are_taken(container):
    assert container(command=["rabbitmqctl", "version"]).wait_for("4.").process.wait(START_DEADLINE_SECONDS) == 0
    one = container(command=["-s", "heartbeat=43"]).wait_for("Server startup complete")
    assert "43" in one.exec("rabbitmq-diagnostics", "-q", "environment")[1]
    shell = container(command=["sh", "-c", "rabbitmq-plugins enable --offline rabbitmq_management && exec rabbitmq-server"])
    shell.wait_for("Server startup complete")


def test_the_archive_holds_the_folder_as_engines_expect_it(tmp_path):
    root = tmp_path / "root"
    (root / "usr/bin").mkdir(parents=True)
    (root / "usr/bin/leveret").write_text("x" * 100_000)
    (root / "usr/bin/rabbitmqctl").symlink_to("leveret")
    archive = tmp_path / "image.tar"
    subprocess.run([PACKAGING / "image" / "archive", root, archive, "--tag", "leveret:7"], check=True, env=os.environ | {"SOURCE_DATE_EPOCH": "0"})
    with tarfile.open(archive) as tar:
        read = lambda name: tar.extractfile(name).read()  # noqa: E731
        blob = lambda it: read("blobs/" + it["digest"].replace(":", "/"))  # noqa: E731
        assert json.loads(read("oci-layout")) == {"imageLayoutVersion": "1.0.0"}
        index = json.loads(read("index.json"))["manifests"][0]
        manifest = json.loads(blob(index))
        for part in (index, manifest["config"], *manifest["layers"]):
            data = blob(part)
            assert (len(data), "sha256:" + hashlib.sha256(data).hexdigest()) == (part["size"], part["digest"])
        config = json.loads(blob(manifest["config"]))
        assert config["config"] == configuration()
        old = json.loads(read("manifest.json"))[0]
        assert old["RepoTags"] == ["leveret:7"] and json.loads(read(old["Config"])) == config
        with tarfile.open(fileobj=tar.extractfile(old["Layers"][0])) as layer:
            assert layer.getmember("usr/bin/rabbitmqctl").linkname == "leveret"
            assert layer.getmember("usr/bin/leveret").size == 100_000
