"""The certificate of a gateway that speaks TLS itself, tried before the first caller comes.

OpenSSL loads a certificate that has expired without a word, and then no caller verifies it. So a handshake is made in
memory, with a client that trusts this certificate alone.
"""

from __future__ import annotations

import ssl
from pathlib import Path

from fencerow.core.errors import ConfigError

NOT_YET, OVER = 9, 10  # X509_V_ERR_CERT_NOT_YET_VALID, X509_V_ERR_CERT_HAS_EXPIRED
WHY = {NOT_YET: "it is not valid yet", OVER: "it has expired"}


def context_of(cert: Path, key: Path) -> ssl.SSLContext:
    """What a certificate chain and its private key make, both in PEM.

    Raises:
        ConfigError: a file cannot be read, is none of these, or the key is encrypted or another certificate's; or the
            certificate is not valid today.
    """
    chain = _text(cert, "--tls-cert")
    _text(key, "--tls-key")
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        made.load_cert_chain(cert, key, password=_locked)
    except ssl.SSLError as error:
        raise _unusable(cert, key, error) from None
    _try(made, chain, cert)
    return made


def _text(path: Path, option: str) -> str:
    try:
        return path.read_text("ascii", "replace")
    except OSError as error:
        raise ConfigError(
            f"{option} {path} cannot be read",
            error.strerror or str(error),
            "give a file in PEM that this user may read",
        ) from None


def _locked() -> str:
    raise ConfigError(
        "--tls-key is encrypted",
        "nobody is there to type its password when the gateway starts",
        "give a key without one, in a file that this user alone may read",
    )


def _unusable(cert: Path, key: Path, error: ssl.SSLError) -> ConfigError:
    if error.reason == "KEY_VALUES_MISMATCH":
        return ConfigError(
            f"--tls-key {key} is not the key of --tls-cert {cert}",
            "the first certificate in the file must be the key's own",
            "give the two that belong together, the server's certificate before those of its issuers",
        )
    return ConfigError(
        f"--tls-cert {cert} with --tls-key {key} cannot be used",
        error.reason or "one of them is not PEM",
        "the one is a certificate in PEM, the other a private key in PEM",
    )


def _try(made: ssl.SSLContext, chain: str, cert: Path) -> None:
    """Shake hands with it in memory."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    theirs.check_hostname = False
    theirs.verify_flags |= (
        ssl.VERIFY_X509_PARTIAL_CHAIN
    )  # the server's own certificate is trusted, whoever issued it
    theirs.load_verify_locations(cadata=chain)
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = theirs.wrap_bio(to_client, to_server)
    server = made.wrap_bio(to_server, to_client, server_side=True)
    try:
        while not all([_shaken(client), _shaken(server)]):  # each goes on as far as it can
            pass
    except ssl.SSLCertVerificationError as error:
        raise ConfigError(
            f"--tls-cert {cert} would be trusted by no caller",
            WHY.get(error.verify_code, error.verify_message),
            "give one that is valid today; look at it by `openssl x509 -noout -dates -in FILE`",
        ) from None


def _shaken(side: ssl.SSLObject) -> bool:
    try:
        side.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True
