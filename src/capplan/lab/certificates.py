"""A key, a certificate that it signs itself, and the stores from which Cassandra reads both."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from capplan.lab.node_files import PASSWORD

_NAME = b"lab"
_DAYS = 30


def write_stores(folder: Path, addresses: Iterable[str]) -> None:
    """Write `keys.p12`, `trusted.p12` and `certificate.pem` for servers at these addresses."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, pkcs12

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "capplan lab")])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=_DAYS))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ip_address(each)) for each in addresses]), critical=False
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    password = BestAvailableEncryption(PASSWORD.encode())
    folder.mkdir(parents=True, exist_ok=True)
    keys = pkcs12.serialize_key_and_certificates(_NAME, key, certificate, None, password)
    trusted = pkcs12.serialize_java_truststore([pkcs12.PKCS12Certificate(certificate, _NAME)], password)
    (folder / "keys.p12").write_bytes(keys)
    (folder / "trusted.p12").write_bytes(trusted)
    (folder / "certificate.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
