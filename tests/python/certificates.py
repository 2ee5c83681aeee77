"""Authorities and certificates for tests of TLS, made with the openssl command."""

from __future__ import annotations

import copy
import subprocess
from pathlib import Path


def openssl(*words, stdin: str = "") -> None:
    subprocess.run(["openssl", *map(str, words)], input=stdin.encode(), check=True, capture_output=True)


class Authority:
    """A certificate authority in a directory of its own."""

    def __init__(self, directory: Path, name: str = "authority"):
        self.directory = directory
        self.certificate = directory / f"{name}.pem"
        self.key = directory / f"{name}.key"
        subject = f"/O=Leveret tests/CN={name}"
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", subject, "-keyout", self.key, "-out", self.certificate)

    def issue(self, name: str, subject: str, alternative: str = "", key: str = "ec", days: int = 30) -> tuple[Path, Path]:
        """A certificate and its key: two files."""
        certificate, secret, request = (self.directory / f"{name}.{ending}" for ending in ("pem", "key", "csr"))
        kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"] if key == "ec" else ["-newkey", key]
        openssl("req", *kind, "-nodes", "-subj", subject, "-keyout", secret, "-out", request)
        extensions = self.directory / f"{name}.ext"
        extensions.write_text(f"subjectAltName={alternative}\n" if alternative else "basicConstraints=CA:FALSE\n")
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", str(days), "-extfile", extensions, "-out", certificate)
        return certificate, secret

    def subordinate(self, name: str) -> Authority:
        """An authority that this one vouches for."""
        made = copy.copy(self)
        made.certificate, made.key = self.directory / f"{name}.pem", self.directory / f"{name}.key"
        request, extensions = self.directory / f"{name}.csr", self.directory / f"{name}.ext"
        openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", f"/O=Leveret tests/CN={name}", "-keyout", made.key, "-out", request)
        extensions.write_text("basicConstraints=critical,CA:TRUE\n")
        openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key, "-CAcreateserial", "-days", "30", "-extfile", extensions, "-out", made.certificate)
        return made

    def guard(self, key: Path, passphrase: str) -> Path:
        """The same key, guarded."""
        guarded = key.with_suffix(".guarded")
        openssl("pkcs8", "-topk8", "-v2", "aes-256-cbc", "-in", key, "-out", guarded, "-passout", f"pass:{passphrase}")
        return guarded

    def revoke(self, list_file: Path, *certificates: Path, days: int = 30) -> None:
        """Writes a list of the certificates that count no more."""
        database = self.directory / "revoked.txt"
        database.touch()
        settings = self.directory / "revoked.conf"
        settings.write_text(f"[ca]\ndefault_ca=here\n[here]\ndatabase={database}\ndefault_md=sha256\ncrlnumber={self.directory / 'revoked.number'}\ncrl_extensions=more\n[more]\nauthorityKeyIdentifier=keyid:always\n")
        (self.directory / "revoked.number").write_text("01\n")
        authority = ["-config", settings, "-cert", self.certificate, "-keyfile", self.key]
        for certificate in certificates:
            openssl("ca", *authority, "-revoke", certificate)
        openssl("ca", *authority, "-gencrl", "-crldays", str(days), "-out", list_file)

    def server(self, name: str = "server", **options) -> tuple[Path, Path]:
        return self.issue(name, "/CN=localhost", "DNS:localhost,IP:127.0.0.1", **options)
