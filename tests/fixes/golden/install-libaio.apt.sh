# install-libaio: libaio with its header
(set -e
# what async_io links
DEBIAN_FRONTEND=noninteractive sudo -n apt-get install --yes --no-install-recommends libaio-dev
)
