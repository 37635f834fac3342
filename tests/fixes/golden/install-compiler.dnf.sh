# install-compiler: use `/opt/rh/gcc-toolset-13/root/usr/bin/g++` as the host compiler
# because `c++` is gcc 8.5.0 and `c++` is gcc 8.5.0, but gcc 9 or newer is needed
(set -e
# gcc 9 or newer is needed
sudo -n dnf install --assumeyes --setopt=install_weak_deps=False gcc-toolset-13-gcc-c++
# the following steps and the proof use these variables
export CC=/opt/rh/gcc-toolset-13/root/usr/bin/gcc
export CXX=/opt/rh/gcc-toolset-13/root/usr/bin/g++
export NVCC_PREPEND_FLAGS='-ccbin /opt/rh/gcc-toolset-13/root/usr/bin/g++'
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-compiler.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-compiler`; `dsdoctor fix --undo` removes it
export CC='/opt/rh/gcc-toolset-13/root/usr/bin/gcc'
export CXX='/opt/rh/gcc-toolset-13/root/usr/bin/g++'
export NVCC_PREPEND_FLAGS='-ccbin /opt/rh/gcc-toolset-13/root/usr/bin/g++'
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
