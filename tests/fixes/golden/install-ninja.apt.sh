# install-ninja: ninja where a job finds it
(set -e
# the build tool
DEBIAN_FRONTEND=noninteractive sudo -n apt-get install --yes --no-install-recommends ninja-build
)
