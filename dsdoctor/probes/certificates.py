"""Which files of certificates the environment names, and whether they exist."""

from __future__ import annotations

import posixpath

from dsdoctor.api import CertificatePaths, LaunchCommand, Missing, RunNeeds, probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why

#: requests 2.x reads the first two (sessions.py), OpenSSL and httpx the third (_config.py).
VARIABLES = ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE")


@probe
def certificate_paths(
    host: Host, run: RunNeeds, command: LaunchCommand | Missing
) -> CertificatePaths:
    """The variables of the command or of this shell; an empty one counts as unset."""
    given = {} if isinstance(command, Missing) else command.env
    paths = {name: given.get(name, host.env.get(name, "")) for name in VARIABLES}
    paths = {name: path for name, path in paths.items() if path and "$" not in path}
    missing = []
    for name, path in paths.items():
        try:
            host.stat(posixpath.join(run.cwd, path))
        except HostError as error:
            if error.missing.why is Why.ABSENT:
                missing.append(name)
    return CertificatePaths(paths=paths, missing=tuple(missing))
