"""Why a TLS handshake has failed, as one sentence for the log."""

import ssl

__all__ = ["tls_failure"]

_PLAIN = "the peer speaks no TLS: a client that speaks PLAINTEXT on a listener of TLS"
_REASONS = {
    "NO_SHARED_CIPHER": "no cipher suite in common: see ssl.cipher.suites",
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": (
        "the client showed no certificate, and ssl.client.auth is required"
    ),
    "TLSV13_ALERT_CERTIFICATE_REQUIRED": "the peer asks for a certificate: set ssl.keystore",
    "TLSV1_ALERT_PROTOCOL_VERSION": "no version of TLS in common: see ssl.enabled.protocols",
    "TLSV1_ALERT_UNKNOWN_CA": "the peer does not trust our certificate: see its ssl.truststore",
    "SSLV3_ALERT_BAD_CERTIFICATE": "the peer takes our certificate for a bad one",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "the peer says that our certificate has expired",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "the peer does not accept our certificate",
    "UNSUPPORTED_PROTOCOL": "no version of TLS in common: see ssl.enabled.protocols",
    "WRONG_VERSION_NUMBER": _PLAIN,
    "PACKET_LENGTH_TOO_LONG": _PLAIN,
    "RECORD_LAYER_FAILURE": _PLAIN,
}


def tls_failure(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the peer is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = error.reason or str(error)
        return _REASONS.get(reason, f"the TLS handshake failed: {reason}")
    if isinstance(error, ConnectionAbortedError | TimeoutError):
        return "the TLS handshake took too long"
    return f"the peer left within the TLS handshake: {error.strerror or type(error).__name__}"
