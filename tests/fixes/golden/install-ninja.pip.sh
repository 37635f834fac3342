# install-ninja: ninja where a job finds it
(set -e
# torch builds ops with it
/e/bin/python -m pip install --no-input ninja
# what the steps that follow and the proof run with
export PATH=/e/bin:"$PATH"
# the same variables for the shell that starts the job
mkdir -p /e/opt/dsdoctor/env.d
cat > /e/opt/dsdoctor/env.d/install-ninja.sh <<'DSDOCTOR_END'
# written by `dsdoctor fix install-ninja`; `dsdoctor fix --undo` removes it
case ":$PATH:" in *:'/e/bin':*) ;; *) PATH='/e/bin'":$PATH" ;; esac; export PATH
DSDOCTOR_END
# reads every such file
mkdir -p /e/opt/dsdoctor
cat > /e/opt/dsdoctor/activate.sh <<'DSDOCTOR_END'
# read by the shell that starts a job: the repairs that dsdoctor made
for _dsdoctor_file in '/e/opt/dsdoctor'/env.d/*.sh; do
  if [ -r "$_dsdoctor_file" ]; then . "$_dsdoctor_file"; fi
done
unset _dsdoctor_file
DSDOCTOR_END
)
[ $? -eq 0 ] && . '/e/opt/dsdoctor/activate.sh'
