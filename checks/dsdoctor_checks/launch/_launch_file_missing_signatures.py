"""How a log shows that a program or script of the command does not exist."""

from __future__ import annotations

from dsdoctor.api import Level, Signature

#: What helps if `python -m` does not find a module.
_MODULE = "correct its name, start in the directory that contains it, or activate the environment that contains it"
#: What helps if the shell script has the line ends of Windows: a log ends the line there, and a
#: terminal writes the rest over the beginning.
_ENDS = "remove the carriage returns from the shell script: `sed -i 's/\\r$//' FILE`, or `dos2unix FILE`"

SIGNATURES = (
    Signature(
        pattern=r"can't open file '(?P<script>[^']{1,300})$",
        source="CPython 3.8-3.14 Modules/main.c",
        message="the name `{script}` is followed by a carriage return, so Python does not find the file",
        hint=_ENDS,
        examples=("python3: can't open file '/home/u/train.py",),
        not_examples=("python3: can't open file 'train.py': [Errno 2] No such file or directory",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^': \[Errno 2\] No such file or directory.{0,100}can't open file '",
        source="CPython 3.8-3.14 Modules/main.c",
        message="the name of the script is followed by a carriage return, so Python does not find the file",
        hint=_ENDS,
        examples=("': [Errno 2] No such file or directorython3: can't open file '",),
        not_examples=("x': [Errno 2] No such file or directory: can't open file 'x'",),
    ),
    Signature(
        # Python 3.11 and newer write the path as `repr` does
        pattern=r"can't open file '(?:[^'\\]{0,300}[/\\])?(?P<script>[^'/\\]{0,300})\\r': \[Errno 2\] No such file",
        source="CPython 3.8-3.14 Modules/main.c",
        message="the name `{script}` of the script ends with a carriage return, so Python does not find the file",
        hint=_ENDS,
        examples=(
            r"/usr/bin/python3.11: can't open file '/home/u/train.py\r': [Errno 2] No such file or directory",
            r"/usr/bin/python3.11: can't open file '/home/u/\r': [Errno 2] No such file or directory",
        ),
        not_examples=(r"'/home/u/train.py\r': [Errno 2] No such file or directory",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"can't open file '(?:[^']{0,300}[/\\])? +': \[Errno 2\] No such file",
        source="CPython 3.8-3.14 Modules/main.c",
        message="the launcher got a space as the name of the script, as from a space after a `\\` that continues the line",
        hint="remove what follows the `\\` at the end of each line of the command",
        examples=("python3.11: can't open file '/home/u/ ': [Errno 2] No such file or directory",),
        not_examples=(
            "python3.11: can't open file '/home/u/train.py': [Errno 2] No such file or directory",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"can't open file '(?:[^']{0,300}[/\\])?(?P<word>[\u2010-\u2015\u2212\u201c\u201d\u2018][^'/\\]{0,100})': \[Errno 2\] No such file",
        source="CPython 3.8-3.14 Modules/main.c",
        message="the launcher takes `{word}` for the name of the script: it begins with a typographic character instead of `-`",
        hint="type `-` and plain quotes by hand: they were copied from a document that replaces them",
        examples=tuple(
            f"python3: can't open file '/home/u/{mark}nproc_per_node': [Errno 2] No such file or directory"
            for mark in "\u2010\u2013\u2014\u2015\u2212\u201c\u201d\u2018"
        ),
        not_examples=(
            "python3: can't open file '/home/u/--nproc': [Errno 2] No such file or directory",
        ),
        level=Level.STRONG,
    ),
    Signature(
        # not what the three above say
        pattern=r"can't open file '?(?![^']{0,300}(?:\\r|[/\\] +|[/\\][\u2010-\u2015\u2212\u201c\u201d\u2018][^'/\\]{0,100})')(?P<script>[^']{1,300})'?: \[Errno 2\] No such file or directory",
        source="CPython 3.8-3.14 Modules/main.c",
        message="the script `{script}` does not exist",
        hint="correct its path, or start in the directory that it is relative to",
        examples=(
            "python: can't open file '/home/u/train.py': [Errno 2] No such file or directory",
            "/usr/bin/python3: can't open file train.py: [Errno 2] No such file or directory",
        ),
        not_examples=("can't open file: [Errno 2] No such file or directory",),
        level=Level.STRONG,
    ),
    Signature(
        # `torch` and `deepspeed` have conditions of their own
        pattern=r"^\S{0,300}python[\w.]{0,12}: No module named (?P<module>(?!(?:torch|deepspeed)(?:\.__main__)?(?:;|$)|torch\.distributed\s*$)[\w.]{1,200})(?:;|$)",
        source="CPython 3.3-3.14 Lib/runpy.py",
        message="`python -m` did not find the module `{module}`",
        hint=_MODULE,
        examples=(
            "/usr/bin/python3: No module named train_ddp",
            "python: No module named torch.distributed.run",
            "/opt/env/bin/python3.11: No module named tool.__main__; 'tool' is a package and cannot be directly executed",
        ),
        not_examples=(
            "/usr/bin/python3: No module named deepspeed",
            "/usr/bin/python3: No module named torch",
            "/usr/bin/python: No module named torch.distributed",
        ),
        level=Level.STRONG,
        masks=("script-module-missing",),
    ),
    Signature(
        pattern=r"Error while finding module specification for '(?P<module>[^']{1,200})' \(ModuleNotFoundError: No module named '(?P<part>(?!(?:torch|deepspeed)')[^']{1,200})'\)",
        source="CPython 3.3-3.14 Lib/runpy.py",
        message="`python -m {module}` did not find the module `{part}`",
        hint=_MODULE,
        examples=(
            "/usr/bin/python3: Error while finding module specification for 'bench.run' (ModuleNotFoundError: No module named 'bench')",
        ),
        not_examples=(
            "Error while finding module specification for 'torch.distributed.run' (ModuleNotFoundError: No module named 'torch')",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"The passed configuration file `(?P<file>[^`]{1,300})` does not exist",
        source="accelerate 0.12-1.15 commands/config/config_args.py",
        message="the configuration file `{file}` of `accelerate launch` does not exist",
        hint="correct the path after `--config_file`, or write the file with `accelerate config`",
        examples=(
            "FileNotFoundError: The passed configuration file `a.yaml` does not exist. Please pass an existing file",
        ),
        not_examples=("The passed configuration file `` does not exist",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?:exec|FATAL): +\\?\"(?!nvidia-)(?P<program>[^\s\"\\]{1,200})\\?\": executable file not found in \$PATH",
        source="Go 1 os/exec; runc 1.0-1.3; apptainer and singularity 3-4",
        message="`{program}` is not installed in the container, or not on its PATH",
        hint="use an image that has it, or write its full path",
        examples=(
            'FATAL:   "accelerate": executable file not found in $PATH',
            'OCI runtime create failed: exec: "train.sh": executable file not found in $PATH: unknown.',
        ),
        not_examples=('exec: "nvidia-smi": executable file not found in $PATH: unknown.',),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"execve\(\): (?P<program>\S{1,200}): No such file or directory",
        source="Slurm 14-25 src/slurmd/slurmstepd/task.c",
        message="`{program}` is not installed on the node, or not in the job's environment",
        examples=("slurmstepd: error: execve(): train: No such file or directory",),
        not_examples=("execve ./train: No such file or directory",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?:^|[\s:])(?P<program>torchrun|accelerate|srun|llamafactory-cli|axolotl|colossalai): (?:command )?not found\b",
        source="bash 3-5, dash 0.5",
        message="`{program}` is not on PATH",
        examples=(
            "bash: torchrun: command not found",
            "run.sh: line 4: accelerate: command not found",
            "train.sh: 7: srun: not found",
            "torchrun: not found",
            "accelerate: not found",
            "-bash: srun: command not found",
            "run.sh: line 4: llamafactory-cli: command not found",
            "run.sh: line 4: axolotl: command not found",
            "run.sh: line 4: colossalai: command not found",
        ),
        not_examples=("bash: my_torchrun: command not found",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bzsh:(?:\d{1,6}:)? command not found: (?P<program>torchrun|deepspeed|accelerate|srun|python3?)$",
        source="zsh 5.0-5.9 Src/exec.c",
        message="`{program}` is not on PATH",
        examples=(
            "zsh: command not found: torchrun",
            "zsh: command not found: deepspeed",
            "run.sh:zsh:3: command not found: accelerate",
            "zsh: command not found: srun",
            "zsh: command not found: python",
        ),
        not_examples=("zsh: command not found: torchrunner",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"python[\w.]{0,12}: can't find '__main__' module in '(?P<path>[^']{1,400})'",
        source="CPython 3.3-3.14 Lib/runpy.py",
        message="`{path}` is a folder, and has no `__main__.py` that Python could start",
        hint="name the script in the folder, or start a package with `python -m`",
        examples=("/usr/bin/python: can't find '__main__' module in '/w/DeepSpeed'",),
        not_examples=("python: can't find '__main__' module in ''",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"^error: Failed to spawn: `(?P<program>[^`]{1,300})`",
        source="uv 0.4-0.9 crates/uv/src/commands/project/run.rs; the next line says why",
        message="uv did not find `{program}`",
        hint="write the script's path as seen from the working folder, or install the program that is meant (`uv add`)",
        examples=("error: Failed to spawn: `train.py`",),
        not_examples=("the error: Failed to spawn: `train.py`",),
        near=("(os error 2)",),
        level=Level.STRONG,
    ),
    Signature(
        # a batch script calls these more than once, and goes on
        pattern=r"(?:^|[\s:])(?P<program>apptainer|singularity|enroot|docker|podman|ray|python3?|uv): (?:command )?not found\b",
        source="bash 3-5, dash 0.5",
        message="`{program}` is not on PATH",
        examples=(
            "run.sh: line 4: apptainer: command not found",
            "run.sh: line 4: singularity: command not found",
            "run.sh: line 4: enroot: command not found",
            "run.sh: line 4: docker: command not found",
            "run.sh: line 4: podman: command not found",
            "run.sh: line 4: ray: command not found",
            "run.sh: line 4: python: command not found",
            "run.sh: line 4: python3: command not found",
            "sh: 1: uv: not found",
            "python: command not found",
        ),
        not_examples=("bash: my_docker: command not found",),
        goes_on=True,
    ),
    Signature(
        pattern=r"\b(?:ba|da|z|k)?sh: (?:line \d+: |\d+: )?(?P<program>/\S{1,300}/(?:python[\d.]*|torchrun|deepspeed|accelerate)): (?:No such file or directory|not found)$",
        source="bash 3-5, dash 0.5",
        message="`{program}` does not exist on this node",
        hint="install the environment at the same path on each node, or put it on a file system that all of them mount",
        examples=(
            "bash: /opt/env/bin/python: No such file or directory",
            "10.0.0.3: bash: line 1: /opt/env/bin/torchrun: No such file or directory",
            "sh: 1: /opt/env/bin/deepspeed: not found",
            "n2: zsh: /opt/env/bin/accelerate: No such file or directory",
            "ksh: /opt/env/bin/python3.11: not found",
        ),
        not_examples=("bash: /opt/env/bin/activate: No such file or directory",),
        level=Level.STRONG,
    ),
    Signature(
        # a batch script calls others, and goes on without one
        pattern=r"^-?(?:/(?:usr/)?bin/)?(?:ba|da|z|k)?sh: (?:line \d+: |\d+: )?(?P<program>\S{1,300}\.(?:sh|slurm|sbatch)): (?:No such file or directory|not found)$",
        source="bash 3-5, dash 0.5",
        message="The script `{program}` does not exist",
        hint="correct its path, or change into the folder that it is relative to before it is started",
        examples=(
            "bash: ./pretrain.sh: No such file or directory",
            "bash: jobs/pretrain.sh: No such file or directory",
            "-bash: ../jobs/train.slurm: No such file or directory",
            "/bin/bash: /w/jobs/train.sbatch: No such file or directory",
            "sh: 1: ./run.sh: not found",
            "zsh: ./run.sh: No such file or directory",
            "ksh: ./run.sh: not found",
        ),
        not_examples=("bash: /opt/env/bin/activate: No such file or directory",),
        goes_on=True,
    ),
    Signature(
        pattern=r"execve\(\): bad interpreter\((?P<program>[^)]{1,200})\): ",
        source="slurm 2.2-25.11 src/slurmd/slurmstepd/task.c",
        message="The interpreter `{program}` in the first line of the script does not exist on the node",
        hint="correct the first line (`#!`) of the script, and remove Windows line endings with `dos2unix`",
        examples=(
            "slurmstepd: error: execve(): bad interpreter(/bin/zsh): No such file or directory",
        ),
        not_examples=("execve(): bad interpreter(): No such file",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r": (?P<program>/(?![^:\s]{0,300}(?:python|pypy)[\w.]{0,12}:)[^:\s]{1,300}): bad interpreter: No such file",
        source="bash 3.2-5.3 execute_cmd.c; the words are glibc's",
        message="The interpreter `{program}` in the first line of the script does not exist",
        hint="correct the first line (`#!`) of the script, and remove Windows line endings with `dos2unix`: they are shown as `^M`",
        examples=("bash: ./run.sh: /bin/bash^M: bad interpreter: No such file or directory",),
        not_examples=(
            "bash: /new/bin/pip: /old/bin/python3.10: bad interpreter: No such file or directory",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        # a script whose `#!` line names an interpreter that is gone reads the same
        pattern=r"\b(?:timeout|nohup|nice|stdbuf|chroot|runcon): failed to run command ['\u2018`](?P<program>[^'\u2019]{1,300})['\u2019]: No such file or directory$",
        source="coreutils 8.0-9.9 src/timeout.c, nohup.c, nice.c, stdbuf.c, with strerror of ENOENT",
        message="The program `{program}`, or the interpreter in its first line, does not exist",
        hint="run `command -v {program}`: if it prints nothing, activate the environment in the job's script; if it prints a file, `head -n 1` of it names an interpreter that is gone, and the package has to be installed again",
        examples=(
            "timeout: failed to run command \u2018torchrun\u2019: No such file or directory",
            "nohup: failed to run command 'deepspeed': No such file or directory",
            "nice: failed to run command 'accelerate': No such file or directory",
            "stdbuf: failed to run command 'torchrun': No such file or directory",
            "chroot: failed to run command '/bin/bash': No such file or directory",
            "runcon: failed to run command 'x': No such file or directory",
        ),
        not_examples=("timeout: failed to run command 'train.py': Permission denied",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\benv: ['\u2018](?P<program>\w{1,40})\\r['\u2019]: No such file",
        source="coreutils 8.25-9.7 src/env.c",
        message="The first line of the script ends with a Windows line ending, so `{program}` is not found",
        hint="remove Windows line endings with `dos2unix`, or `sed -i 's/\\r$//' SCRIPT`",
        examples=(
            "/usr/bin/env: 'python3\\r': No such file or directory",
            "/usr/bin/env: \u2018bash\\r\u2019: No such file or directory",
        ),
        not_examples=("/usr/bin/env: 'a b\\r': No such file or directory",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"execve\(\): (?P<program>\S{1,300}): (?P<why>Permission denied|Exec format error)",
        source="slurm 2.2-25.11 src/slurmd/slurmstepd/task.c, with glibc's words",
        message="Slurm could not execute `{program}`: {why}",
        hint="make it executable (`chmod +x`), begin it with `#!/bin/bash`, or name the interpreter in the command (`srun bash SCRIPT`)",
        examples=(
            "slurmstepd: error: execve(): /home/me/run.sh: Permission denied",
            "slurmstepd: error: execve(): /home/me/run.sh: Exec format error",
        ),
        not_examples=("run.sh: Permission denied",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"\b\w{1,40} was unable to (?:find the specified executable file, and therefore did|launch the specified application as it could not (?:access|find)(?: or execute)? an executable)",
        source="openmpi 1.3-4.1 orte/tools/orterun/help-orterun.txt; prrte 1-4 src/mca/schizo/prte/help-prun.txt",
        message="`mpirun` did not find the program that it should start",
        hint="write the full path of the program, and check that it exists on every node; `mpirun` treats the first word that is not one of its options as the program",
        examples=(
            "mpirun was unable to find the specified executable file, and therefore did not",
            "mpirun was unable to launch the specified application as it could not access or execute an executable:",
            "prterun was unable to launch the specified application as it could not find an executable:",
        ),
        not_examples=("- was unable to find the specified executable file, and therefore did",),
        level=Level.STRONG,
        masks=("hostfile-or-ssh-problem", "rank-killed"),
    ),
    Signature(
        pattern=r"(?:HYDU?_\w{1,40}: |HYD_spawn.{0,40}: )?execvp error on file (?P<program>\S{1,300}) \(",
        source="mpich 3.0-4.3 and Intel MPI src/pm/hydra/lib/tools/bootstrap, lib/utils/launch.c",
        message="`mpirun` could not execute `{program}`",
        examples=(
            "[proxy:0:0@n1] HYDU_create_process (utils/launch/launch.c:74): execvp error on file python3 (No such file or directory)",
            "[proxy:0:0@n1] HYD_spawn (launch.c:151): execvp error on file train (No such file or directory)",
        ),
        not_examples=("execvp error on file ",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bbash: (?:line \d+: )?(?P<program>\S{1,300}\.(?:sh|py|bash|slurm)): Permission denied$",
        source="bash 3.2-5.3 execute_cmd.c, with glibc's words for EACCES",
        message="`{program}` may not be executed",
        hint="make it executable (`chmod +x`), or name the interpreter in the command (`bash SCRIPT`, `python SCRIPT`)",
        examples=(
            "bash: ./run.sh: Permission denied",
            "bash: line 1: /home/me/train.py: Permission denied",
            "bash: job.slurm: Permission denied",
            "bash: job.bash: Permission denied",
        ),
        not_examples=("bash: out.log: Permission denied",),
        level=Level.STRONG,
        masks=("path-not-writable",),
    ),
    Signature(
        # a batch script goes on
        pattern=r"(?:\bslurm_script|\S\.(?:sh|slurm|sbatch)): line \d{1,6}: (?P<program>\S{1,300}\.(?:sh|py|bash|slurm)): Permission denied$",
        source="bash 3.2-5.3 execute_cmd.c, with glibc's words for EACCES; slurm names the script it runs slurm_script",
        message="`{program}` may not be executed",
        hint="make it executable (`chmod +x`), or name the interpreter in the script (`bash SCRIPT`, `python SCRIPT`)",
        examples=(
            "/var/spool/slurmd/job7/slurm_script: line 4: ./hosts.sh: Permission denied",
            "run.sh: line 4: ./hosts.py: Permission denied",
            "job.slurm: line 4: ./hosts.bash: Permission denied",
            "job.sbatch: line 4: ./next.slurm: Permission denied",
        ),
        not_examples=("run.sh: line 4: out.log: Permission denied",),
        goes_on=True,
    ),
)
