"""The run was interrupted from the keyboard (Ctrl-C).

## Why it matters
Ctrl-C sends SIGINT to every process of the terminal. Each rank prints a `KeyboardInterrupt` at the
line that it was executing; that line is not a fault. If the run had hung, the last frames show what it
was waiting for.

## What to do
Nothing is wrong if the interruption was intended. If the run had hung, start it again under
`dsdoctor run`, or see where each rank waits with `py-spy dump --pid PID`.

## References
- https://docs.python.org/3/library/exceptions.html#KeyboardInterrupt
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("interrupted-by-user", id="DSD1262", scope=Scope.JOB, since="0.1")

HINT = "nothing to fix if this was intended; if the run had hung, start it again and see where each rank waits with `py-spy dump --pid PID`"

SIGNATURES = (
    Signature(
        # IPython prints a colon even below an exception without a message
        pattern=r"^KeyboardInterrupt(?:: ?)?\s*$|^\^CTraceback|got signal: 2\b|Received 2 death signal|Signals\.SIGINT death signal",
        source="CPython 3.8-3.14; IPython 5-9 core/ultratb.py; torch 1.9-2.13 distributed/elastic",
        examples=(
            "KeyboardInterrupt",
            "KeyboardInterrupt: ",
            "^CTraceback (most recent call last):",
            "SignalException: Process 4711 got signal: 2",
            "Received 2 death signal, shutting down workers",
            "Received Signals.SIGINT death signal, shutting down workers",
        ),
        not_examples=(
            "except KeyboardInterrupt: pass",
            "KeyboardInterrupt: terminated",
            "the process got signal: 28",
        ),
        level=Level.WEAK,
        masks=("rank-killed",),
    ),
    Signature(
        # written over a longer line of a bar, whose end stays: the exception has no text of its own
        pattern=r"^KeyboardInterrupt\S.{0,1000}[\d?](?:it/s|s/it)\]\s*$",
        source="CPython 3.8-3.14, below tqdm 4, as wandb 0.12-0.22 sdk/lib/redirect.py stores a terminal",
        examples=(
            'KeyboardInterruptgine.run_backward(  # py", line 266, in backward  | 0/3 [00:00<?, ?it/s]0:00,  1.11it/s]',
            "KeyboardInterruptloss=1.2 | 9/30 [00:10<00:20, 1.02s/it]",
        ),
        not_examples=("KeyboardInterrupt handler installed, 3 it/s]",),
        level=Level.WEAK,
        masks=("rank-killed",),
    ),
    Signature(
        # the terminal echoes Ctrl-C where the cursor is: in front of what is printed next
        pattern=r"^(?:\^C)+.{0,120}(?:Killing subprocess \d|sigint_handler|Received (?:2|SIGINT) death signal|Sending process \d+ closing signal SIGINT)",
        source="Linux tty driver (ECHOCTL), above deepspeed 0.4-0.19 launcher/launch.py, torch 1.9-2.13 distributed/elastic",
        examples=(
            "^C[2024-05-26 15:06:40,046] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 22523",
            "^C^C[2024-05-26 15:06:40,046] [INFO] [runner.py:570:sigint_handler] x",
            "^CWARNING:torch.distributed.elastic.agent.server.api:Received 2 death signal, shutting down workers",
            "^CW0526 15:06:40.046000 7 api.py:766] Received SIGINT death signal, shutting down workers",
            "^CW0526 15:06:40.046000 7 api.py:861] Sending process 22523 closing signal SIGINT",
        ),
        not_examples=("[launch.py:315:sigkill_handler] Killing subprocess 22523",),
        masks=("rank-killed", "host-oom-killed"),
    ),
    Signature(
        # what DeepSpeed starts on several nodes prints no traceback of the ranks that it ends
        pattern=r"^pdsh@\S{1,253}: interrupt(?:, aborting\.| \(one more within 1 sec to abort\))",
        source="pdsh 2.18-2.36 src/pdsh/dsh.c",
        examples=(
            "pdsh@node01: interrupt (one more within 1 sec to abort)",
            "pdsh@node01: interrupt, aborting.",
        ),
        not_examples=(
            "it says: pdsh@n1: interrupt, aborting.",
            "it says: pdsh@n1: interrupt (one more within 1 sec to abort)",
        ),
        masks=("rank-killed", "host-oom-killed"),
    ),
    Signature(
        pattern=r"srun: sending Ctrl-C to (?:StepId=|job |step )\d",
        source="slurm 2-25.05 src/srun",
        examples=(
            "srun: sending Ctrl-C to StepId=412.0",
            "^Csrun: sending Ctrl-C to job 412.0",
            "srun: sending Ctrl-C to step 412.0",
        ),
        not_examples=("srun: sending Ctrl-C to StepId=",),
        masks=("rank-killed", "host-oom-killed", "job-cancelled", "launcher-killed"),
    ),
    Signature(
        pattern=r"Keyboard interruption in main thread\.\.\. closing server\.",
        source="gradio 2.0-5.49 blocks.py",
        examples=("Keyboard interruption in main thread... closing server.",),
        level=Level.WEAK,
        masks=("rank-killed",),
    ),
    Signature(
        # trainers that end in order, so that Python prints no traceback
        pattern=r"Detected KeyboardInterrupt, attempting graceful shutdown|Keyboard interruption\. Exiting from early training",
        source="lightning 1.0-2.5 pytorch/trainer/call.py; cvnets and corenet engine/training_engine.py",
        examples=(
            "trainer/call.py:54: Detected KeyboardInterrupt, attempting graceful shutdown...",
            "LOGS    - Keyboard interruption. Exiting from early training",
        ),
        masks=("rank-killed",),
    ),
    Signature(
        pattern=r"Main process received SIGINT, exiting",
        source="deepspeed 0.9-0.19 launcher/launch.py",
        examples=(
            "[2025-01-02 03:04:05,678] [INFO] [launch.py:328:sigkill_handler] Main process received SIGINT, exiting",
        ),
        level=Level.LIKELY,
        masks=("rank-killed",),
    ),
)
