# install-compiler: use `/e/opt/dsdoctor/gcc-13/bin/x86_64-conda-linux-gnu-g++` as the host compiler
# because no `c++` and no `c++`, but gcc 9 or newer is needed
(set -e
# install a suitable compiler in a separate prefix
/opt/conda/bin/conda create --yes --prefix /e/opt/dsdoctor/gcc-13 --override-channels --channel conda-forge gxx_linux-64=13
# the following steps and the proof use these variables
export CC=/e/opt/dsdoctor/gcc-13/bin/x86_64-conda-linux-gnu-gcc
export CXX=/e/opt/dsdoctor/gcc-13/bin/x86_64-conda-linux-gnu-g++
export NVCC_PREPEND_FLAGS='-ccbin /e/opt/dsdoctor/gcc-13/bin/x86_64-conda-linux-gnu-g++'
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-compiler.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-compiler`; `dsdoctor fix --undo` removes it
export CC='/e/opt/dsdoctor/gcc-13/bin/x86_64-conda-linux-gnu-gcc'
export CXX='/e/opt/dsdoctor/gcc-13/bin/x86_64-conda-linux-gnu-g++'
export NVCC_PREPEND_FLAGS='-ccbin /e/opt/dsdoctor/gcc-13/bin/x86_64-conda-linux-gnu-g++'
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
