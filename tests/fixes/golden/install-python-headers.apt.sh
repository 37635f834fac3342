# install-python-headers: install `Python.h` for Python 3.11
(set -e
# the headers of this interpreter
DEBIAN_FRONTEND=noninteractive sudo -n apt-get install --yes --no-install-recommends python3.11-dev
)
