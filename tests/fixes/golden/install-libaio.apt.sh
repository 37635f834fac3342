# install-libaio: install libaio and its header
(set -e
# async_io is linked against it
DEBIAN_FRONTEND=noninteractive sudo -n apt-get install --yes --no-install-recommends libaio-dev
)
