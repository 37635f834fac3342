# repair-hostfile: correct `/job/hostfile` for the deepspeed launcher
# because line 3, `node-b 8`, becomes `node-b slots=8`
# because line 4, `node-c:4`, becomes `node-c slots=4`
# because line 5, `node-a slots=2`, becomes `# node-a slots=2`
# because line 6, `what is this`, becomes `# what is this`
(set -e
# line 3, `node-b 8`, becomes `node-b slots=8`; line 4, `node-c:4`, becomes `node-c slots=4`; line 5,
# `node-a slots=2`, becomes `# node-a slots=2`; line 6, `what is this`, becomes `# what is this`
mkdir -p /job
cat > /job/hostfile <<'DSDOCTOR_END'
# nodes
node-a slots=8
node-b slots=8
node-c slots=4
# node-a slots=2
# what is this
DSDOCTOR_END
)
