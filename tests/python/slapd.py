"""A real directory: OpenLDAP's server on a port of its own, with the objects of a test."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.broker import accepts, free_port

HOME = Path(__file__).resolve().parent.parent / ".cache" / "slapd"
BINARY = HOME / "usr" / "sbin" / "slapd"

CONFIGURATION = """
include {home}/etc/ldap/schema/core.schema
include {home}/etc/ldap/schema/cosine.schema
include {home}/etc/ldap/schema/inetorgperson.schema
modulepath {home}/usr/lib/ldap
moduleload back_ldif
sizelimit 5000
database ldif
directory {directory}/objects
suffix "dc=example"
access to dn.subtree="ou=hidden,dc=example" by dn.exact="cn=reader,dc=example" read by * none
access to attrs=userPassword by anonymous auth by * none
access to * by users read by anonymous auth
"""


class Slapd:
    """The process. `objects` is LDIF, `certificate` the files of a certificate and its key, for StartTLS."""

    def __init__(self, objects: str, certificate: tuple[Path, Path] | None = None):
        self.directory = Path(tempfile.mkdtemp(prefix="leveret-slapd-"))
        (self.directory / "objects").mkdir()
        self.port = free_port()
        configuration = self.directory / "slapd.conf"
        secured = "TLSCertificateFile {}\nTLSCertificateKeyFile {}\n".format(*certificate) if certificate else ""
        configuration.write_text(secured + CONFIGURATION.format(home=HOME, directory=self.directory))
        self.configuration = ["-f", str(configuration)]
        libraries = next(HOME.glob("usr/lib/*/libltdl.so.7")).parent
        self.environment = os.environ | {"LD_LIBRARY_PATH": str(libraries)}
        # slapadd is the same program by another name.
        loading = ["slapadd", *self.configuration, "-q"]
        subprocess.run(loading, executable=BINARY, input=objects.encode(), env=self.environment, check=True, capture_output=True)
        self.process = None
        self.start()

    def start(self):
        command = [str(BINARY), *self.configuration, "-h", f"ldap://127.0.0.1:{self.port}/", "-d", "0"]
        self.process = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        deadline = time.monotonic() + 20
        while not accepts("127.0.0.1", self.port):
            assert self.process.poll() is None and time.monotonic() < deadline, "slapd does not start"
            time.sleep(0.01)

    def freeze(self):
        """It takes connections and says nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        self.stop()
        shutil.rmtree(self.directory, ignore_errors=True)
