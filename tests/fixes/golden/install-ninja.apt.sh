# install-ninja: make ninja available to jobs
(set -e
# the build tool
DEBIAN_FRONTEND=noninteractive sudo -n apt-get install --yes --no-install-recommends ninja-build
)
