# install-compiler: use `/s/12/bin/g++` as the host compiler
# because `c++` is gcc 15.1.0 and `c++` is gcc 15.1.0, but gcc 9 or newer, up to 13 is needed
(set -e
# the following steps and the proof use these variables
export CC=/s/12/bin/gcc
export CXX=/s/12/bin/g++
export NVCC_PREPEND_FLAGS='-ccbin /s/12/bin/g++'
export LD_LIBRARY_PATH=/s/12/lib64"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-compiler.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-compiler`; `dsdoctor fix --undo` removes it
export CC='/s/12/bin/gcc'
export CXX='/s/12/bin/g++'
export NVCC_PREPEND_FLAGS='-ccbin /s/12/bin/g++'
case ":$LD_LIBRARY_PATH:" in *:'/s/12/lib64':*) ;; *) LD_LIBRARY_PATH='/s/12/lib64'"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" ;; esac; export LD_LIBRARY_PATH
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
