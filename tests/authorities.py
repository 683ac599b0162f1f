"""An authority of our own that gives certificates to receivers, so that TLS is tested as it is used."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID


class Authority:
    """Signs certificates. `pem` is its own, for those who shall trust it."""

    def __init__(self, folder: Path, name: str = "test authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        own = self._certificate(self._name, self._key.public_key(), timedelta(days=1), x509.BasicConstraints(True, 0))
        self.pem = own.public_bytes(Encoding.PEM)
        self.file = folder / f"{name.replace(' ', '-')}.pem"
        self.file.write_bytes(self.pem)

    def serving(self, *names: str, life: timedelta = timedelta(hours=1)) -> ssl.SSLContext:
        """What a server needs that is known by these names or addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        alternatives = x509.SubjectAlternativeName([_general(name) for name in names])
        certificate = self._certificate(subject, key.public_key(), life, x509.BasicConstraints(False, None), alternatives)
        file = self._folder / f"{names[0]}-{life.total_seconds():.0f}.pem"
        private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        file.write_bytes(private + certificate.public_bytes(Encoding.PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _certificate(
        self, subject: x509.Name, key: ec.EllipticCurvePublicKey, life: timedelta, *extensions: x509.ExtensionType
    ) -> x509.Certificate:
        now = datetime.now(UTC)
        start = now - timedelta(days=2)
        builder = x509.CertificateBuilder(self._name, subject, key, x509.random_serial_number(), start, now + life)
        for extension in extensions:
            builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
        return builder.sign(self._key, hashes.SHA256())


def _general(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)
