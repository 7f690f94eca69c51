"""The certificate's files: which they are, and how long they are good for."""

import logging
import time

from spotwright_agent.report.certificate_times import CertificateUnreadableError, days_left
from spotwright_agent.tls_files import TlsFiles

_log = logging.getLogger(__name__)
WARN_DAYS = 14.0
_WARN_AGAIN_S = 86_400.0

CertificateState = tuple[tuple[int, int, int], ...]  # time, size and inode of each file


class CertificateWatch:
    """Looks at the files from time to time."""

    def __init__(self, tls: TlsFiles | None) -> None:
        self._tls = tls
        self.days_left: float | None = None  # None: no TLS, or not readable
        self.problem = ""
        self._warned_s = -_WARN_AGAIN_S
        self.look()

    def look(self) -> None:
        """Find out how long the certificate is good for; warn once a day where that is short."""
        if self._tls is None:
            return
        try:
            self.days_left = days_left(self._tls.certificate)
            self.problem = self._shortness(self.days_left)
        except CertificateUnreadableError as error:
            self.days_left, self.problem = None, str(error)
        if self.problem and time.monotonic() - self._warned_s >= _WARN_AGAIN_S:
            self._warned_s = time.monotonic()
            _log.warning("certificate: %s", self.problem)

    def _shortness(self, days: float) -> str:
        if days >= WARN_DAYS or self._tls is None:
            return ""
        when = f"ends in {int(days)} days" if days > 0 else f"ended {-days:.0f} days ago"
        return f"{self._tls.certificate} {when}; renew it with `spotwright certs issue agent`"

    def state(self) -> CertificateState:
        """Return what differs once the files are others."""
        if self._tls is None:
            return ()
        found = []
        for file in (self._tls.authority, self._tls.certificate, self._tls.key):
            try:
                status = file.stat()
            except OSError:
                found.append((0, 0, 0))
            else:
                found.append((status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(found)
