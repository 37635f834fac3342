# install-ninja: make ninja available to jobs
(set -e
# torch builds ops with it
/e/bin/python -m pip install --no-input ninja
# the following steps and the proof use these variables
export PATH=/e/bin":$PATH"
# sets them in the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-ninja.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-ninja`; `dsdoctor fix --undo` removes it
case ":$PATH:" in *:'/e/bin':*) ;; *) PATH='/e/bin'":$PATH" ;; esac; export PATH
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
