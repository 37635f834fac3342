# install-compiler: use `g++-13` as the host compiler
# because no `c++` and no `c++`, but gcc 9 or newer is needed
(set -e
# gcc 9 or newer is needed
DEBIAN_FRONTEND=noninteractive sudo -n apt-get install --yes --no-install-recommends gcc-13 g++-13
# the following steps and the proof use these variables
export CC=gcc-13
export CXX=g++-13
export NVCC_PREPEND_FLAGS='-ccbin g++-13'
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-compiler.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-compiler`; `dsdoctor fix --undo` removes it
export CC='gcc-13'
export CXX='g++-13'
export NVCC_PREPEND_FLAGS='-ccbin g++-13'
DSDOCTOR_END
# loads all such files
mkdir -p /e/opt/dsdoctor
cat > /e/opt/dsdoctor/activate.sh <<'DSDOCTOR_END'
# sourced by the shell that starts a job; sets the variables of `dsdoctor fix`
for _dsdoctor_file in '/e/opt/dsdoctor'/env.d/*.sh; do
  if [ -r "$_dsdoctor_file" ]; then . "$_dsdoctor_file"; fi
done
unset _dsdoctor_file
DSDOCTOR_END
)
[ $? -eq 0 ] && . '/e/opt/dsdoctor/activate.sh'
